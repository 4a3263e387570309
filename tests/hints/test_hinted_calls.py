"""Hints in sync and async calls."""

import pytest

from retrykit import (
    Again,
    ConfigError,
    Failure,
    GiveUp,
    Policy,
    RetryAfter,
    RetryState,
    Rule,
    Stop,
    StopReason,
    hints,
    retrying,
)
from retrykit.schedules import constant
from retrykit.state.records import ErrorRecord
from retrykit.testing import virtual_time

PATIENT = Policy(
    schedule=constant(2), max_elapsed=None, hint=hints.attribute("wait"), on=OSError
)


class BusyError(OSError):
    def __init__(self, wait):
        super().__init__(f"busy for {wait}")
        self.wait = wait


def raising(*errors):
    left = list(errors)

    def fetch():
        if left:
            raise left.pop(0)
        return "done"

    return fetch


def test_a_call_waits_at_least_as_long_as_it_is_asked_to(colour):
    errors = BusyError(5), BusyError(1), BusyError(None), OSError()
    with virtual_time() as clock:
        outcome = colour.run(PATIENT, raising(*errors))
    assert clock.sleeps == [5.0, 2.0, 2.0, 2.0]
    assert [failure.hint for failure in outcome.state.failures] == [
        5.0,
        1.0,
        None,
        None,
    ]


def test_zero_waits_for_the_schedule(colour):
    """Otherwise all clients of the server would come back together."""
    policy = PATIENT.replace(max_attempts=None, max_elapsed=9)
    with virtual_time() as clock:
        colour.run(policy, raising(*[BusyError(0)] * 99))
    assert clock.sleeps == [2.0, 2.0, 2.0, 2.0]


def test_zero_keeps_the_jitter(colour):
    policy = PATIENT.replace(schedule=constant(60).full_jitter(), max_attempts=None)
    with virtual_time() as clock:
        colour.run(policy, raising(*[BusyError(0)] * 50))
    assert len({*clock.sleeps}) == 50


def test_an_exact_zero_means_now(colour):
    policy = PATIENT.replace(hint=lambda error: RetryAfter(error.wait))
    with virtual_time() as clock:
        colour.run(policy, raising(BusyError(0), BusyError(0), RetryAfter(0)))
    assert clock.sleeps == [0.0, 0.0, 0.0]


def test_jitter_makes_no_wait_shorter_than_the_hint(colour):
    policy = PATIENT.replace(schedule=constant(60).full_jitter(), max_attempts=None)
    with virtual_time() as clock:
        colour.run(policy, raising(*[BusyError(30)] * 50))
    assert min(clock.sleeps) == 30.0
    assert max(clock.sleeps) > 30.0


def test_the_schedule_still_says_when_it_is_over(colour):
    policy = PATIENT.replace(schedule=[1], max_attempts=None)
    with virtual_time() as clock:
        outcome = colour.run(policy, raising(BusyError(5), BusyError(5)))
    assert clock.sleeps == [5.0]
    assert outcome.state.stop_reason is StopReason.SCHEDULE_ENDED


@pytest.mark.parametrize(
    ("over", "asked", "expected"),
    [
        ("give_up", 10, Again(10.0)),
        ("give_up", 11, Stop(StopReason.HINT)),
        ("clip", 11, Again(10.0)),
        ("clip", 10**400, Again(10.0)),
        ("honor", 11, Again(11.0)),
        ("honor", 9_999_999, Again(9_999_999.0)),
    ],
    ids=str,
)
def test_a_hint_above_its_cap_follows_a_named_rule(over, asked, expected):
    policy = PATIENT.replace(hint_cap=10, on_long_hint=over, hint=lambda _error: asked)
    assert decided(policy, OSError()) == expected


def decided(policy, error, elapsed=0.0, result=None):
    state = RetryState("fetch", 7, 0.0)
    return policy.decide(state, Failure(1, error, result, 0.0, elapsed, None))


def test_an_hour_is_the_longest_wait_that_is_asked_for_by_default():
    assert decided(PATIENT, BusyError(3600)) == Again(3600.0)
    assert decided(PATIENT, BusyError(3601)) == Stop(StopReason.HINT)
    assert decided(PATIENT.replace(hint_cap=None), BusyError(3601)) == Again(3601.0)


@pytest.mark.parametrize(
    ("deadline", "asked", "expected"),
    [
        ("stop", 7, Again(7.0)),
        ("stop", 8, Stop(StopReason.HINT)),
        ("clip", 7, Again(7.0)),
        ("clip", 8, Stop(StopReason.HINT)),
        ("overshoot", 8, Again(8.0)),
    ],
    ids=str,
)
def test_a_hint_beyond_the_remaining_time_ends_the_call_at_once(
    deadline, asked, expected
):
    policy = PATIENT.replace(max_elapsed=10, deadline=deadline)
    assert decided(policy, BusyError(asked), elapsed=3.0) == expected


def test_how_long_it_was_asked_to_wait_is_told(colour):
    with pytest.raises(BusyError) as caught:
        colour(PATIENT, hint_cap=60)(raising(BusyError("90s")))()
    (note,) = caught.value.__notes__
    assert note.endswith(": it was asked to wait longer than allowed: 1m30s")


def test_a_delay_beyond_the_remaining_time_is_the_schedules_own():
    policy = PATIENT.replace(schedule=[9], max_elapsed=10)
    assert decided(policy, BusyError(1), elapsed=3.0) == Stop(StopReason.ELAPSED)
    clipped = policy.replace(deadline="clip")
    assert decided(clipped, BusyError(1), elapsed=3.0) == Again(7.0)


def test_a_hint_may_say_exactly_how_long_or_not_at_all():
    exact = PATIENT.replace(hint=lambda _error: RetryAfter(0.5))
    assert decided(exact, OSError()) == Again(0.5)
    over = exact.replace(hint_cap=0.25, on_long_hint="clip")
    assert decided(over, OSError()) == Again(0.25)
    never = PATIENT.replace(hint=lambda _error: GiveUp())
    assert decided(never, OSError()) == Stop(StopReason.GAVE_UP)


def test_a_call_that_is_asked_not_to_come_back_ends(colour):
    outcome = colour.run(
        PATIENT.replace(hint=lambda _error: GiveUp()), raising(OSError())
    )
    assert outcome.state.stop_reason is StopReason.GAVE_UP
    assert outcome.state.failures[0].hint is None


def test_results_are_read_like_errors(colour):
    results = [{"wait": 9}, {"wait": None}, "done"]
    policy = PATIENT.replace(
        on_result=lambda result: result != "done", hint=lambda result: result["wait"]
    )
    with virtual_time() as clock:
        assert colour.run(policy, lambda: results.pop(0)).value == "done"
    assert clock.sleeps == [9.0, 2.0]


def test_blocks_are_hinted_alike(clock):
    fetch = raising(BusyError(5))
    for attempt in retrying(PATIENT):
        with attempt:
            fetch()
    assert clock.sleeps == [5.0]


def test_what_is_not_retried_is_not_asked(colour):
    asked = []
    policy = PATIENT.replace(on=ConnectionError, hint=asked.append)
    with pytest.raises(BusyError):
        colour(policy)(raising(BusyError(5)))()
    assert asked == []


def test_a_signal_of_the_function_says_more_than_a_hint(colour):
    with virtual_time() as clock:
        colour.run(PATIENT, raising(RetryAfter(1, BusyError(5))))
    assert clock.sleeps == [1.0]


def test_rules_are_hinted_too():
    policy = PATIENT.replace(rules=[Rule(on=BusyError, schedule=[20])])
    assert decided(policy, BusyError(5)) == Again(20.0)
    assert decided(policy, BusyError(30)) == Again(30.0)


def test_a_hint_that_fails_leaves_the_error_and_the_schedule(colour, caplog):
    def broken(_error):
        raise ZeroDivisionError

    policy = PATIENT.replace(hint=broken, schedule=[2])
    with virtual_time() as clock, pytest.raises(OSError, match="gone") as caught:
        colour(policy)(raising(OSError("first"), OSError("gone")))()
    assert clock.sleeps == [2.0]
    assert len(caught.value.__notes__) == 1
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_one_warning_is_enough_for_a_call(colour, caplog):
    def broken(_error):
        raise ZeroDivisionError

    policy = PATIENT.replace(hint=hints.first_of(broken, hints.attribute("wait")))
    with virtual_time() as clock:
        colour.run(policy, raising(*[BusyError(5)] * 3))
    assert clock.sleeps == [5.0, 5.0, 5.0]
    assert len(caplog.records) == 1


def test_a_decision_asks_once_and_only_what_may_be_retried():
    asked = []
    policy = PATIENT.replace(hint=asked.append, on=ConnectionError)
    assert decided(policy, OSError()) == Stop(StopReason.NOT_RETRYABLE)
    failure = Failure(1, ConnectionError(), None, 0.0, 0.0, None, None, 6.0)
    assert policy.decide(RetryState("fetch", 7, 0.0), failure) == Again(6.0)
    assert asked == []


def test_a_hint_that_fails_leaves_an_error_that_refuses_attributes(colour):
    class FrozenError(OSError):
        def __setattr__(self, name, value):
            raise AttributeError(name)

    def broken(_error):
        raise ZeroDivisionError

    error = FrozenError()
    with virtual_time(), pytest.raises(FrozenError) as caught:
        colour(PATIENT.replace(hint=broken, schedule=[]))(raising(error))()
    assert caught.value is error


def test_a_record_of_an_error_has_the_hint_that_was_read():
    failure = Failure(1, ErrorRecord("BusyError", "", ""), None, 0.0, 0.0, None)
    state = RetryState("fetch", 7, 0.0)
    assert PATIENT.decide(state, failure) == Again(2.0)
    assert PATIENT.decide(state, failure._replace(hint=6.0)) == Again(6.0)


def test_a_hint_is_checked_where_it_is_written():
    with pytest.raises(ConfigError, match="on_long_hint must be one of"):
        Policy(on_long_hint="ignore")
    with pytest.raises(ConfigError, match="call it"):
        Policy(hint=hints.retry_after)
