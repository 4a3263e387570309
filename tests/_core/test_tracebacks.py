"""Tracebacks lead from the caller to the failing function, almost without retrykit."""

import asyncio
import functools
import traceback
from pathlib import Path

import pytest

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
from tests._support.optional_trio import trio

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


def retry_after_error():
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


def call_method(policy, fn):
    class Client:
        @retry(policy)
        def get(self):
            fn()

    Client().get()


def call_async_method(policy, fn):
    class Client:
        @retry(policy)
        async def get(self):
            fn()

    asyncio.run(Client().get())


def call_task(policy, fn):
    @aretry(policy)
    def start():
        return asyncio.create_task(fail_async(fn)())

    asyncio.run(start())


def raise_outcome(policy, fn):
    raise policy.run(fn).error


async def raise_async_outcome(policy, fn):
    raise (await policy.arun(fail_async(fn))).error


FORMS = {
    "function": lambda policy, fn: retry(policy)(fn)(),
    "method": call_method,
    "partial": lambda policy, fn: retry(policy)(functools.partial(fn))(),
    "async function": lambda policy, fn: asyncio.run(retry(policy)(fail_async(fn))()),
    "async method": call_async_method,
    "async function under trio": lambda p, fn: trio.run(retry(p)(fail_async(fn))),
    "function that returns an awaitable": call_task,
    "policy.call": lambda policy, fn: policy.call(fn),
    "policy.acall": lambda policy, fn: asyncio.run(policy.acall(fail_async(fn))),
    "policy.run": raise_outcome,
    "policy.arun": lambda policy, fn: asyncio.run(raise_async_outcome(policy, fn)),
    "block": in_a_block,
    "async block": lambda policy, fn: asyncio.run(in_an_async_block(policy, fn)),
}
ENDINGS = {
    "last": (POLICY, fail),
    "an error that is not retryable": (POLICY.replace(on=KeyError), fail),
    "retry_error": (POLICY.replace(raises="retry_error"), fail),
    "group": (POLICY.replace(raises="group"), fail),
    "the cause of a GiveUp": (POLICY, give_up),
    "the argument of a GiveUp": (POLICY, give_up_with_a_new_error),
    "a GiveUp without a cause": (POLICY, give_up_without_a_cause),
    "the cause of a RetryAfter": (POLICY, retry_after_error),
    "an error after rejected results": (
        POLICY.replace(on_result=lambda result: result is None),
        fail_after_a_result,
    ),
    "rejected results": (
        POLICY.replace(on_result=lambda result: result is None),
        lambda: None,
    ),
}


def frames(error):
    """Return the frames of retrykit in a traceback."""
    return [
        f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(PACKAGE)
    ]


def raised_error(form, name):
    policy, fn = ENDINGS[name]
    try:
        FORMS[form](policy, fn)
    except Exception as error:  # noqa: BLE001  any kind is examined
        return error
    pytest.fail("nothing was raised")


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("name", ENDINGS)
@pytest.mark.parametrize("form", FORMS)
def test_a_traceback_has_at_most_two_frames_of_retrykit(form, name):
    error = raised_error(form, name)
    assert len(frames(error)) <= 2, frames(error)
    if error.__cause__:
        assert len(frames(error.__cause__)) <= 2, frames(error.__cause__)
    if isinstance(error, ExceptionGroup):
        assert max(len(frames(each)) for each in error.exceptions) <= 2


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("name", ENDINGS)
@pytest.mark.parametrize("form", ["function", "method", "partial", "async function"])
def test_earlier_errors_have_no_frame_of_retrykit(form, name):
    error = raised_error(form, name)
    others = [one for one in state_of(error).errors if one is not error]
    assert [frames(one) for one in others] == [[]] * len(others)


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("form", FORMS)
def test_the_traceback_leads_from_the_caller_to_the_failing_line(form):
    error = raised_error(form, "last")
    trace = traceback.extract_tb(error.__traceback__)
    assert trace[0].name == "raised_error"
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
