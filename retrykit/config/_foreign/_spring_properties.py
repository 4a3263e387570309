"""Spring Boot properties: tables at dotted paths, in any spelling, and durations."""

import re
from collections.abc import Mapping
from datetime import timedelta
from math import isclose
from typing import Any

from retrykit._internal.validation import LARGEST, invalid_setting
from retrykit.config._foreign._document import Document, Place
from retrykit.config._foreign._section import Remarks, Section, spelled
from retrykit.schedules import Schedule, constant, exponential, sequence

__all__ = ["growing_milliseconds", "grown_milliseconds", "listed_milliseconds"]
__all__ += ["matching_key", "properties_at", "scaled", "spring_milliseconds"]


def properties_at(root: Section, *path: str) -> Section | None:
    """Return the table at a path of properties; None if there is none.

    A key may hold several words of the path, separated by dots.
    """
    begins = (str(key).partition(".")[0] for key in root.data)
    if spelled(path[0]) not in map(spelled, begins):
        return None
    section: Section = _without_dots(root)
    for word in path:
        key = matching_key(section.data, word)
        if not isinstance(section.data.get(key), Mapping):
            return None
        inner = section.section(key)
        section = inner or section
    return section


def matching_key(data: Mapping[str, Any], word: str) -> str:
    """Return the key that Spring reads as *word*, in any spelling; else *word*."""
    return next((key for key in data if spelled(key) == spelled(word)), word)


def _without_dots(root: Section) -> Section:
    """Return a document in which each key is one word, with the same line numbers."""
    lines: dict[Place, int] = {}

    def line(new: Place, old: Place) -> None:
        if old in root.document.lines:
            lines.setdefault(new, root.document.lines[old])

    def copy(value: Any, new: Place, old: Place) -> Any:
        line(new, old)
        shallow = len(new) <= _MOST_LEVELS
        if shallow and isinstance(value, Mapping):
            table: dict[str, Any] = {}
            fill(table, value, new, old)
            return table
        if shallow and isinstance(value, list):
            items = enumerate(value)
            return [copy(each, (*new, at), (*old, at)) for at, each in items]
        return value

    def fill(
        table: dict[str, Any], data: Mapping[Any, Any], new: Place, old: Place
    ) -> None:
        for written, value in data.items():
            *words, last = _words(str(written))
            inner, place = table, new
            for word in words:
                place = (*place, word)
                line(place, (*old, written))
                found = inner.get(word)
                inner[word] = inner = found if isinstance(found, dict) else {}
            place = (*place, last)
            known = inner.get(last)
            if isinstance(known, dict) and isinstance(value, Mapping):
                fill(known, value, place, (*old, written))
            else:
                inner[last] = copy(value, place, (*old, written))

    data = copy(root.data, root.place, root.place)
    document = Document(root.document.name, root.document.data, lines)
    return Section(Remarks(document, root.remarks.errors), root.place, data)


# The most words in a key, and the most nested tables, that are read.
_MOST_WORDS = 20
_MOST_LEVELS = 40


def _words(key: str) -> list[str]:
    """Return the words of a key, which dots separate; in brackets, a dot is kept.

    >>> _words("resilience4j.retry"), _words("[with.dots]"), _words("")
    (['resilience4j', 'retry'], ['with.dots'], [''])
    """
    bracketed = re.fullmatch(r"\[(.*)\]", key)
    return [bracketed[1]] if bracketed else key.split(".", _MOST_WORDS)


def spring_milliseconds(name: str, value: Any) -> int:
    """Parse a duration of Spring Boot to whole milliseconds.

    >>> [spring_milliseconds("wait", each) for each in (500, "2s", "PT1M0.5S")]
    [500, 2000, 60500]
    """
    found = (
        timedelta(milliseconds=value) if type(value) is int and value < _MOST else None
    )
    if isinstance(value, str):
        found = _simple(value) or _iso(value)
    if found is None or found < timedelta():
        rule = 'a duration >= 0 such as "500ms", "2s" or "PT0.5S"'
        suggestion = "a number alone is in milliseconds"
        raise invalid_setting(name, rule, value, suggestion, code="out-of-range")
    return found // timedelta(milliseconds=1)


_MOST = LARGEST // 1000


def _simple(value: str) -> timedelta | None:
    match = re.fullmatch(r"([+-]?[0-9]{1,12})([a-zA-Z]{0,2})", value)
    unit = _UNITS.get(match[2].lower()) if match else None
    return timedelta(microseconds=int(match[1]) * unit) if match and unit else None


_UNITS = {
    "ns": 1e-3,
    "us": 1,
    "ms": 1e3,
    "": 1e3,
    "s": 1e6,
    "m": 60e6,
    "h": 3600e6,
    "d": 86_400e6,
}


def _iso(value: str) -> timedelta | None:
    match = re.fullmatch(_ISO, value, re.IGNORECASE)
    parts = [float(each or 0) for each in match.groups()] if match else []
    if not match or value[-1] in "PTpt":
        return None
    days, hours, minutes, seconds = parts
    return timedelta(days, seconds, minutes=minutes, hours=hours)


_DIGITS = "([+-]?[0-9]{1,9})"
_SECONDS = r"([+-]?[0-9]{1,9}(?:\.[0-9]{0,9})?)"
_ISO = rf"P(?:{_DIGITS}D)?(?:T(?:{_DIGITS}H)?(?:{_DIGITS}M)?(?:{_SECONDS}S)?)?"


def growing_milliseconds(first: int, factor: float, retries: int) -> Schedule:
    """Return delays that grow by a factor, each truncated to milliseconds as in Java.

    >>> growing_milliseconds(500, 1.5, 3), growing_milliseconds(500, 1.5, 4)
    (exponential(0.5, factor=1.5), sequence([0.5, 0.75, 1.125, 1.687]))
    """
    delays = grown_milliseconds(first, factor, retries)
    exact = [first * factor**index for index in range(len(delays))]
    if factor > 1 and all(map(isclose, delays, exact)):
        return exponential(first / 1000, factor=factor)
    return listed_milliseconds(delays, retries)


def grown_milliseconds(first: int, factor: float, retries: int) -> list[int]:
    """Return a growing delay in milliseconds for each retry, 1 to 1,000 of them."""
    delays = [first]
    while len(delays) < min(retries, _MOST_LISTED):
        delays.append(min(int(delays[-1] * factor), LARGEST))
    return delays


def listed_milliseconds(delays: list[int], retries: int) -> Schedule:
    """Return a schedule of listed delays; the last is repeated for further retries."""
    if len(set(delays)) == 1:
        return constant(delays[0] / 1000)
    listed = sequence([delay / 1000 for delay in delays])
    return (
        listed if retries <= len(delays) else listed.then(constant(delays[-1] / 1000))
    )


_MOST_LISTED = 1000


def scaled(schedule: Schedule, factor: float) -> Schedule:
    """Return a schedule times a factor; the schedule itself if that is 1."""
    return schedule if factor == 1 else schedule * factor
