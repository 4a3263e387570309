"""Target: stored states of calls."""

import json

from retrykit import GiveUp, Policy, RetryState, policy_of, resume, retry, schedules
from retrykit.testing import virtual_time
from tests._support.reference_data import reference_data
from tests.fuzz.target import Target
from tests.fuzz.values import altered, maybe, nested, number

__all__ = ["NEW", "STORED", "TARGETS", "state_data"]

_POLICIES = (
    Policy(),
    Policy(max_attempts=None, schedule=schedules.linear(1)),
    Policy(max_attempts=10**15),
    Policy(schedule=schedules.exponential(1).within("1h")),
    Policy(max_elapsed=60, schedule=schedules.polly_interval(1)),
    Policy(schedule=schedules.decorrelated(1).cap(60).take(10**9)),
    Policy(
        schedule=schedules.constant("1us").within("1s").then([1]),
        max_elapsed="1d",
        deadline="clip",
    ),
)


STORED = reference_data("envelope")
"""The envelope of a job after three failures, as data."""

_WAITING = STORED["state"]
NEW = {
    "failures": [],
    "rule_counts": [],
    "attempt": 1,
    "next_delay": None,
    "retry_cost": None,
}
NEW |= {"attempt_started": 0.0, "total_delay": 0.0, "elapsed_at_end": 0.0}
"""The values that differ in the state of a call without failures."""

_DEAD = _WAITING | {"stop_reason": "attempts", "next_delay": None}
_STATES = (
    _WAITING,
    _WAITING | NEW | {"max_elapsed": 60.0},
    _DEAD,
    _DEAD | {"stop_reason": "nested", "nested_state": _DEAD},
    _DEAD | {"stop_reason": "cancelled"},
    _WAITING | NEW | {"stop_reason": "succeeded"},
)
_NUMBERS = ("seed", "epoch", "max_elapsed", "max_failures", "attempt", "dropped")
_NUMBERS += ("attempt_started", "slept", "next_delay", "spent", "paid", "depth")


def state_data(random):
    """Return the data of a state; most are altered."""
    data = random.choice(_STATES)
    for _ in range(random.choice([0, 1, 1, 2])):
        data = altered(random, data)
    if isinstance(data, dict) and maybe(random, 0.5):
        data = data | {random.choice(_NUMBERS): number(random)}
    if isinstance(data, dict) and maybe(random, 0.02):
        for _ in range(random.choice([2, 50, 150, 300, 600])):
            data = random.choice(_STATES) | {"nested_state": data}
    return nested(random) if maybe(random, 0.01) else data


def _check_state(state, random):
    """Check the attributes of a state, and that its call can be resumed."""
    assert state.started_at.tzinfo is not None
    assert state.remaining is None or state.remaining >= 0
    assert state.describe()
    assert repr(state)
    assert state.innermost.status in {"running", "succeeded", "dead"}
    assert all(failure.describe() for failure in state.failures)
    assert len(state.errors) <= len(state.failures)

    data = state.to_dict()
    assert RetryState.from_dict(data).to_dict() == data
    assert RetryState.from_dict(json.loads(json.dumps(data))).to_dict() == data
    if state.status != "succeeded":
        _check_resumed(state, random.choice(_POLICIES))


def _check_resumed(state, policy):
    """Resume a call that fails twice and then gives up."""
    calls = []

    @retry(policy)
    def fail():
        calls.append(None)
        if len(calls) == 3:
            raise GiveUp
        raise LookupError

    with virtual_time():
        try:
            resume(fail, state)()
        except (LookupError, GiveUp):
            assert policy_of(fail) == policy


TARGETS = (Target("states", 150, state_data, RetryState.from_dict, _check_state),)
