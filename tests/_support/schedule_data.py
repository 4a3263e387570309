"""Converts schedules to the nested data of the HTML report, and back."""

import operator

from retrykit.analysis.html_report._policy_data import schedule_data
from retrykit.schedules._base import iter_parts
from retrykit.schedules._kinds import CONSTRUCTORS

__all__ = ["kinds_of", "schedule_data", "schedule_from"]

OPERATORS = {
    "sum": operator.add,
    "union": operator.or_,
    "intersection": operator.and_,
    "scale": operator.mul,
}


def kinds_of(schedule):
    """Return the kinds of a schedule and of all its parts."""
    return {part.kind for _, part in iter_parts(schedule)}


def schedule_from(data):
    """Return the schedule of nested data, built by its public constructors."""
    parts = {
        name: schedule_from(part) if isinstance(part, dict) else part
        for name, part in data.items()
    }
    kind = parts.pop("kind")
    if kind in CONSTRUCTORS:
        return CONSTRUCTORS[kind](**parts)
    if kind in OPERATORS:
        return OPERATORS[kind](*parts.values())
    return getattr(parts.pop("of"), kind)(**parts)
