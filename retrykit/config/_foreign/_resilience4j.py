"""Retries of resilience4j, in the YAML of Spring Boot.

Source: ``CommonRetryConfigurationProperties``, ``ConfigUtils``, ``RetryConfig`` and
``IntervalFunction``, code of resilience4j 2.4.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

from retrykit._conditions import Condition
from retrykit._core.policy import Policy
from retrykit._internal.validation import invalid_setting
from retrykit.config._foreign._conditions import conditions_named
from retrykit.config._foreign._format import Format
from retrykit.config._foreign._section import Section, spelled
from retrykit.config._foreign._spring_properties import (
    growing_milliseconds,
    matching_key,
    properties_at,
    scaled,
    spring_milliseconds,
)
from retrykit.config._foreign._values import flag, number, text, texts, whole
from retrykit.schedules import Schedule, constant

__all__ = ["FORMAT"]


def _find(root: Section) -> Iterator[tuple[str, Section]]:
    """Yield the instances, and the configs that they may be based on, with names."""
    for group, prefix in (("instances", ""), ("backends", ""), ("configs", "configs.")):
        tables = properties_at(root, "resilience4j", "retry", group)
        for name, table in tables.data.items() if tables else ():
            found = tables.section(name) if tables and _is_table(table) else None
            if found:
                yield f"{prefix}{name}", found


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)


class _Level(NamedTuple):
    """The settings of an instance, or of a config that it is based on.

    Attributes:
        section: The table.
        given: The parsed values of the settings in that table, keyed by name.
    """

    section: Section
    given: dict[str, Any]


def _read(section: Section) -> Policy:
    levels = [_read_level(each) for each in _sections(section)]
    for level, base in pairwise(levels):
        _note_which_applies(level, base)
    attempts = _first(levels, "maxAttempts", _ATTEMPTS)
    return Policy(
        schedule=_read_delays(levels, attempts - 1),
        max_attempts=attempts,
        on=_read_errors(levels, "retryExceptions") or Exception,
        give_up_on=_read_errors(levels, "ignoreExceptions"),
    )


# RetryConfig.DEFAULT_MAX_ATTEMPTS, and DEFAULT_WAIT_DURATION in ms.
_ATTEMPTS = 3
_WAIT = 500


def _sections(section: Section) -> list[Section]:
    """Return the table of an instance, of the config that it is based on, and so on."""
    retry = section.parent and section.parent.parent
    configs = matching_key(retry.data, "configs") if retry else ""
    tables: Any = retry.data.get(configs) if retry else {}
    tables = tables if _is_table(tables) else {}
    group = (*section.place[:-2], configs)
    found = [section]
    while True:
        last = found[-1].respelled(spelled)
        name = last.get("baseConfig", text)
        place = (*group, name or "default")
        known = _is_table(tables.get(place[-1]))
        if name and (not known or place in [each.place for each in found]):
            with last.located("baseConfig"):
                rule = "the name of one of configs that is not based on this one"
                raise invalid_setting("baseConfig", rule, name, code="contradiction")
        if not known or place == last.place:
            return found
        found.append(Section(section.remarks, place, tables[place[-1]]))


def _read_level(section: Section) -> _Level:
    section = section.respelled(spelled)
    given = {key: section.get(key, parse) for key, parse in _SETTINGS.items()}
    old = section.get("maxRetryAttempts", whole(1))
    if old:
        told = "resilience4j 2 ignores it; the policy reads it as maxAttempts"
        section.differs("maxRetryAttempts", told)
        given["maxAttempts"] = given["maxAttempts"] or old
    for key, consequence in _CLASSES.items():
        if section.get(key, text):
            section.differs(key, f"a class of Java; the policy {consequence}")
    if section.get("failAfterMaxAttempts", flag):
        told = "only about results; the last error is raised as it is"
        section.note("failAfterMaxAttempts", told)
    section.ignore("baseConfig", "eventConsumerBufferSize", "writableStackTraceEnabled")
    section.finish()
    return _Level(section, {k: v for k, v in given.items() if v is not None})


def _above_zero(name: str, value: Any) -> float:
    found = number(0)(name, value)
    if not found:
        raise invalid_setting(name, "a number > 0", value, code="out-of-range")
    return found


def _below_one(name: str, value: Any) -> float:
    found = number(0, 1)(name, value)
    if found == 1:
        raise invalid_setting(name, "a number >= 0 and < 1", value, code="out-of-range")
    return found


_SETTINGS: dict[str, Callable[[str, Any], Any]] = {
    "maxAttempts": whole(1),
    "waitDuration": spring_milliseconds,
    "enableExponentialBackoff": flag,
    "exponentialBackoffMultiplier": _above_zero,
    "exponentialMaxWaitDuration": spring_milliseconds,
    "enableRandomizedWait": flag,
    "randomizedWaitFactor": _below_one,
    "retryExceptions": texts,
    "ignoreExceptions": texts,
}
_CLASSES = {
    "resultPredicate": "retries no result",
    "retryExceptionPredicate": "does not ask it",
    "intervalBiFunction": "waits as the other keys say",
    "consumeResultBeforeRetryAttempt": "does not call it",
}


def _note_which_applies(level: _Level, base: _Level) -> None:
    config = base.section.place[-1]
    for key, value in level.given.items():
        if base.given.get(key, value) != value:
            level.section.note(key, f"applies, and not that of configs.{config}")


def _first(levels: list[_Level], key: str, default: Any = None) -> Any:
    """Return the value of a key in the first level that has it; else *default*."""
    return next((each.given[key] for each in levels if key in each.given), default)


def _read_errors(levels: list[_Level], key: str) -> Condition:
    for section, given in levels:
        if given.get(key):
            found = conditions_named(section, key, given[key], _KNOWN, "Java")
            if not found and key == "retryExceptions":
                section.differs(key, "none is known; the policy retries every error")
            return found
    return ()


_KNOWN: dict[str, Condition] = {
    "java.lang.Exception": Exception,
    "java.lang.Throwable": Exception,
}


def _read_delays(levels: list[_Level], retries: int) -> Schedule:
    """Return the delays of the first level that has a waitDuration.

    Other keys about delays have an effect only in that level and in later ones. Without
    a waitDuration, each delay is 0.5 s.
    """
    index = next(
        (i for i, each in enumerate(levels) if "waitDuration" in each.given), -1
    )
    for section, given in levels[:index] if index >= 0 else levels:
        for key in _OF_DELAYS:
            if key in given:
                section.note(key, "has no effect without a waitDuration beside it")
    if index < 0:
        return constant(_WAIT / 1000)
    levels = levels[index:]
    wait = _first(levels, "waitDuration")
    grows = _first(levels, "enableExponentialBackoff")
    varies = _first(levels, "enableRandomizedWait")
    used = _used(levels, grows=grows, varies=varies)
    longest = used.get("exponentialMaxWaitDuration")
    if grows or varies:
        _check_positive(levels, "waitDuration", wait)
    factor = used.get("exponentialBackoffMultiplier", 1.5) if grows else 1
    schedule = growing_milliseconds(wait, factor, retries)
    if varies:
        schedule = _randomized(schedule, used.get("randomizedWaitFactor", 0.5))
    if longest is not None:
        _check_positive(levels, "exponentialMaxWaitDuration", longest)
        schedule = schedule.cap(longest / 1000)
    return schedule


def _used(levels: list[_Level], *, grows: bool, varies: bool) -> dict[str, Any]:
    """Return the values of the keys that have an effect.

    A key needs its switch, and all keys before it in `_SWITCHES` that are switched on.
    """
    switches = {"enableExponentialBackoff": grows, "enableRandomizedWait": varies}
    used: dict[str, Any] = {}
    missing = ""
    for key, switch in _SWITCHES.items():
        value = _first(levels, key)
        if switches[switch] and value is None:
            missing = missing or key
        elif switches[switch] and not missing:
            used[key] = value
        elif value is not None:
            section = next(each.section for each in levels if key in each.given)
            without = missing if switches[switch] else switch
            section.note(key, f"has no effect without {without}")
    return used


_SWITCHES = {
    "exponentialBackoffMultiplier": "enableExponentialBackoff",
    "randomizedWaitFactor": "enableRandomizedWait",
    "exponentialMaxWaitDuration": "enableExponentialBackoff",
}
_OF_DELAYS = [*dict.fromkeys(_SWITCHES.values()), *_SWITCHES]


def _check_positive(levels: list[_Level], key: str, value: int) -> None:
    section = next(each.section for each in levels if key in each.given)
    with section.located(key):
        if not value:
            rule = "a duration >= 1 ms where delays grow or vary"
            raise invalid_setting(key, rule, value, code="out-of-range")


def _randomized(schedule: Schedule, factor: float) -> Schedule:
    """Return random delays of whole milliseconds, around the delays of a schedule."""
    if not factor:
        return schedule
    # Every millisecond from the shortest to the longest is as likely as the others.
    width = scaled(schedule, 2 * factor) + constant("1ms")
    randomized = scaled(schedule, 1 - factor) + width.full_jitter()
    return randomized.round_down("1ms").at_least("1ms")


FORMAT: Final = Format("retries of resilience4j, in YAML of Spring Boot", _find, _read)
"""Instances and configs of ``resilience4j.retry``."""
