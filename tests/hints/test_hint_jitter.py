"""The random addition to a hint, which spreads the clients of a server."""

import asyncio

import pytest
from hypothesis import given, strategies as st

from retrykit import (
    Again,
    Failure,
    Policy,
    RetryAfter,
    RetryState,
    Rule,
    Stop,
    StopReason,
    aretry,
    hints,
    presets,
    resume,
    retry,
    retrying,
    state_of,
)
from retrykit.durable import Job
from retrykit.schedules import constant, exponential
from retrykit.testing import virtual_time

TOLD = Policy(schedule=constant(1), hint=lambda _: 30, max_attempts=2)


def fail():
    raise OSError


def decide(policy, seed=7, elapsed=0.0, attempt=1, hint=None):
    state = RetryState("fetch", seed, 0.0)
    failure = Failure(attempt, OSError(), None, 0.0, elapsed, None, None, hint)
    return policy.decide(state, failure)


def delays(policy, count=200, **settings):
    return [decide(policy, seed, **settings).delay for seed in range(count)]


def test_clients_that_are_told_the_same_time_return_at_different_times(backend):
    with virtual_time() as clock:
        for _ in range(50):
            backend.run(TOLD, fail)
    assert len({*clock.sleeps}) == 50
    assert 30.0 <= min(clock.sleeps) < 30.5
    assert 32.5 < max(clock.sleeps) <= 33.0


@pytest.mark.parametrize(("jitter", "most"), [(0.5, 45.0), (1, 60.0)])
def test_hint_jitter_is_the_longest_addition_as_a_part_of_the_hint(jitter, most):
    drawn = delays(TOLD.replace(hint_jitter=jitter))
    assert 30.0 <= min(drawn) < 31.0
    assert most - 1.0 < max(drawn) <= most


def test_no_hint_jitter_waits_as_long_as_the_hint_says():
    assert {*delays(TOLD.replace(hint_jitter=0))} == {30.0}


def test_a_hint_of_zero_has_no_addition():
    assert {*delays(TOLD.replace(hint=lambda _: 0))} == {1.0}


def test_an_exact_hint_has_no_addition():
    """RetryAfter of a hint, and the pushback of gRPC, say exactly when to return."""
    assert {*delays(TOLD.replace(hint=lambda _: RetryAfter(30)))} == {30.0}
    assert {*delays(TOLD.replace(hint=lambda _: RetryAfter(0)))} == {0.0}


def test_a_function_that_raises_retry_after_has_no_addition(backend):
    def busy():
        raise RetryAfter(30, OSError())

    with virtual_time() as clock:
        backend.run(TOLD, busy)
    assert clock.sleeps == [30.0]


def test_a_longer_delay_of_the_schedule_has_no_addition():
    assert {*delays(TOLD.replace(schedule=[90]))} == {90.0}


@pytest.mark.parametrize("over", ["give_up", "clip", "ignore"])
def test_the_addition_stays_within_the_hint_cap(over):
    drawn = delays(TOLD.replace(hint_cap=31, on_long_hint=over))
    assert 30.9 < max(drawn) <= 31.0
    # It is drawn from what is left: many clients at the cap itself would collide.
    assert len({*drawn}) == 200


def test_a_hint_that_is_clipped_waits_for_the_cap_itself():
    assert {*delays(TOLD.replace(hint_cap=10, on_long_hint="clip"))} == {10.0}


def test_a_hint_that_is_honored_is_spread_beyond_the_cap():
    drawn = delays(TOLD.replace(hint_cap=10, on_long_hint="honor"))
    assert 32.5 < max(drawn) <= 33.0


@pytest.mark.parametrize("deadline", ["stop", "clip", "overshoot"])
@pytest.mark.parametrize("timeout", [None, 5])
def test_the_addition_stays_within_the_time_that_is_left(deadline, timeout):
    policy = TOLD.replace(
        max_attempts=None, max_elapsed=41, deadline=deadline, attempt_timeout=timeout
    )
    drawn = delays(policy, elapsed=10.0)
    assert min(drawn) >= 30.0
    assert 30.9 < max(drawn) <= 31.0


def test_a_hint_that_just_fits_is_not_spread():
    policy = TOLD.replace(max_attempts=None, max_elapsed=30)
    assert {*delays(policy)} == {30.0}
    assert decide(policy, elapsed=0.1) == Stop(StopReason.HINT)


def test_the_addition_stays_within_the_time_of_the_call_around_it(backend):
    outer = Policy(on=ValueError, max_elapsed=31)
    with virtual_time() as clock:
        for _ in range(20):
            backend.run(outer, lambda: TOLD.run(fail))
    assert 30.0 <= min(clock.sleeps) < max(clock.sleeps) <= 31.0


@given(seed=st.integers(0, 2**53), attempt=st.integers(1, 1000))
def test_the_same_seed_draws_the_same(seed, attempt):
    policy = TOLD.replace(max_attempts=None)
    drawn = decide(policy, seed, attempt=attempt)
    assert drawn == decide(policy, seed, attempt=attempt)
    # Whatever the schedule draws, and from a failure that was stored.
    other = policy.replace(schedule=exponential(0.01).cap(1).jitter(0.5).full_jitter())
    assert drawn == decide(other, seed, attempt=attempt)
    unread = policy.replace(hint=None)
    assert drawn == decide(unread, seed, attempt=attempt, hint=30.0)
    assert 30.0 <= drawn.delay <= 33.0


def test_each_retry_draws_its_own():
    policy = TOLD.replace(max_attempts=None)
    drawn = {decide(policy, attempt=attempt).delay for attempt in range(1, 100)}
    assert len(drawn) == 99


def test_a_hint_of_a_rule_is_spread():
    rule = Rule(on=OSError, hint=lambda _: 60)
    drawn = delays(TOLD.replace(rules=[rule]))
    assert 60.0 <= min(drawn) < 63.0 < max(drawn) <= 66.0


def test_blocks_are_spread_under_a_seed_of_their_own(clock):
    for _ in range(5):
        with pytest.raises(OSError):
            for attempt in retrying(TOLD):
                with attempt:
                    fail()
    assert len({*clock.sleeps}) == 5
    seeded = retry(TOLD.replace(seed=11))(fail)
    for _ in range(2):
        with pytest.raises(OSError):
            seeded()
    assert clock.sleeps[-1] == clock.sleeps[-2]


def test_a_resumed_call_draws_what_it_would_have_drawn():
    policy = TOLD.replace(max_attempts=4)

    def waits(**settings):
        with virtual_time() as clock, pytest.raises(OSError) as caught:
            retry(policy, seed=5, **settings)(fail)()
        return clock.sleeps, state_of(caught.value)

    whole, _ = waits()
    _, state = waits(max_attempts=2)
    with virtual_time() as clock, pytest.raises(OSError):
        resume(retry(policy)(fail), state)()
    assert clock.sleeps == whole[2:]


def test_a_durable_job_is_due_when_a_call_with_its_seed_would_be():
    job = Job(fail, TOLD, "fetch")
    envelopes = [job.attempt(job.envelope(f"job-{n}"), [], {}).envelope for n in "1234"]
    stored = [each.state.next_delay for each in envelopes]
    drawn = [decide(TOLD, each.state.seed).delay for each in envelopes]
    assert stored == drawn
    assert len({*stored}) == 4
    assert min(stored) >= 30.0


def test_async_tasks_are_spread():
    @aretry(TOLD)
    async def told():
        raise OSError

    async def many():
        await asyncio.gather(*(told() for _ in range(20)), return_exceptions=True)

    with virtual_time() as clock:
        asyncio.run(many())
    assert len({*clock.sleeps}) == 20


@pytest.mark.parametrize(
    ("preset", "jitter"), [(presets.aws_standard, 0.0), (presets.aws_adaptive, 0.0)]
)
def test_a_preset_spreads_hints_as_its_original_does(preset, jitter):
    """The SDKs of AWS wait as long as x-amz-retry-after says."""
    assert preset().hint_jitter == jitter


def test_a_pushback_of_grpc_is_followed_exactly():
    policy = presets.grpc().replace(hint=lambda _: RetryAfter(2.0))
    assert {*delays(policy)} == {2.0}
    assert policy.replace(hint=hints.grpc_pushback()) == presets.grpc().replace(
        budget=policy.budget
    )


def test_a_hint_that_is_too_long_leaves_it_to_the_next_one(backend):
    error = OSError("busy")
    error.headers = {"Retry-After": "7200", "X-RateLimit-Reset": "30"}
    both = hints.first_of(hints.retry_after(), hints.reset_at())
    policy = TOLD.replace(hint=both, hint_cap=60, on_long_hint="ignore", hint_jitter=0)
    assert decide_error(policy, error) == Again(30.0)
    assert decide_error(policy.replace(hint_cap=10), error) == Again(1.0)
    assert decide_error(policy.replace(on_long_hint="give_up"), error) == Stop(
        StopReason.HINT
    )
    group = ExceptionGroup("all", [error, OSError()])
    assert decide_error(policy, group) == Again(30.0)

    def busy():
        raise error

    with virtual_time() as clock:
        state = backend.run(policy, busy).state
    assert clock.sleeps == [30.0]
    assert state.failures[0].hint == 30.0


def decide_error(policy, error):
    failure = Failure(1, error, None, 0.0, 0.0, None)
    return policy.decide(RetryState("fetch", 7, 0.0), failure)


def test_a_stored_hint_that_is_too_long_is_ignored():
    policy = TOLD.replace(hint=None, hint_cap=10, on_long_hint="ignore")
    assert decide(policy, hint=11.0) == Again(1.0)
    exact = TOLD.replace(
        hint=lambda _: RetryAfter(11), hint_cap=10, on_long_hint="ignore"
    )
    assert decide(exact) == Again(1.0)
