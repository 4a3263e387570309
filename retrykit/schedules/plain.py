"""Schedules written as plain data, and read again.

Reading builds them as their user would, so that they are checked as there.
"""

import inspect
import operator
from collections.abc import Callable, Mapping
from typing import Any

from retrykit._internal.validation import did_you_mean, invalid_setting
from retrykit.schedules.base import Schedule
from retrykit.schedules.kinds import CONSTRUCTORS, SCHEDULE_KINDS
from retrykit.schedules.sequences import sequence

__all__ = ["from_dict"]


def from_dict(data: object) -> Schedule:
    """Return the schedule that `Schedule.to_dict` wrote.

    >>> from_dict({"kind": "cap", "of": [1, 5], "limit": "2s"})
    sequence([1.0, 5.0]).cap(2.0)
    >>> from_dict({"kind": "exponential", "first": "1s"})
    exponential(1.0, factor=2.0)
    >>> from_dict("linear('1s').cap('1m')")
    linear(1.0).cap(60.0)

    Args:
        data: A dict with its ``kind`` and its parts, a list of durations, or
            a text: the expression that prints a schedule, or durations with
            commas between them. At most 1,000 parts in 100 levels.

    Raises:
        ConfigError: The kind or a part of it is unknown, missing or wrong.
    """
    # Imported here: most programs read no schedules.
    from retrykit.schedules.parts import MAX_LEVELS, check_size  # noqa: PLC0415

    try:
        return check_size(_read(data))
    except RecursionError as error:
        raise invalid_setting(
            "schedule", f"of at most {MAX_LEVELS} levels", data
        ) from error


def _read(data: object) -> Schedule:
    if isinstance(data, list | tuple):
        return sequence(data)
    if isinstance(data, str):
        # Imported here: only who writes one as a text needs it.
        from retrykit.schedules.parsing import parse_schedule  # noqa: PLC0415

        return parse_schedule(data)
    kind: Any = data.get("kind") if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or kind not in list(SCHEDULE_KINDS):
        known = ", ".join(sorted(SCHEDULE_KINDS))
        rule = f"a list, a text, or a dict whose kind is one of {known}"
        raise invalid_setting(
            "schedule", rule, data, did_you_mean(kind, SCHEDULE_KINDS)
        )
    keys = ["kind", *SCHEDULE_KINDS[kind].field_names]
    optional = _optional(CONSTRUCTORS[kind]) if kind in CONSTRUCTORS else set()
    if not set(keys) - optional <= set(data) <= set(keys):
        told = (f"{key} (optional)" if key in optional else key for key in keys)
        rule = f"a dict with the keys {', '.join(told)}"
        unknown = next((key for key in data if key not in keys), None)
        raise invalid_setting("schedule", rule, dict(data), did_you_mean(unknown, keys))
    given = {key: data[key] for key in keys[1:] if key in data}
    parts = {key: _read(x) if key in _NESTED else x for key, x in given.items()}
    # Built as its user would write it, so that it is checked as there.
    if kind in CONSTRUCTORS:
        return CONSTRUCTORS[kind](**parts)
    if kind in _OPERATORS:
        return _OPERATORS[kind](*parts.values())
    method: Callable[..., Schedule] = getattr(parts.pop("of"), kind)
    return method(**parts)


def _optional(build: Callable[..., Schedule]) -> set[str]:
    known = inspect.signature(build).parameters.values()
    return {each.name for each in known if each.default is not each.empty}


_NESTED = {"of", "other", "to", "left", "right"}
_OPERATORS: dict[str, Callable[..., Schedule]] = {
    "sum": operator.add,
    "union": operator.or_,
    "intersection": operator.and_,
    "scale": operator.mul,
}
