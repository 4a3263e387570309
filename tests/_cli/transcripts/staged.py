"""Policies with limits and hedges, to be shown and checked."""

from retrykit import Hedge, Policy
from retrykit.limits import CircuitBreaker

BREAKER = CircuitBreaker(name="api", open_for="2m")
GUARDED = Policy(
    max_elapsed="1m",
    on=ConnectionError,
    admission=[BREAKER],
    hedge=Hedge("50ms", idempotent=True),
    attempt_timeout="5s",
)
PATIENT = GUARDED.replace(on_refused="wait", hedge=None, attempt_timeout=None)
