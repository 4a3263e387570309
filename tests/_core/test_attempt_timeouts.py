"""Attempt timeouts in sync and async calls and in blocks."""

import asyncio
import traceback
from pathlib import Path

import pytest

from retrykit import (
    AsArgument,
    AttemptTimeout,
    ConfigError,
    Failure,
    Policy,
    RetryState,
    Rule,
    Stop,
    StopReason,
    aretry,
    aretrying,
    current_state,
    resume,
    retry,
    retrying,
    state_of,
)
from tests._support.optional_trio import trio

QUICK = Policy(schedule=[1, 1], attempt_timeout=5, on=ConnectionError)


@pytest.fixture(params=["asyncio", "trio"])
def run(request, clock):
    """Return a runner of coroutine functions, and a function that sleeps 1000 hours."""

    def forever():
        return clock.asleep("1000h")

    if request.param == "trio":
        return trio.run, forever
    return (lambda main: asyncio.run(main())), forever


def hanging(forever, times):
    remaining = [None] * times

    async def fetch():
        if remaining:
            remaining.pop()
            await forever()
        return "done"

    return fetch


def test_an_attempt_that_takes_too_long_is_retried(run, clock):
    """Even if `on` does not match: the policy itself has ended it."""
    run, forever = run
    assert run(aretry(QUICK)(hanging(forever, 2))) == "done"
    assert clock.now() == 5 + 1 + 5 + 1


def test_raises_the_last_attempt_timeout_with_its_state(run, clock):
    run, forever = run
    with pytest.raises(AttemptTimeout, match=r"longer than 5 s") as caught:
        run(aretry(QUICK)(hanging(forever, 9)))
    state = state_of(caught.value)
    assert [failure.duration for failure in state.failures] == [5.0, 5.0, 5.0]
    assert isinstance(caught.value, TimeoutError)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert "fetch" in [frame.name for frame in frames]
    assert not [f for f in frames if Path(f.filename).name == "attempt_timeout.py"]


def test_an_attempt_is_limited_by_the_remaining_time(run, clock):
    run, forever = run
    policy = QUICK.replace(max_elapsed=8)
    with pytest.raises(AttemptTimeout, match="longer than 2 s") as caught:
        run(aretry(policy)(hanging(forever, 9)))
    assert clock.now() == 8
    assert state_of(caught.value).stop_reason is StopReason.ELAPSED


def test_no_attempt_starts_without_remaining_time(run, clock):
    run, forever = run
    policy = QUICK.replace(max_elapsed=6)
    with pytest.raises(AttemptTimeout, match="longer than 5 s"):
        run(aretry(policy)(hanging(forever, 9)))
    assert clock.now() == 5


@pytest.mark.parametrize("deadline", ["clip", "overshoot"])
def test_clip_and_overshoot_do_not_shorten_attempts(run, clock, deadline):
    run, forever = run
    policy = QUICK.replace(max_elapsed=8, deadline=deadline)
    with pytest.raises(AttemptTimeout, match="longer than 5 s"):
        run(aretry(policy)(hanging(forever, 9)))
    assert clock.now() == 5 + 1 + 5


def test_an_attempt_is_limited_by_the_outer_call(run, clock):
    run, forever = run
    inner = aretry(QUICK)(hanging(forever, 9))
    with pytest.raises(AttemptTimeout, match="longer than 3 s") as caught:
        run(aretry(max_elapsed=3)(inner))
    assert clock.now() == 3
    assert state_of(caught.value).nested_state.stop_reason is StopReason.ELAPSED


def test_a_timeout_error_of_the_function_is_not_an_attempt_timeout(run, clock):
    async def fetch():
        raise TimeoutError("of the user's")

    with pytest.raises(TimeoutError, match="of the user's") as caught:
        run[0](aretry(QUICK)(fetch))
    assert state_of(caught.value).stop_reason is StopReason.NOT_RETRYABLE


def test_an_attempt_timeout_of_a_nested_call_is_not_retried_by_the_outer_one(
    run, clock
):
    run, forever = run
    inner = aretry(QUICK, max_attempts=1, attempt_timeout=2)(hanging(forever, 9))
    with pytest.raises(AttemptTimeout, match="longer than 2 s"):
        run(aretry(QUICK)(inner))
    assert clock.now() == 2


def test_give_up_on_and_rules_may_name_attempt_timeout(run, clock):
    run, forever = run
    given_up = aretry(QUICK, give_up_on=AttemptTimeout)(hanging(forever, 9))
    with pytest.raises(AttemptTimeout) as caught:
        run(given_up)
    assert state_of(caught.value).stop_reason is StopReason.GAVE_UP
    with_rule = aretry(QUICK, rules=[Rule(on=TimeoutError, schedule=[7])])
    assert run(with_rule(hanging(forever, 1))) == "done"
    assert clock.now() == 5 + 5 + 7


def test_a_cancellation_is_not_an_attempt_timeout(clock):
    calls = []

    @aretry(QUICK)
    async def fetch():
        calls.append(1)
        await asyncio.Event().wait()

    async def main():
        task = asyncio.create_task(fetch())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return state_of(caught.value)

    assert asyncio.run(main()).stop_reason is StopReason.CANCELLED
    assert len(calls) == 1


def test_attempts_of_async_blocks_time_out(run, clock):
    run, forever = run
    numbers = []

    async def main():
        async for attempt in aretrying(QUICK):
            with attempt:
                numbers.append(attempt.number)
                await forever()

    with pytest.raises(AttemptTimeout) as caught:
        run(main)
    assert (numbers, clock.now()) == ([1, 2, 3], 17)
    assert state_of(caught.value).attempt == 3
    assert len(caught.value.__notes__) == 1

    async def return_number():
        async for attempt in aretrying(QUICK):
            with attempt:
                if attempt.number == 1:
                    await forever()
                return attempt.number
        return None

    assert run(return_number) == 2


def test_an_error_of_an_async_block_is_raised(run, clock):
    async def main():
        async for attempt in aretrying(QUICK):
            with attempt:
                raise LookupError("its own")

    with pytest.raises(LookupError, match="its own"):
        run[0](main)


def test_attempts_of_arun_acall_and_resume_time_out(run, clock):
    run, forever = run

    async def main():
        outcome = await QUICK.arun(hanging(forever, 9))
        assert isinstance(outcome.error, AttemptTimeout)
        assert await QUICK.acall(hanging(forever, 1)) == "done"
        state = RetryState("fetch", 7, 0.0)
        return await resume(hanging(forever, 1), state, QUICK)()

    assert run(main) == "done"


def test_decide_retries_an_attempt_timeout_if_the_policy_has_one():
    state = RetryState("fetch", 7, 0.0)
    failure = Failure(1, AttemptTimeout(5), None, 0.0, 5.0, None)
    assert QUICK.decide(state, failure).delay == 1.0
    unlimited = QUICK.replace(attempt_timeout=None)
    assert unlimited.decide(state, failure) == Stop(StopReason.NOT_RETRYABLE)


WITH_ARGUMENT = QUICK.replace(
    attempt_timeout=AsArgument(5), max_elapsed=8, schedule=[4, 4]
)


def test_the_timeout_argument_is_the_remaining_time(clock):
    seen = []

    @retry(WITH_ARGUMENT)
    def get(url, timeout):
        seen.append((url, timeout))
        raise ConnectionError("refused")

    with pytest.raises(ConnectionError):
        get("/")
    assert seen == [("/", 5.0), ("/", 4.0)]


def test_a_timeout_argument_of_the_caller_wins():
    seen = []

    def get(url, timeout=None):
        seen.append((url, timeout))

    fetch = retry(WITH_ARGUMENT)(get)
    fetch("/", 1)
    fetch("/", timeout=2)
    assert seen == [("/", 1), ("/", 2)]


def test_coroutine_functions_get_a_timeout_argument():
    @aretry(WITH_ARGUMENT)
    async def get(*, timeout):  # noqa: ASYNC109  under test
        return timeout

    assert asyncio.run(get()) == 5.0


@pytest.mark.parametrize(
    ("write", "suggestion"),
    [
        (lambda: retry(QUICK)(print), "give the client timeout=current_state"),
        (lambda: retrying(QUICK), "give the client timeout=current_state"),
        (lambda: Policy.call(QUICK, print), "cannot be cancelled"),
        (lambda: retrying(WITH_ARGUMENT), "use current_state().remaining in the block"),
        (
            lambda: aretrying(WITH_ARGUMENT),
            "use current_state().remaining in the block",
        ),
        (lambda: retry(WITH_ARGUMENT)(current_state), "a parameter 'timeout'"),
        (lambda: Policy(attempt_timeout=0), "attempt_timeout must be a duration > 0"),
    ],
    ids=["retry", "block", "call", "filled", "afilled", "no parameter", "zero"],
)
def test_an_attempt_timeout_that_cannot_be_enforced_is_rejected(write, suggestion):
    with pytest.raises(ConfigError) as caught:
        write()
    assert suggestion in caught.value.message


def test_later_calls_get_a_timeout_argument_too():
    received = []
    policy = WITH_ARGUMENT.replace(schedule=[1], max_elapsed=3)
    fetch = retry(policy)(lambda timeout: received.append(timeout) or 1)
    fetch()
    fetch()
    assert all(2 < timeout <= 3 for timeout in received)
    assert len(received) == 2
