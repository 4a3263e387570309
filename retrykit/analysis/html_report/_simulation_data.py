"""Data that the page's simulation needs of a policy, or why it cannot be simulated."""

import hashlib
import math
from fractions import Fraction
from typing import Any, Final

from retrykit._core.policy import Policy
from retrykit.budgets import FleetBudget, RatioBudget, Throttle, TokenBucket
from retrykit.errors import ConfigError
from retrykit.simulate._calls import check_policy
from retrykit.simulate._failures import FAILED, REFUSED, TIMED_OUT, errors_of

__all__ = ["simulation_data", "stream_keys"]

_KINDS: Final = {"hang": TIMED_OUT, "refuse": REFUSED, "error": FAILED}

# The script has numbers, conditions and schedules, but no code and no limits.
_NOT_ON_THE_PAGE: Final[dict[str, Any]] = {
    "rules": (),
    "admission": (),
    "hedge": None,
    "on_result": None,
    "stop_event": None,
    "sleep": None,
}
_WORD: Final = 2**32 - 1
# Larger integers are not exact in JavaScript.
_EXACT: Final = 2**53
# More requests and retries than one window of a simulation has.
_MOST_COUNTED: Final = 1_000_000
_STREAMS: Final = ("arrivals", "processes", "delays")


def simulation_data(policy: Policy) -> dict[str, Any]:
    """Return what the simulation of a policy needs, except its schedule and limits.

    >>> simulation_data(Policy(on=ConnectionError))["reasons"]["refuse"]
    >>> simulation_data(Policy(sleep=print))
    {'missing': 'sleep'}

    Returns:
        A dict of ``missing``, the name of a setting that the page cannot simulate; or
        of ``retried``, whether the policy retries each way to fail, or None if no
        outage can be simulated; ``reasons``, why an outage of each kind cannot be
        simulated, or None if it can; the ``budget``, or None; and the ``seed``, as its
        high and its low 32 bits, or None.
    """
    for name, none in _NOT_ON_THE_PAGE.items():
        if getattr(policy, name) != none:
            return {"missing": name}
    errors = errors_of(None, None)
    rules = None
    reasons: dict[str, str | None] = {}
    for kind, needed in _KINDS.items():
        try:
            rules = check_policy(policy, errors, needed)
            reasons[kind] = None
        except ConfigError as error:
            reasons[kind] = error.message
    if policy.hint is not None and any(_is_hinted(policy, each) for each in errors):
        return {"missing": "hint"}
    budget = None if policy.budget is None else _budget_data(policy.budget, errors)
    if budget == {}:
        return {"missing": "budget"}
    seed = policy.seed
    return {
        "retried": rules and [rules.retries(kind) for kind in range(len(errors))],
        "reasons": reasons,
        "budget": budget,
        "seed": None if seed is None else [seed >> 32 & _WORD, seed & _WORD],
    }


def _is_hinted(policy: Policy, error: Exception) -> bool:
    """Return whether a policy's hint answers an error, or fails."""
    hint: Any = policy.hint
    try:
        return hint(error) is not None
    except Exception:  # noqa: BLE001  any code may be in it
        return True


def _budget_data(budget: object, errors: tuple[Exception, ...]) -> dict[str, Any]:
    """Return a budget as data; an empty dict if the page cannot simulate it."""
    if isinstance(budget, TokenBucket):
        try:
            costs = [budget.costs.cost_after(each, budget.cost) for each in errors]
        except Exception:  # noqa: BLE001  any code may be in it
            return {}
        counts = {"capacity": budget.capacity, "reward": budget.reward}
        counts["refunds"] = budget.refunds
        return {"kind": budget.kind, "costs": costs, **counts}
    if isinstance(budget, Throttle):
        # In thousandths of a token, as the budget counts.
        gain = int(Fraction(repr(budget.token_ratio)) * 1000)
        full = budget.max_tokens * 1000
        if full + gain < _EXACT:
            return {"kind": budget.kind, "gain": gain, "full": full}
    if isinstance(budget, FleetBudget):
        return _fleet_data(budget, errors)
    if isinstance(budget, RatioBudget):
        # In parts of a retry, as the budget counts.
        gained = Fraction(repr(budget.ratio))
        least = Fraction(repr(budget.reserve)) * Fraction(repr(budget.window))
        retry = math.lcm(gained.denominator, least.denominator)
        parts = {
            "retry": retry,
            "gain": int(gained * retry),
            "least": int(least * retry),
        }
        if max(parts.values()) * _MOST_COUNTED < _EXACT:
            return {"kind": budget.kind, "width": budget.window / 10, **parts}
    return {}


def _fleet_data(budget: FleetBudget, errors: tuple[Exception, ...]) -> dict[str, Any]:
    try:
        late = [budget.is_timeout(each) for each in errors]
    except Exception:  # noqa: BLE001  any code may be in it
        return {}
    # In parts of a retry, as the budget counts.
    gained = Fraction(repr(budget.ratio))
    retry, full = gained.denominator, budget.capacity * gained.denominator
    if full + gained.numerator >= _EXACT:
        return {}
    parts = {"retry": retry, "gain": gained.numerator, "full": full}
    return {"kind": budget.kind, "recent": budget.recent, "late": late, **parts}


def stream_keys(seed: int = 1) -> dict[str, str]:
    """Return the seeds of a simulation's random numbers, in hexadecimal digits.

    They are keyed by what is random. The script seeds its generators with them, as
    `random.Random` does with text.
    """
    texts = [f"{seed} {name}".encode() for name in _STREAMS]
    keys = (text + hashlib.sha512(text).digest() for text in texts)
    return dict(zip(_STREAMS, (key.hex() for key in keys), strict=True))
