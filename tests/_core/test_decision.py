import math

import pytest

from retrykit import (
    Again,
    ConfigError,
    Failure,
    Policy,
    RetryAfter,
    RetryState,
    Rule,
    Stop,
    StopReason,
)
from retrykit._core.failures import ErrorRecord
from retrykit.schedules import constant, exponential

ELAPSED = Stop(StopReason.ELAPSED)
ATTEMPTS = Stop(StopReason.ATTEMPTS)
ENDED = Stop(StopReason.SCHEDULE_ENDED)
LIMITED = {"schedule": constant(2), "max_attempts": None, "max_elapsed": 10}


def decision(settings, *, attempt=1, ended=0.0, error=None, failures=(), seed=7):
    state = RetryState("fetch", seed, 0.0, attempt=attempt, failures=failures)
    failure = Failure(attempt, error or OSError(), None, ended, 0.0, None)
    return Policy(**settings).decide(state, failure)


@pytest.mark.parametrize(
    ("rule", "ended", "expected"),
    [
        ("stop", 0.0, Again(2.0)),
        ("stop", 8.0, Again(2.0)),
        ("stop", 8.5, ELAPSED),
        ("stop", 10.0, ELAPSED),
        ("clip", 8.0, Again(2.0)),
        ("clip", 8.5, Again(1.5)),
        ("clip", 9.75, Again(0.25)),
        ("clip", 10.0, ELAPSED),
        ("clip", 12.0, ELAPSED),
        ("overshoot", 8.5, Again(2.0)),
        ("overshoot", 10.0, Again(2.0)),
        ("overshoot", 10.001, ELAPSED),
    ],
    ids=str,
)
def test_the_deadline_rules(rule, ended, expected):
    assert decision({**LIMITED, "deadline": rule}, ended=ended) == expected


def test_the_duration_of_the_attempt_counts():
    state = RetryState("fetch", 7, 0.0)
    failure = Failure(1, OSError(), None, 3.0, 6.0, None)
    assert Policy(**LIMITED).decide(state, failure) == ELAPSED


@pytest.mark.parametrize(
    ("settings", "attempt", "expected"),
    [
        ({"max_attempts": 1}, 1, ATTEMPTS),
        ({"max_attempts": 3, "schedule": [1, 2, 3]}, 2, Again(2.0)),
        ({"max_attempts": 3, "schedule": [1, 2, 3]}, 3, ATTEMPTS),
        ({"max_attempts": None, "schedule": [1, 2]}, 2, Again(2.0)),
        ({"max_attempts": None, "schedule": [1, 2]}, 3, ENDED),
        ({"schedule": [1]}, 2, ENDED),
    ],
    ids=str,
)
def test_the_limits_of_attempts_and_schedule(settings, attempt, expected):
    assert decision(settings, attempt=attempt) == expected


def is_busy(error):
    return "busy" in error.args


@pytest.mark.parametrize(
    ("settings", "error", "expected"),
    [
        ({"on": OSError}, OSError(), Again(1.0)),
        ({"on": OSError}, ConnectionError(), Again(1.0)),
        ({"on": OSError}, KeyError(), Stop(StopReason.NOT_RETRYABLE)),
        ({"on": (OSError, KeyError)}, KeyError(), Again(1.0)),
        ({"give_up_on": OSError}, OSError(), Stop(StopReason.GAVE_UP)),
        ({"give_up_on": (KeyError,)}, OSError(), Again(1.0)),
        ({"on": is_busy}, OSError("busy"), Again(1.0)),
        ({"on": is_busy}, OSError("gone"), Stop(StopReason.NOT_RETRYABLE)),
        ({"give_up_on": is_busy}, OSError("busy"), Stop(StopReason.GAVE_UP)),
        ({"on": KeyError}, RetryAfter(9), Again(9.0)),
        ({}, ConfigError("wrong"), Stop(StopReason.NOT_RETRYABLE)),
        ({}, ErrorRecord("OSError", "", ""), Again(1.0)),
    ],
)
def test_the_conditions(settings, error, expected):
    assert decision({"schedule": [1], **settings}, error=error) == expected


def test_an_error_that_is_not_retryable_is_the_reason_before_a_limit():
    settings = {"on": KeyError, "max_attempts": 1, "max_elapsed": 0}
    assert decision(settings) == Stop(StopReason.NOT_RETRYABLE)


def test_a_rejected_result_is_retried():
    failure = Failure(1, None, 503, 0.0, 0.0, None)
    policy = Policy(schedule=[1], on=KeyError)
    assert policy.decide(RetryState("fetch", 7, 0.0), failure) == Again(1.0)


def test_a_decision_is_pure():
    policy = Policy(schedule=exponential(1).full_jitter())
    state = RetryState("fetch", 7, 0.0)
    failure = Failure(1, OSError(), None, 0.0, 0.0, None)
    before = state.to_dict()
    assert policy.decide(state, failure) == policy.decide(state, failure)
    assert state.to_dict() == before


def test_the_delay_depends_on_the_seed_and_the_retry():
    settings = {"schedule": exponential(1).full_jitter(), "max_elapsed": None}
    drawn = {
        (seed, attempt): decision(settings, attempt=attempt, seed=seed).delay
        for seed in range(9)
        for attempt in (1, 2, 3)
    }
    assert len(set(drawn.values())) == len(drawn)
    expected = list(exponential(1).full_jitter().take(3).draw(seed=5))
    assert [drawn[5, attempt] for attempt in (1, 2, 3)] == expected


def test_a_schedule_gets_the_previous_delay():
    from retrykit.schedules import decorrelated

    previous = (Failure(1, OSError(), None, 0.0, 0.0, 3.0),)
    settings = {"schedule": decorrelated(1, factor=3)}
    for seed in range(50):
        low = decision(settings, attempt=2, seed=seed).delay
        high = decision(settings, attempt=2, seed=seed, failures=previous).delay
        # The same part of the range from 1 to 3, and of that from 1 to 9.
        assert high - 1 == pytest.approx(4 * (low - 1))


def test_a_state_advances_to_the_next_attempt():
    rules = [Rule(on=KeyError, schedule=[9]), Rule(on=OSError, schedule=[1, 2])]
    policy = Policy(rules=rules, max_attempts=3)
    first = state = RetryState("fetch", 7, 0.0)
    delays = []
    for attempt in (1, 2, 3):
        began = state.attempt_started
        failure = Failure(attempt, OSError(), None, began, 0.5, None)
        decision = policy.decide(state, failure)
        if isinstance(decision, Stop):
            break
        state = policy.advance(state, failure, decision)
        delays.append(decision.delay)
    assert delays == [1, 2]
    assert (state.attempt, state.attempt_started, state.total_delay) == (3, 4, 3)
    assert [each.delay for each in state.failures] == [1, 2]
    assert [each.rule for each in state.failures] == [1, 1]
    assert (first.attempt, first.failures) == (1, ())
    rejected = Failure(3, None, "no", 4.0, 0.5, None)
    later = Policy(on_result=lambda result: True).advance(state, rejected, Again(0.5))
    assert (later.attempt, later.failures[-1].delay) == (4, 0.5)


@pytest.mark.parametrize(
    ("name", "rule"),
    [("state", "state must be a RetryState"), ("failure", "failure must be a Failure")],
)
def test_a_history_of_something_else_is_refused(name, rule):
    failure = Failure(1, OSError(), None, 0.0, 0.0, None)
    history = {"state": RetryState("fetch", 7, 0.0), "failure": failure} | {name: "x"}
    with pytest.raises(ConfigError, match=rule):
        Policy().decide(**history)
    with pytest.raises(ConfigError, match=rule):
        Policy().advance(**history, decision=Again(1))


@pytest.mark.parametrize(
    ("parts", "delay", "rule"),
    [
        ({}, -1, "decision.delay must be a finite number >= 0, got -1"),
        ({}, math.nan, "decision.delay must be a finite number >= 0, got nan"),
        (
            {"attempt": 2},
            1,
            "failure.attempt must be 1, the number of the attempt that ",
        ),
        ({"started": math.nan}, 1, "failure.started must be a finite number >= 0, got"),
        ({"duration": -1}, 1, "failure.duration must be a finite number >= 0, got -1"),
    ],
    ids=["negative", "nan", "attempt", "started", "duration"],
)
def test_a_state_does_not_advance_by_what_cannot_be(parts, delay, rule):
    failure = Failure(1, OSError(), None, 0.0, 0.5, None)._replace(**parts)
    with pytest.raises(ConfigError) as raised:
        Policy().advance(RetryState("fetch", 7, 0.0), failure, Again(delay))
    assert raised.value.message.startswith(rule)


def test_a_state_does_not_advance_once_its_call_has_ended():
    failure = Failure(1, ValueError(), None, 0.0, 0.5, None)
    state, policy = RetryState("fetch", 7, 0.0), Policy(on=OSError)
    decision = policy.decide(state, failure)
    with pytest.raises(ConfigError, match="decision must be an Again, got Stop"):
        policy.advance(state, failure, decision)


def test_decide_rejects_an_async_predicate():
    async def is_busy_async(error):
        return True

    with pytest.raises(ConfigError, match="async functions need aretry"):
        decision({"on": is_busy_async})


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_base_exception_is_never_retried(kind):
    """2. Only `Exception` is ever retried."""
    assert decision({}, error=kind()) == Stop(StopReason.CANCELLED)
