"""Policies from environment variables, such as the variables of the Zizq job queue."""

import difflib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from retrykit._core.foreign_settings import RETRY_NAMES, advice_for
from retrykit._core.limits import find_idle_limit
from retrykit._core.policy import Policy
from retrykit._core.serialization import UNLIMITED, settings_from_dict
from retrykit._core.settings import SETTINGS
from retrykit._internal.durations import parse_duration
from retrykit._internal.frozen import Frozen
from retrykit._internal.late_modules import logging
from retrykit._internal.validation import (
    check_encodable,
    check_instance,
    check_integer,
    check_number,
    invalid_setting,
    reworded,
    safe_repr,
)
from retrykit.config._preset_names import parse_number, parse_preset
from retrykit.errors import ConfigError
from retrykit.presets import zizq

__all__ = ["MUTUALLY_EXCLUSIVE", "VARIABLES", "policy_from_env"]

# The others cannot be written on one line.
_SETTINGS = {
    name.upper(): name
    for name, each in SETTINGS.items()
    if each.form not in {"code", "rules", "budget", "limits", "hedge"}
}
_ONLY_IN_CODE = {
    name.upper(): name for name in SETTINGS if name.upper() not in _SETTINGS
}
_OF_OTHERS = {name.upper(): name for name in RETRY_NAMES}
_FORMULA = ("BACKOFF_BASE", "BACKOFF_EXPONENT", "BACKOFF_JITTER")
_ZIZQ = ("RETRY_LIMIT", *_FORMULA)

VARIABLES = ("EXTENDS", *_SETTINGS, *_ZIZQ)
"""The names of the variables, without the prefix and its underscore."""

MUTUALLY_EXCLUSIVE = (
    ("MAX_ATTEMPTS", "RETRY_LIMIT"),
    *(("SCHEDULE", part) for part in _FORMULA),
)
"""Pairs of variables that set the same thing: at most one of each may be given."""


def policy_from_env(
    prefix: str,
    environ: Mapping[str, str],
    *,
    base: Policy | None = None,
    display_names: Mapping[str, str] | None = None,
) -> Policy:
    """Return the policy that environment variables with a prefix define.

    >>> environ = {"APP_MAX_ATTEMPTS": "8", "APP_SCHEDULE": "linear('1s').cap('1m')"}
    >>> policy_from_env("APP", environ)
    Policy(schedule=linear(1.0).cap(60.0), max_attempts=8)
    >>> policy_from_env("APP", {"APP_RETRY_LIMIT": "3"}).max_attempts
    4

    A variable may stand for a command-line flag. *display_names* maps it to the flag,
    which errors then name:

    >>> environ = {"ZIZQ_DEFAULT_RETRY_LIMIT": "many"}
    >>> flags = {"ZIZQ_DEFAULT_RETRY_LIMIT": "--default-retry-limit"}
    >>> policy_from_env("ZIZQ_DEFAULT", environ, display_names=flags)
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: --default-retry-limit must be an integer >= 0, \
got 'many'  [invalid-value]

    The other arguments and the errors are as in `Policy.from_env`.
    """
    stem = check_instance("prefix", prefix, str).removesuffix("_")
    if not stem:
        raise invalid_setting("prefix", "a name such as APP_RETRY", prefix)
    variables = _find_variables(stem, environ, display_names or {})
    start = _find_base(stem, variables, base)
    changes = _zizq_settings(variables, start) | _policy_settings(variables)
    if changes.get("max_elapsed", start.max_elapsed) is None:
        # Without a time limit, no other rule applies at its end.
        changes.setdefault("deadline", "stop")
    with _variables_in_errors(variables, *variables.values):
        policy = start._replace(changes, may_idle=True)
    _warn_if_idle(stem, policy, start)
    return policy


class _Variables(Frozen):
    """The values of the variables that are set, and all names to use in errors.

    Attributes:
        values: The values, without blanks around them, keyed as in `VARIABLES`.
        names: The full names of all variables, or their flags, keyed in the same way.
    """

    __slots__ = ("names", "values")
    values: dict[str, str]
    names: dict[str, str]


def _find_variables(
    stem: str, environ: Mapping[str, str], display_names: Mapping[str, str]
) -> _Variables:
    values: dict[str, str] = {}
    for name, value in environ.items():
        before, _, key = name.partition(f"{stem}_")
        if before or not (text := check_instance(name, value, str).strip()):
            continue
        if key in VARIABLES:
            values[key] = check_encodable(name, text)
            continue
        if key in _ONLY_IN_CODE:
            raise _unknown(name, "a setting that a variable can have", _in_code(key))
        for near in difflib.get_close_matches(key, VARIABLES, n=1, cutoff=0.85):
            # SCHEDULER, NAMES or LIMIT may well be a variable of the program itself.
            own = key == "LIMIT" or ("_" not in near and key.startswith(near))
            if not own:
                raise _unknown(name, "a policy setting", f"did you mean {stem}_{near}?")
        if advice := _advice(stem, _OF_OTHERS.get(key, "")):
            raise _unknown(name, "a policy setting", advice)
    names = {key: f"{stem}_{key}" for key in VARIABLES}
    shown = {key: display_names.get(name, name) for key, name in names.items()}
    return _Variables(values, shown)


def _unknown(name: str, kind: str, suggestion: str) -> ConfigError:
    # Without the value, which may be a secret.
    return ConfigError(f"{name} is not {kind}; {suggestion}", "unknown-name")


def _advice(stem: str, name: str) -> str:
    """Return what to write instead of a setting of another library; may be empty."""
    advice = advice_for(name)
    found = _WRITTEN.match(advice)
    key = found[1].upper() if found else ""
    if key in _ONLY_IN_CODE:
        return _in_code(key)
    written = advice.replace(f"write {key.lower()}", f"write {stem}_{key}", 1)
    return written if key in _SETTINGS else ""


def _in_code(key: str) -> str:
    return f"write base=Policy({_ONLY_IN_CODE[key]}=...)"


_WRITTEN = re.compile(r"write (\w+)")


def _find_base(stem: str, variables: _Variables, base: Policy | None) -> Policy:
    if "EXTENDS" in variables.values:
        with _variables_in_errors(variables, "EXTENDS"):
            return parse_preset(variables.values["EXTENDS"])
    if base is not None:
        return check_instance("base", base, Policy, "write Policy(...)")
    is_zizq = stem == "ZIZQ_DEFAULT" or not variables.values.keys().isdisjoint(_ZIZQ)
    return zizq() if is_zizq else Policy()


def _warn_if_idle(stem: str, policy: Policy, start: Policy) -> None:
    """Log a warning if the variables leave no retry.

    It is not an error, since that may be intended. Nothing is logged if the variables
    allow only one attempt, or if *start* leaves no retry either.
    """
    if policy.max_attempts == 1 or find_idle_limit(start) is not None:
        return
    idle = find_idle_limit(policy)
    if idle is not None:
        name, rule, value = idle
        logging.getLogger("retrykit").warning(
            "the variables %s_... leave no retry: %s must be %s, got %s",
            stem,
            name,
            rule,
            safe_repr(value),
        )


def _zizq_settings(variables: _Variables, start: Policy) -> dict[str, Any]:
    """Return the settings from the variables of the Zizq job queue."""
    names, values = variables.names, variables.values
    for key, rival in MUTUALLY_EXCLUSIVE:
        if key in values and rival in values:
            rule = f"left out if {names[rival]} is given"
            raise invalid_setting(names[key], rule, values[key], code="contradiction")
    changes: dict[str, Any] = {}
    if "RETRY_LIMIT" in values:
        limit = parse_number(int, values["RETRY_LIMIT"])
        attempts = check_integer(names["RETRY_LIMIT"], limit, at_least=0) + 1
        # Zizq keeps every error of a job.
        max_failures = max(attempts, start.max_failures)
        changes = {"max_attempts": attempts, "max_failures": max_failures}
    parts = [key for key in _FORMULA if key in values]
    if missing := [names[key] for key in _FORMULA if key not in parts]:
        if parts:
            name, text = names[parts[0]], values[parts[0]]
            rule = f"given together with {' and '.join(missing)}"
            raise invalid_setting(
                name, rule, text, "they are one formula", code="contradiction"
            )
        return changes
    base, exponent, jitter = parts
    policy = zizq(
        base=_parse_milliseconds(names[base], values[base]),
        exponent=check_number(names[exponent], parse_number(float, values[exponent])),
        jitter=_parse_milliseconds(names[jitter], values[jitter]),
    )
    return changes | {"schedule": policy.schedule}


def _parse_milliseconds(name: str, text: str) -> float:
    """Parse a duration to seconds; a number without a unit is in milliseconds."""
    duration = f"{text}ms" if _NUMBER.fullmatch(text) else text
    rule = 'a number of milliseconds, or a duration such as "12.5s"'
    with _rule_in_errors(name, rule, text):
        return parse_duration(name, duration)


_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)


def _policy_settings(variables: _Variables) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for key, name in _SETTINGS.items():
        if key in variables.values:
            with _variables_in_errors(variables, key):
                data = _parse_setting(name, variables.values[key])
                changes |= settings_from_dict({name: data})
    return changes


def _parse_setting(name: str, text: str) -> object:
    form = SETTINGS[name].form
    if form in {"count", "number"}:
        return parse_number(int if form == "count" else float, text)
    if form == "flag":
        return {"true": True, "false": False}.get(text.lower(), text)
    if form in {"errors", "results"} and "," in text:
        return [each.strip() for each in text.split(",")]
    if form in {"duration", "timeout"} and text != UNLIMITED:
        rule = f'a duration with its unit, such as "90s" or "1h30m", or {UNLIMITED}'
        with _rule_in_errors(name, rule, text):
            return parse_duration(name, text)
    return text


@contextmanager
def _variables_in_errors(variables: _Variables, *keys: str) -> Iterator[None]:
    """Name the variables instead of the settings in errors raised in the block."""
    try:
        yield
    except ConfigError as error:
        msg = error.message
        for key in keys:
            setting = _SETTINGS.get(key, "preset")
            if re.match(rf"{setting}\b", msg):
                msg = f"{variables.names[key]}{msg.removeprefix(setting)}"
                break
        else:
            msg = f"{', '.join(variables.names[key] for key in keys)}: {msg}"
        raise reworded(error, msg) from None


@contextmanager
def _rule_in_errors(name: str, rule: str, text: str) -> Iterator[None]:
    """Replace the rule in errors that the block raises about a duration."""
    try:
        yield
    except ConfigError as error:
        told = invalid_setting(name, rule, text)
        raise reworded(error, told.message) from None
