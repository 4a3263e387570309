"""Every view of one call is equal: while it runs, afterwards, for whoever looks."""

import copy
import gc
import sys
import threading
import time
import weakref
from contextlib import suppress

import pytest

from retrykit import (
    Policy,
    RetryState,
    current_state,
    observe,
    resume,
    retry,
    state_of,
)
from retrykit._core.final_error import attach_state

POLICY = Policy(schedule=[1, 2], on=OSError, name="fetch", seed=7)


class Failing:
    """A function that fails, and looks at its state as it is told to."""

    def __init__(self, look=lambda: None):
        self.look, self.seen = look, []

    def __call__(self):
        self.seen.append(self.look())
        raise ConnectionError(len(self.seen))


def gives_up(fn, policy=POLICY):
    with pytest.raises(ConnectionError) as caught:
        policy.call(fn)
    return caught.value


def facts(state):
    return [(x.attempt, str(x.error), x.delay) for x in state.failures]


GIVEN_UP = [(1, "1", 1.0), (2, "2", 2.0), (3, "3", None)]


def test_a_state_that_nobody_had_before_has_the_final_error(clock):
    error = gives_up(Failing())
    state = state_of(error)
    assert facts(state) == GIVEN_UP
    assert state.errors[-1] is error
    assert state.describe() == "gave up after 3 attempts in 3 s: the schedule has ended"


def test_a_state_that_the_function_has_kept_has_the_final_error(clock):
    fetch = Failing(current_state)
    error = gives_up(fetch)
    kept = fetch.seen[0]
    assert all(each is kept for each in fetch.seen)
    assert kept == state_of(error)
    assert kept.errors[-1] is state_of(error).errors[-1] is error
    assert facts(kept) == facts(state_of(error)) == GIVEN_UP


def test_an_event_that_is_asked_after_the_call_has_the_final_error(clock):
    kept = []
    with observe(kept.append):
        error = gives_up(Failing())
    states = [each.state for each in kept]
    assert len(states) == 9
    assert all(state.errors[-1] is error for state in states)
    assert all(state == state_of(error) for state in states)


def test_the_state_of_a_fallback_has_the_final_error(clock):
    states = []
    fetch = Failing()
    policy = POLICY.replace(fallback=states.append)
    assert policy.call(fetch) is None
    [state] = states
    assert facts(state) == GIVEN_UP
    assert all(isinstance(error, ConnectionError) for error in state.errors)


def test_the_state_of_a_group_has_its_members(clock):
    with pytest.raises(ExceptionGroup) as caught:
        POLICY.replace(raises="group").call(Failing())
    state = state_of(caught.value)
    assert state.errors == caught.value.exceptions
    assert facts(state) == GIVEN_UP


@pytest.mark.parametrize("seen", [False, True])
def test_an_error_is_freed_with_its_handler(clock, seen):
    """Its state refers to it by a stand-in, so that there is no reference cycle."""

    class Error(ConnectionError):
        pass

    def fetch():
        state = current_state() if seen else None
        del state
        raise Error

    gc.disable()
    try:
        with suppress(Error):
            POLICY.call(fetch)
        assert not [x for x in gc.get_objects() if type(x) is Error]
    finally:
        gc.enable()


def test_a_call_is_freed_when_its_error_is(clock):
    calls = []

    def fetch():
        calls.append(weakref.ref(current_state()))
        raise ConnectionError

    error = gives_up(fetch)
    assert facts(state_of(error))
    # Nobody has kept the view that the function has seen.
    assert [each() for each in calls] == [None] * 3


def test_the_state_of_an_error_can_be_copied(clock):
    state = state_of(gives_up(Failing()))
    copied = copy.deepcopy(state)
    assert [x.message for x in copied.errors] == ["1", "2", "3"]
    assert copied.to_dict() == state.to_dict()


def test_a_state_that_is_attached_again_stands_for_its_own_error(clock):
    """Clients attach the state of an error to another one."""
    error = gives_up(Failing())
    other = OSError("other")
    attach_state(other, state_of(error))
    assert state_of(other).errors[-1] is error
    assert facts(state_of(other)) == GIVEN_UP


def test_the_parts_of_a_state_are_read_only():
    state = RetryState("fetch", 7, 0.0)
    with pytest.raises(AttributeError):
        state.attempt = 2
    with pytest.raises(AttributeError):
        state.more = 2


def test_an_earlier_view_tells_of_attempts_that_follow(clock):
    seen = []

    @retry(POLICY)
    def fetch():
        state = current_state()
        seen.append((state, state.attempt, len(state.failures)))
        if len(seen) < 3:
            raise ConnectionError

    fetch()
    assert [each[1:] for each in seen] == [(1, 0), (2, 1), (3, 2)]
    [state, *_], [same, *_], _ = seen
    assert state is same
    assert (state.attempt, len(state.failures), state.status) == (3, 2, "succeeded")


def traces(state):
    return [x["error"]["traceback"].count("File ") for x in state.to_dict()["failures"]]


def interrupted_after(failures):
    """Return a function that fails so often, and is then interrupted."""
    left = [KeyboardInterrupt(), *[OSError] * failures]

    def fetch():
        raise left.pop()

    return fetch


@pytest.mark.parametrize("observers", [[], [lambda _: None]])
def test_an_interrupted_call_tells_where_its_errors_were_raised(observers):
    policy = Policy(schedule=[0] * 9, observers=observers)
    with pytest.raises(KeyboardInterrupt) as caught:
        policy.call(interrupted_after(3))
    assert traces(state_of(caught.value)) == [1, 1, 1]


@pytest.mark.parametrize("observers", [[], [lambda _: None]])
def test_a_resumed_call_tells_where_earlier_errors_were_raised(observers):
    policy = Policy(schedule=[0] * 3, on=OSError, observers=observers)
    state = state_of(gives_up(Failing(), policy))
    again = resume(Failing(), state, policy)
    with pytest.raises(ConnectionError) as caught:
        again()
    assert traces(state_of(caught.value))[:3] == [1, 1, 1]


def test_an_event_that_is_asked_after_a_success_knows_when_the_call_began(monkeypatch):
    kept = []
    begun = time.time()
    POLICY.replace(observers=[kept.append]).call(lambda: None)
    monkeypatch.setattr("retrykit._core.call.wall", lambda: time.time() + 3600)
    assert [each.state.epoch for each in kept] == [pytest.approx(begun, abs=60)] * 2


def test_the_end_by_an_earlier_error_is_told_with_that_error():
    """Here a sleep raises it, for which it is no attempt."""
    kept = []
    errors = []

    def fetch():
        errors.append(ConnectionError())
        raise errors[-1]

    def sleep(_):
        raise errors[-1]

    policy = POLICY.replace(observers=[kept.append], sleep=sleep)
    with pytest.raises(ConnectionError) as caught:
        policy.call(fetch)
    assert [each.state.errors for each in kept] == [(caught.value,)] * len(kept)
    assert state_of(caught.value).errors == (caught.value,)


def test_the_delay_of_a_resumed_call_counts_if_its_failure_is_not_known(clock):
    state = RetryState(
        *("fetch", 7, 0.0),
        attempt=4,
        total_delay=1.0,
        next_delay=0.5,
        elapsed_at_end=2.0,
    )

    def fetch():
        return current_state().attempt, current_state().total_delay

    assert resume(fetch, state, Policy(schedule=[1] * 6))() == (5, 1.5)


def test_a_reader_sees_no_sum_that_falls_while_failures_are_dropped(clock):
    """It reads at each line of retrykit that runs."""
    policy = Policy(schedule=[1] * 9, max_failures=3, observers=[lambda _: None])
    seen, calls = [], []

    def look(*_):
        if calls:
            state = calls[0]
            seen.append((state.attempt, state.total_delay, len(state.failures)))
        return look

    def fetch():
        calls[:] = [current_state()]
        raise ConnectionError

    before = sys.gettrace()
    sys.settrace(look)
    try:
        with suppress(ConnectionError):
            policy.call(fetch)
    finally:
        sys.settrace(before)
    attempts, totals, kept = zip(*seen, strict=True)
    assert (attempts[-1], totals[-1], max(kept)) == (10, 9.0, 3)
    assert [*attempts] == sorted(attempts)
    assert [*totals] == sorted(totals)


@pytest.mark.needs("threads")
def test_a_thread_sees_what_the_call_sees(clock):
    """It asks at a moment of its own, and makes the view that the call has, too."""
    seen = []

    @retry(POLICY)
    def fetch():
        state = current_state()

        def look():
            seen.append((state.attempt, facts(state), state.next_delay))

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        if len(seen) < 3:
            raise ConnectionError(len(seen))

    fetch()
    assert seen == [
        (1, [], None),
        (2, GIVEN_UP[:1], None),
        (3, GIVEN_UP[:2], None),
    ]
