"""A call goes on where it was interrupted, also in another process."""

import asyncio
import json

import pytest
from hypothesis import example, given

from retrykit import (
    Policy,
    RetryError,
    RetryState,
    StopReason,
    current_state,
    resume,
    retry,
    schedules as s,
    state_of,
)
from retrykit.state.events import RetryScheduled
from retrykit.state.records import ErrorRecord
from retrykit.testing import virtual_time
from retrykit.testing.strategies import seeds
from tests._support.steps import STEP, STEPPING, STEPS

POLICY = Policy(
    schedule=[1, 2, 4, 8], max_attempts=None, max_elapsed=None, name="fetch"
)


def through_json(state):
    return RetryState.from_dict(json.loads(json.dumps(state.to_dict())))


def ending(kind, fetch):
    """The stored state of a call that ends with this kind of error."""
    with pytest.raises(kind) as caught:
        fetch()
    return through_json(state_of(caught.value))


def fail():
    raise OSError("again")


def stop_at(attempt, *, asleep):
    """A function and an observer that interrupt a call, in an attempt or after it."""

    def fetch():
        if current_state().attempt == attempt and not asleep:
            raise KeyboardInterrupt
        raise OSError("before")

    def watch(event):
        scheduled = asleep and isinstance(event, RetryScheduled)
        if scheduled and event.state.attempt == attempt:
            raise KeyboardInterrupt

    return fetch, watch


def interrupted(policy, attempt, *, asleep=False):
    """The stored state of a call that was interrupted."""
    fetch, watch = stop_at(attempt, asleep=asleep)
    watched = policy.replace(observers=[watch])
    return ending(KeyboardInterrupt, lambda: watched.call(fetch))


def failing_at_length(taken, clock, states):
    """A function that fails after some time, and stores its state at the start."""

    def fetch():
        states.append(through_json(current_state()))
        clock.advance(taken)
        raise ConnectionError

    return fetch


def facts(state):
    """All of a history but its errors, whose tracebacks are those of two calls."""
    return state.to_dict() | {
        "failures": [failure._replace(error=None) for failure in state.failures]
    }


@given(STEPPING, seeds(), STEPS)
@example(Policy(schedule=s.decorrelated(1).round_down(STEP), max_elapsed=99), 7, 2.0)
@example(POLICY.replace(max_failures=2), 7, 0.5)
@example(POLICY.replace(max_elapsed=9, deadline="clip"), 7, 0.5)
@example(POLICY.replace(max_elapsed=9, deadline="overshoot"), 7, 0.5)
def test_a_call_cut_anywhere_goes_on_with_the_delays_it_would_have_had(
    policy, seed, taken
):
    """A replay, a resumed job and a simulation see the very delays of the live call."""
    states = []

    def watch(event):
        if isinstance(event, RetryScheduled):
            states.append(through_json(event.state))

    watched = policy.replace(seed=seed, observers=[watch])
    with virtual_time() as clock:
        whole = watched.run(failing_at_length(taken, clock, states)).state
    sleeps = clock.sleeps
    assert len(states) == 2 * len(sleeps) + 1, "in each attempt and after each failure"
    for cut, state in enumerate(states):
        with virtual_time(start=1024) as clock:
            fetch = failing_at_length(taken, clock, [])
            resumed = ending(Exception, resume(fetch, state, policy, seed=None))
        assert clock.sleeps == sleeps[cut // 2 :]
        assert facts(resumed) == facts(through_json(whole))


def test_goes_on_with_the_sleep_in_which_it_was_cancelled(clock):
    state = interrupted(POLICY, 2, asleep=True)
    assert (state.next_delay, state.status) == (2.0, "dead")
    assert resume(lambda: current_state().attempt, state, POLICY)() == 3
    assert clock.sleeps == [1.0, 2.0]


def test_sleeps_only_what_is_left_of_the_delay(clock):
    """5. No sleep past the deadline."""
    policy = Policy(schedule=[50], max_elapsed=60)

    def interrupt(event):
        if isinstance(event, RetryScheduled):
            clock.advance(45)
            raise KeyboardInterrupt

    watched = policy.replace(observers=[interrupt])
    state = ending(KeyboardInterrupt, lambda: watched.call(fail))
    clock.advance(1000)
    assert resume(lambda: current_state().elapsed, state, policy)() == 50.0
    assert clock.sleeps == [5.0]


def test_makes_the_attempt_again_in_which_it_was_cancelled(clock):
    state = interrupted(POLICY, 2)
    assert resume(lambda: current_state().attempt, state, POLICY)() == 2
    assert clock.sleeps == [1.0]


@pytest.mark.parametrize(("asleep", "first"), [(True, 3), (False, 2)])
def test_tells_of_the_attempts_that_it_makes_itself(clock, asleep, first):
    state = interrupted(POLICY, 2, asleep=asleep)
    heard = []

    def hear(event):
        heard.append((type(event).__name__, event.state.attempt))

    resume(lambda: "value", state, POLICY, observers=[hear])()
    assert heard == [("AttemptStarted", first), ("Succeeded", first)]
    assert clock.sleeps == [1.0, 2.0][: first - 1]


def test_goes_on_in_a_coroutine(clock):
    state = interrupted(POLICY, 2, asleep=True)

    @retry(POLICY)
    async def fetch():
        return current_state().attempt

    assert asyncio.run(resume(fetch, state)()) == 3
    assert clock.sleeps == [1.0, 2.0]


def test_a_dead_call_gets_one_more_attempt(clock):
    policy = POLICY.replace(max_attempts=2)
    dead = ending(OSError, lambda: policy.call(fail))
    assert (dead.stop_reason, dead.attempt) == (StopReason.ATTEMPTS, 2)
    again = ending(OSError, resume(fail, dead, policy))
    assert (again.stop_reason, again.attempt) == (StopReason.ATTEMPTS, 3)
    assert [failure.attempt for failure in again.failures] == [1, 2, 3]
    assert resume(lambda: "value", again, policy)() == "value"
    assert clock.sleeps == [1.0]


def test_a_dead_call_goes_on_where_the_policy_now_allows_it(clock):
    dead = ending(OSError, lambda: POLICY.replace(max_attempts=2).call(fail))
    again = ending(OSError, resume(fail, dead, POLICY))
    assert (again.stop_reason, again.attempt) == (StopReason.SCHEDULE_ENDED, 5)
    assert clock.sleeps == [1.0, 4.0, 8.0]


def test_the_time_that_was_spent_counts_and_the_time_between_does_not(clock):
    policy = POLICY.replace(schedule=[7] * 9, max_elapsed=20)
    state = interrupted(policy, 2, asleep=True)
    clock.advance(1000)
    again = ending(OSError, resume(fail, state, policy))
    assert (again.stop_reason, again.elapsed) == (StopReason.ELAPSED, 14.0)
    assert clock.sleeps == [7.0, 7.0]


def test_the_time_that_remains_is_that_of_the_policy_it_goes_on_with(clock):
    state = interrupted(POLICY.replace(max_elapsed=20), 2)
    assert clock.now() == 1.0
    remaining = resume(lambda: current_state().remaining, state, POLICY, max_elapsed=60)
    assert remaining() == 59.0


def test_the_calls_around_are_those_that_it_goes_on_in(clock):
    states = []

    def outer():
        with pytest.raises(OSError, match="again") as caught:
            POLICY.call(fail)
        states.append(state_of(caught.value))

    Policy(max_elapsed=5).call(outer)
    (state,) = states
    assert (state.stop_reason, state.depth) == (StopReason.ELAPSED, 1)

    def inside():
        return current_state().depth, current_state().remaining

    assert resume(inside, state, POLICY)() == (0, None)
    again = ending(OSError, resume(fail, state, POLICY))
    assert again.stop_reason is StopReason.SCHEDULE_ENDED


def test_an_error_that_cannot_be_compared_is_let_out_as_it_is(clock):
    class OddError(Exception):
        def __eq__(self, other):
            raise ZeroDivisionError

        __hash__ = Exception.__hash__

    def odd():
        raise error

    error = OddError()
    state = interrupted(POLICY, 2)
    with pytest.raises(OddError) as caught:
        resume(odd, state, POLICY)()
    assert caught.value is error
    assert state_of(error).errors[-1] is error


def test_the_name_and_the_seed_stay_those_of_the_call(clock):
    state = interrupted(POLICY.replace(seed=7), 2)

    def fetch():
        return current_state().name, current_state().seed

    assert resume(fetch, state, Policy(name="other", seed=8))() == ("fetch", 7)
    assert clock.sleeps == [1.0]


def test_two_calls_that_go_on_from_one_state_do_not_see_each_other(clock):
    state = interrupted(POLICY, 1)
    before = state.to_dict()
    first = ending(OSError, resume(fail, state, POLICY))
    second = ending(OSError, resume(fail, state, POLICY))
    assert first.failures == second.failures
    assert state.to_dict() == before
    assert clock.sleeps == [1.0, 2.0, 4.0, 8.0] * 2


def test_keeps_records_of_the_errors_before_beside_the_errors_since():
    seen = []

    def fetch():
        seen.append(current_state().errors)
        raise error

    error = ValueError("after")
    with virtual_time():
        state = interrupted(POLICY, 2)
        resumed = resume(fetch, state, POLICY, max_attempts=3)
        with pytest.raises(ValueError, match="after"):
            resumed()
    record, last = seen[-1]
    assert (record.type, record.message) == ("OSError", "before")
    assert isinstance(record, ErrorRecord)
    assert last is error


def test_a_group_holds_the_errors_of_this_process(clock):
    state = interrupted(POLICY, 2)
    with pytest.raises(ExceptionGroup) as caught:
        resume(fail, state, POLICY, raises="group", max_attempts=3)()
    assert [str(error) for error in caught.value.exceptions] == ["again", "again"]
    assert len(state_of(caught.value).errors) == 3
    assert clock.sleeps == [1.0, 2.0]


def test_a_retry_error_tells_of_the_whole_call(clock):
    state = interrupted(POLICY, 2, asleep=True)
    with pytest.raises(RetryError, match="fetch gave up after 3 attempts in 3s"):
        resume(fail, state, POLICY, raises="retry_error", max_attempts=3)()
    assert clock.sleeps == [1.0, 2.0]


def test_goes_on_although_the_middle_of_the_history_was_dropped(clock):
    policy = POLICY.replace(schedule=s.linear(1), max_attempts=8, max_failures=2)
    state = interrupted(policy, 5)
    again = ending(OSError, resume(fail, state, policy))
    assert [failure.attempt for failure in again.failures] == [1, 8]
    assert again.dropped_failures == 6
    assert clock.sleeps == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


def test_goes_on_in_a_delay_of_which_no_failure_is_kept(clock):
    state = RetryState("fetch", 1, 0.0, attempt=2, next_delay=0.25)
    assert resume(lambda: "fetched", state, POLICY)() == "fetched"
    assert clock.sleeps == [0.25]
