"""8. Decorators disappear: definition, overriding and comparison of methods."""

import asyncio
import functools
from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

import pytest
import wrapt

from retrykit import Policy, aretry, retry
from tests._support.function_variants import passthrough

POLICY = Policy(schedule=[1, 2], on=OSError)


def test_the_getter_of_an_abstract_property_may_be_retried():
    class Base(ABC):
        @property
        @abstractmethod
        @retry
        def value(self): ...

    class Client(Base):
        value = 2

    with pytest.raises(TypeError, match="abstract"):
        Base()
    assert Base.__abstractmethods__ == {"value"}
    assert Client().value == 2


def test_a_retried_override_and_its_retried_base_both_retry(clock):
    seen = []

    class Base:
        @retry(schedule=[1], on=OSError)
        def get(self, key):
            seen.append((self, key))
            raise OSError(key)

    class Client(Base):
        @retry(schedule=[5], on=OSError, nested="retry")
        def get(self, key):
            return super().get(f"{key}!")

    client = Client()
    with pytest.raises(OSError, match="a!"):
        client.get("a")
    assert seen == [(client, "a!")] * 4
    assert clock.sleeps == [1.0, 5.0, 1.0]


def test_a_retried_async_override_awaits_its_base(clock, flaky):
    body = flaky(OSError(), "value")

    class Base:
        @retry(POLICY)
        async def get(self):
            return body()

    class Client(Base):
        @retry(POLICY)
        async def get(self):
            return [await super().get()]

    assert asyncio.run(Client().get()) == ["value"]
    assert (len(body.calls), clock.sleeps) == (2, [1.0])


def test_static_coroutine_functions_are_retried_below_retry(clock, flaky):
    """`@retry` above `@staticmethod async def` must not disable retries."""
    body = flaky(OSError(), OSError(), "value")

    class Client:
        @retry(POLICY)
        @staticmethod
        async def get():
            return body()

    assert asyncio.run(Client().get()) == "value"
    assert (len(body.calls), clock.sleeps) == (3, [1.0, 2.0])


@pytest.mark.parametrize("place", ["above", "below"])
def test_a_wrapt_decorator_sees_the_object_of_a_method(clock, flaky, place):
    body = flaky(OSError(), "value")
    seen = []

    @wrapt.decorator
    def watched(wrapped, instance, args, kwargs):
        seen.append((instance, args))
        return wrapped(*args, **kwargs)

    def get(_self, _key):
        return body()

    class Client:
        above = watched(retry(POLICY)(get))
        below = retry(POLICY)(watched(get))

    client = Client()
    assert getattr(client, place)("a") == "value"
    assert seen == [(client, ("a",))] * {"above": 1, "below": 2}[place]
    assert clock.sleeps == [1.0]


def test_a_method_that_returns_an_awaitable_is_retried_on_its_object(clock, flaky):
    body = flaky(OSError(), "value")

    class Client:
        @aretry(POLICY)
        @passthrough
        def get(self, key):
            return self.later(key)

        async def later(self, key):
            return self, key, body()

    client = Client()
    assert asyncio.run(client.get("a")) == (client, "a", "value")
    assert clock.sleeps == [1.0]


def test_a_callable_that_does_not_bind_does_not_bind_if_decorated():
    class Fetcher:
        def __call__(self, *args):
            return args

    class Client:
        get = retry(Fetcher())
        size = retry(len)

    assert Client().get(1) == Client.get(1) == (1,)
    assert Client().size("ab") == Client.size("ab") == 2


@pytest.mark.parametrize("binds", [False, True], ids=["not bound", "bound"])
def test_set_name_is_called(binds):
    class Named:
        def __set_name__(self, owner, name):
            self.name = name

        def __call__(self, *args):
            return self.name

    class Bound(Named):
        def __get__(self, instance, owner=None):
            return self if instance is None else functools.partial(self, instance)

    class Client:
        get = retry(on=OSError)(Bound() if binds else Named())

    assert Client().get() == Client.get() == "get"


def test_bound_methods_are_equal_when_their_objects_are_the_same():
    class Client:
        @retry
        def get(self): ...

    client, other = Client(), Client()
    assert client.get == client.get
    assert hash(client.get) == hash(client.get)
    assert client.get != other.get
    assert client.get.__self__ is client
    assert client.get.__func__ is Client.get
    assert {client.get: 1}[client.get] == 1


def test_a_method_knows_its_name_in_the_class():
    class Client:
        @retry
        def get(self): ...

    assert Client.get.__qualname__.endswith("<locals>.Client.get")
    assert Client().get.__name__ == "get"
    assert repr(Client().get).startswith(f"<bound method {Client.get.__qualname__} of ")


def test_a_decorated_method_satisfies_a_protocol():
    @runtime_checkable
    class Gets(Protocol):
        def get(self): ...

    class Client:
        @retry
        def get(self): ...

    assert isinstance(Client(), Gets)
    assert not isinstance(object(), Gets)


def test_init_subclass_and_new_stay_implicitly_bound(clock, flaky):
    body = flaky(OSError(), "value", OSError(), OSError(), "value")
    created = []

    class Base:
        @retry(POLICY)
        def __init_subclass__(cls, **options):
            created.append((cls, options, body()))

        @retry(POLICY)
        def __new__(cls):
            return body() and super().__new__(cls)

    class Client(Base, key="b"):
        pass

    assert created == [(Client, {"key": "b"}, "value")]
    assert type(Client()) is Client
    assert clock.sleeps == [1.0, 1.0, 2.0]


def test_enter_and_aenter_are_retried(clock, flaky):
    body = flaky(OSError(), "value", OSError(), "value")

    class Connection:
        @retry(POLICY)
        def __enter__(self):
            return self, body()

        def __exit__(self, *exit_): ...

        @retry(POLICY)
        async def __aenter__(self):
            return self, body()

        async def __aexit__(self, *exit_): ...

    async def main(connection):
        async with connection as entered:
            return entered

    with (connection := Connection()) as entered:
        assert entered == (connection, "value")
    assert asyncio.run(main(connection)) == (connection, "value")
    assert clock.sleeps == [1.0, 1.0]
