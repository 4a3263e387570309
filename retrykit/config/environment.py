"""Settings in environment variables.

Some variables have the names that the Zizq job queue documents for its
defaults, and mean what they mean there. Nothing here reads the environment
itself: it is handed in.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, final

from retrykit._internal.durations import parse_duration
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import (
    check_instance,
    check_integer,
    check_number,
    invalid_setting,
)
from retrykit.config.preset_names import parse_number, parse_preset
from retrykit.errors import ConfigError
from retrykit.policy.policy import Policy
from retrykit.policy.serialization import UNLIMITED, policy_from_dict
from retrykit.presets import zizq

__all__ = ["MUTUALLY_EXCLUSIVE", "VARIABLES", "settings_from_env"]

_SETTINGS = {
    "SCHEDULE": "schedule",
    "MAX_ATTEMPTS": "max_attempts",
    "MAX_ELAPSED": "max_elapsed",
    "DEADLINE": "deadline",
    "ON": "on",
    "GIVE_UP_ON": "give_up_on",
    "HINT": "hint",
    "HINT_CAP": "hint_cap",
    "ON_LONG_HINT": "on_long_hint",
    "ATTEMPT_TIMEOUT": "attempt_timeout",
    "NESTED": "nested",
    "RAISES": "raises",
    "REDACT": "redact",
    "KEEP_TRACEBACKS": "keep_tracebacks",
    "MAX_FAILURES": "max_failures",
    "SEED": "seed",
    "NAME": "name",
}
_FORMULA = ("BACKOFF_BASE", "BACKOFF_EXPONENT", "BACKOFF_JITTER")
_ZIZQ = ("RETRY_LIMIT", *_FORMULA)

VARIABLES = ("EXTENDS", *_SETTINGS, *_ZIZQ)
"""What follows the prefix and an underscore in the names of the variables."""

MUTUALLY_EXCLUSIVE = (
    ("MAX_ATTEMPTS", "RETRY_LIMIT"),
    *(("SCHEDULE", part) for part in _FORMULA),
)
"""Pairs of variables that set the same in other words: one at most is given."""


def settings_from_env(
    prefix: str,
    environ: Mapping[str, str],
    *,
    base: Policy | None = None,
    display_names: Mapping[str, str] | None = None,
) -> Policy:
    """Return the settings that variables with a prefix ask for.

    >>> told = {"APP_MAX_ATTEMPTS": "8", "APP_SCHEDULE": "linear('1s').cap('1m')"}
    >>> settings_from_env("APP", told)
    Policy(schedule=linear(1.0).cap(60.0), max_attempts=8)
    >>> settings_from_env("APP", {"APP_RETRY_LIMIT": "3"}).max_attempts
    4

    A command line lays its flags over the variables, and *display_names* lets errors
    name what its user typed:

    >>> laid = {"ZIZQ_DEFAULT_RETRY_LIMIT": "many"}
    >>> flags = {"ZIZQ_DEFAULT_RETRY_LIMIT": "--default-retry-limit"}
    >>> settings_from_env("ZIZQ_DEFAULT", laid, display_names=flags)
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: --default-retry-limit must be an integer >= 0, \
got 'many'

    Args:
        prefix: What the names of the variables begin with, with or without the
            underscore after it.
        environ: Texts by the names of their variables; what is empty is not
            given. `Policy.from_env` says what each variable means.
        base: The settings that hold where no variable is given.
        display_names: What errors call a variable, where it is not by its own name:
            the flag that was laid over it, or that would be if it were given.

    Raises:
        ConfigError: A variable is wrong, is nearly one of these, contradicts
            another, or is a part of a formula whose other parts are missing.
    """
    stem = check_instance("prefix", prefix, str).removesuffix("_")
    if not stem:
        raise invalid_setting("prefix", "a name such as APP_RETRY", prefix)
    given = _given(stem, environ, display_names or {})
    start = _start(stem, given, base)
    changes = _of_queue(given, start) | _of_policy(given)
    with _told_of(given, *given.texts):
        return start.replace(**changes)


@final
class _Given(Frozen):
    """The texts that are given, and what errors call each that could be."""

    __slots__ = ("names", "texts")
    texts: dict[str, str]
    names: dict[str, str]


def _given(
    stem: str, environ: Mapping[str, str], display_names: Mapping[str, str]
) -> _Given:
    texts: dict[str, str] = {}
    for name, value in environ.items():
        own, _, key = name.partition(f"{stem}_")
        if own or not (text := check_instance(name, value, str).strip()):
            continue
        if key in VARIABLES:
            texts[key] = _encodable(name, text)
        # What else has the prefix may be a setting of the program itself, as
        # SCHEDULER or NAMES may be: a single word is a name of many things.
        for near in difflib.get_close_matches(key, VARIABLES, n=1, cutoff=0.85):
            if key != near and ("_" in near or not key.startswith(near)):
                # Without its value, which may be a secret.
                msg = f"{name} is not a policy setting; did you mean {stem}_{near}?"
                raise ConfigError(msg)
    names = {key: f"{stem}_{key}" for key in VARIABLES}
    return _Given(texts, {key: display_names.get(x, x) for key, x in names.items()})


def _encodable(name: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise invalid_setting(name, "text in UTF-8", text) from None
    return text


def _start(stem: str, given: _Given, base: Policy | None) -> Policy:
    if "EXTENDS" in given.texts:
        with _told_of(given, "EXTENDS"):
            return parse_preset(given.texts["EXTENDS"])
    if base is not None:
        return check_instance("base", base, Policy, "write Policy(...)")
    queue = stem == "ZIZQ_DEFAULT" or not given.texts.keys().isdisjoint(_ZIZQ)
    return zizq() if queue else Policy()


def _of_queue(given: _Given, start: Policy) -> dict[str, Any]:
    """Return the settings that the names of the job queue ask for."""
    _refuse_both(given)
    names, texts = given.names, given.texts
    changes: dict[str, Any] = {}
    if "RETRY_LIMIT" in texts:
        limit = parse_number(int, texts["RETRY_LIMIT"])
        attempts = check_integer(names["RETRY_LIMIT"], limit, at_least=0) + 1
        # Every error is kept, as on the list of a job.
        kept = max(attempts, start.max_failures)
        changes = {"max_attempts": attempts, "max_failures": kept}
    parts = [key for key in _FORMULA if key in texts]
    if missing := [names[key] for key in _FORMULA if key not in parts]:
        if parts:
            name, text = names[parts[0]], texts[parts[0]]
            rule = f"given together with {' and '.join(missing)}"
            raise invalid_setting(name, rule, text, "they are one formula")
        return changes
    base, exponent, jitter = parts
    told = zizq(
        base=_milliseconds(names[base], texts[base]),
        exponent=check_number(names[exponent], parse_number(float, texts[exponent])),
        jitter=_milliseconds(names[jitter], texts[jitter]),
    )
    return changes | {"schedule": told.schedule}


def _refuse_both(given: _Given) -> None:
    for key, rival in MUTUALLY_EXCLUSIVE:
        if key in given.texts and rival in given.texts:
            rule = f"left out where {given.names[rival]} is given"
            raise invalid_setting(given.names[key], rule, given.texts[key])


def _milliseconds(name: str, text: str) -> float:
    """Return the seconds of a duration; a bare number is of milliseconds."""
    length = f"{text}ms" if _BARE.fullmatch(text) else text
    with _told_as(
        name, 'a number of milliseconds, or a duration such as "12.5s"', text
    ):
        return parse_duration(name, length)


_BARE = re.compile(r"\d+(?:\.\d+)?", re.ASCII)


def _of_policy(given: _Given) -> dict[str, Any]:
    """Return the settings that have variables of their own."""
    changes: dict[str, Any] = {}
    for key, name in _SETTINGS.items():
        if key in given.texts:
            with _told_of(given, key):
                changes |= policy_from_dict({name: _read(name, given.texts[key])})
    return changes


def _read(name: str, text: str) -> object:
    if name in {"max_attempts", "max_failures", "seed"}:
        return parse_number(int, text)
    if name in {"redact", "keep_tracebacks"}:
        return {"true": True, "false": False}.get(text.lower(), text)
    if name in {"on", "give_up_on"} and "," in text:
        return [each.strip() for each in text.split(",")]
    if name in {"max_elapsed", "hint_cap", "attempt_timeout"} and text != UNLIMITED:
        rule = f'a duration with its unit, such as "90s" or "1h30m", or {UNLIMITED}'
        with _told_as(name, rule, text):
            return parse_duration(name, text)
    return text


@contextmanager
def _told_of(given: _Given, *keys: str) -> Iterator[None]:
    """Let errors name the variables that they are about, as they were typed."""
    try:
        yield
    except ConfigError as error:
        told = str(error)
        for key in keys:
            setting = _SETTINGS.get(key, "preset")
            if re.match(rf"{setting}\b", told):
                told = f"{given.names[key]}{told.removeprefix(setting)}"
                break
        else:
            told = f"{', '.join(given.names[key] for key in keys)}: {told}"
        raise ConfigError(told).with_traceback(error.__traceback__) from None


@contextmanager
def _told_as(name: str, rule: str, text: str) -> Iterator[None]:
    """Let an error tell the rule that holds here."""
    try:
        yield
    except ConfigError as error:
        trace = error.__traceback__
        raise invalid_setting(name, rule, text).with_traceback(trace) from None
