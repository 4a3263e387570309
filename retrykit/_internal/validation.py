"""The rules that settings obey, each with the error that names it.

Every border of the package checks its arguments here, once. What a setting
means is not known here.
"""

import math
import sys
from collections.abc import Collection, Iterable
from itertools import islice
from typing import TypeVar

from retrykit._internal.redaction import redact_urls
from retrykit.errors import ConfigError

__all__ = [
    "LARGEST",
    "check_choice",
    "check_encodable",
    "check_instance",
    "check_number",
    "did_you_mean",
    "escape_unprintable",
]
__all__ += ["check_integer", "invalid_setting", "safe_repr", "truncate"]

T = TypeVar("T")

LARGEST = 2**53 - 1
"""The largest whole number of a setting: every reader of JSON keeps it as it is."""


def invalid_setting(
    name: str, rule: str, value: object, suggestion: str = ""
) -> ConfigError:
    """Return the error for a setting that breaks its rule.

    >>> invalid_setting("max_attempts", "a whole number >= 1", 0, "so count the first")
    ConfigError('max_attempts must be a whole number >= 1, got 0; so count the first')

    Args:
        name: The parameter as its user typed it.
        rule: What it must be.
        value: What it was.
        suggestion: What to write instead, where that is not obvious.

    Returns:
        The error, to be raised by the caller.
    """
    ending = f"; {suggestion}" if suggestion else ""
    text = f"{name} must be {rule}, got {safe_repr(value)}{ending}"
    return ConfigError(escape_unprintable(truncate(text, _LONGEST_ERROR)))


def escape_unprintable(text: str) -> str:
    r"""Return a text in which each character that cannot be printed is escaped.

    Control characters, line breaks, escape sequences and marks that turn the
    direction of writing would act on the terminal, or make lines of their own.

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
    """Return how a value is told in an error, whatever it is.

    >>> safe_repr("soon"), safe_repr(10**5000)
    ("'soon'", '<int that cannot be shown>')

    Args:
        value: What was given. Its repr, the user's own or a very long or deep
            one, may fail.

    Returns:
        Its repr, without user info and queries of URLs; the middle of a long one is
        left out.
    """
    try:
        return truncate(redact_urls(repr(value)), _LONGEST)
    except Exception:  # noqa: BLE001  the error is about something else
        return f"<{type(value).__name__} that cannot be shown>"


# Some lines of a terminal: longer ones are data, and hide what the error says.
_LONGEST = 400
_LONGEST_ERROR = 2000


def truncate(text: str, longest: int) -> str:
    """Return a text, or its beginning and its end if it is too long.

    >>> truncate("attempt", 10), truncate("x" * 50 + "y" * 50, 10)
    ('attempt', 'xxxxx [...] yyyyy')

    Args:
        text: What may be too long.
        longest: How many of its characters are kept. Count, >= 2.
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

    Args:
        name: The parameter as its user typed it.
        value: What was given.
        at_least: Smallest number allowed.
        at_most: Largest number allowed.
        suggestion: What to write instead, where that is not obvious.

    Raises:
        ConfigError: *value* is no number, is not finite, or is out of bounds.
    """
    # An integer that is too large for a float compares, and is refused.
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

    Args:
        name: The parameter as its user typed it.
        value: What was given.
        at_least: Smallest number allowed.
        at_most: Largest number allowed.
        suggestion: What to write instead, where that is not obvious.

    Raises:
        ConfigError: *value* is no integer, or is out of bounds.
    """
    within = (
        isinstance(value, int)
        and not isinstance(value, bool)
        and at_least <= value <= at_most
    )
    if not within or not isinstance(value, int):
        too_large = isinstance(value, int) and value > at_most
        top = f" and <= {at_most}" if too_large else ""
        raise invalid_setting(
            name, f"a whole number >= {at_least}{top}", value, suggestion
        )
    return int(value)


def check_choice(
    name: str, value: object, options: Collection[str], suggestion: str = ""
) -> object:
    """Return *value* if it is one of *options*.

    >>> check_choice("deadline", "stop", ["stop", "clip"])
    'stop'

    Args:
        name: The parameter as its user typed it.
        value: What was given.
        options: What may be given.
        suggestion: What to write instead, where that is not obvious.

    Raises:
        ConfigError: *value* is none of them.
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

    Args:
        name: The parameter as its user typed it.
        value: What was given.
        kind: What it must be an instance of.
        suggestion: What to write instead, where that is not obvious.

    Raises:
        ConfigError: *value* is something else.
    """
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise invalid_setting(name, f"{article} {kind.__name__}", value, suggestion)
    return value


def check_encodable(name: str, value: str, suggestion: str = "") -> str:
    r"""Return a text if UTF-8 can hold it, so that files and logs can.

    >>> check_encodable("name", chr(0xDCE9))
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: name must be a text that UTF-8 can hold, got '\udce9'

    Args:
        name: The parameter as its user typed it.
        value: What was given. A lone surrogate is half a character, as there are in
            file names that are no UTF-8.
        suggestion: What to write instead, where that is not obvious.

    Raises:
        ConfigError: It has a lone surrogate.
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        raise invalid_setting(
            name, "a text that UTF-8 can hold", value, suggestion
        ) from None
    return value


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return the way out of a name that is mistyped.

    >>> did_you_mean("Max_attemps", ["max_attempts", "max_elapsed"])
    'did you mean max_attempts?'
    >>> did_you_mean("colour", ["max_attempts", "max_elapsed"])
    ''

    Args:
        name: The name as its user typed it; nothing is near to what is no text.
        known: The names that exist, of which the first 1,000 are compared.

    Returns:
        A question, or an empty text if no known name is near.
    """
    # Imported here: only who mistypes needs it, and everyone would wait for it.
    import difflib  # noqa: PLC0415

    if not isinstance(name, str):
        return ""
    meant = {each.lower(): each for each in islice(known, _MOST_COMPARED)}
    near = difflib.get_close_matches(name.lower(), meant, n=1)
    return f"did you mean {meant[near[0]]}?" if near else ""


_MOST_COMPARED = 1000
