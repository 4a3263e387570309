"""Hints that read a delay from a header of an HTTP response, and header lookup.

A value that cannot be parsed is ignored and logged: the first of each header as a
warning, since the server is not obeyed, and all others at debug level.
"""

import re
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any, Final, final

from retrykit._internal.clocks import wall
from retrykit._internal.late_modules import logging
from retrykit._internal.locks import ForkSafe
from retrykit._internal.validation import invalid_setting, safe_repr, user_facing
from retrykit.errors import requested_delay
from retrykit.hints._base import SerializableHint, parse_answer
from retrykit.schedules._randomness import MAX_DELAY

__all__ = ["DECIMAL", "check_header_name", "header_values", "log_unread"]
__all__ += ["longest_delay", "milliseconds", "parse_http_date", "parse_retry_after"]
__all__ += ["parse_wait", "response_date", "retry_after", "unread_headers"]


@user_facing
def retry_after() -> SerializableHint:
    """Return the hint that reads ``Retry-After``: seconds, or an HTTP date.

    >>> from urllib.error import HTTPError
    >>> hint = retry_after()
    >>> hint(HTTPError("http://[::1]/", 503, "busy", {"Retry-After": "120"}, None))
    120.0

    Fractions of a second are read, although the standard has none, and so are durations
    such as ``1m30s`` and RFC 3339 timestamps, since services send them.

    A date is taken relative to the ``Date`` of the same response, so the clocks need
    not agree; if it has none, relative to the wall clock. A past date counts as 0. If
    the header was sent repeatedly, the longest wait counts, since it satisfies all of
    them.

    Source:
        RFC 9110, "HTTP Semantics", section 10.2.3, 2022.
    """
    return SerializableHint("retry_after", (), _read_retry_after)


def _read_retry_after(outcome: object) -> float | None:
    return parse_retry_after(outcome, wall)


def parse_retry_after(outcome: object, now: Callable[[], float]) -> float | None:
    """Return the delay in the header ``Retry-After`` of an outcome, in seconds.

    None if the header is missing, or cannot be read.
    """
    values = header_values(outcome, "retry-after")
    if not values:
        return None
    sent_at = response_date(outcome, now)
    return longest_delay("Retry-After", values, lambda text: _parse(text, sent_at))


def _parse(text: str, sent_at: float) -> float | None:
    if DECIMAL.fullmatch(text):
        # int() rejects thousands of digits; float() does not.
        return min(float(text), MAX_DELAY)
    return parse_wait(text, sent_at)


def parse_wait(text: str, sent_at: float) -> float | None:
    """Return the seconds that a text in a header asks to wait; None if it is invalid.

    >>> parse_wait("1m30s", 0.0), parse_wait("1970-01-01T00:02:00Z", 30.0)
    (90.0, 90.0)

    Args:
        text: An HTTP date, an RFC 3339 timestamp, or a duration with a unit.
        sent_at: When the header was sent, in seconds since 1970; the wait until a
            date counts from then.
    """
    try:
        if _TIME.fullmatch(text):
            return max(datetime.fromisoformat(text).timestamp() - sent_at, 0.0)
        date = parse_http_date(text, sent_at)
        if date is not None:
            return max(date - sent_at, 0.0)
        return requested_delay(parse_answer(text))
    except ValueError:
        return None


def response_date(outcome: object, now: Callable[[], float]) -> float:
    """Return the ``Date`` of a response in seconds since 1970.

    If it has none that can be read, return the current time.
    """
    time = now()
    dates = (parse_http_date(each, time) for each in header_values(outcome, "date"))
    return next((date for date in dates if date is not None), time)


@user_facing
def milliseconds(header: str) -> SerializableHint:
    """Return the hint that reads milliseconds from a header.

    Services have their own names for it: ``x-amz-retry-after`` (AWS),
    ``retry-after-ms`` (OpenAI, Azure), ``x-ms-retry-after-ms`` (Azure Cosmos).
    Decimal fractions are accepted, as by the clients of these services.

    >>> milliseconds("Retry-After-Ms")
    milliseconds('retry-after-ms')

    Args:
        header: The name of the header, in any case.

    Raises:
        ConfigError: *header* is not a valid header name.
    """
    name = check_header_name(header)
    return SerializableHint("milliseconds", (name,), _read_milliseconds)


def check_header_name(header: object) -> str:
    """Return the name of a header in lower case."""
    if not isinstance(header, str) or not _NAME.fullmatch(header):
        raise invalid_setting("header", "the name of a header", header)
    return header.lower()


def _read_milliseconds(outcome: object, header: str) -> float | None:
    return longest_delay(header, header_values(outcome, header), _parse_milliseconds)


def _parse_milliseconds(text: str) -> float | None:
    return min(float(text) / 1_000, MAX_DELAY) if DECIMAL.fullmatch(text) else None


def longest_delay(
    header: str, values: list[str], parse: Callable[[str], float | None]
) -> float | None:
    """Return the longest delay among a header's values; None if there is none.

    Values that cannot be read are logged.
    """
    delays = [parse(text) for text in values]
    if None in delays:
        pairs = zip(values, delays, strict=True)
        log_unread(header, [text for text, delay in pairs if delay is None])
    return max((delay for delay in delays if delay is not None), default=None)


def log_unread(header: str, values: Collection[str]) -> None:
    """Log values of a header that cannot be read.

    The first of each header is a warning; the others have level DEBUG.
    """
    shown = ", ".join(safe_repr(text)[:80] for text in values)
    message, level = "ignored %s, which is neither a delay nor a time: %s", "debug"
    if unread_headers.add(header):
        message, level = f"{message}; further ones are logged at level DEBUG", "warning"
    getattr(logging.getLogger("retrykit"), level)(message, header, shown)


@final
class _Headers(ForkSafe):
    """A set of header names that threads may share."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        super().__init__()

    def add(self, name: str) -> bool:
        """Add a name, and return whether it is new."""
        with self._lock:
            before = len(self._names)
            self._names.add(name.lower())
            return len(self._names) > before

    def clear(self) -> None:
        """Remove all names."""
        with self._lock:
            self._names.clear()


unread_headers: Final = _Headers()
"""The headers with a value that was logged as a warning in this process."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

DECIMAL = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
"""An unsigned decimal number as services write it, such as ``2.5`` or ``5e-05``."""

_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?"
    r"(?:Z|[+-][0-9]{2}:[0-9]{2})"
)


def parse_http_date(text: str, now: float) -> float | None:
    """Return the time of an HTTP date, in seconds since 1970.

    All three forms of HTTP dates are accepted, and the forms of email dates. A date
    without a zone is in UTC.

    >>> parse_http_date("Thu, 01 Jan 1970 00:02:00 GMT", now=0)
    120.0
    >>> parse_http_date("Thursday, 01-Jan-70 00:02:00 GMT", now=0)
    120.0
    >>> parse_http_date("Thu Jan  1 00:02:00 1970", now=0)
    120.0

    Args:
        text: The text to parse.
        now: The current time in seconds since 1970: a two-digit year is at most
            50 years ahead of it.

    Returns:
        The time; None if the text is not a valid date or its zone is unknown.
    """
    # Python accepts digits beyond ASCII.
    if not text.isascii():
        return None
    # Imported late, since few responses contain a date.
    from email.utils import parsedate_to_datetime  # noqa: PLC0415

    text = _TWO_DIGITS.sub(lambda found: str(_year(int(found[0]), now)), text)
    text = _NO_ZONE.sub(r"\1 GMT", text)
    leap = text.count(_LEAP)
    try:
        date = parsedate_to_datetime(text.replace(_LEAP, ":59:59"))
    except Exception:  # noqa: BLE001  it raises several types of error
        return None
    return date.timestamp() + leap if date.tzinfo else None


def _year(two_digits: int, now: float) -> int:
    latest = int(1970 + now / _YEAR) + 50
    return latest - (latest - two_digits) % 100


_YEAR = 365.2425 * 86_400

_TWO_DIGITS = re.compile(r"(?<=-[A-Za-z]{3}-)[0-9]{2}(?= )")

# A leap second, which datetime does not have.
_LEAP = ":59:60"

# The asctime form, or an RFC 5322 date with zone -0000 (unknown).
_NO_ZONE = re.compile(r"( [0-9]{4}|:[0-9]{2})(?: -0000)?$")


def _metadata_headers(response: Any) -> Any:
    if not hasattr(type(response), "__getitem__"):
        return None
    return response["ResponseMetadata"]["HTTPHeaders"]


# urllib, urllib3 and aiohttp have the headers on the error or response itself,
# httpx and requests on the response of the error, botocore in a dict. Most errors have
# none, which takes longer to tell by an AttributeError.
_GETTERS: tuple[Callable[[Any], Any], ...] = (
    lambda outcome: getattr(outcome, "headers", None),
    lambda outcome: getattr(getattr(outcome, "response", None), "headers", None),
    lambda outcome: _metadata_headers(getattr(outcome, "response", None)),
    _metadata_headers,
)


def header_values(outcome: object, name: str) -> list[str]:
    """Return the values of a header, split at commas except in dates; at most 100.

    >>> response = {"ResponseMetadata": {"HTTPHeaders": {"Retry-After": "5, 7"}}}
    >>> header_values(response, "retry-after")
    ['5', '7']

    Args:
        outcome: An error or a response.
        name: The name of the header, in lower case.
    """
    for get_headers in _GETTERS:
        try:
            headers = get_headers(outcome)
            values = None if headers is None else _find_values(headers, name)
        except Exception:  # noqa: BLE001, S112  attributes may run anyone's code
            continue
        if values:
            return values
    return []


def _find_values(headers: Any, name: str) -> list[str]:
    if hasattr(headers, "items"):
        headers = headers.items()
    # An iterator would be consumed, and may never end.
    elif not isinstance(headers, Collection):
        return []
    sent = [_text(value) for key, value in headers if _text(key).lower() == name]
    lines = [each.strip(" \t\r\n") for line in sent for each in _COMMA.split(line)]
    return lines[:_MAX_VALUES]


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if isinstance(value, str) else ""


# Limit against hostile headers.
_MAX_VALUES = 100

# Clients join repeated headers with commas; dates contain a comma too.
_COMMA = re.compile(r",(?![ \t]*[0-9]{1,2}[ -][A-Za-z])")
