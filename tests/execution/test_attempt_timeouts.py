"""Attempts that take too long, in calls of every colour."""

import asyncio
import traceback

import pytest
import trio

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

QUICK = Policy(schedule=[1, 1], max_elapsed=None, attempt_timeout=5, on=ConnectionError)


@pytest.fixture(params=["asyncio", "trio"])
def run(request, clock):
    """What runs an async function, and an attempt of a thousand virtual hours."""

    def forever():
        return clock.asleep("1000h")

    if request.param == "trio":
        return trio.run, forever
    return (lambda main: asyncio.run(main())), forever


def hanging(forever, times):
    left = [None] * times

    async def fetch():
        if left:
            left.pop()
            await forever()
        return "done"

    return fetch


def test_an_attempt_that_takes_too_long_is_retried(run, clock):
    """Whatever `on` says: the policy itself has ended it."""
    run, forever = run
    assert run(aretry(QUICK)(hanging(forever, 2))) == "done"
    assert clock.now() == 5 + 1 + 5 + 1


def test_the_last_one_is_let_out_with_its_history(run, clock):
    run, forever = run
    with pytest.raises(AttemptTimeout, match=r"longer than 5s") as caught:
        run(aretry(QUICK)(hanging(forever, 9)))
    state = state_of(caught.value)
    assert [failure.duration for failure in state.failures] == [5.0, 5.0, 5.0]
    assert isinstance(caught.value, TimeoutError)
    frames = traceback.extract_tb(caught.value.__traceback__)
    names = [frame.name for frame in frames]
    assert names[names.index("fetch") - 1] != "ending"
    assert not [frame for frame in frames if "bounding" in frame.filename]


def test_an_attempt_has_no_longer_than_what_remains(run, clock):
    run, forever = run
    policy = QUICK.replace(max_elapsed=8)
    with pytest.raises(AttemptTimeout, match="longer than 2s") as caught:
        run(aretry(policy)(hanging(forever, 9)))
    assert clock.now() == 8
    assert state_of(caught.value).stop_reason is StopReason.ELAPSED


def test_none_is_begun_when_nothing_would_be_left_for_it(run, clock):
    run, forever = run
    policy = QUICK.replace(max_elapsed=6)
    with pytest.raises(AttemptTimeout, match="longer than 5s"):
        run(aretry(policy)(hanging(forever, 9)))
    assert clock.now() == 5


@pytest.mark.parametrize("deadline", ["clip", "overshoot"])
def test_a_limit_that_attempts_may_outlast_does_not_cut_them(run, clock, deadline):
    run, forever = run
    policy = QUICK.replace(max_elapsed=8, deadline=deadline)
    with pytest.raises(AttemptTimeout, match="longer than 5s"):
        run(aretry(policy)(hanging(forever, 9)))
    assert clock.now() == 5 + 1 + 5


def test_the_time_of_a_call_around_counts(run, clock):
    run, forever = run
    inner = aretry(QUICK)(hanging(forever, 9))
    with pytest.raises(AttemptTimeout, match="longer than 3s") as caught:
        run(aretry(max_elapsed=3)(inner))
    assert clock.now() == 3
    assert state_of(caught.value).nested_state.stop_reason is StopReason.ELAPSED


def test_a_timeout_of_the_users_is_an_error_like_any_other(run, clock):
    async def fetch():
        raise TimeoutError("of the user's")

    with pytest.raises(TimeoutError, match="of the user's") as caught:
        run[0](aretry(QUICK)(fetch))
    assert state_of(caught.value).stop_reason is StopReason.NOT_RETRYABLE


def test_that_of_an_inner_call_is_none_of_the_outer_ones(run, clock):
    run, forever = run
    inner = aretry(QUICK, max_attempts=1, attempt_timeout=2)(hanging(forever, 9))
    with pytest.raises(AttemptTimeout, match="longer than 2s"):
        run(aretry(QUICK)(inner))
    assert clock.now() == 2


def test_conditions_and_rules_may_name_it(run, clock):
    run, forever = run
    given_up = aretry(QUICK, give_up_on=AttemptTimeout)(hanging(forever, 9))
    with pytest.raises(AttemptTimeout) as caught:
        run(given_up)
    assert state_of(caught.value).stop_reason is StopReason.GAVE_UP
    ruled = aretry(QUICK, rules=[Rule(on=TimeoutError, schedule=[7])])
    assert run(ruled(hanging(forever, 1))) == "done"
    assert clock.now() == 5 + 5 + 7


def test_a_cancellation_from_outside_is_one(clock):
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


def test_blocks_in_coroutines_are_ended_alike(run, clock):
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

    async def once():
        async for attempt in aretrying(QUICK):
            with attempt:
                if attempt.number == 1:
                    await forever()
                return attempt.number
        return None

    assert run(once) == 2


def test_a_block_that_is_not_ended_keeps_its_errors(run, clock):
    async def main():
        async for attempt in aretrying(QUICK):
            with attempt:
                raise LookupError("its own")

    with pytest.raises(LookupError, match="its own"):
        run[0](main)


def test_every_way_to_call_ends_attempts(run, clock):
    run, forever = run

    async def main():
        outcome = await QUICK.arun(hanging(forever, 9))
        assert isinstance(outcome.error, AttemptTimeout)
        assert await QUICK.acall(hanging(forever, 1)) == "done"
        state = RetryState("fetch", 7, 0.0)
        return await resume(hanging(forever, 1), state, QUICK)()

    assert run(main) == "done"


def test_a_decision_knows_what_was_ended():
    state = RetryState("fetch", 7, 0.0)
    failure = Failure(1, AttemptTimeout(5), None, 0.0, 5.0, None)
    assert QUICK.decide(state, failure).delay == 1.0
    unlimited = QUICK.replace(attempt_timeout=None)
    assert unlimited.decide(state, failure) == Stop(StopReason.NOT_RETRYABLE)


FILLED = QUICK.replace(attempt_timeout=AsArgument(5), max_elapsed=8, schedule=[4, 4])


def test_a_function_with_a_timeout_of_its_own_is_given_it(clock):
    seen = []

    @retry(FILLED)
    def get(url, timeout):
        seen.append((url, timeout))
        raise ConnectionError("refused")

    with pytest.raises(ConnectionError):
        get("/")
    assert seen == [("/", 5.0), ("/", 4.0)]


def test_what_the_caller_gives_wins():
    seen = []

    def get(url, timeout=None):
        seen.append((url, timeout))

    fetch = retry(FILLED)(get)
    fetch("/", 1)
    fetch("/", timeout=2)
    assert seen == [("/", 1), ("/", 2)]


def test_coroutines_are_given_theirs():
    @aretry(FILLED)
    async def get(*, timeout):  # noqa: ASYNC109  that is what is tried
        return timeout

    assert asyncio.run(get()) == 5.0


@pytest.mark.parametrize(
    ("write", "told"),
    [
        (lambda: retry(QUICK)(print), "give the client timeout=current_state"),
        (lambda: retrying(QUICK), "give the client timeout=current_state"),
        (lambda: Policy.call(QUICK, print), "cannot be cancelled"),
        (lambda: retrying(FILLED), "use current_state().remaining in the block"),
        (lambda: aretrying(FILLED), "use current_state().remaining in the block"),
        (lambda: retry(FILLED)(current_state), "a parameter 'timeout'"),
        (lambda: Policy(attempt_timeout=0), "attempt_timeout must be a duration > 0"),
    ],
    ids=["retry", "block", "call", "filled", "afilled", "no parameter", "zero"],
)
def test_what_cannot_be_ended_is_refused(write, told):
    with pytest.raises(ConfigError) as caught:
        write()
    assert told in str(caught.value)


def test_calls_after_the_first_one_are_given_what_remains():
    given = []
    policy = FILLED.replace(max_elapsed=3)
    fetch = retry(policy)(lambda timeout: given.append(timeout) or 1)
    fetch()
    fetch()
    assert all(2 < timeout <= 3 for timeout in given)
    assert len(given) == 2
