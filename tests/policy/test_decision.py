import pytest

from retrykit import (
    Again,
    ConfigError,
    Failure,
    Policy,
    RetryAfter,
    RetryState,
    Stop,
    StopReason,
)
from retrykit.schedules import constant, exponential
from retrykit.state.records import ErrorRecord

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
        ({"schedule": []}, 1, ENDED),
    ],
    ids=str,
)
def test_the_limits_of_count(settings, attempt, expected):
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


def test_the_reason_is_the_error_before_it_is_a_limit():
    settings = {"on": KeyError, "max_attempts": 1, "max_elapsed": 0}
    assert decision(settings) == Stop(StopReason.NOT_RETRYABLE)


def test_a_refused_result_deserves_another_attempt():
    failure = Failure(1, None, 503, 0.0, 0.0, None)
    policy = Policy(schedule=[1], on=KeyError)
    assert policy.decide(RetryState("fetch", 7, 0.0), failure) == Again(1.0)


def test_deciding_twice_gives_the_same_answer_and_changes_nothing():
    policy = Policy(schedule=exponential(1).full_jitter())
    state = RetryState("fetch", 7, 0.0)
    failure = Failure(1, OSError(), None, 0.0, 0.0, None)
    before = state.to_dict()
    assert policy.decide(state, failure) == policy.decide(state, failure)
    assert state.to_dict() == before


def test_the_delay_is_a_function_of_the_seed_and_the_number_of_the_retry():
    settings = {"schedule": exponential(1).full_jitter(), "max_elapsed": None}
    drawn = {
        (seed, attempt): decision(settings, attempt=attempt, seed=seed).delay
        for seed in range(9)
        for attempt in (1, 2, 3)
    }
    assert len(set(drawn.values())) == len(drawn)
    expected = list(exponential(1).full_jitter().take(3).draw(seed=5))
    assert [drawn[5, attempt] for attempt in (1, 2, 3)] == expected


def test_a_schedule_sees_the_delay_before():
    from retrykit.schedules import decorrelated

    previous = (Failure(1, OSError(), None, 0.0, 0.0, 3.0),)
    schedule = decorrelated(1, factor=3)
    for seed in range(50):
        low = decision({"schedule": schedule}, attempt=2, seed=seed)
        high = decision({"schedule": schedule}, attempt=2, seed=seed, failures=previous)
        assert 1.0 <= low.delay <= 3.0
        assert 1.0 <= high.delay <= 9.0
        assert low.delay <= high.delay


def test_an_async_predicate_cannot_be_asked_for_a_decision():
    async def busy(error):
        return True

    with pytest.raises(ConfigError, match="async functions need aretry"):
        decision({"on": busy})


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_exception_is_never_retried(kind):
    """2. Only `Exception` is ever retried."""
    assert decision({}, error=kind()) == Stop(StopReason.CANCELLED)
