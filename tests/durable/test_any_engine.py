"""A job makes the attempts that a live call makes, at the same times.

The same policy, the same seed and the same outcomes: once in a call that lives
from the first attempt to the last, once written down as JSON after each.
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
from retrykit._internal.clocks import wall
from retrykit.budgets import RatioBudget, Throttle, TokenBucket
from retrykit.durable import Job
from retrykit.hints import attribute
from retrykit.state.events import Suspended
from retrykit.testing import virtual_time
from retrykit.testing.strategies import seeds
from tests._support.carried import carried
from tests._support.steps import STEPPING, STEPS


class BusyError(ConnectionError):
    """One that says how long it asks to wait."""

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


# What an attempt does, by its name: a new error each time, as in two processes.
DOES = {
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
OFTEN = ["refused", "late", "asks", "later", "busy", "refused", "late", "asks"]
SCRIPTS = st.lists(
    st.tuples(st.sampled_from([*OFTEN, *DOES]), STEPS, STEPS), min_size=1, max_size=8
)

BUDGETS = {
    "none": lambda: None,
    "tokens": lambda: TokenBucket(12),
    "throttle": lambda: Throttle(4),
    "ratio": lambda: RatioBudget(0.2, reserve=3),
}


def changed(policy, seed, budget, changes):
    return policy.replace(
        seed=seed,
        budget=BUDGETS[budget](),
        name="any",
        max_failures=20,
        **changes,
    )


CHANGES = st.fixed_dictionaries(
    {
        "on_result": st.sampled_from([None, "busy".__eq__]),
        "hint": st.sampled_from([None, attribute("delay")]),
        "hint_cap": st.none() | STEPS,
        "on_long_hint": st.sampled_from(["honor", "clip", "give_up"]),
        "raises": st.sampled_from(["last", "retry_error"]),
        "nested": st.sampled_from(["respect", "retry", "raise"]),
    }
)


class Lived(NamedTuple):
    """What there is to compare."""

    ending: object
    state: dict[str, object]
    events: list[tuple[str, int]]
    calls: list[tuple[int, float, float | None]]
    balance: float | None


class Watched:
    """A function that goes through a script, and an observer of its calls."""

    def __init__(self, script, clock, policy):
        self.script = script
        self.budget = policy.budget
        self.clock = clock
        self.events = []
        self.calls = []
        self.state = None

    def __call__(self):
        """Do what the line of this attempt says; the last line is repeated."""
        state = current_state()
        self.calls.append((state.attempt, state.elapsed, state.remaining))
        what, taken, delay = self.script[min(state.attempt, len(self.script)) - 1]
        self.clock.advance(taken)
        return DOES[what](delay)

    def hear(self, event):
        if event.state.name == "any" and not isinstance(event, Suspended):
            self.events.append((type(event).__name__, event.state.attempt))
            self.state = event.state

    def coloured(self, colour):
        async def fetch():
            return self()

        return fetch if colour == "awaited" else self

    def lived(self, ending, state):
        balance = self.budget and self.budget.balance
        return Lived(ending, facts(state), self.events, self.calls, balance)


def told(error):
    message = error.message if isinstance(error, ExceptionGroup) else str(error)
    return type(error).__name__, message


def facts(state):
    """A history but for what of it is of its process, and when it began."""
    return state.to_dict() | {
        "epoch": 0,
        "nested_state": state.nested_state and state.nested_state.stop_reason,
        "failures": [
            failure._replace(error=failure.describe()) for failure in state.failures
        ],
    }


def live(policy, script, colour):
    with virtual_time() as clock:
        watched = Watched(script, clock, policy)
        with observe(watched.hear):
            fn = watched.coloured(colour)
            try:
                if colour == "awaited":
                    ending = asyncio.run(policy.acall(fn))
                else:
                    ending = policy.call(fn)
            except Exception as error:  # noqa: BLE001
                return watched.lived(told(error), state_of(error))
        return watched.lived(ending, watched.state)


def in_turns(policy, script, colour):
    with virtual_time() as clock:
        watched = Watched(script, clock, policy)
        job = Job(watched.coloured(colour), policy, "any")
        envelope = job.envelope("any")
        with observe(watched.hear):
            while envelope.status == "waiting":
                came = carried(job, envelope, clock)
                envelope = came.envelope
        ending = came.result if came.error is None else told(came.error)
        return watched.lived(ending, envelope.state)


@pytest.mark.parametrize("colour", ["blocking", "awaited"])
@given(STEPPING, SCRIPTS, seeds(), st.sampled_from([*BUDGETS]), CHANGES)
def test_a_job_behaves_like_a_live_call(colour, policy, script, seed, budget, changes):
    again, once = (changed(policy, seed, budget, changes) for _ in range(2))
    assert in_turns(again, script, colour) == live(once, script, colour)


@pytest.mark.parametrize("deadline", ["stop", "clip", "overshoot"])
@given(STEPS.filter(bool), STEPS, SCRIPTS)
def test_a_job_ends_when_a_live_call_does(deadline, delay, allowed, script):
    """Under each of the deadline rules, with limits that are reached."""
    schedule = s.constant(delay)
    policy = Policy(schedule=schedule, max_elapsed=allowed, deadline=deadline)
    policy = policy.replace(name="any", seed=7, max_failures=20)
    assert in_turns(policy, script, "blocking") == live(policy, script, "blocking")


def test_a_group_contains_the_errors_of_the_last_process():
    """Records from another process are no errors to raise."""
    policy = Policy(schedule=[1], raises="group", name="any", seed=7, max_failures=20)
    script = [("refused", 0, 0)]
    whole, turns = (each(policy, script, "blocking") for each in (live, in_turns))
    assert turns == whole
    with virtual_time() as clock:
        job = Job(Watched(script, clock, policy), policy, "any")
        first = carried(job, job.envelope("any"), clock)
        group = carried(job, first.envelope, clock).error
    assert [str(error) for error in group.exceptions] == ["refused"]
    assert len(state_of(group).failures) == 2


def test_random_delays_are_drawn_once():
    """Same seed, same delays: jitter is drawn with the failure, and kept."""
    policy = Policy(schedule=s.constant(60).jitter(1), max_elapsed=None)
    with virtual_time() as clock:
        job = Job(Watched([("refused", 0, 0)], clock, policy), policy, "any")
        envelope = job.envelope("any")
        seen = set()
        for attempt in range(1, 5):
            once = job.attempt(envelope, [], {}).envelope
            again = job.attempt(envelope, [], {}).envelope
            assert once.state.next_delay == again.state.next_delay
            assert once.due == once.rescheduled(once.written).due
            assert (once.failed, once.key) == (attempt, f"any:{attempt + 1}")
            seen.add(once.state.next_delay)
            envelope = once
            clock.sleep(envelope.time_left(wall()))
    assert len(seen) == 4, "and each retry has its own"


def test_time_between_attempts_counts():
    """As the sleeps of a call do; and the queue before its first attempt does not."""
    policy = Policy(schedule=[10, 10], max_elapsed=100, on=ConnectionError)
    with virtual_time() as clock:
        job = Job(Watched([("refused", 0, 0)], clock, policy), policy, "any")
        envelope = job.envelope("any")
        clock.advance("1d")
        envelope = carried(job, envelope, clock).envelope
        assert envelope.status == "waiting"
        clock.advance(95)
        late = carried(job, envelope, clock).envelope
    assert (late.status, late.state.stop_reason.value) == ("dead", "elapsed")
    assert late.state.elapsed == 95


def test_elapsed_time_never_shrinks_when_the_clock_is_set_back():
    policy = Policy(schedule=[10, 10], max_elapsed=1000, on=ConnectionError)
    with virtual_time() as clock:
        job = Job(Watched([("refused", 50, 0)], clock, policy), policy, "any")
        first = carried(job, job.envelope("any"), clock).envelope
        second = job.attempt(first, [], {}).envelope
        spent = first.state.elapsed_at_end
    with virtual_time() as clock:
        assert wall() < first.written
        again = Job(Watched([("refused", 50, 0)], clock, policy), policy, "any")
        back = again.attempt(first, [], {}).envelope
    assert spent == 50.0
    assert second.state.elapsed_at_end == back.state.elapsed_at_end == 100.0
