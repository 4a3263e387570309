"""8. Decorators disappear: `inspect` and its like see the undecorated function."""

import asyncio
import contextlib
import copy
import doctest
import functools
import inspect
import pickle
import pydoc
import re
import types
import typing
from typing import Any
from unittest import mock

import pytest

from retrykit import Policy, aretry, retry, with_policy
from retrykit._internal.introspection import (
    accepts_no_argument,
    is_awaitable,
    is_coroutine_function,
    is_generator_function,
    is_plain_function,
)
from tests._support.function_variants import passthrough

POLICY = Policy(schedule=[1, 2], on=OSError)


def fetch(url: str, /, *options: "Options", timeout: float = 1.5) -> list[bytes]:
    """Fetch a page.

    >>> fetch("here")
    [b'here']
    """
    return [url.encode(), *options, timeout][:1]


async def afetch(url: "Options", **headers: str) -> bytes:
    """Fetch a page, later."""
    return bytes(url, **headers)


def task(url: str) -> "asyncio.Task[bytes]":
    """Fetch a page in a task."""
    return asyncio.ensure_future(afetch(url))


Options = str


class Page:
    """A page to fetch."""

    url = "here"

    def get(self, key: int) -> str:
        """Get the page."""
        return self.url * key

    async def aget(self) -> str:
        """Get the page, later."""
        return self.url

    @classmethod
    def made(cls, url: str) -> "Page":
        """Make a page."""
        return cls() if url else Page()

    def __call__(self, key: int) -> str:
        """Get the page by a call."""
        return self.get(key)

    def __repr__(self):
        return "Page()"


class Retried(Page):
    get = retry(POLICY)(Page.get)
    aget = retry(POLICY)(Page.aget)
    made = retry(POLICY)(vars(Page)["made"])


PAGE = Page()
RETRIED = Retried()
PLAIN = {
    "function": fetch,
    "coroutine function": afetch,
    "lambda": lambda url, *, timeout=1: (url, timeout),
    "partial": functools.partial(fetch, timeout=3),
    "partial of a coroutine function": functools.partial(afetch, "here"),
    "builtin": len,
    "method of a builtin": "here".encode,
    "cached function": functools.lru_cache(fetch),
    "function under wrapt": passthrough(fetch),
    "coroutine function under wrapt": passthrough(afetch),
    "singledispatch function": functools.singledispatch(Page.get),
    "callable object": PAGE,
    "bound method": PAGE.get,
    "bound coroutine method": PAGE.aget,
    "bound classmethod": Page.made,
    "bound method of a callable object": PAGE.__call__,
}
# The undecorated callable and the decorated one.
SUBJECTS = {kind: (fn, retry(POLICY)(fn)) for kind, fn in PLAIN.items()}
SUBJECTS |= {
    "method": (Page.get, Retried.get),
    "coroutine method": (Page.aget, Retried.aget),
    "method of an object": (PAGE.get, RETRIED.get),
    "coroutine method of an object": (PAGE.aget, RETRIED.aget),
    "classmethod": (Page.made, Retried.made),
    "function under another policy": (fetch, with_policy(retry(fetch), POLICY)),
    "coroutine function under another policy": (
        afetch,
        with_policy(retry(afetch), POLICY),
    ),
}
PROBES = {
    "inspect.signature": inspect.signature,
    "inspect.iscoroutinefunction": inspect.iscoroutinefunction,
    "inspect.isgeneratorfunction": inspect.isgeneratorfunction,
    "inspect.isasyncgenfunction": inspect.isasyncgenfunction,
    "inspect.isawaitable": inspect.isawaitable,
    "inspect.isfunction": inspect.isfunction,
    "inspect.ismethod": inspect.ismethod,
    "inspect.isbuiltin": inspect.isbuiltin,
    "inspect.isroutine": inspect.isroutine,
    "inspect.isclass": inspect.isclass,
    "inspect.isabstract": inspect.isabstract,
    "inspect.getdoc": inspect.getdoc,
    "inspect.getmodule": inspect.getmodule,
    "inspect.getsource": inspect.getsource,
    "typing.get_type_hints": typing.get_type_hints,
    "repr": lambda fn: re.sub(" at 0x[0-9a-f]+", "", repr(fn)).replace(
        "Retried", "Page"
    ),
    "callable": callable,
    "__name__": lambda fn: fn.__name__,
    "__qualname__": lambda fn: fn.__qualname__,
    "__module__": lambda fn: fn.__module__,
    "__doc__": lambda fn: fn.__doc__,
    "__annotations__": lambda fn: fn.__annotations__,
    "__isabstractmethod__": lambda fn: fn.__isabstractmethod__,
    "FunctionType": lambda fn: isinstance(fn, types.FunctionType),
    "MethodType": lambda fn: isinstance(fn, types.MethodType),
    "partial": lambda fn: isinstance(fn, functools.partial),
    "__self__": lambda fn: fn.__self__ in {PAGE, RETRIED, Page, Retried, "here"},
    "dir": lambda fn: set(dir(fn)) - {"__wrapped__", "__retrykit__", "__signature__"},
}


def answer(probe, fn):
    """Return the answer of a probe about a callable, or the type of its error."""
    try:
        return PROBES[probe](fn)
    except (AttributeError, TypeError, ValueError) as error:
        return type(error)


@pytest.mark.parametrize("kind", SUBJECTS)
def test_a_decorated_callable_looks_like_the_original(kind):
    before, after = (
        {probe: answer(probe, fn) for probe in PROBES} for fn in SUBJECTS[kind]
    )
    assert after == before


@pytest.mark.parametrize("kind", SUBJECTS)
def test_who_reads_the_annotations_of_its_class_changes_none_of_its_own(kind):
    plain, decorated = SUBJECTS[kind]
    # Before Python 3.14, this puts an empty dict in the class, if there is none.
    assert isinstance(getattr(type(decorated), "__annotations__", {}), dict)
    for probe in "__annotations__", "typing.get_type_hints":
        assert answer(probe, decorated) == answer(probe, plain)


def test_annotations_are_set_and_deleted_on_the_function():
    def find(key: int) -> str:
        return str(key)

    plain = functools.partial(find)
    plain.__annotations__ = find.__annotations__
    for fn in find, plain:
        decorated = with_policy(retry(fn), POLICY)
        decorated.__annotations__ = {"key": str}
        assert fn.__annotations__ == {"key": str}
        del decorated.__annotations__
        assert getattr(fn, "__annotations__", {}) == {}


@pytest.mark.parametrize("probe", PROBES)
def test_a_probe_can_tell_one_callable_from_another(probe):
    answers = [answer(probe, plain) for plain, _ in SUBJECTS.values()]
    always = {"inspect.isawaitable", "inspect.isclass", "inspect.isabstract"}
    always |= {"inspect.isgeneratorfunction", "inspect.isasyncgenfunction", "callable"}
    always |= {"__isabstractmethod__"}
    assert any(one != answers[0] for one in answers) is (probe not in always)


# For an object, help would describe its class as well.
HELPED = [kind for kind in SUBJECTS if kind[:7] not in {"partial", "callabl"}]


@pytest.mark.parametrize("kind", HELPED)
def test_help_shows_the_function_itself(kind):
    plain, decorated = (pydoc.plaintext.document(fn) for fn in SUBJECTS[kind])
    assert decorated.replace("Retried", "Page") == plain


OLDER = {
    "inspect.getfullargspec": inspect.getfullargspec,
    "__defaults__": lambda fn: fn.__defaults__,
    "__kwdefaults__": lambda fn: fn.__kwdefaults__,
}


@pytest.mark.parametrize("probe", OLDER)
@pytest.mark.parametrize("kind", ["function", "coroutine function", "lambda"])
def test_tools_that_ignore_wrapped_see_the_function_too(kind, probe):
    plain, decorated = SUBJECTS[kind]
    assert OLDER[probe](decorated) == OLDER[probe](plain)


@pytest.mark.filterwarnings("ignore:'?asyncio.iscoroutinefunction:DeprecationWarning")
@pytest.mark.parametrize("kind", SUBJECTS)
def test_asyncio_sees_the_same_kind_of_function(kind):
    plain, decorated = SUBJECTS[kind]
    is_coroutine_function = asyncio.iscoroutinefunction(plain)
    assert asyncio.iscoroutinefunction(decorated) is is_coroutine_function


def test_aretry_makes_a_coroutine_function():
    assert inspect.iscoroutinefunction(aretry(task))
    assert inspect.iscoroutinefunction(aretry(afetch))
    assert not inspect.iscoroutinefunction(task)


@pytest.mark.parametrize("kind", PLAIN)
def test_wrapped_is_the_function_itself(kind):
    plain, decorated = SUBJECTS[kind]
    assert decorated.__wrapped__ is plain
    assert inspect.unwrap(decorated) is inspect.unwrap(plain)


@pytest.mark.parametrize("kind", SUBJECTS)
def test_a_callable_is_equal_to_itself_and_keeps_its_hash(kind):
    _, decorated = SUBJECTS[kind]
    assert decorated == decorated  # noqa: PLR0124  calls its __eq__
    assert hash(decorated) == hash(decorated)
    assert {decorated: kind}[decorated] == kind


def test_attributes_of_a_function_are_visible_and_can_be_set():
    def get():
        return get

    get.route = "/"
    decorated: Any = retry(get)
    assert decorated.route == "/"
    decorated.timeout = 5
    assert (decorated.timeout, vars(decorated)["timeout"]) == (5, 5)
    decorated.__doc__ = "Another."
    decorated.__name__ = "other"
    assert (decorated.__doc__, decorated.__name__) == ("Another.", "other")
    del decorated.timeout
    assert not hasattr(decorated, "timeout")
    assert not hasattr(get, "timeout")


def test_attributes_of_a_method_are_visible_on_its_objects():
    class Client:
        @retry
        def get(self): ...

        get.route = "/"

    assert Client().get.route == Client.get.route == "/"
    with pytest.raises(AttributeError):
        Client().get.route = "/other"


def test_setting_an_attribute_sets_it_on_the_callable_object():
    page = Page()
    decorated = retry(page)
    decorated.url = "there"
    assert (page.url, decorated(2)) == ("there", "therethere")
    assert isinstance(decorated, Page)


def test_a_misspelled_attribute_raises_attribute_error():
    with pytest.raises(AttributeError, match="attempts"):
        _ = retry(fetch).attempts


def test_doctest_finds_the_examples_of_a_decorated_function():
    module = types.ModuleType(__name__)
    module.fetch = retry(fetch)
    tests = doctest.DocTestFinder().find(module, module=inspect.getmodule(fetch))
    found = {test.name: test for test in tests}
    assert [e.source for e in found[f"{__name__}.fetch"].examples] == [
        'fetch("here")\n'
    ]


def test_a_function_with_an_invalid_signature_can_be_decorated():
    def get(page):
        return page

    get.__signature__ = 5
    assert retry(get)("a") == "a"
    with pytest.raises(TypeError, match="unexpected object"):
        inspect.signature(retry(get))


def test_arguments_can_be_bound_to_the_signature():
    bound = inspect.signature(retry(fetch)).bind("here", "a", timeout=2)
    assert bound.arguments == {"url": "here", "options": ("a",), "timeout": 2}
    with pytest.raises(TypeError, match="too many positional arguments"):
        inspect.signature(RETRIED.get).bind(1, 2)


def test_a_signature_can_be_pickled_and_compared():
    plain, decorated = inspect.signature(fetch), inspect.signature(retry(fetch))
    assert {plain: 1}[decorated] == 1
    assert (repr(decorated), str(decorated)) == (repr(plain), str(plain))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(decorated, protocol)) == plain  # noqa: S301
    assert copy.deepcopy(decorated) == plain
    assert decorated.replace(parameters=[]) == plain.replace(parameters=[])


class Awaited:
    def __await__(self):
        yield


def plain_generator():
    yield


@types.coroutine
def marked_generator():
    yield


async def coroutine():
    """Do nothing."""


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (coroutine, True),
        (marked_generator, True),
        (Awaited, True),
        (plain_generator, False),
        (int, False),
        (lambda: None, False),
    ],
    ids=["coroutine", "types.coroutine", "__await__", "generator", "int", "None"],
)
def test_awaitable_is_what_inspect_calls_so(make, expected):
    value = make()
    assert is_awaitable(value) is inspect.isawaitable(value) is expected
    if inspect.iscoroutine(value):
        value.close()


async def agenerate():
    yield


def marked():
    return coroutine()


if hasattr(inspect, "markcoroutinefunction"):
    inspect.markcoroutinefunction(marked)


FUNCTIONS = {
    "generator function": plain_generator,
    "marked generator function": marked_generator,
    "async generator function": agenerate,
    "function that is marked": marked,
    "context manager": contextlib.contextmanager(plain_generator),
    "class": Page,
    "number": 5,
    "mock": mock.Mock(),
    "async mock": mock.AsyncMock(),
    "mock of an async function": mock.create_autospec(coroutine),
}


@pytest.mark.parametrize("kind", {**PLAIN, **FUNCTIONS})
def test_functions_are_what_inspect_calls_them(kind):
    value = {**PLAIN, **FUNCTIONS}[kind]
    called = (
        inspect.iscoroutinefunction(value),
        (inspect.isgeneratorfunction(value) or inspect.isasyncgenfunction(value)),
    )
    assert is_generator_function(value) is called[1]
    assert is_coroutine_function(value) is called[0]
    assert not (is_plain_function(value) and any(called))


def test_most_functions_are_plain():
    assert is_plain_function(lambda: 0)
    assert not is_plain_function(print)


def test_what_has_no_signature_may_accept_no_argument():
    assert accepts_no_argument(max)
    assert accepts_no_argument(list)
    assert not accepts_no_argument(len)
