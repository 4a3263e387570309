"""8. Decorators disappear: methods bind to their object or class."""

import enum
import functools
from abc import ABCMeta, abstractmethod
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import pytest

from retrykit import retry
from tests._support.function_variants import POLICY, VARIANTS, fails_twice, passthrough

T = TypeVar("T")

# Definitions of methods, and the expected receiver of their function.
ATTRIBUTES = {
    "a method": (lambda decorate, fn: decorate(fn), "object"),
    "above classmethod": (lambda decorate, fn: decorate(classmethod(fn)), "class"),
    "below classmethod": (lambda decorate, fn: classmethod(decorate(fn)), "class"),
    "above staticmethod": (lambda decorate, fn: decorate(staticmethod(fn)), "nothing"),
    "below staticmethod": (lambda decorate, fn: staticmethod(decorate(fn)), "nothing"),
    "above wrapt": (lambda decorate, fn: decorate(passthrough(fn)), "object"),
    "below wrapt": (lambda decorate, fn: passthrough(decorate(fn)), "object"),
    "above wrapt and classmethod": (
        lambda decorate, fn: decorate(passthrough(classmethod(fn))),
        "class",
    ),
    "above wrapt and staticmethod": (
        lambda decorate, fn: decorate(passthrough(staticmethod(fn))),
        "nothing",
    ),
    "below wrapt and above classmethod": (
        lambda decorate, fn: passthrough(decorate(classmethod(fn))),
        "class",
    ),
    "below singledispatchmethod": (
        lambda decorate, fn: functools.singledispatchmethod(decorate(fn)),
        "object",
    ),
    "below partialmethod": (
        lambda decorate, fn: functools.partialmethod(decorate(fn)),
        "object",
    ),
}
ABSTRACT = {
    "above abstractmethod": (
        lambda decorate, fn: decorate(abstractmethod(fn)),
        "object",
    ),
    "below abstractmethod": (
        lambda decorate, fn: abstractmethod(decorate(fn)),
        "object",
    ),
    "above abstract classmethod": (
        lambda decorate, fn: decorate(classmethod(abstractmethod(fn))),
        "class",
    ),
    "below abstract classmethod": (
        lambda decorate, fn: classmethod(abstractmethod(decorate(fn))),
        "class",
    ),
    "above abstract staticmethod": (
        lambda decorate, fn: decorate(staticmethod(abstractmethod(fn))),
        "nothing",
    ),
    "below abstract staticmethod": (
        lambda decorate, fn: staticmethod(abstractmethod(decorate(fn))),
        "nothing",
    ),
}


def on_an_object(base, _kind):
    client = base()
    return client.get, client


def on_an_object_of_a_subclass(base, _kind):
    client = type("Client", (base,), {})()
    return client.get, client


def through_super(base, _kind):
    class Client(base):
        def get(self, *args, **kwargs):
            return super().get(*args, **kwargs)

    client = Client()
    return client.get, client


def stored_first(base, _kind):
    clients = [base(), base()]
    gets = [client.get for client in clients]
    return gets[0], clients[0]


def on_its_class(base, kind):
    client = base()
    get = functools.partial(base.get, client) if kind == "object" else base.get
    return get, client


ACCESSES = [
    on_an_object,
    on_an_object_of_a_subclass,
    through_super,
    stored_first,
    on_its_class,
]


def check(get, receiver, seen, run):
    assert run(functools.partial(get, "a", key="b")) == "value"
    assert seen == [((*receiver, "a"), {"key": "b"})] * 3


def expected_receiver(kind, client):
    return {"object": (client,), "class": (type(client),), "nothing": ()}[kind]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("access", ACCESSES, ids=lambda access: access.__name__)
@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_a_method_is_called_on_its_receiver_until_it_succeeds(
    clock, attribute, access, variant
):
    as_kind, decorate, run = VARIANTS[variant]
    make, kind = ATTRIBUTES[attribute]
    seen = []
    base = type("Base", (), {"get": make(decorate, as_kind(fails_twice(seen)))})
    get, client = access(base, kind)
    check(get, expected_receiver(kind, client), seen, run)
    assert clock.sleeps == [1.0, 2.0]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("attribute", ABSTRACT)
def test_an_abstract_method_is_retried_when_its_override_calls_it(
    clock, attribute, variant
):
    as_kind, decorate, run = VARIANTS[variant]
    make, kind = ABSTRACT[attribute]
    seen = []
    base = ABCMeta("Base", (), {"get": make(decorate, as_kind(fails_twice(seen)))})
    with pytest.raises(TypeError, match="abstract"):
        base()
    get, client = through_super(base, kind)
    check(get, expected_receiver(kind, client), seen, run)
    assert clock.sleeps == [1.0, 2.0]


def of_a_dataclass(fn):
    @dataclass(frozen=True, slots=True)
    class Client:
        host: str
        get = fn

    return Client("localhost")


def of_a_protocol(fn):
    class Gets(Protocol):
        get = fn

    class Client(Gets):
        pass

    return Client()


def of_a_generic_class(fn):
    class Client(Generic[T]):
        get = fn

    return Client[int]()


def of_an_enum(fn):
    class Client(enum.Enum):
        MAIN = 1
        get = fn

    return Client.MAIN


def of_a_named_tuple(fn):
    class Client(NamedTuple):
        host: str
        get = fn

    return Client("localhost")


def of_a_metaclass(fn):
    class Meta(type):
        get = fn

    return Meta("Client", (), {})


CLASSES = [
    of_a_dataclass,
    of_a_protocol,
    of_a_generic_class,
    of_an_enum,
    of_a_named_tuple,
    of_a_metaclass,
]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_method_of_every_kind_of_class_is_retried(clock, kind, variant):
    as_kind, decorate, run = VARIANTS[variant]
    seen = []
    client = kind(decorate(as_kind(fails_twice(seen))))
    check(client.get, (client,), seen, run)
    assert clock.sleeps == [1.0, 2.0]


def test_an_implementation_of_a_singledispatchmethod_is_retried(clock):
    seen = []

    class Client:
        @functools.singledispatchmethod
        def get(self, value):
            return f"any {value}"

        get.register(str, retry(POLICY)(fails_twice(seen)))

    client = Client()
    assert (client.get(5), client.get("a")) == ("any 5", "value")
    assert seen == [((client, "a"), {})] * 3
    assert clock.sleeps == [1.0, 2.0]
