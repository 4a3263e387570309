"""A job makes the attempts that a live call makes, at the same times.

With the same policy, seed and outcomes: once as a live call, once as a job that is
stored as JSON after each attempt.
"""

import asyncio
from typing import NamedTuple

import pytest
from hypothesis import given, strategies as st

from retrykit import (
    GiveUp,
    Policy,
    RetryAfter,
    current_state,
    observe,
    schedules as s,
    state_of,
)
from retrykit._core.limits import override
from retrykit._internal.clocks import wall
from retrykit.budgets import FleetBudget, RatioBudget, Throttle, TokenBucket
from retrykit.durable import Job
from retrykit.events import Suspended
from retrykit.hints import attribute
from retrykit.testing import virtual_time
from retrykit.testing.strategies import seeds
from tests._support.durable_jobs import attempt_when_due
from tests._support.exact_policies import EXACT_DURATIONS, EXACT_POLICIES


class BusyError(ConnectionError):
    """An error with the delay that it requests."""

    def __init__(self, delay):
        super().__init__("busy")
        self.delay = delay


INSIDE = Policy(schedule=[0], on=ConnectionError, name="inside")


def nested():
    return INSIDE.call(raises(ConnectionError("inside")))


def raises(error):
    def fail():
        raise error

    return fail


# What an attempt does, by name. Each error is new, as in different processes.
ACTIONS = {
    "refused": lambda _: raises(ConnectionError("refused"))(),
    "late": lambda _: raises(TimeoutError())(),
    "wrong": lambda _: raises(ValueError("wrong"))(),
    "odd": lambda _: raises(ZeroDivisionError())(),
    "asks": lambda delay: raises(BusyError(delay))(),
    "later": lambda delay: raises(RetryAfter(delay, ConnectionError("later")))(),
    "gives up": lambda _: raises(GiveUp(ConnectionError("never")))(),
    "inside": lambda _: nested(),
    "busy": lambda _: "busy",
    "done": lambda _: "done",
}
MORE_FREQUENT = ["refused", "late", "asks", "later", "busy", "refused", "late", "asks"]
SCRIPTS = st.lists(
    st.tuples(
        st.sampled_from([*MORE_FREQUENT, *ACTIONS]), EXACT_DURATIONS, EXACT_DURATIONS
    ),
    min_size=1,
    max_size=8,
)

BUDGETS = {
    "none": lambda: None,
    "tokens": lambda: TokenBucket(12),
    "throttle": lambda: Throttle(4),
    "ratio": lambda: RatioBudget(0.2, reserve=3),
    "fleet": lambda: FleetBudget(capacity=2),
}


def with_settings(policy, seed, budget, changes):
    return override(
        policy,
        seed=seed,
        budget=BUDGETS[budget](),
        name="any",
        max_failures=20,
        # Its draws are no exact durations.
        hint_jitter=0.0,
        **changes,
    )


CHANGES = st.fixed_dictionaries(
    {
        "on_result": st.sampled_from([None, "busy".__eq__]),
        "hint": st.sampled_from([None, attribute("delay")]),
        "hint_cap": st.none() | EXACT_DURATIONS,
        "on_long_hint": st.sampled_from(["honor", "clip", "ignore", "give_up"]),
        "raises": st.sampled_from(["last", "retry_error"]),
        "nested": st.sampled_from(["respect", "retry", "raise"]),
    }
)


class Outcome(NamedTuple):
    """Everything that is compared."""

    ending: object
    state: dict[str, object]
    events: list[tuple[str, int]]
    calls: list[tuple[int, float, float | None]]
    balance: float | None


class ScriptedJob:
    """A function that follows a script, and an observer of its calls."""

    def __init__(self, script, clock, policy):
        self.script = script
        self.budget = policy.budget
        self.clock = clock
        self.events = []
        self.calls = []
        self.state = None

    def __call__(self):
        """Follow the line of this attempt; the last line is repeated."""
        state = current_state()
        self.calls.append((state.attempt, state.elapsed, state.remaining))
        what, taken, delay = self.script[min(state.attempt, len(self.script)) - 1]
        self.clock.advance(taken)
        return ACTIONS[what](delay)

    def on_event(self, event):
        if event.state.name == "any" and not isinstance(event, Suspended):
            self.events.append((type(event).__name__, event.state.attempt))
            self.state = event.state

    def function(self, kind):
        async def fetch():
            return self()

        return fetch if kind == "async" else self

    def outcome(self, ending, state):
        balance = self.budget and self.budget.balance
        return Outcome(ending, comparable(state), self.events, self.calls, balance)


def describe_error(error):
    message = error.message if isinstance(error, ExceptionGroup) else str(error)
    return type(error).__name__, message


def comparable(state):
    """Return a history without its start, and with descriptions in place of errors."""
    return state.to_dict() | {
        "epoch": 0,
        "nested_state": state.nested_state and state.nested_state.stop_reason,
        "failures": [
            failure._replace(error=failure.describe()) for failure in state.failures
        ],
    }


def run_live(policy, script, kind):
    with virtual_time() as clock:
        scripted = ScriptedJob(script, clock, policy)
        with observe(scripted.on_event):
            fn = scripted.function(kind)
            try:
                if kind == "async":
                    ending = asyncio.run(policy.acall(fn))
                else:
                    ending = policy.call(fn)
            except Exception as error:  # noqa: BLE001
                return scripted.outcome(describe_error(error), state_of(error))
        return scripted.outcome(ending, scripted.state)


def run_as_job(policy, script, kind):
    with virtual_time() as clock:
        scripted = ScriptedJob(script, clock, policy)
        job = Job(scripted.function(kind), policy, "any")
        envelope = job.envelope("any")
        with observe(scripted.on_event):
            while envelope.status == "waiting":
                attempt = attempt_when_due(job, envelope, clock)
                envelope = attempt.envelope
        ending = (
            attempt.result if attempt.error is None else describe_error(attempt.error)
        )
        return scripted.outcome(ending, envelope.state)


@pytest.mark.parametrize("kind", ["sync", "async"])
@given(EXACT_POLICIES, SCRIPTS, seeds(), st.sampled_from([*BUDGETS]), CHANGES)
def test_a_job_behaves_like_a_live_call(kind, policy, script, seed, budget, changes):
    second, first = (with_settings(policy, seed, budget, changes) for _ in range(2))
    assert run_as_job(second, script, kind) == run_live(first, script, kind)


@pytest.mark.parametrize("deadline", ["stop", "clip", "overshoot"])
@given(EXACT_DURATIONS.filter(bool), EXACT_DURATIONS, SCRIPTS)
def test_a_job_ends_when_a_live_call_does(deadline, delay, allowed, script):
    """Under each deadline rule, with limits that are reached."""
    schedule = s.constant(delay)
    policy = Policy(schedule=schedule, name="any", seed=7, max_failures=20)
    policy = override(policy, max_elapsed=allowed, deadline=deadline)
    assert run_as_job(policy, script, "sync") == run_live(policy, script, "sync")


def test_a_group_contains_the_errors_of_the_last_process():
    """Records of errors from another process cannot be raised."""
    policy = Policy(schedule=[1], raises="group", name="any", seed=7, max_failures=20)
    script = [("refused", 0, 0)]
    whole, turns = (each(policy, script, "sync") for each in (run_live, run_as_job))
    assert turns == whole
    with virtual_time() as clock:
        job = Job(ScriptedJob(script, clock, policy), policy, "any")
        first = attempt_when_due(job, job.envelope("any"), clock)
        group = attempt_when_due(job, first.envelope, clock).error
    assert [str(error) for error in group.exceptions] == ["refused"]
    assert len(state_of(group).failures) == 2


def test_random_delays_are_drawn_once():
    """Same seed, same delays: the delay is drawn with the failure, and stored."""
    policy = Policy(schedule=s.constant(60).jitter(1))
    with virtual_time() as clock:
        job = Job(ScriptedJob([("refused", 0, 0)], clock, policy), policy, "any")
        envelope = job.envelope("any")
        seen = set()
        for attempt in range(1, 5):
            first = job.attempt(envelope, [], {}).envelope
            second = job.attempt(envelope, [], {}).envelope
            assert first.state.next_delay == second.state.next_delay
            assert first.due == first.rescheduled(first.written).due
            assert (first.failed_attempts, first.key) == (attempt, f"any:{attempt + 1}")
            seen.add(first.state.next_delay)
            envelope = first
            clock.sleep(envelope.time_left(wall()))
    assert len(seen) == 4, "each retry has its own"


def test_time_between_attempts_counts():
    """Like the sleeps of a call; but not the time before the first attempt."""
    policy = Policy(schedule=[10, 10], max_elapsed=100, on=ConnectionError)
    with virtual_time() as clock:
        job = Job(ScriptedJob([("refused", 0, 0)], clock, policy), policy, "any")
        envelope = job.envelope("any")
        clock.advance("1d")
        envelope = attempt_when_due(job, envelope, clock).envelope
        assert envelope.status == "waiting"
        clock.advance(95)
        late = attempt_when_due(job, envelope, clock).envelope
    assert (late.status, late.state.stop_reason.value) == ("dead", "elapsed")
    assert late.state.elapsed == 95


def test_elapsed_time_never_shrinks_when_the_clock_is_set_back():
    policy = Policy(schedule=[10, 10], max_elapsed=1000, on=ConnectionError)
    with virtual_time() as clock:
        job = Job(ScriptedJob([("refused", 50, 0)], clock, policy), policy, "any")
        first = attempt_when_due(job, job.envelope("any"), clock).envelope
        second = job.attempt(first, [], {}).envelope
        spent = first.state.elapsed_at_end
    with virtual_time() as clock:
        assert wall() < first.written
        same = Job(ScriptedJob([("refused", 50, 0)], clock, policy), policy, "any")
        earlier = same.attempt(first, [], {}).envelope
    assert spent == 50.0
    assert second.state.elapsed_at_end == earlier.state.elapsed_at_end == 100.0
