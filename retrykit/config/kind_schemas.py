"""The JSON Schema of what has a kind: schedules, budgets, and their parts.

Taken from the signatures and docstrings of what builds them. Only what the
code holds in checks is said here again: the bounds of numbers.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from retrykit._internal.durations import Duration
from retrykit._internal.validation import LARGEST
from retrykit.budgets import TokenBucket
from retrykit.budgets.serialization import KINDS
from retrykit.config.docstrings import arguments, summary
from retrykit.schedules.base import Schedule
from retrykit.schedules.kinds import CONSTRUCTORS, SCHEDULE_KINDS
from retrykit.schedules.randomized import MAX_INTERVAL
from retrykit.schedules.randomness import MAX_DELAY
from retrykit.schedules.sequences import sequence

__all__ = ["Schema", "budget_schema", "by_kind", "kind_schema", "to"]
__all__ += ["whole_number"]

Schema = dict[str, Any]
"""A JSON Schema, or a part of one."""

# What the code holds in checks; without a row, a number is >= 0.
_INTERVAL = {"minimum": 0.001, "maximum": MAX_INTERVAL}
_BOUNDS: dict[str, Schema] = {
    "exponential.factor": {"minimum": 1},
    "decorrelated.factor": {"minimum": 1},
    "google_interval.initial_interval": _INTERVAL,
    "google_interval.randomization_factor": {"exclusiveMaximum": 1},
    "google_interval.multiplier": {"minimum": 1},
    "google_interval.max_interval": _INTERVAL,
    "round_down.unit": {"exclusiveMinimum": 0},
    "jitter.factor": {"maximum": 1},
    "throttle.max_tokens": {"minimum": 1},
    "throttle.token_ratio": {"minimum": 0.001},
    "ratio_budget.ratio": {"maximum": 1000},
    "ratio_budget.reserve": {"maximum": 1_000_000},
    "ratio_budget.window": {"minimum": 1, "maximum": 86_400},
}


def kind_schema(kind: str) -> Schema:
    """Return the schema of one kind of schedule, as a dict of its parts."""
    build = _builder(kind)
    known, meant = inspect.signature(build).parameters, arguments(build)
    nested = inspect.get_annotations(SCHEDULE_KINDS[kind])
    properties: Schema = {"kind": {"const": kind}}
    required = ["kind"]
    for name in SCHEDULE_KINDS[kind].field_names:
        parameter = known.get(name)
        properties[name] = {"description": meant[name]} if name in meant else {}
        if parameter is None or nested.get(name) is Schedule:
            properties[name] |= to("schedule")
        else:
            # Bounds of numbers say nothing of durations that are texts.
            bounds = _BOUNDS.get(f"{kind}.{name}", {})
            properties[name] |= _FORMS[parameter.annotation] | bounds
        if parameter is None or parameter.default is parameter.empty:
            required.append(name)
        else:
            properties[name]["default"] = parameter.default
    return {
        "title": kind,
        "description": summary(build),
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def budget_schema(kind: str) -> Schema:
    """Return the schema of one kind of budget, as a dict of its settings."""
    build = KINDS[kind]
    meant, usual = arguments(build), build().to_dict()
    properties: Schema = {"kind": {"const": kind}}
    for name, parameter in inspect.signature(build).parameters.items():
        text = f"{meant[name]}{_IN_DATA.get(name, '')}"
        told = {"description": text, "default": usual[name]}
        bounds = _BOUNDS.get(f"{kind}.{name}", {})
        properties[name] = told | _FORMS[parameter.annotation] | bounds
    return {
        "title": kind,
        "description": summary(build),
        "type": "object",
        "properties": properties | {"scope": _SCOPE},
        "required": ["kind"],
        "additionalProperties": False,
    }


_IN_DATA = {"costs": " In data a dict of costs by the names of errors."}
_SCOPE = {
    "description": "For what it is: all policies of a process whose budgets have the "
    "same scope share one budget. Without a scope each policy has its own.",
    "type": "string",
    "anyOf": [{"const": "process"}, {"pattern": r"^(?:host|key):[\s\S]*\S"}],
    "examples": ["process", "host:api.example", "key:orders"],
}


def by_kind(kinds: Iterable[str]) -> list[Schema]:
    """Return what sends each kind to its definition, for ``allOf``."""
    # With anyOf, each kind would look into all that is nested in any other.
    return [
        {
            "if": {
                "type": "object",
                "properties": {"kind": {"const": kind}},
                "required": ["kind"],
            },
            "then": to(kind),
        }
        for kind in kinds
    ]


def _builder(kind: str) -> Callable[..., Schedule]:
    """Return what makes schedules of a kind in code."""
    if kind in CONSTRUCTORS:
        return CONSTRUCTORS[kind]
    build: Callable[..., Schedule] = getattr(Schedule, _OPERATORS.get(kind, kind))
    return build


_OPERATORS = {
    "sum": "__add__",
    "union": "__or__",
    "intersection": "__and__",
    "scale": "__mul__",
}


def to(definition: str) -> Schema:
    """Return what refers to a definition of the whole schema."""
    return {"$ref": f"#/$defs/{definition}"}


def whole_number() -> Schema:
    """Return the schema of an integer that is a setting."""
    return {"type": "integer", "minimum": 0, "maximum": LARGEST}


# How a parameter is written as data, by its annotation.
_FORMS: dict[Any, Schema] = {
    int: whole_number(),
    float: {"type": "number", "minimum": 0, "maximum": MAX_DELAY},
    Duration: to("duration"),
    inspect.signature(sequence).parameters["delays"].annotation: {
        "type": "array",
        "items": to("duration"),
    },
    inspect.signature(TokenBucket).parameters["costs"].annotation: {
        "type": "object",
        "propertyNames": to("error"),
        "additionalProperties": whole_number(),
    },
}
