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
from retrykit._core.failures import ErrorRecord
from retrykit.schedules import constant
from retrykit.testing import ScriptedFunction, virtual_time

PATIENT = Policy(
    schedule=constant(2), hint=hints.attribute("wait"), hint_jitter=0, on=OSError
)


class BusyError(OSError):
    def __init__(self, wait):
        super().__init__(f"busy for {wait}")
        self.wait = wait


def raise_in_turn(*errors):
    return ScriptedFunction([*errors, "done"])


def test_a_call_waits_at_least_as_long_as_the_hint(backend):
    errors = BusyError(5), BusyError(1), BusyError(None), OSError()
    with virtual_time() as clock:
        outcome = backend.run(PATIENT, raise_in_turn(*errors))
    assert clock.sleeps == [5.0, 2.0, 2.0, 2.0]
    assert [failure.hint for failure in outcome.state.failures] == [
        5.0,
        1.0,
        None,
        None,
    ]


def test_a_hint_of_zero_uses_the_schedule(backend):
    """Otherwise all clients of the server would return at once."""
    policy = PATIENT.replace(max_attempts=None, max_elapsed=9)
    with virtual_time() as clock:
        backend.run(policy, raise_in_turn(*[BusyError(0)] * 99))
    assert clock.sleeps == [2.0, 2.0, 2.0, 2.0]


def test_a_hint_of_zero_keeps_the_jitter(backend):
    policy = PATIENT.replace(schedule=constant(60).full_jitter(), max_attempts=None)
    with virtual_time() as clock:
        backend.run(policy, raise_in_turn(*[BusyError(0)] * 50))
    assert len({*clock.sleeps}) == 50


def test_retry_after_zero_means_now(backend):
    policy = PATIENT.replace(hint=lambda error: RetryAfter(error.wait))
    with virtual_time() as clock:
        backend.run(policy, raise_in_turn(BusyError(0), BusyError(0), RetryAfter(0)))
    assert clock.sleeps == [0.0, 0.0, 0.0]


def test_jitter_does_not_shorten_a_hint(backend):
    policy = PATIENT.replace(schedule=constant(60).full_jitter(), max_attempts=None)
    with virtual_time() as clock:
        backend.run(policy, raise_in_turn(*[BusyError(30)] * 50))
    assert min(clock.sleeps) == 30.0
    assert max(clock.sleeps) > 30.0


def test_the_end_of_the_schedule_ends_a_hinted_call(backend):
    policy = PATIENT.replace(schedule=[1], max_attempts=None)
    with virtual_time() as clock:
        outcome = backend.run(policy, raise_in_turn(BusyError(5), BusyError(5)))
    assert clock.sleeps == [5.0]
    assert outcome.state.stop_reason is StopReason.SCHEDULE_ENDED


@pytest.mark.parametrize(
    ("over", "calls", "expected"),
    [
        ("give_up", 10, Again(10.0)),
        ("give_up", 11, Stop(StopReason.HINT)),
        ("clip", 11, Again(10.0)),
        ("clip", 10**400, Again(10.0)),
        ("honor", 11, Again(11.0)),
        ("ignore", 10, Again(10.0)),
        ("ignore", 11, Again(2.0)),
        ("ignore", 10**400, Again(2.0)),
        ("honor", 9_999_999, Again(9_999_999.0)),
    ],
    ids=str,
)
def test_on_long_hint_applies_above_the_hint_cap(over, calls, expected):
    policy = PATIENT.replace(hint_cap=10, on_long_hint=over, hint=lambda _error: calls)
    assert decide(policy, OSError()) == expected


def decide(policy, error, elapsed=0.0, result=None):
    state = RetryState("fetch", 7, 0.0)
    return policy.decide(state, Failure(1, error, result, 0.0, elapsed, None))


def test_the_default_hint_cap_is_an_hour():
    assert decide(PATIENT, BusyError(3600)) == Again(3600.0)
    assert decide(PATIENT, BusyError(3601)) == Stop(StopReason.HINT)
    assert decide(PATIENT.replace(hint_cap=None), BusyError(3601)) == Again(3601.0)


@pytest.mark.parametrize(
    ("deadline", "calls", "expected"),
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
    deadline, calls, expected
):
    policy = PATIENT.replace(max_elapsed=10, deadline=deadline)
    assert decide(policy, BusyError(calls), elapsed=3.0) == expected


def test_the_note_shows_the_requested_delay(backend):
    with pytest.raises(BusyError) as caught:
        backend(PATIENT, hint_cap=60)(raise_in_turn(BusyError("90s")))()
    (note,) = caught.value.__notes__
    assert note.endswith(": it was asked to wait 1 min 30 s, longer than hint_cap=1m")


def test_a_delay_of_the_schedule_beyond_the_remaining_time_follows_the_deadline_rule():
    policy = PATIENT.replace(schedule=[9], max_elapsed=10)
    assert decide(policy, BusyError(1), elapsed=3.0) == Stop(StopReason.ELAPSED)
    clipped = policy.replace(deadline="clip")
    assert decide(clipped, BusyError(1), elapsed=3.0) == Again(7.0)


def test_a_hint_may_return_a_signal():
    exact = PATIENT.replace(hint=lambda _error: RetryAfter(0.5))
    assert decide(exact, OSError()) == Again(0.5)
    over = exact.replace(hint_cap=0.25, on_long_hint="clip")
    assert decide(over, OSError()) == Again(0.25)
    never = PATIENT.replace(hint=lambda _error: GiveUp())
    assert decide(never, OSError()) == Stop(StopReason.GAVE_UP)


def test_a_hint_may_end_the_call(backend):
    outcome = backend.run(
        PATIENT.replace(hint=lambda _error: GiveUp()), raise_in_turn(OSError())
    )
    assert outcome.state.stop_reason is StopReason.GAVE_UP
    assert outcome.state.failures[0].hint is None


def test_a_hint_reads_results(backend):
    results = [{"wait": 9}, {"wait": None}, "done"]
    policy = PATIENT.replace(
        on_result=lambda result: result != "done", hint=lambda result: result["wait"]
    )
    with virtual_time() as clock:
        assert backend.run(policy, lambda: results.pop(0)).value == "done"
    assert clock.sleeps == [9.0, 2.0]


def test_hints_apply_to_blocks(clock):
    fetch = raise_in_turn(BusyError(5))
    for attempt in retrying(PATIENT):
        with attempt:
            fetch()
    assert clock.sleeps == [5.0]


def test_the_hint_is_not_called_for_an_error_that_is_not_retryable(backend):
    calls = []
    policy = PATIENT.replace(on=ConnectionError, hint=calls.append)
    with pytest.raises(BusyError):
        backend(policy)(raise_in_turn(BusyError(5)))()
    assert calls == []


def test_a_signal_of_the_function_wins_over_a_hint(backend):
    with virtual_time() as clock:
        backend.run(PATIENT, raise_in_turn(RetryAfter(1, BusyError(5))))
    assert clock.sleeps == [1.0]


def test_hints_apply_to_rules():
    policy = PATIENT.replace(rules=[Rule(on=BusyError, schedule=[20])])
    assert decide(policy, BusyError(5)) == Again(20.0)
    assert decide(policy, BusyError(30)) == Again(30.0)


@pytest.mark.usefixtures("quiet")
def test_a_failing_hint_leaves_the_schedules_delay(backend, caplog):
    def broken(_error):
        raise ZeroDivisionError

    policy = PATIENT.replace(hint=broken, schedule=[2])
    with virtual_time() as clock, pytest.raises(OSError, match="gone") as caught:
        backend(policy)(raise_in_turn(OSError("first"), OSError("gone")))()
    assert clock.sleeps == [2.0]
    assert len(caught.value.__notes__) == 1
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.usefixtures("quiet")
def test_a_failing_hint_is_logged_once_per_call(backend, caplog):
    def broken(_error):
        raise ZeroDivisionError

    policy = PATIENT.replace(hint=hints.first_of(broken, hints.attribute("wait")))
    with virtual_time() as clock:
        backend.run(policy, raise_in_turn(*[BusyError(5)] * 3))
    assert clock.sleeps == [5.0, 5.0, 5.0]
    assert len(caplog.records) == 1


def test_decide_does_not_call_the_hint_again():
    calls = []
    policy = PATIENT.replace(hint=calls.append, on=ConnectionError)
    assert decide(policy, OSError()) == Stop(StopReason.NOT_RETRYABLE)
    failure = Failure(1, ConnectionError(), None, 0.0, 0.0, None, None, 6.0)
    assert policy.decide(RetryState("fetch", 7, 0.0), failure) == Again(6.0)
    assert calls == []


def test_a_failing_hint_does_not_replace_an_error_that_rejects_attributes(backend):
    class FrozenError(OSError):
        def __setattr__(self, name, value):
            raise AttributeError(name)

    def broken(_error):
        raise ZeroDivisionError

    error = FrozenError()
    with virtual_time(), pytest.raises(FrozenError) as caught:
        backend(PATIENT.replace(hint=broken, max_attempts=1))(raise_in_turn(error))()
    assert caught.value is error


def test_decide_uses_the_stored_hint_of_a_record():
    failure = Failure(1, ErrorRecord("BusyError", "", ""), None, 0.0, 0.0, None)
    state = RetryState("fetch", 7, 0.0)
    assert PATIENT.decide(state, failure) == Again(2.0)
    assert PATIENT.decide(state, failure._replace(hint=6.0)) == Again(6.0)


def test_an_invalid_hint_is_rejected_by_the_policy():
    with pytest.raises(ConfigError, match="on_long_hint must be one of"):
        Policy(on_long_hint="wait")
    with pytest.raises(ConfigError, match="call it"):
        Policy(hint=hints.retry_after)


def test_the_error_of_a_hint_may_end_the_call(backend):
    class Strict:
        raises_errors = True

        def __call__(self, _error):
            raise LookupError

    with virtual_time(), pytest.raises(LookupError):
        backend(PATIENT, hint=Strict())(raise_in_turn(OSError()))()
