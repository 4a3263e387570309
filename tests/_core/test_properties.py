"""Properties of every policy and every call."""

import asyncio
import contextlib
import itertools
import math
from typing import NamedTuple

import pytest
from hypothesis import example, given, strategies as st

from retrykit import (
    Again,
    Failure,
    Policy,
    RetryAfter,
    RetryState,
    Stop,
    StopReason,
    aretrying,
    retrying,
    schedules as s,
)
from retrykit._core.limits import override
from retrykit.backoff import STOP, Backoff
from retrykit.schedules._randomness import MAX_DELAY
from retrykit.testing import virtual_time
from retrykit.testing.strategies import (
    durations,
    failure_scripts,
    policies,
    schedules,
    seeds,
)

# Tolerance for rounding of sums of delays and clock readings, in seconds.
TOLERANCE = 1e-6


class DecisionInput(NamedTuple):
    """A decision and its input."""

    policy: Policy
    attempt: int
    elapsed: float
    error: Exception
    decision: Again | Stop

    @property
    def requested_bounds(self):
        """The bounds of the delay that the error or the schedule requests."""
        if isinstance(self.error, RetryAfter):
            return self.error.delay, self.error.delay
        return self.policy.schedule.bounds(self.attempt)


@st.composite
def decisions(draw):
    policy = override(draw(policies()), rules=())
    attempt = draw(st.integers(1, min(policy.max_attempts or 30, 30)))
    # Around the limit, if there is one.
    part = draw(st.floats(0, 1.1) | st.sampled_from([1.0, math.nextafter(1.0, 0.0)]))
    limit = 1e6 if policy.max_elapsed is None else policy.max_elapsed
    elapsed = min(limit * part, MAX_DELAY)
    error = draw(st.builds(ConnectionError) | st.builds(RetryAfter, durations()))
    before = Failure(attempt - 1, error, None, 0.0, 0.0, draw(durations()))
    failures = (before,) if attempt > 1 else ()
    state = RetryState("fetch", draw(seeds()), 0.0, attempt=attempt, failures=failures)
    decision = policy.decide(state, Failure(attempt, error, None, elapsed, 0.0, None))
    return DecisionInput(policy, attempt, elapsed, error, decision)


def again():
    return decisions().filter(lambda case: isinstance(case.decision, Again))


def stop():
    return decisions().filter(lambda case: isinstance(case.decision, Stop))


@given(again())
def test_no_decision_exceeds_a_limit(case):
    """5. No sleep past the deadline unless `overshoot` says so."""
    policy, limit = case.policy, case.policy.max_elapsed
    within_attempts = case.attempt < (policy.max_attempts or math.inf)
    if policy.limits == "all":
        # The time counts once all attempts are used.
        limit = None if within_attempts else limit
    else:
        assert within_attempts
    if limit is not None and policy.deadline == "overshoot":
        assert case.elapsed <= limit + TOLERANCE
    elif limit is not None:
        assert case.elapsed < limit
        end = case.elapsed + case.decision.delay
        assert end <= limit + max(TOLERANCE, math.ulp(limit))


@given(again())
def test_every_delay_is_the_requested_one_unless_it_is_clipped(case):
    policy, delay, (low, high) = case.policy, case.decision.delay, case.requested_bounds
    if policy.deadline == "clip" and delay == policy.max_elapsed - case.elapsed:
        assert 0.0 <= delay <= high
    else:
        assert low <= delay <= high


@given(stop())
def test_every_stop_reason_is_true(case):
    policy, reason = case.policy, case.decision.reason
    if reason is StopReason.ATTEMPTS:
        assert case.attempt >= policy.max_attempts
    elif reason is StopReason.SCHEDULE_ENDED:
        assert policy.schedule.bounds(case.attempt) is None
    else:
        assert reason is StopReason.ELAPSED
        longest = (
            case.requested_bounds[1]
            if policy.deadline == "stop" and case.requested_bounds
            else 0.0
        )
        assert case.elapsed + longest >= policy.max_elapsed - TOLERANCE


class Call(NamedTuple):
    """A call in virtual time: its outcome, and the starts of its attempts."""

    outcome: object
    began: list[float]
    sleeps: list[float]


def play(policy, script, taken, start=0.0):
    """Call a function that follows a script, and whose attempts take some time."""
    outcomes = itertools.chain(script, itertools.repeat(ConnectionError))
    began = []

    def fetch():
        began.append(clock.now() - start)
        clock.advance(taken)
        outcome = next(outcomes)
        if outcome == "done":
            return outcome
        raise outcome

    with virtual_time(start) as clock:
        return Call(policy.run(fetch), began, clock.sleeps)


def within_reach(policy):
    """Scale the delays so that a call reaches its limits in a few attempts."""
    longest = min(policy.max_elapsed or 86_400, 86_400) / 3
    return override(policy, schedule=policy.schedule.cap(longest))


REACHING = policies(schedules=schedules(), max_attempts=12).map(within_reach)
# Without rules, all failures are alike.
ALIKE = REACHING.map(lambda policy: override(policy, rules=()))
FAILING = failure_scripts(succeeds=False)


@given(REACHING, FAILING, durations(at_most="1h"), st.floats(0, 1e6))
@example(
    Policy(schedule=[4, 4, 4], max_attempts=4, max_elapsed=10, deadline="clip"),
    [OSError],
    0,
    0,
)
def test_no_call_exceeds_a_limit(policy, script, taken, start):
    """5. The call's own duration counts. No sleep past the deadline."""
    call = play(policy, script, taken, start)
    assert len(call.began) <= (policy.max_attempts or math.inf)
    assert len(call.sleeps) == len(call.began) - 1
    limit = math.inf if policy.max_elapsed is None else policy.max_elapsed
    _, *later = call.began
    if policy.deadline == "overshoot":
        later = [began + taken for began in call.began[:-1]]
    assert all(moment <= limit + 2 * TOLERANCE for moment in later)


@given(REACHING, failure_scripts(), durations(at_most="1h"))
def test_a_call_succeeds_if_it_reaches_the_value(policy, script, taken):
    outcome, began, sleeps = play(policy, script, taken)
    state = outcome.state
    assert state.attempt == len(began)
    assert state.total_delay == pytest.approx(sum(sleeps))
    if outcome.ok:
        assert outcome.value == script[-1] == "done"
        assert len(began) == len(script)
    failed = [failure.attempt for failure in state.failures]
    assert len(failed) + state.dropped_failures == len(began) - outcome.ok
    assert failed == sorted(failed)


def fail():
    raise ConnectionError


async def araise_error():
    raise ConnectionError


def in_a_block(policy, _clock):
    for attempt in retrying(policy):
        with attempt:
            raise ConnectionError


def in_an_async_block(policy, _clock):
    async def block():
        async for attempt in aretrying(policy):
            with attempt:
                raise ConnectionError

    asyncio.run(block())


def in_a_custom_loop(policy, clock):
    for wait in iter(Backoff(policy).next, STOP):
        clock.sleep(wait)


def with_decide(policy, clock):
    state = RetryState("fetch", policy.seed, 0.0)
    while True:
        failure = Failure(state.attempt, None, None, clock.now(), 0.0, None)
        match policy.decide(state, failure):
            case Again(delay):
                clock.sleep(delay)
                state._record.add_failure(failure._replace(delay=delay))
                state._record.begin_attempt(state.elapsed)
            case Stop():
                return


FORMS = [
    lambda policy, _clock: policy.call(fail),
    lambda policy, _clock: asyncio.run(policy.acall(araise_error)),
    in_a_block,
    in_an_async_block,
    in_a_custom_loop,
    with_decide,
]


def observed_delays(form, policy):
    with virtual_time() as clock, contextlib.suppress(Exception):
        form(policy, clock)
    return clock.sleeps


@given(ALIKE, seeds())
def test_every_form_of_a_call_has_the_same_delays(policy, seed):
    """10. A replay and a simulation see the very delays of the live call."""
    found = [observed_delays(form, policy.replace(seed=seed)) for form in FORMS]
    assert found == [found[0]] * len(FORMS)


@given(ALIKE, seeds())
@example(Policy(schedule=s.decorrelated(1)), 7)
def test_a_call_has_the_delays_that_its_schedule_draws(policy, seed):
    """10. The draw for retry n of a call is a function of the call's seed and n."""
    sleeps = observed_delays(FORMS[0], policy.replace(seed=seed))
    drawn = list(itertools.islice(policy.schedule.draw(seed), len(sleeps)))
    if policy.deadline == "clip" and sleeps != drawn:
        # Only the last delay is clipped.
        assert sleeps.pop() < drawn.pop()
    assert sleeps == drawn
