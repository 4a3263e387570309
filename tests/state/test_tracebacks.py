"""At most two frames of retrykit stand between the caller and the failing function."""

import asyncio
import functools
import traceback
from pathlib import Path

import pytest
import trio

import retrykit
from retrykit import (
    GiveUp,
    Policy,
    RetryAfter,
    aretry,
    aretrying,
    current_state,
    retry,
    retrying,
    state_of,
)

PACKAGE = Path(retrykit.__file__).parent
POLICY = Policy(schedule=[1, 2])


def fail():
    raise OSError("refused")


def give_up():
    try:
        fail()
    except OSError as error:
        raise GiveUp from error


def give_up_with_a_new_error():
    raise GiveUp(OSError("refused"))


def give_up_without_a_cause():
    raise GiveUp


def ask_for_more():
    raise RetryAfter(1, OSError("refused"))


def fail_after_a_result():
    if current_state().attempt == 3:
        fail()


def fail_async(fn):
    async def failing():
        fn()

    return failing


def in_a_block(policy, fn):
    for attempt in retrying(policy):
        with attempt:
            attempt.set_result(fn())


async def in_an_async_block(policy, fn):
    async for attempt in aretrying(policy):
        with attempt:
            attempt.set_result(fn())


def method(policy, fn):
    class Client:
        @retry(policy)
        def get(self):
            fn()

    Client().get()


def async_method(policy, fn):
    class Client:
        @retry(policy)
        async def get(self):
            fn()

    asyncio.run(Client().get())


def task(policy, fn):
    @aretry(policy)
    def start():
        return asyncio.create_task(fail_async(fn)())

    asyncio.run(start())


def of_an_outcome(policy, fn):
    raise policy.run(fn).error


async def of_an_async_outcome(policy, fn):
    raise (await policy.arun(fail_async(fn))).error


WAYS = {
    "function": lambda policy, fn: retry(policy)(fn)(),
    "method": method,
    "partial": lambda policy, fn: retry(policy)(functools.partial(fn))(),
    "async function": lambda policy, fn: asyncio.run(retry(policy)(fail_async(fn))()),
    "async method": async_method,
    "async function under trio": lambda p, fn: trio.run(retry(p)(fail_async(fn))),
    "function that returns an awaitable": task,
    "policy.call": lambda policy, fn: policy.call(fn),
    "policy.acall": lambda policy, fn: asyncio.run(policy.acall(fail_async(fn))),
    "policy.run": of_an_outcome,
    "policy.arun": lambda policy, fn: asyncio.run(of_an_async_outcome(policy, fn)),
    "block": in_a_block,
    "async block": lambda policy, fn: asyncio.run(in_an_async_block(policy, fn)),
}
ENDINGS = {
    "last": (POLICY, fail),
    "the first, not to be retried": (POLICY.replace(on=KeyError), fail),
    "retry_error": (POLICY.replace(raises="retry_error"), fail),
    "group": (POLICY.replace(raises="group"), fail),
    "the cause of a GiveUp": (POLICY, give_up),
    "the cause that a GiveUp is made with": (POLICY, give_up_with_a_new_error),
    "a GiveUp without a cause": (POLICY, give_up_without_a_cause),
    "the cause of a RetryAfter": (POLICY, ask_for_more),
    "an error after refused results": (
        POLICY.replace(on_result=lambda result: result is None),
        fail_after_a_result,
    ),
    "refused results": (
        POLICY.replace(on_result=lambda result: result is None),
        lambda: None,
    ),
}


def frames(error):
    """The frames of retrykit in a traceback, each with its place."""
    return [
        f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(PACKAGE)
    ]


def ending(way, name):
    policy, fn = ENDINGS[name]
    try:
        WAYS[way](policy, fn)
    except Exception as error:  # noqa: BLE001  of whatever kind, it is looked at
        return error
    pytest.fail("nothing was raised")


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("name", ENDINGS)
@pytest.mark.parametrize("way", WAYS)
def test_at_most_two_frames_are_of_retrykit(way, name):
    error = ending(way, name)
    assert len(frames(error)) <= 2, frames(error)
    if error.__cause__:
        assert len(frames(error.__cause__)) <= 2, frames(error.__cause__)
    if isinstance(error, ExceptionGroup):
        assert max(len(frames(each)) for each in error.exceptions) <= 2


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("name", ENDINGS)
@pytest.mark.parametrize("way", ["function", "method", "partial", "async function"])
def test_the_errors_that_are_kept_show_no_frame_of_retrykit(way, name):
    error = ending(way, name)
    kept = [one for one in state_of(error).errors if one is not error]
    assert [frames(one) for one in kept] == [[]] * len(kept)


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("way", WAYS)
def test_the_traceback_leads_from_the_caller_to_the_failing_line(way):
    error = ending(way, "last")
    trace = traceback.extract_tb(error.__traceback__)
    assert trace[0].name == "ending"
    assert (trace[-1].name, trace[-1].line) == ("fail", 'raise OSError("refused")')


def test_retries_do_not_lengthen_the_traceback(clock):
    def length(retries):
        error = OSError("refused")

        @retry(schedule=[1] * retries, max_attempts=None)
        def fetch():
            raise error

        with pytest.raises(OSError, match="refused"):
            fetch()
        return len(traceback.extract_tb(error.__traceback__))

    assert length(50) == length(1)
    assert len(clock.sleeps) == 51
