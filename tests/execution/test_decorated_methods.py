"""8. Decorators disappear: what binds to an object or a class binds as before."""

import enum
import functools
from abc import ABCMeta, abstractmethod
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import pytest

from retrykit import retry
from tests._support.ways import POLICY, WAYS, failing_twice, passing

T = TypeVar("T")

# What is written in the class, and what its function must be called with.
ATTRIBUTES = {
    "a method": (lambda retried, fn: retried(fn), "object"),
    "above classmethod": (lambda retried, fn: retried(classmethod(fn)), "class"),
    "below classmethod": (lambda retried, fn: classmethod(retried(fn)), "class"),
    "above staticmethod": (lambda retried, fn: retried(staticmethod(fn)), "nothing"),
    "below staticmethod": (lambda retried, fn: staticmethod(retried(fn)), "nothing"),
    "above wrapt": (lambda retried, fn: retried(passing(fn)), "object"),
    "below wrapt": (lambda retried, fn: passing(retried(fn)), "object"),
    "above wrapt and classmethod": (
        lambda retried, fn: retried(passing(classmethod(fn))),
        "class",
    ),
    "above wrapt and staticmethod": (
        lambda retried, fn: retried(passing(staticmethod(fn))),
        "nothing",
    ),
    "below wrapt and above classmethod": (
        lambda retried, fn: passing(retried(classmethod(fn))),
        "class",
    ),
    "below singledispatchmethod": (
        lambda retried, fn: functools.singledispatchmethod(retried(fn)),
        "object",
    ),
    "below partialmethod": (
        lambda retried, fn: functools.partialmethod(retried(fn)),
        "object",
    ),
}
ABSTRACT = {
    "above abstractmethod": (lambda retried, fn: retried(abstractmethod(fn)), "object"),
    "below abstractmethod": (lambda retried, fn: abstractmethod(retried(fn)), "object"),
    "above abstract classmethod": (
        lambda retried, fn: retried(classmethod(abstractmethod(fn))),
        "class",
    ),
    "below abstract classmethod": (
        lambda retried, fn: classmethod(abstractmethod(retried(fn))),
        "class",
    ),
    "above abstract staticmethod": (
        lambda retried, fn: retried(staticmethod(abstractmethod(fn))),
        "nothing",
    ),
    "below abstract staticmethod": (
        lambda retried, fn: staticmethod(abstractmethod(retried(fn))),
        "nothing",
    ),
}


def in_an_object(base, _kind):
    client = base()
    return client.get, client


def in_an_object_of_a_subclass(base, _kind):
    client = type("Client", (base,), {})()
    return client.get, client


def by_super(base, _kind):
    class Client(base):
        def get(self, *args, **kwargs):
            return super().get(*args, **kwargs)

    client = Client()
    return client.get, client


def kept_for_later(base, _kind):
    clients = [base(), base()]
    gets = [client.get for client in clients]
    return gets[0], clients[0]


def through_its_class(base, kind):
    client = base()
    get = functools.partial(base.get, client) if kind == "object" else base.get
    return get, client


PLACES = [
    in_an_object,
    in_an_object_of_a_subclass,
    by_super,
    kept_for_later,
    through_its_class,
]


def check(get, receiver, seen, run):
    assert run(functools.partial(get, "a", key="b")) == "value"
    assert seen == [((*receiver, "a"), {"key": "b"})] * 3


def received(kind, client):
    return {"object": (client,), "class": (type(client),), "nothing": ()}[kind]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_is_called_on_its_receiver_until_it_succeeds(clock, attribute, place, way):
    colour, retried, run = WAYS[way]
    make, kind = ATTRIBUTES[attribute]
    seen = []
    base = type("Base", (), {"get": make(retried, colour(failing_twice(seen)))})
    get, client = place(base, kind)
    check(get, received(kind, client), seen, run)
    assert clock.sleeps == [1.0, 2.0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("attribute", ABSTRACT)
def test_an_abstract_method_is_retried_when_its_override_calls_it(
    clock, attribute, way
):
    colour, retried, run = WAYS[way]
    make, kind = ABSTRACT[attribute]
    seen = []
    base = ABCMeta("Base", (), {"get": make(retried, colour(failing_twice(seen)))})
    with pytest.raises(TypeError, match="abstract"):
        base()
    get, client = by_super(base, kind)
    check(get, received(kind, client), seen, run)
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


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_is_a_method_of_every_kind_of_class(clock, kind, way):
    colour, retried, run = WAYS[way]
    seen = []
    client = kind(retried(colour(failing_twice(seen))))
    check(client.get, (client,), seen, run)
    assert clock.sleeps == [1.0, 2.0]


def test_an_implementation_of_a_singledispatchmethod_is_retried(clock):
    seen = []

    class Client:
        @functools.singledispatchmethod
        def get(self, value):
            return f"any {value}"

        get.register(str, retry(POLICY)(failing_twice(seen)))

    client = Client()
    assert (client.get(5), client.get("a")) == ("any 5", "value")
    assert seen == [((client, "a"), {})] * 3
    assert clock.sleeps == [1.0, 2.0]
