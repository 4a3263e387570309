"""Policies of the cells, by their names in the table: each process builds its own."""

from collections.abc import Callable

from retrykit import Hedge, Policy
from retrykit.budgets import FleetBudget, RatioBudget, Throttle, TokenBucket
from retrykit.hints import retry_after
from retrykit.limits import CircuitBreaker
from retrykit.schedules import exponential

__all__ = ["POLICIES", "build_policy"]

JITTER = exponential(1).cap(20).full_jitter()
SHORT = exponential(0.1).cap(20).full_jitter()
AT_ONCE = Policy(schedule=[0, 0, 0])
JITTERED = Policy(schedule=SHORT, max_attempts=4)

POLICIES: dict[str, Callable[[], Policy]] = {
    "no retries": lambda: Policy(max_attempts=1),
    "1 at once": lambda: Policy(schedule=[0]),
    "2 at once": lambda: Policy(schedule=[0, 0]),
    "3 at once": lambda: AT_ONCE,
    "3 with full jitter": lambda: Policy(schedule=JITTER, max_attempts=4),
    "the default": Policy,
    "Retry-After": lambda: Policy(schedule=[0, 0, 0], hint=retry_after()),
    "RatioBudget()": lambda: JITTERED.replace(budget=RatioBudget()),
    "RatioBudget(0.2, reserve=0)": lambda: JITTERED.replace(
        budget=RatioBudget(0.2, reserve=0)
    ),
    "FleetBudget()": lambda: JITTERED.replace(budget=FleetBudget()),
    "Throttle()": lambda: JITTERED.replace(budget=Throttle()),
    "TokenBucket()": lambda: JITTERED.replace(budget=TokenBucket()),
    "a hedge": lambda: Policy(
        max_attempts=1, hedge=Hedge("200ms", idempotent=True, extra=1)
    ),
    "a breaker": lambda: AT_ONCE.replace(admission=[CircuitBreaker(open_for="3s")]),
}


def build_policy(name: str) -> Policy:
    """Return a policy whose budget and breaker no other one has."""
    return POLICIES[name]()
