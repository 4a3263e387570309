"""7. Nothing is silently not retried: awaitables that only a call can reveal."""

import asyncio
import functools
import gc
import inspect
import warnings
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

import pytest

from retrykit import ConfigError, Policy, RetryState, aretry, resume, retry, with_policy
from tests._support.optional_trio import trio

POLICY = Policy(schedule=[1, 2])
STATE = RetryState("fetch", seed=7, epoch=0.0)


class HiddenAwaitable:
    """A plain function that returns an awaitable, and records it."""

    def __init__(self, make):
        self.make = make
        self.returned = []

    def __call__(self):
        self.returned.append(self.make())
        return self.returned[-1]


async def fetch():
    raise OSError("refused")


class Answer:
    def __await__(self):
        yield


def future():
    return asyncio.get_running_loop().create_future()


AWAITABLES = {"coroutine": fetch, "future": future, "object": Answer}
SYNC_FORMS = {
    "retry": retry(POLICY),
    "with_policy": lambda fn: with_policy(fn, POLICY),
    "resume": lambda fn: resume(fn, STATE, POLICY),
    "call": lambda fn: functools.partial(POLICY.call, fn),
    "run": lambda fn: functools.partial(POLICY.run, fn),
    "on_result": retry(POLICY, on_result=lambda result: result is None),
}


async def call_in_a_loop(fn, *args):
    """Call a function inside of an event loop, which futures need."""
    return fn(*args)


@pytest.mark.parametrize("form", SYNC_FORMS)
@pytest.mark.parametrize("kind", AWAITABLES)
def test_an_awaitable_is_rejected_by_the_first_call(clock, kind, form):
    hidden = HiddenAwaitable(AWAITABLES[kind])
    with pytest.raises(ConfigError) as caught:
        asyncio.run(call_in_a_loop(SYNC_FORMS[form](hidden)))
    (awaitable,) = hidden.returned
    message = caught.value.message
    assert "must be a function that returns its result directly, under retry" in message
    assert message.endswith("; decorate it with aretry")
    assert repr(awaitable).split()[0] in message
    assert clock.sleeps == []


@pytest.mark.parametrize("form", ["retry", "on_result"])
@pytest.mark.parametrize("kind", AWAITABLES)
def test_an_awaitable_is_rejected_after_plain_results(kind, form):
    """Like a function that returns a cached value, or else a coroutine."""

    async def main():
        returned = ["cached", 7, "cached", AWAITABLES[kind]()]
        get = SYNC_FORMS[form](lambda: returned.pop(0))
        assert [get() for _ in range(3)] == ["cached", 7, "cached"]
        with pytest.raises(ConfigError, match="decorate it with aretry"):
            get()

    asyncio.run(main())


def test_a_coroutine_returned_by_a_coroutine_function_is_its_result():
    async def main():
        get = retry(POLICY)(fetch_later)
        return [await (await get()) for _ in range(3)]

    async def fetch_later():
        return get_later()

    async def get_later():
        return 42

    assert asyncio.run(main()) == [42] * 3


def test_a_coroutine_returned_after_a_plain_result_is_a_result():
    async def main():
        returned = ["plain", get_later()]
        get = retry(POLICY)(functools.partial(take, returned))
        return await get(), await (await get())

    async def take(returned):
        return returned.pop(0)

    async def get_later():
        return 42

    assert asyncio.run(main()) == ("plain", 42)


def test_the_error_names_the_function_and_the_awaitable():
    hidden = HiddenAwaitable(fetch)

    def get():
        return hidden()

    with pytest.raises(ConfigError) as caught:
        retry(get)()
    assert caught.value.message == (
        f"{__name__}.{get.__qualname__} must be a function that returns its result "
        f"directly, under retry, got {hidden.returned[0]!r}; decorate it with aretry"
    )


@pytest.mark.usefixtures("quick_collector")
@pytest.mark.parametrize("form", SYNC_FORMS)
def test_a_rejected_coroutine_is_closed_without_a_warning(form):
    hidden = HiddenAwaitable(fetch)
    with pytest.raises(ConfigError):
        SYNC_FORMS[form](hidden)()
    assert inspect.getcoroutinestate(hidden.returned[0]) == inspect.CORO_CLOSED
    # A coroutine that was neither awaited nor closed would warn when it is freed.
    with warnings.catch_warnings(record=True) as emitted:
        warnings.simplefilter("always")
        hidden.returned.clear()
        gc.collect()
    assert emitted == []


def test_a_rejected_coroutine_is_not_started():
    started = []

    async def start():
        started.append(1)

    with pytest.raises(ConfigError):
        retry(functools.lru_cache(start))()
    assert started == []


@pytest.mark.parametrize("failures", [0, 1, 2], ids=["first", "second", "third"])
def test_an_awaitable_is_rejected_in_every_attempt(clock, failures):
    calls = []

    def get():
        calls.append(1)
        if len(calls) <= failures:
            raise OSError
        return fetch()

    with pytest.raises(ConfigError, match="decorate it with aretry"):
        retry(POLICY)(get)()
    assert len(calls) == failures + 1
    assert clock.sleeps == [1.0, 2.0][:failures]


def test_an_awaitable_is_rejected_by_every_call():
    get = retry(POLICY)(HiddenAwaitable(fetch))
    for _ in range(3):
        with pytest.raises(ConfigError, match="decorate it with aretry"):
            get()


def test_the_error_about_an_awaitable_is_not_retried_by_an_outer_call(clock):
    """An invalid setting is invalid every time."""
    hidden = HiddenAwaitable(fetch)

    @retry(schedule=[5, 5])
    def outer():
        return retry(POLICY)(hidden)()

    with pytest.raises(ConfigError):
        outer()
    assert (len(hidden.returned), clock.sleeps) == (1, [])


def annotated_as_int() -> int:
    return annotated_as_int.calls.append(1)


def annotated_as_none() -> None:
    annotated_as_int.calls.append(1)


annotated_as_int.calls = []


class Client:
    get = annotated_as_int

    @classmethod
    def named(cls) -> str:
        annotated_as_int.calls.append(cls)


PLAIN = {
    "function": annotated_as_int,
    "function that returns None": annotated_as_none,
    "bound method": Client().get,
    "bound classmethod": Client.named,
}


@pytest.mark.parametrize("kind", PLAIN)
def test_aretry_rejects_a_function_annotated_with_a_plain_result(kind):
    fn = PLAIN[kind]
    with pytest.raises(ConfigError) as caught:
        aretry(fn)
    assert caught.value.message == (
        "fn must be a coroutine function, or one that returns an awaitable, under "
        f"aretry, got {fn!r}; decorate it with retry"
    )
    assert annotated_as_int.calls == []


def under_asyncio(fn):
    return asyncio.run(fn())


ANNOTATIONS = {
    "Awaitable": Awaitable[int],
    "Coroutine": Coroutine[Any, Any, int],
    "Future": asyncio.Future,
    "Task": asyncio.Task[int],
    "text": "int",
    "object": object,
    "Any": Any,
    "a custom type": Answer,
    "a union": Awaitable[int] | int,
    "a type variable": TypeVar("T"),
}


@pytest.mark.parametrize("kind", ANNOTATIONS)
def test_aretry_accepts_a_function_that_may_return_an_awaitable(clock, kind):
    calls = []

    async def get_later():
        if len(calls) < 3:
            raise OSError
        return "value"

    def get():
        calls.append(1)
        return get_later()

    get.__annotations__["return"] = ANNOTATIONS[kind]
    assert asyncio.run(aretry(POLICY)(get)()) == "value"
    assert (len(calls), clock.sleeps) == (3, [1.0, 2.0])


@pytest.mark.parametrize("run", [under_asyncio, trio.run])
def test_aretry_rejects_a_plain_result_in_the_first_call(clock, run):
    calls = []

    def get():
        calls.append(1)
        return "value"

    with pytest.raises(ConfigError) as caught:
        run(aretry(POLICY)(get))
    assert caught.value.message == (
        "fn must be a function that returns an awaitable, under aretry, "
        f"got {get!r}; decorate it with retry"
    )
    assert (len(calls), clock.sleeps) == (1, [])
