"""Budgets read from plain data, the form that `to_dict` writes."""

from collections.abc import Mapping
from functools import partial

from retrykit._internal.validation import did_you_mean, invalid_setting, user_facing
from retrykit.budgets._fleet import FleetBudget, read_timeouts
from retrykit.budgets._ratio import RatioBudget
from retrykit.budgets._shared_budgets import SerializableBudget, shared
from retrykit.budgets._throttle import Throttle
from retrykit.budgets._token_bucket import Costs, TokenBucket

__all__ = ["KINDS", "budget_from_dict"]

KINDS: dict[str, type[SerializableBudget]] = {
    kind.kind: kind for kind in (TokenBucket, Throttle, RatioBudget, FleetBudget)
}
"""Budget classes, keyed by their kind in data."""


@user_facing
def budget_from_dict(data: object) -> SerializableBudget:
    """Return the budget described by plain data.

    >>> budget_from_dict({"kind": "token_bucket", "costs": {"OSError": 8}})
    TokenBucket(costs=((OSError, 8),))
    >>> written = {"kind": "throttle", "scope": "host:db.example"}
    >>> budget_from_dict(written) is budget_from_dict(written)
    True

    Returns:
        The shared budget of the scope; without a scope a new budget.
    """
    kind = data.get("kind") if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or not isinstance(kind, str) or kind not in KINDS:
        rule = f"a dict whose kind is one of {', '.join(KINDS)}"
        raise invalid_setting(
            "budget", rule, data, did_you_mean(kind, KINDS), code="unknown-name"
        )
    make = KINDS[kind]
    keys = ["kind", *make().settings, "scope"]
    for key in data:
        if key not in keys:
            rule = f"a dict with the keys {', '.join(keys)}"
            raise invalid_setting(
                "budget", rule, dict(data), did_you_mean(key, keys), code="unknown-name"
            )
    settings = {key: data[key] for key in keys[1:-1] if key in data}
    if "costs" in settings:
        settings["costs"] = Costs.read(settings["costs"])
    if "timeouts" in settings:
        settings["timeouts"] = read_timeouts(settings["timeouts"])
    build = partial(make, **settings)
    return shared(data["scope"], build) if "scope" in data else build()
