"""Limits read from plain data, in the form that `to_dict` writes."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from retrykit._internal.durations import DURATION_PATTERN
from retrykit._internal.error_texts import type_from_name
from retrykit._internal.late_modules import inspect
from retrykit._internal.validation import (
    did_you_mean,
    invalid_setting,
    prefix_errors,
    user_facing,
)
from retrykit.limits._adaptive import adaptive_from_dict
from retrykit.limits._adaptive_rate import AdaptiveRateLimit
from retrykit.limits._circuit_breaker import CircuitBreaker
from retrykit.limits._concurrency import Concurrency
from retrykit.limits._rate import RateLimit
from retrykit.limits._shared_limits import SerializableLimit, shared

__all__ = ["KINDS", "limit_from_dict"]

KINDS: dict[str, type[SerializableLimit]] = {
    each.kind: each
    for each in (CircuitBreaker, AdaptiveRateLimit, Concurrency, RateLimit)
}
"""Limit classes, keyed by their kind in data."""

# Data names types, and no code.
_CODE = ("on_result", "observers")


@user_facing
def limit_from_dict(data: object) -> SerializableLimit:
    """Return the limit described by plain data.

    >>> limit_from_dict({"kind": "circuit_breaker", "on": ["OSError"], "window": 50})
    CircuitBreaker(window=50, on=(OSError,))
    >>> written = {"kind": "circuit_breaker", "scope": "host:db.example"}
    >>> limit_from_dict(written) is limit_from_dict(written)
    True

    Returns:
        The shared limit of the scope; without a scope a new limit.

    Raises:
        ConfigError: *data* describes no limit, or has other settings than the shared
            limit of its scope.
    """
    kind = data.get("kind") if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or not isinstance(kind, str) or kind not in KINDS:
        rule = f"a dict whose kind is one of {', '.join(KINDS)}"
        raise invalid_setting(
            "limit", rule, data, did_you_mean(kind, KINDS), code="unknown-name"
        )
    make: Any = KINDS[kind]
    parameters = inspect.signature(make).parameters
    names = [name for name in parameters if name not in _CODE]
    keys = ["kind", *names, "scope"]
    for key in data:
        if key not in keys:
            rule = f"a dict with the keys {', '.join(keys)}"
            raise invalid_setting(
                "limit", rule, dict(data), did_you_mean(key, keys), code="unknown-name"
            )
    readers = {
        "at_most": _read_at_most,
        "on": _read_condition,
        "open_for": _read_open_for,
    }
    settings = {
        name: readers[name](data[name]) if name in readers else data[name]
        for name in names
        if name in data
    }
    build = partial(make, **settings)
    limit: SerializableLimit = build()
    return shared(data["scope"], build) if "scope" in data else limit


def _read_at_most(value: object) -> object:
    """Return a number, or the algorithm that a dict describes."""
    if not isinstance(value, Mapping):
        return value
    with prefix_errors("at_most"):
        return adaptive_from_dict(value)


def _read_condition(value: object) -> object:
    if isinstance(value, list | tuple):
        return tuple(type_from_name("on", each) for each in value)
    return type_from_name("on", value)


def _read_open_for(value: object) -> object:
    """Return a duration, or the schedule that data describes."""
    is_list = isinstance(value, list | tuple)
    if is_list or (isinstance(value, str) and not re.search(DURATION_PATTERN, value)):
        # Imported on demand: it takes a millisecond.
        from retrykit.schedules._parsing import schedule_from_data  # noqa: PLC0415

        with prefix_errors("open_for"):
            return schedule_from_data(value)
    return value
