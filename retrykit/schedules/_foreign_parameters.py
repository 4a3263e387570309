"""Parameters of the delays of other libraries, and what to write in their place."""

from collections.abc import Callable
from typing import Any, TypeVar

from retrykit._internal.user_facing import user_facing

__all__ = ["constructor"]

F = TypeVar("F", bound=Callable[..., Any])

_SAME = {
    "first": (
        "base_delay delay first_delay initial initial_backoff initial_delay "
        "initial_interval initial_value interval min_delay multiplier seconds start "
        "start_delay value wait wait_initial"
    ),
    "factor": (
        "backoff_base backoff_coefficient backoff_factor backoff_multiplier "
        "backoff_rate base exp_base exponent exponential_base growth multiplier power "
        "rate ratio wait_exp_base"
    ),
    "rate": "decay_factor factor",
    "wait": "delay first interval seconds value",
    "step": "delay first increment interval start",
    "exponent": "base degree factor power",
    "low": "min min_value minimum shortest start",
    "high": "max max_value maximum longest stop",
    "delays": "intervals schedule values waits",
    "repeat_last": "cycle loop repeat",
}
"""Names of other libraries, separated by spaces, by the parameters they stand for."""

_METHODS = {
    ".cap(...) on the schedule": (
        "backoff_max cap limit max max_backoff max_delay max_interval max_value "
        "max_wait maximum maximum_interval upper wait_max"
    ),
    ".at_least(...) on the schedule": "lower min min_value min_wait minimum wait_min",
    ".jitter(...), .full_jitter() or + uniform(0, ...)": (
        "jitter jitter_factor random randomization_factor randomize wait_jitter"
    ),
    ".take(...) on the schedule, or max_attempts of the policy": (
        "attempts count max_attempts max_retries max_tries n retries times tries"
    ),
}


def constructor(fn: F) -> F:
    """Decorate a function that builds a schedule."""
    return user_facing(fn, advise=_advise)


def _advise(name: str, known: list[str]) -> str:
    """Return what to write instead of a parameter.

    >>> _advise("multiplier", ["first", "factor"]), _advise("max", ["first"])
    ('write first or factor', 'write .cap(...) on the schedule')
    """
    same = [each for each in known if name in _SAME.get(each, "").split()]
    if same:
        return f"write {' or '.join(same)}"
    found = (x for x, names in _METHODS.items() if name in names.split())
    return next((f"write {each}" for each in found), "")
