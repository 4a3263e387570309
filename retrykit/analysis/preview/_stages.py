"""Stages of a policy: the order in which limits, hedge and timeouts surround a call."""

from retrykit._conditions import format_value
from retrykit._core.final_error import NO_FALLBACK
from retrykit._core.policy import Policy
from retrykit._core.timeouts import timeout_seconds
from retrykit._internal.durations import format_duration

__all__ = ["describe_order", "has_stages", "inner_stages", "outer_stages"]


def has_stages(policy: Policy) -> bool:
    """Return whether a policy has limits in `admission`, or a hedge."""
    return bool(policy.admission) or policy.hedge is not None


def describe_order(policy: Policy) -> str:
    """Return the stages of a policy from the outermost to the call itself.

    >>> from retrykit import Hedge
    >>> hedge = Hedge("50ms", idempotent=True)
    >>> describe_order(Policy(max_elapsed="1m", hedge=hedge))
    'max_elapsed=1m ( retry ( Hedge(0.05, idempotent=True) ( call )))'
    """
    stages = outer_stages(policy)
    if policy.max_elapsed is not None:
        stages.append(f"max_elapsed={format_duration(policy.max_elapsed)}")
    most = policy.max_attempts
    if most != 1 or policy.limits == "all":
        stages.append("retry" if most is None else f"retry max_attempts={most}")
    stages += [*inner_stages(policy), "call"]
    return " ( ".join(stages) + " " + ")" * (len(stages) - 1)


def outer_stages(policy: Policy) -> list[str]:
    """Return the stages around the total time: the fallback, if there is one."""
    has_one = policy.fallback is not NO_FALLBACK
    return [f"fallback={format_value(policy.fallback)}"] if has_one else []


def inner_stages(policy: Policy) -> list[str]:
    """Return the stages within the retries, from the outermost to the innermost."""
    stages = [format_value(limit) for limit in policy.admission]
    if policy.hedge is not None:
        stages.append(repr(policy.hedge))
    timeout = timeout_seconds(policy.attempt_timeout)
    if timeout is not None:
        stages.append(f"attempt_timeout={format_duration(timeout)}")
    return stages
