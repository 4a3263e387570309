"""The JSON Schema of policies as data, made from the code that reads them.

Kinds of schedules, optional keys, choices, defaults and descriptions are taken
from where they are written. Only what the code holds in checks is said here
again: the bounds of numbers. Nothing here knows how a file is read.
"""

import inspect
import re
from collections.abc import Callable
from typing import Any, get_args

from retrykit import constructors
from retrykit.algebra import Schedule
from retrykit.durations import PATTERN, Duration
from retrykit.formulas import LONGEST_INTERVAL
from retrykit.jitter import LONGEST
from retrykit.policy import Policy
from retrykit.settings import DeadlineRule, Raises

__all__ = ["policy_schema"]

_Schema = dict[str, Any]


def policy_schema() -> _Schema:
    """Return the JSON Schema of a policy, and of a file of policies.

    The schema is of such a file, or of ``[tool.retrykit]`` in `pyproject.toml`:
    a dict whose ``policies`` have names. One policy alone, as
    `Policy.from_dict` reads it, is its definition ``policy``. Its description
    says which rules no schema can state.

    >>> schema = policy_schema()
    >>> schema["$id"], schema["required"]
    ('urn:retrykit:policy', ['policies'])
    >>> schema["$defs"]["policy"]["properties"]["max_attempts"]["default"]
    5

    Returns:
        A JSON Schema, draft 2020-12, of plain data.
    """
    policy = _policy()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:retrykit:policy",
        "title": "Policies of retrykit",
        "description": _ABOUT,
        "type": "object",
        "properties": {
            "policies": {
                "description": "The policies of this file, by their names.",
                "type": "object",
                "additionalProperties": {"$ref": "#/$defs/named_policy"},
            }
        },
        "required": ["policies"],
        "$defs": {
            "policy": policy,
            "named_policy": _named(policy),
            "schedule": _schedule(),
            "duration": _DURATION,
            "error": _ERROR,
        }
        | {kind: _kind(kind) for kind in Schedule.kinds},
    }


_ABOUT = (
    "A file of retry policies, in JSON or TOML: a policy NAME is the table "
    "[policies.NAME], or [tool.retrykit.policies.NAME] in pyproject.toml, where this "
    "schema describes the table [tool.retrykit]. A policy alone is described by "
    "#/$defs/policy. Some rules only the loader knows. A whole number has no decimal "
    "point: 2.0 is none. No number is nan. A schedule that is a text must be an "
    "expression or a list of delays. A duration that is a text keeps the bounds that "
    "are stated for numbers. max_interval is no shorter than initial_interval. What "
    "another schedule follows with kind then must end. Schedules are not nested too "
    "deeply. The name of an error is that of an Exception type that is built in or in "
    "a module already imported, and give_up_on must leave something of on to be "
    "retried. extends names another policy of the file, not in a circle, or a dialect "
    "and parameters that it has, and what is inherited must not contradict what is "
    "written."
)

_DURATION = {
    "title": "Duration",
    "description": "A length of time: a number of seconds, or numbers with units "
    '(us, ms, s, m, h, d, w) such as "12.5s", "500ms" or "1h30m". Finite and >= 0.',
    "anyOf": [
        {"type": "number", "minimum": 0, "maximum": LONGEST},
        {"type": "string", "pattern": PATTERN},
    ],
    "examples": ["500ms", "1h30m", 12.5],
}

_ERROR = {
    "title": "Error",
    "description": "The name of an exception type: OSError where it is built in, "
    "else module:Name. No module is imported to find it.",
    "type": "string",
    "pattern": r"^(?:[^:]+:)?[^:.]+(?:\.[^:.]+)*$",
    "examples": ["ConnectionError", "TimeoutError", "json:JSONDecodeError"],
}

# How a setting is written here, where that is not how it is written in code.
_IN_DATA = {
    "schedule": "a list, a dict of a kind and its parts, or a text",
    "max_attempts": 'no limit is "unlimited"',
    "max_elapsed": 'no limit is "unlimited"',
    "on": "a name or a list of names",
    "give_up_on": "a name or a list of names",
}

# What the code holds in checks; without a row, a number is >= 0.
_INTERVAL = {"minimum": 0.001, "maximum": LONGEST_INTERVAL}
_BOUNDS: dict[str, _Schema] = {
    "max_attempts": {"minimum": 1},
    "max_failures": {"minimum": 2},
    "exponential.factor": {"minimum": 1},
    "decorrelated.factor": {"minimum": 1},
    "google_interval.initial_interval": _INTERVAL,
    "google_interval.randomization_factor": {"exclusiveMaximum": 1},
    "google_interval.multiplier": {"minimum": 1},
    "google_interval.max_interval": _INTERVAL,
    "round_down.unit": {"exclusiveMinimum": 0},
    "jitter.factor": {"maximum": 1},
}


def _policy() -> _Schema:
    errors = [_to("error"), {"type": "array", "items": _to("error")}]
    some = [errors[0], errors[1] | {"minItems": 1}]
    unlimited = {"enum": [None, "unlimited"]}
    allowed = [_whole("max_attempts"), unlimited]
    forms: dict[str, _Schema] = {
        "schedule": _to("schedule"),
        "max_attempts": {"anyOf": allowed},
        "max_elapsed": {"anyOf": [_to("duration"), unlimited]},
        "deadline": {"enum": [*get_args(DeadlineRule)]},
        "on": {"anyOf": some},
        "give_up_on": {"anyOf": errors},
        "raises": {"enum": [*get_args(Raises)]},
        "max_failures": _whole("max_failures"),
        "seed": {"anyOf": [_whole("seed"), {"type": "null"}]},
        "name": {"type": ["string", "null"], "pattern": r"\S"},
    }
    meant, defaults = _arguments(Policy), Policy().to_dict()
    meant |= {name: f"{meant[name]} In data {so}." for name, so in _IN_DATA.items()}
    return {
        "title": "Policy",
        "description": f"{_summary(Policy)} A setting left out has its default.",
        "type": "object",
        "properties": {
            name: {"description": meant[name], "default": defaults.get(name)} | form
            for name, form in forms.items()
        },
        "additionalProperties": False,
        "if": {
            "properties": {"deadline": {"not": {"const": "stop"}}},
            "required": ["deadline"],
        },
        "then": {"properties": {"max_elapsed": {"not": unlimited}}},
    }


def _named(policy: _Schema) -> _Schema:
    """Return the schema of a policy in a file, which may extend another."""
    inherited = {
        name: {"$ref": f"#/$defs/policy/properties/{name}"}
        for name in policy["properties"]
    }
    extends = {
        "description": "The policy whose settings are taken where this one has none: "
        "another one of this file, or a dialect, which may have parameters.",
        "type": "string",
        "examples": ["zizq", "zizq:retry_limit=10"],
    }
    return policy | {
        "title": "Policy in a file",
        "description": f"{_summary(Policy)} It may extend another one.",
        "properties": {"extends": extends} | inherited,
    }


def _schedule() -> _Schema:
    expression = 'exponential("500ms").cap("30s").full_jitter()'
    return {
        "title": "Schedule",
        "description": "The delays between attempts: a list of durations, a dict of a "
        "kind and its parts, or a text, which only the loader can read: an expression "
        f"such as {expression}, or durations separated by commas.",
        "type": ["array", "object", "string"],
        "items": _to("duration"),
        "pattern": r"\S",
        "properties": {"kind": {"enum": [*Schedule.kinds]}},
        "required": ["kind"],
        # With anyOf, each kind would look into all that is nested in any other.
        "allOf": [
            {
                "if": {
                    "type": "object",
                    "properties": {"kind": {"const": kind}},
                    "required": ["kind"],
                },
                "then": _to(kind),
            }
            for kind in Schedule.kinds
        ],
        "examples": [["1s", "5s", "1m"], expression],
    }


def _kind(kind: str) -> _Schema:
    build = _builder(kind)
    known, meant = inspect.signature(build).parameters, _arguments(build)
    nested = inspect.get_annotations(Schedule.kinds[kind])
    properties: _Schema = {"kind": {"const": kind}}
    required = ["kind"]
    for name in Schedule.kinds[kind].parts:
        parameter = known.get(name)
        properties[name] = {"description": meant[name]} if name in meant else {}
        if parameter is None or nested.get(name) is Schedule:
            properties[name] |= _to("schedule")
        else:
            properties[name] |= _FORMS[parameter.annotation](f"{kind}.{name}")
        if parameter is None or parameter.default is parameter.empty:
            required.append(name)
        else:
            properties[name]["default"] = parameter.default
    return {
        "title": kind,
        "description": _summary(build),
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _builder(kind: str) -> Callable[..., Schedule]:
    """Return what makes schedules of a kind in code."""
    home = constructors if kind in constructors.__all__ else Schedule
    build: Callable[..., Schedule] = getattr(home, _OPERATORS.get(kind, kind))
    return build


_OPERATORS = {
    "plus": "__add__",
    "either": "__or__",
    "both": "__and__",
    "times": "__mul__",
}


def _to(definition: str) -> _Schema:
    return {"$ref": f"#/$defs/{definition}"}


def _whole(place: str) -> _Schema:
    return {"type": "integer", "minimum": 0} | _BOUNDS.get(place, {})


def _number(place: str) -> _Schema:
    return {"type": "number", "minimum": 0, "maximum": LONGEST} | _BOUNDS.get(place, {})


def _duration(place: str) -> _Schema:
    # Bounds of numbers say nothing of texts.
    return _to("duration") | _BOUNDS.get(place, {})


def _delays(_place: str) -> _Schema:
    return {"type": "array", "items": _to("duration")}


_FORMS: dict[Any, Callable[[str], _Schema]] = {
    int: _whole,
    float: _number,
    Duration: _duration,
    inspect.signature(constructors.sequence).parameters["delays"].annotation: _delays,
}


def _summary(documented: object) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(documented) or "").partition("\n")[0]


def _arguments(documented: object) -> dict[str, str]:
    """Return what a docstring says of each argument."""
    _, _, section = (inspect.getdoc(documented) or "").partition("\nArgs:\n")
    section = re.split(r"^\S", section, maxsplit=1, flags=re.MULTILINE)[0]
    found = re.split(r"^    (\w+): ", section, flags=re.MULTILINE)[1:]
    return {
        name: " ".join(text.split())
        for name, text in zip(found[::2], found[1::2], strict=True)
    }
