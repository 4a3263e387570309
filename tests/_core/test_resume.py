"""resume: an interrupted call continues, also in another process."""

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
from retrykit._core.failures import ErrorRecord
from retrykit.events import RetryScheduled
from retrykit.testing import virtual_time
from retrykit.testing.strategies import seeds
from tests._support.exact_policies import EXACT_DURATIONS, EXACT_POLICIES, STEP

POLICY = Policy(schedule=[1, 2, 4, 8], max_attempts=None, name="fetch")


def through_json(state):
    return RetryState.from_dict(json.loads(json.dumps(state.to_dict())))


def stored_end(kind, fetch):
    """Return the stored state of a call that ends with a kind of error."""
    with pytest.raises(kind) as caught:
        fetch()
    return through_json(state_of(caught.value))


def fail():
    raise OSError("again")


def stop_at(attempt, *, asleep):
    """Return a function and an observer that interrupt during or after an attempt."""

    def fetch():
        if current_state().attempt == attempt and not asleep:
            raise KeyboardInterrupt
        raise OSError("before")

    def interrupt_sleep(event):
        scheduled = asleep and isinstance(event, RetryScheduled)
        if scheduled and event.state.attempt == attempt:
            raise KeyboardInterrupt

    return fetch, interrupt_sleep


def interrupted(policy, attempt, *, asleep=False):
    """Return the stored state of an interrupted call."""
    fetch, interrupt_sleep = stop_at(attempt, asleep=asleep)
    observed = policy.replace(observers=[interrupt_sleep])
    return stored_end(KeyboardInterrupt, lambda: observed.call(fetch))


def slow_failure(taken, clock, states):
    """Return a function that stores its state, and fails after some time."""

    def fetch():
        states.append(through_json(current_state()))
        clock.advance(taken)
        raise ConnectionError

    return fetch


def comparable(state):
    """Return the data of a state without its errors, whose tracebacks differ."""
    return state.to_dict() | {
        "failures": [failure._replace(error=None) for failure in state.failures]
    }


@pytest.mark.needs("speed")
@given(EXACT_POLICIES, seeds(), EXACT_DURATIONS)
@example(Policy(schedule=s.decorrelated(1).round_down(STEP), max_elapsed=99), 7, 2.0)
@example(POLICY.replace(max_failures=2), 7, 0.5)
@example(POLICY.replace(max_elapsed=9, deadline="clip"), 7, 0.5)
@example(POLICY.replace(max_elapsed=9, deadline="overshoot"), 7, 0.5)
def test_a_call_resumed_anywhere_has_the_delays_of_a_live_call(policy, seed, taken):
    """A replay, a resumed job and a simulation see the very delays of the live call."""
    states = []

    def interrupt_sleep(event):
        if isinstance(event, RetryScheduled):
            states.append(through_json(event.state))

    observed = policy.replace(seed=seed, observers=[interrupt_sleep])
    with virtual_time() as clock:
        whole = observed.run(slow_failure(taken, clock, states)).state
    sleeps = clock.sleeps
    assert len(states) == 2 * len(sleeps) + 1, "in each attempt and after each failure"
    for cut, state in enumerate(states):
        with virtual_time(start=1024) as clock:
            fetch = slow_failure(taken, clock, [])
            resumed = stored_end(Exception, resume(fetch, state, policy, seed=None))
        assert clock.sleeps == sleeps[cut // 2 :]
        assert comparable(resumed) == comparable(through_json(whole))


def test_continues_the_interrupted_sleep(clock):
    state = interrupted(POLICY, 2, asleep=True)
    assert (state.next_delay, state.status) == (2.0, "dead")
    assert resume(lambda: current_state().attempt, state, POLICY)() == 3
    assert clock.sleeps == [1.0, 2.0]


def test_sleeps_only_for_the_rest_of_the_delay(clock):
    """5. No sleep past the deadline."""
    policy = Policy(schedule=[50], max_elapsed=60)

    def interrupt(event):
        if isinstance(event, RetryScheduled):
            clock.advance(45)
            raise KeyboardInterrupt

    observed = policy.replace(observers=[interrupt])
    state = stored_end(KeyboardInterrupt, lambda: observed.call(fail))
    clock.advance(1000)
    assert resume(lambda: current_state().elapsed, state, policy)() == 50.0
    assert clock.sleeps == [5.0]


def test_repeats_the_interrupted_attempt(clock):
    state = interrupted(POLICY, 2)
    assert resume(lambda: current_state().attempt, state, POLICY)() == 2
    assert clock.sleeps == [1.0]


@pytest.mark.parametrize(("asleep", "first"), [(True, 3), (False, 2)])
def test_emits_events_of_its_own_attempts(clock, asleep, first):
    state = interrupted(POLICY, 2, asleep=asleep)
    events = []

    def record_event(event):
        events.append((type(event).__name__, event.state.attempt))

    resume(lambda: "value", state, POLICY, observers=[record_event])()
    assert events == [("AttemptStarted", first), ("Succeeded", first)]
    assert clock.sleeps == [1.0, 2.0][: first - 1]


def test_resumes_a_coroutine_function(clock):
    state = interrupted(POLICY, 2, asleep=True)

    @retry(POLICY)
    async def fetch():
        return current_state().attempt

    assert asyncio.run(resume(fetch, state)()) == 3
    assert clock.sleeps == [1.0, 2.0]


def test_a_dead_call_gets_one_more_attempt(clock):
    policy = POLICY.replace(max_attempts=2)
    dead = stored_end(OSError, lambda: policy.call(fail))
    assert (dead.stop_reason, dead.attempt) == (StopReason.ATTEMPTS, 2)
    again = stored_end(OSError, resume(fail, dead, policy))
    assert (again.stop_reason, again.attempt) == (StopReason.ATTEMPTS, 3)
    assert [failure.attempt for failure in again.failures] == [1, 2, 3]
    assert resume(lambda: "value", again, policy)() == "value"
    assert clock.sleeps == [1.0]


def test_a_dead_call_continues_if_the_policy_allows_more_attempts(clock):
    dead = stored_end(OSError, lambda: POLICY.replace(max_attempts=2).call(fail))
    again = stored_end(OSError, resume(fail, dead, POLICY))
    assert (again.stop_reason, again.attempt) == (StopReason.SCHEDULE_ENDED, 5)
    assert clock.sleeps == [1.0, 4.0, 8.0]


def test_elapsed_time_counts_but_the_time_between_does_not(clock):
    policy = POLICY.replace(schedule=[7] * 9, max_elapsed=20)
    state = interrupted(policy, 2, asleep=True)
    clock.advance(1000)
    again = stored_end(OSError, resume(fail, state, policy))
    assert (again.stop_reason, again.elapsed) == (StopReason.ELAPSED, 14.0)
    assert clock.sleeps == [7.0, 7.0]


def test_the_remaining_time_is_that_of_the_new_policy(clock):
    state = interrupted(POLICY.replace(max_elapsed=20), 2)
    assert clock.now() == 1.0
    remaining = resume(lambda: current_state().remaining, state, POLICY, max_elapsed=60)
    assert remaining() == 59.0


def test_the_outer_calls_are_those_of_the_resumed_call(clock):
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
    again = stored_end(OSError, resume(fail, state, POLICY))
    assert again.stop_reason is StopReason.SCHEDULE_ENDED


def test_an_error_that_cannot_be_compared_is_raised_unchanged(clock):
    class OddError(Exception):
        def __eq__(self, other):
            raise ZeroDivisionError

        __hash__ = Exception.__hash__

    def raise_odd():
        raise error

    error = OddError()
    state = interrupted(POLICY, 2)
    with pytest.raises(OddError) as caught:
        resume(raise_odd, state, POLICY)()
    assert caught.value is error
    assert state_of(error).errors[-1] is error


def test_the_name_and_the_seed_are_kept(clock):
    state = interrupted(POLICY.replace(seed=7), 2)

    def fetch():
        return current_state().name, current_state().seed

    assert resume(fetch, state, Policy(name="other", seed=8))() == ("fetch", 7)
    assert clock.sleeps == [1.0]


def test_a_resumed_call_ends_with_the_time_of_the_call_around_it(clock):
    def fetch():
        return current_state().remaining

    state = RetryState("fetch", seed=7, epoch=0.0)
    inner = resume(fetch, state)
    assert Policy(max_elapsed=50).call(inner) == 50


def test_two_calls_resumed_from_one_state_are_independent(clock):
    state = interrupted(POLICY, 1)
    before = state.to_dict()
    first = stored_end(OSError, resume(fail, state, POLICY))
    second = stored_end(OSError, resume(fail, state, POLICY))
    assert first.failures == second.failures
    assert state.to_dict() == before
    assert clock.sleeps == [1.0, 2.0, 4.0, 8.0] * 2


def test_the_state_has_records_of_earlier_errors_and_new_errors():
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


def test_a_group_contains_the_errors_of_this_process(clock):
    state = interrupted(POLICY, 2)
    with pytest.raises(ExceptionGroup) as caught:
        resume(fail, state, POLICY, raises="group", max_attempts=3)()
    assert [str(error) for error in caught.value.exceptions] == ["again", "again"]
    assert len(state_of(caught.value).errors) == 3
    assert clock.sleeps == [1.0, 2.0]


def test_a_retry_error_describes_the_whole_call(clock):
    state = interrupted(POLICY, 2, asleep=True)
    with pytest.raises(RetryError, match="fetch gave up after 3 attempts in 3 s"):
        resume(fail, state, POLICY, raises="retry_error", max_attempts=3)()
    assert clock.sleeps == [1.0, 2.0]


def test_continues_after_failures_were_dropped(clock):
    policy = POLICY.replace(schedule=s.linear(1), max_attempts=8, max_failures=2)
    state = interrupted(policy, 5)
    again = stored_end(OSError, resume(fail, state, policy))
    assert [failure.attempt for failure in again.failures] == [1, 8]
    assert again.dropped_failures == 6
    assert clock.sleeps == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


def test_continues_a_delay_without_a_stored_failure(clock):
    state = RetryState("fetch", 1, 0.0, attempt=2, next_delay=0.25)
    assert resume(lambda: "fetched", state, POLICY)() == "fetched"
    assert clock.sleeps == [0.25]
