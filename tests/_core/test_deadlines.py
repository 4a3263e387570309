import pytest
from hypothesis import example, given, strategies as st

from retrykit import Policy, StopReason, state_of
from retrykit.schedules import constant
from retrykit.testing import virtual_time

UNCOUNTED = {"schedule": constant(4), "max_attempts": None, "max_elapsed": 10}


@pytest.mark.parametrize(
    ("rule", "sleeps", "elapsed"),
    [
        ("stop", [4.0, 4.0], 8.0),
        ("clip", [4.0, 4.0, 2.0], 10.0),
        ("overshoot", [4.0, 4.0, 4.0], 12.0),
    ],
)
def test_the_deadline_rules(backend, clock, flaky, rule, sleeps, elapsed):
    with pytest.raises(OSError) as caught:
        backend(**UNCOUNTED, deadline=rule)(flaky(*[OSError()] * 9))()
    assert clock.sleeps == sleeps
    assert state_of(caught.value).elapsed == elapsed
    assert state_of(caught.value).stop_reason is StopReason.ELAPSED


def test_the_duration_of_an_attempt_counts(backend, clock):
    @backend(**UNCOUNTED)
    def slow():
        clock.advance(7)
        raise OSError

    with pytest.raises(OSError) as caught:
        slow()
    assert clock.sleeps == []
    assert state_of(caught.value).elapsed == 7.0


def test_a_clipped_delay_ends_at_the_limit(backend, clock):
    began = []

    @backend(**UNCOUNTED, deadline="clip")
    def slow():
        began.append(clock.now())
        clock.advance(2)
        raise OSError

    with pytest.raises(OSError):
        slow()
    assert began == [0.0, 6.0, 10.0]


def test_a_limit_of_zero_allows_one_attempt(backend, clock, flaky):
    fetch = flaky(OSError(), "value")
    with pytest.raises(OSError):
        backend(max_elapsed=0, schedule=constant(0))(fetch)()
    assert (len(fetch.calls), clock.sleeps) == (1, [])


@given(start=st.floats(0, 1e6), delay=st.floats(0.001, 10), delays=st.floats(0, 30))
@example(start=369955.1665480792, delay=0.24558498082097246, delays=8.504015366128407)
def test_a_clipped_call_makes_one_last_attempt_at_the_limit(start, delay, delays):
    """Rounding of the clock must not leave time for another attempt."""
    allowed = delay * delays
    policy = Policy(schedule=constant(delay), max_elapsed=allowed, deadline="clip")
    with virtual_time(start) as clock:
        outcome = policy.run(int, "text")
    assert outcome.state.stop_reason is StopReason.ELAPSED
    assert outcome.state.elapsed == pytest.approx(allowed, abs=2e-6)
    assert set(clock.sleeps[:-1]) <= {delay}
