"""7. Nothing is silently not retried: nor what only its first call can show."""

import asyncio
import functools
import gc
import inspect
import warnings
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

import pytest
import trio

from retrykit import ConfigError, Policy, RetryState, aretry, resume, retry, with_policy

POLICY = Policy(schedule=[1, 2])
STATE = RetryState("fetch", seed=7, epoch=0.0)


class Hidden:
    """A plain function that gives what has to be awaited, and keeps it."""

    def __init__(self, make):
        self.make = make
        self.given = []

    def __call__(self):
        self.given.append(self.make())
        return self.given[-1]


async def fetch():
    raise OSError("refused")


class Answer:
    def __await__(self):
        yield


def future():
    return asyncio.get_running_loop().create_future()


AWAITABLES = {"coroutine": fetch, "future": future, "object": Answer}
BLOCKING = {
    "retry": retry(POLICY),
    "with_policy": lambda fn: with_policy(fn, POLICY),
    "resume": lambda fn: resume(fn, STATE, POLICY),
    "call": lambda fn: functools.partial(POLICY.call, fn),
    "run": lambda fn: functools.partial(POLICY.run, fn),
    "on_result": retry(POLICY, on_result=lambda result: result is None),
}


async def called(fn, *args):
    """Call with a running event loop, for those that make futures."""
    return fn(*args)


@pytest.mark.parametrize("way", BLOCKING)
@pytest.mark.parametrize("kind", AWAITABLES)
def test_an_awaitable_is_refused_by_the_first_call(clock, kind, way):
    hidden = Hidden(AWAITABLES[kind])
    with pytest.raises(ConfigError) as caught:
        asyncio.run(called(BLOCKING[way](hidden)))
    (awaitable,) = hidden.given
    message = str(caught.value)
    assert "must be a function that returns its result directly, under retry" in message
    assert message.endswith("; decorate it with aretry")
    assert repr(awaitable).split()[0] in message
    assert clock.sleeps == []


@pytest.mark.parametrize("way", ["retry", "on_result"])
@pytest.mark.parametrize("kind", AWAITABLES)
def test_an_awaitable_is_refused_after_plain_results_too(kind, way):
    """As that of a function which returns what is cached, or goes to fetch it."""

    async def main():
        given = ["cached", 7, "cached", AWAITABLES[kind]()]
        get = BLOCKING[way](lambda: given.pop(0))
        assert [get() for _ in range(3)] == ["cached", 7, "cached"]
        with pytest.raises(ConfigError, match="decorate it with aretry"):
            get()

    asyncio.run(main())


def test_a_coroutine_that_a_coroutine_returns_is_its_result():
    async def main():
        get = retry(POLICY)(fetch_later)
        return [await (await get()) for _ in range(3)]

    async def fetch_later():
        return answer()

    async def answer():
        return 42

    assert asyncio.run(main()) == [42] * 3


def test_a_coroutine_that_a_coroutine_returns_after_plain_results_is_its_result():
    async def main():
        given = ["plain", answer()]
        get = retry(POLICY)(functools.partial(take, given))
        return await get(), await (await get())

    async def take(given):
        return given.pop(0)

    async def answer():
        return 42

    assert asyncio.run(main()) == ("plain", 42)


def test_the_message_names_the_function_and_what_it_gave():
    hidden = Hidden(fetch)

    def get():
        return hidden()

    with pytest.raises(ConfigError) as caught:
        retry(get)()
    assert str(caught.value) == (
        f"{__name__}.{get.__qualname__} must be a function that returns its result "
        f"directly, under retry, got {hidden.given[0]!r}; decorate it with aretry"
    )


@pytest.mark.parametrize("way", BLOCKING)
def test_a_refused_coroutine_is_closed_without_a_warning(way):
    hidden = Hidden(fetch)
    with pytest.raises(ConfigError):
        BLOCKING[way](hidden)()
    assert inspect.getcoroutinestate(hidden.given[0]) == inspect.CORO_CLOSED
    # What was never awaited would warn when it is let go, and fail the test.
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        hidden.given.clear()
        gc.collect()
    assert told == []


def test_a_refused_coroutine_is_not_started():
    started = []

    async def start():
        started.append(1)

    with pytest.raises(ConfigError):
        retry(functools.lru_cache(start))()
    assert started == []


@pytest.mark.parametrize("failures", [0, 1, 2], ids=["first", "second", "third"])
def test_an_awaitable_is_refused_at_whichever_attempt_it_comes(clock, failures):
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


def test_a_refusal_is_told_again_by_the_next_call():
    get = retry(POLICY)(Hidden(fetch))
    for _ in range(3):
        with pytest.raises(ConfigError, match="decorate it with aretry"):
            get()


def test_a_refusal_in_a_retried_call_is_not_retried_by_it(clock):
    """A wrong setting is wrong every time."""
    hidden = Hidden(fetch)

    @retry(schedule=[5, 5])
    def outer():
        return retry(POLICY)(hidden)()

    with pytest.raises(ConfigError):
        outer()
    assert (len(hidden.given), clock.sleeps) == (1, [])


def annotated() -> int:
    return annotated.calls.append(1)


def annotated_as_nothing() -> None:
    annotated.calls.append(1)


annotated.calls = []


class Client:
    get = annotated

    @classmethod
    def named(cls) -> str:
        annotated.calls.append(cls)


PLAIN = {
    "function": annotated,
    "function that returns None": annotated_as_nothing,
    "bound method": Client().get,
    "bound classmethod": Client.named,
}


@pytest.mark.parametrize("kind", PLAIN)
def test_a_plain_function_is_refused_by_aretry_if_it_says_what_it_returns(kind):
    fn = PLAIN[kind]
    with pytest.raises(ConfigError) as caught:
        aretry(fn)
    assert str(caught.value) == (
        "fn must be a coroutine function, or one that returns an awaitable, under "
        f"aretry, got {fn!r}; decorate it with retry"
    )
    assert annotated.calls == []


def under_asyncio(fn):
    return asyncio.run(fn())


PROMISING = {
    "Awaitable": Awaitable[int],
    "Coroutine": Coroutine[Any, Any, int],
    "Future": asyncio.Future,
    "Task": asyncio.Task[int],
    "text": "int",
    "object": object,
    "Any": Any,
    "a type of its own": Answer,
    "a union": Awaitable[int] | int,
    "a type variable": TypeVar("T"),
}


@pytest.mark.parametrize("kind", PROMISING)
def test_a_function_that_may_return_an_awaitable_is_not_refused(clock, kind):
    calls = []

    async def answer():
        if len(calls) < 3:
            raise OSError
        return "value"

    def get():
        calls.append(1)
        return answer()

    get.__annotations__["return"] = PROMISING[kind]
    assert asyncio.run(aretry(POLICY)(get)()) == "value"
    assert (len(calls), clock.sleeps) == (3, [1.0, 2.0])


@pytest.mark.parametrize("run", [under_asyncio, trio.run])
def test_a_plain_result_under_aretry_is_refused_by_the_first_call(clock, run):
    calls = []

    def get():
        calls.append(1)
        return "value"

    with pytest.raises(ConfigError) as caught:
        run(aretry(POLICY)(get))
    assert str(caught.value) == (
        "fn must be a function that returns an awaitable, under aretry, "
        f"got {get!r}; decorate it with retry"
    )
    assert (len(calls), clock.sleeps) == (1, [])
