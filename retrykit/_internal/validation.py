"""Validation of arguments, with the error that names the broken rule.

Each check takes the *name* of a parameter and its *value*, and raises a `ConfigError`
if the value is invalid. A *suggestion* at the end of its message tells how to correct
it, if that is not obvious.
"""

import math
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from retrykit._internal.base_errors import ConfigError
from retrykit._internal.redaction import redact_urls

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["LARGEST", "check_aware", "check_choice", "check_encodable"]
__all__ += ["check_instance", "check_integer", "check_number", "check_text"]
__all__ += [
    "did_you_mean",
    "escape_unprintable",
    "invalid_setting",
    "prefix_errors",
    "safe_repr",
    "truncate",
]

T = TypeVar("T")

LARGEST = 2**53 - 1
"""The largest integer of a setting: every JSON reader preserves it."""


def invalid_setting(
    name: str, rule: str, value: object, suggestion: str = ""
) -> ConfigError:
    """Return the error for a setting that breaks its rule.

    >>> invalid_setting("max_attempts", "an integer >= 1", 0, "so count the first")
    ConfigError('max_attempts must be an integer >= 1, got 0; so count the first')

    Args:
        name: The name of the parameter, as the user typed it.
        rule: The rule, after "must be".
        value: The invalid value.
        suggestion: The correction, if it is not obvious.
    """
    ending = f"; {suggestion}" if suggestion else ""
    text = f"{name} must be {rule}, got {safe_repr(value)}{ending}"
    return ConfigError(escape_unprintable(truncate(text, _LONGEST_ERROR)))


@contextmanager
def prefix_errors(prefix: str) -> Iterator[None]:
    """Put a prefix, such as the name of a setting, before errors about its parts."""
    try:
        yield
    except ConfigError as error:
        trace = error.__traceback__
        raise ConfigError(f"{prefix}: {error}").with_traceback(trace) from None


def escape_unprintable(text: str) -> str:
    r"""Escape the unprintable characters of a text.

    Control characters, line breaks, escape sequences and bidirectional marks would
    act on the terminal, or forge lines.

    >>> print(escape_unprintable("a\x1b[31mb\n\u202ec"))
    a\x1b[31mb\n\u202ec
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode()
        for each in text
    )


def safe_repr(value: object) -> str:
    """Return the repr of a value for an error, without secrets of URLs.

    >>> safe_repr("soon"), safe_repr(10**5000)
    ("'soon'", '<int that cannot be shown>')

    Returns:
        The repr without user info and queries of URLs, truncated in the middle; a
        placeholder if it fails.
    """
    try:
        return truncate(redact_urls(repr(value)), _LONGEST_REPR)
    except Exception:  # noqa: BLE001  the error is about something else
        return f"<{type(value).__name__} that cannot be shown>"


# A few lines of a terminal, so that the value does not hide the rule.
_LONGEST_REPR = 400
_LONGEST_ERROR = 2000


def truncate(text: str, longest: int) -> str:
    """Cut out the middle of a text that is too long.

    >>> truncate("attempt", 10), truncate("x" * 50 + "y" * 50, 10)
    ('attempt', 'xxxxx [...] yyyyy')
    """
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} [...] {text[-half:]}"


def check_number(
    name: str,
    value: object,
    *,
    at_least: float = 0.0,
    at_most: float = math.inf,
    suggestion: str = "",
) -> float:
    """Return *value* as a float if it is a finite number within its bounds.

    >>> check_number("factor", 2, at_least=1)
    2.0
    """
    # Compared before it is converted: a large integer may not fit a float.
    within = (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and at_least <= value <= min(at_most, sys.float_info.max)
    )
    if not within or not isinstance(value, int | float):
        top = f" and <= {at_most:g}" if at_most < math.inf else ""
        rule = f"a finite number >= {at_least:g}{top}"
        raise invalid_setting(name, rule, value, suggestion)
    return float(value)


def check_integer(
    name: str,
    value: object,
    *,
    at_least: int,
    at_most: int = LARGEST,
    suggestion: str = "",
) -> int:
    """Return *value* if it is an integer within its bounds.

    >>> check_integer("max_attempts", 3, at_least=1)
    3
    """
    within = (
        isinstance(value, int)
        and not isinstance(value, bool)
        and at_least <= value <= at_most
    )
    if not within or not isinstance(value, int):
        too_large = isinstance(value, int) and value > at_most
        top = f" and <= {at_most}" if too_large else ""
        raise invalid_setting(name, f"an integer >= {at_least}{top}", value, suggestion)
    return int(value)


def check_choice(
    name: str, value: object, options: Collection[str], suggestion: str = ""
) -> object:
    """Return *value* if it is one of *options*.

    >>> check_choice("deadline", "stop", ["stop", "clip"])
    'stop'
    """
    if not isinstance(value, str) or value not in options:
        rule = f"one of {', '.join(map(repr, options))}"
        raise invalid_setting(name, rule, value, suggestion)
    return value


def check_instance(name: str, value: object, kind: type[T], suggestion: str = "") -> T:
    """Return *value* if it is a *kind*.

    >>> check_instance("policy", 5, str)
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: policy must be a str, got 5
    """
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise invalid_setting(name, f"{article} {kind.__name__}", value, suggestion)
    return value


def check_aware(name: str, value: object) -> "datetime":
    """Return *value* if it is a datetime with a time zone."""
    # Imported here: few programs check one.
    from datetime import datetime  # noqa: PLC0415

    moment = check_instance(name, value, datetime)
    if moment.tzinfo is None:
        raise invalid_setting(
            name, "an aware datetime", moment, "write datetime.now(UTC)"
        )
    return moment


def check_text(name: str, value: object) -> str:
    """Return *value* if it is a printable string that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise invalid_setting(name, "a non-empty string", value)
    if not value.isprintable():
        raise invalid_setting(name, "a printable string", value)
    return value


def check_encodable(name: str, value: str, suggestion: str = "") -> str:
    r"""Return *value* if UTF-8 can encode it.

    >>> check_encodable("name", chr(0xDCE9))
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: name must be encodable as UTF-8, got '\udce9'
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        rule = "encodable as UTF-8"
        raise invalid_setting(name, rule, value, suggestion) from None
    return value


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Suggest the known name that is most similar to a misspelled one.

    >>> did_you_mean("Max_attemps", ["max_attempts", "max_elapsed"])
    'did you mean max_attempts?'
    >>> did_you_mean("color", ["max_attempts", "max_elapsed"])
    ''
    """
    # Imported here: only misspelled names need it.
    import difflib  # noqa: PLC0415

    if not isinstance(name, str):
        return ""
    meant = {each.lower(): each for each in islice(known, _MOST_COMPARED)}
    near = difflib.get_close_matches(name.lower(), meant, n=1, cutoff=_NEAREST)
    return f"did you mean {meant[near[0]]}?" if near else ""


_MOST_COMPARED = 1000
# With the default, 0.6, `hedge` would be taken for `schedule`.
_NEAREST = 0.65
