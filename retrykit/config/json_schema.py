"""The JSON Schema of policies as data, made from the code that reads them.

Kinds of schedules, optional keys, choices, defaults and descriptions are taken
from where they are written. Only what the code holds in checks is said here
again: the bounds of numbers. Nothing here knows how a file is read.
"""

from typing import get_args

from retrykit._internal.durations import DURATION_PATTERN, LONGEST_TEXT
from retrykit.budgets.serialization import KINDS
from retrykit.config.docstrings import arguments, summary
from retrykit.config.kind_schemas import (
    Schema,
    budget_schema,
    by_kind,
    kind_schema,
    to,
    whole_number,
)
from retrykit.policy.policy import Policy
from retrykit.policy.rules import Rule
from retrykit.policy.validators import DeadlineRule, LongHintRule, NestedRule, Raises
from retrykit.schedules.kinds import SCHEDULE_KINDS
from retrykit.schedules.randomness import MAX_DELAY

__all__ = ["policy_schema"]


def policy_schema() -> Schema:
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
            "rule": _rule(),
            "hint": _HINT,
            "budget": _BUDGET,
        }
        | {kind: kind_schema(kind) for kind in SCHEDULE_KINDS}
        | {kind: budget_schema(kind) for kind in KINDS},
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
    "a module already imported, and give_up_on must leave something of on and of each "
    "rule to be retried. A rule comes before those that hold for all of its errors. An "
    "attribute or a parameter is named as in Python. Budgets of the same scope have "
    "the same settings. extends names another policy of the file, not in a circle, or "
    "a preset and parameters that it has, and what is inherited must not contradict "
    "what is written."
)

_DURATION = {
    "title": "Duration",
    "description": "A length of time: a number of seconds, or numbers with units "
    '(us, ms, s, m, h, d, w) such as "12.5s", "500ms" or "1h30m". Finite and >= 0.',
    "anyOf": [
        {"type": "number", "minimum": 0, "maximum": MAX_DELAY},
        {"type": "string", "pattern": DURATION_PATTERN, "maxLength": LONGEST_TEXT},
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

_HEADER = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PATH = r"[^\s,:.]+(?:\.[^\s,:.]+)*"
_ONE = (
    rf"(?:retry_after|grpc_pushback|milliseconds:{_HEADER}|reset_at(?::{_HEADER})?"
    rf"|attribute:{_PATH}(?::m?s)?)"
)
_HINT = {
    "title": "Hint",
    "description": "What is read from an error or a result: retry_after, "
    "milliseconds:HEADER, reset_at, reset_at:HEADER, grpc_pushback, attribute:PATH or "
    "attribute:PATH:ms, or several of these with commas between them, of which the "
    "first answer is taken.",
    "type": "string",
    "pattern": rf"^\s*{_ONE}\s*(?:,\s*{_ONE}\s*)*$",
    "examples": ["retry_after", "milliseconds:retry-after-ms, retry_after"],
}

_BUDGET = {
    "title": "Budget",
    "description": "What pays for retries: a dict of a kind and its settings.",
    "type": "object",
    "properties": {"kind": {"enum": [*KINDS]}},
    "required": ["kind"],
    "allOf": by_kind(KINDS),
    "examples": [{"kind": "token_bucket", "scope": "host:api.example"}],
}

_TIMEOUT = {
    "description": "A timeout that is handed to a parameter of the function.",
    "type": "object",
    "properties": {
        "argument": {
            "description": "The name of the parameter.",
            "type": "string",
            "pattern": r"^[^\s\d]\S*$",
        },
        "seconds": to("duration") | {"exclusiveMinimum": 0},
    },
    "required": ["argument", "seconds"],
    "additionalProperties": False,
}

_UNLIMITED = {"enum": [None, "unlimited"]}

# How a setting is written here, where that is not how it is written in code.
_IN_DATA = {
    "schedule": "a list, a dict of a kind and its parts, or a text",
    "max_attempts": 'no limit is "unlimited"',
    "max_elapsed": 'no limit is "unlimited"',
    "on": "a name or a list of names",
    "give_up_on": "a name or a list of names",
    "rules": "a list of dicts of on, and of schedule, max_attempts or both",
    "hint": "a text, such as retry_after",
    "hint_cap": 'no limit is "unlimited"',
    "budget": "a dict of a kind and its settings",
    "attempt_timeout": "a dict of argument and seconds is an AsArgument",
}


def _policy() -> Schema:
    forms: dict[str, Schema] = {
        "schedule": to("schedule"),
        "max_attempts": _ATTEMPTS,
        "max_elapsed": {"anyOf": [to("duration"), _UNLIMITED]},
        "deadline": {"enum": [*get_args(DeadlineRule)]},
        "on": _SOME,
        "give_up_on": {"anyOf": [to("error"), {"type": "array", "items": to("error")}]},
        "rules": {"type": "array", "items": to("rule")},
        "hint": {"anyOf": [to("hint"), {"type": "null"}]},
        "hint_cap": {"anyOf": [to("duration"), _UNLIMITED]},
        "on_long_hint": {"enum": [*get_args(LongHintRule)]},
        "budget": {"anyOf": [to("budget"), {"type": "null"}]},
        "attempt_timeout": {
            "anyOf": [to("duration") | {"exclusiveMinimum": 0}, _TIMEOUT, _UNLIMITED]
        },
        "nested": {"enum": [*get_args(NestedRule)]},
        "raises": {"enum": [*get_args(Raises)]},
        "redact": {"type": "boolean"},
        "keep_tracebacks": {"type": "boolean"},
        "max_failures": whole_number() | {"minimum": 2},
        "seed": {"anyOf": [whole_number() | {"maximum": 2**64 - 1}, {"type": "null"}]},
        "name": {"type": ["string", "null"], "pattern": r"\S"},
    }
    meant, defaults = arguments(Policy), Policy().to_dict()
    meant |= {name: f"{meant[name]} In data {so}." for name, so in _IN_DATA.items()}
    return {
        "title": "Policy",
        "description": f"{summary(Policy)} A setting left out has its default.",
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
        "then": {"properties": {"max_elapsed": {"not": _UNLIMITED}}},
    }


_ATTEMPTS: Schema = {"anyOf": [whole_number() | {"minimum": 1}, _UNLIMITED]}
_SOME: Schema = {
    "anyOf": [to("error"), {"type": "array", "items": to("error"), "minItems": 1}]
}


def _rule() -> Schema:
    forms = {"on": _SOME, "schedule": to("schedule"), "max_attempts": _ATTEMPTS}
    meant = arguments(Rule)
    return {
        "title": "Rule",
        "description": summary(Rule),
        "type": "object",
        "properties": {
            name: {"description": meant[name]} | form for name, form in forms.items()
        },
        "required": ["on"],
        "anyOf": [
            {"required": ["schedule"]},
            {
                "properties": {"max_attempts": {"type": "integer"}},
                "required": ["max_attempts"],
            },
        ],
        "additionalProperties": False,
    }


def _named(policy: Schema) -> Schema:
    """Return the schema of a policy in a file, which may extend another."""
    inherited = {
        name: {"$ref": f"#/$defs/policy/properties/{name}"}
        for name in policy["properties"]
    }
    extends = {
        "description": "The policy whose settings are taken where this one has none: "
        "another one of this file, or a preset, which may have parameters.",
        "type": "string",
        "examples": ["zizq", "zizq:retry_limit=10"],
    }
    return policy | {
        "title": "Policy in a file",
        "description": f"{summary(Policy)} It may extend another one.",
        "properties": {"extends": extends} | inherited,
    }


def _schedule() -> Schema:
    expression = 'exponential("500ms").cap("30s").full_jitter()'
    return {
        "title": "Schedule",
        "description": "The delays between attempts: a list of durations, a dict of a "
        "kind and its parts, or a text, which only the loader can read: an expression "
        f"such as {expression}, or durations separated by commas.",
        "type": ["array", "object", "string"],
        "items": to("duration"),
        "pattern": r"\S",
        "properties": {"kind": {"enum": [*SCHEDULE_KINDS]}},
        "required": ["kind"],
        "allOf": by_kind(SCHEDULE_KINDS),
        "examples": [["1s", "5s", "1m"], expression],
    }
