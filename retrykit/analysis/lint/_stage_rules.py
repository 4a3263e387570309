"""Lint rules for circuit breakers and other limits, and for hedges."""

from collections.abc import Callable, Iterator
from typing import Final

from retrykit._core.policy import Policy
from retrykit._core.timeouts import timeout_seconds
from retrykit._internal.durations import format_duration
from retrykit.limits._adaptive_rate import AdaptiveRateLimit
from retrykit.limits._circuit_breaker import CircuitBreaker
from retrykit.schedules._base import Schedule

__all__ = ["STAGE_RULES"]


def _breakers(policy: Policy) -> list[CircuitBreaker]:
    return [each for each in policy.admission if isinstance(each, CircuitBreaker)]


def _name(breaker: CircuitBreaker) -> str:
    return "the circuit breaker" + (f" {breaker.label!r}" if breaker.label else "")


def _breaker_without_timeout(policy: Policy) -> Iterator[tuple[str, str]]:
    if policy.attempt_timeout is None and _breakers(policy):
        reason = (
            "attempt_timeout is None: a call that hangs is never a failure for the "
            "circuit breaker, and as its probe keeps others out"
        )
        fix = 'attempt_timeout="10s", or AsArgument("10s") for blocking code'
        yield reason, f"{fix}; ignore this rule if the function has a timeout inside"


def _short_probe_timeout(policy: Policy) -> Iterator[tuple[str, str]]:
    timeout = timeout_seconds(policy.attempt_timeout)
    if timeout is None:
        return
    for breaker in _breakers(policy):
        if breaker.probe_timeout < timeout:
            reason = (
                f"{_name(breaker)} drops a probe after probe_timeout="
                f"{format_duration(breaker.probe_timeout)}, and an attempt may take "
                f"{format_duration(timeout)}: a slow success does not close it"
            )
            yield reason, f"probe_timeout of at least {format_duration(timeout)}"


def _hedge_after_timeout(policy: Policy) -> Iterator[tuple[str, str]]:
    hedge, timeout = policy.hedge, policy.attempt_timeout
    # Clients may take longer than the timeout that they are given.
    if hedge is None or hedge.delay is None or not isinstance(timeout, float):
        return
    if hedge.delay >= timeout:
        reason = (
            f"a hedge is sent after {format_duration(hedge.delay)}, and each send ends "
            f"after attempt_timeout={format_duration(timeout)}: no second send ever "
            "runs beside the first"
        )
        yield reason, "a shorter delay, such as the 95th percentile of the latency"


def _can_wait(policy: Policy) -> bool:
    return policy.on_refused == "wait" and policy.stop_event is None


def _time_to_wait(policy: Policy) -> float | None:
    """Return how long a call may wait for its limits; None if it is unlimited."""
    unlimited = policy.deadline == "overshoot" or policy.limits == "all"
    return None if unlimited else policy.max_elapsed


def _waits_forever(policy: Policy) -> Iterator[tuple[str, str]]:
    # An adaptive rate always has a next token.
    refusing = [x for x in policy.admission if not isinstance(x, AdaptiveRateLimit)]
    if _can_wait(policy) and refusing and _time_to_wait(policy) is None:
        reason = (
            'on_refused is "wait", and no time limit ends the wait: a call waits for '
            "as long as a limit refuses it, such as a breaker that was isolated"
        )
        other = policy.limits == "all" or policy.deadline == "overshoot"
        also = ' with limits="any" and deadline="stop"' if other else ""
        yield reason, f'max_elapsed="1m"{also}, or a stop_event'


def _wait_too_short(policy: Policy) -> Iterator[tuple[str, str]]:
    allowed = _time_to_wait(policy)
    if policy.on_refused != "wait" or allowed is None:
        return
    for breaker in _breakers(policy):
        opening = _first_opening(breaker)
        if opening > allowed:
            reason = (
                f'on_refused is "wait", but {_name(breaker)} opens for '
                f"{format_duration(opening)}, longer than max_elapsed="
                f"{format_duration(allowed)}: a call that opens it gives up at once"
            )
            least = format_duration(opening)
            yield reason, f'max_elapsed above {least}, or on_refused="give_up"'


def _first_opening(breaker: CircuitBreaker) -> float:
    """Return the shortest time for which a breaker opens at first, in seconds."""
    if not isinstance(breaker.open_for, Schedule):
        return breaker.open_for
    # A breaker checks that its schedule has a delay.
    soonest, _ = breaker.open_for.bounds(1) or (0.0, 0.0)
    return soonest


STAGE_RULES: Final[
    dict[str, tuple[str, Callable[[Policy], Iterator[tuple[str, str]]]]]
] = {
    "breaker-without-timeout": (
        "a call that hangs is no failure for a circuit breaker",
        _breaker_without_timeout,
    ),
    "probe-timeout-too-short": (
        "a slow success as a probe does not close a circuit breaker",
        _short_probe_timeout,
    ),
    "hedge-after-timeout": (
        "an attempt times out before it is hedged",
        _hedge_after_timeout,
    ),
    "waits-forever": (
        "a call that is refused may wait without an end",
        _waits_forever,
    ),
    "wait-too-short": (
        "a circuit breaker opens for longer than a call may wait",
        _wait_too_short,
    ),
}
"""The summary of each rule, and its function, keyed by the name of the rule.

The function takes a policy, and yields the reason and the fix of each warning.
"""
