"""What the headers of an HTTP response ask for.

Servers send what they like: what cannot be read is left out, with one line in
the log for who looks for it, and fails nothing.
"""

import logging
import re
from collections.abc import Callable
from typing import final

from retrykit._internal.clocks import wall
from retrykit._internal.validation import invalid_setting, safe_repr
from retrykit.hints.headers import header_values
from retrykit.hints.http_dates import parse_http_date
from retrykit.hints.serializable import SerializableHint
from retrykit.schedules.randomness import MAX_DELAY

__all__ = ["DECIMAL", "Milliseconds", "RetryAfterHeader", "header_name", "longest"]
__all__ += ["milliseconds", "origin", "retry_after", "seconds_asked"]


def retry_after() -> "RetryAfterHeader":
    """Return the hint that reads ``Retry-After``: seconds, or an HTTP date.

    >>> from urllib.error import HTTPError
    >>> hint = retry_after()
    >>> hint(HTTPError("http://[::1]/", 503, "busy", {"Retry-After": "120"}, None))
    120.0

    A date is taken relative to the ``Date`` of the same response, so the
    clocks need not agree; without one, to the wall clock. One that is past is 0.
    Where the header was sent repeatedly, the longest wait is taken, since it
    disobeys none of them.

    Source:
        RFC 9110, "HTTP Semantics", section 10.2.3, 2022.
    """
    return RetryAfterHeader()


@final
class RetryAfterHeader(SerializableHint):
    """The hint of the header ``Retry-After``; `retry_after` builds it."""

    __slots__ = ()
    kind = "retry_after"

    def __call__(self, outcome: object, /) -> float | None:
        """Return the seconds that an error or a response asks for."""
        return seconds_asked(outcome, wall)


def seconds_asked(outcome: object, now: Callable[[], float]) -> float | None:
    """Return what the header ``Retry-After`` of an outcome asks for.

    Args:
        outcome: An error, a response, or anything else.
        now: What reads the wall clock, in seconds since 1970.

    Returns:
        Seconds, >= 0 and at most `MAX_DELAY`; None if it asks for nothing.
    """
    sent = header_values(outcome, "retry-after")
    if not sent:
        return None
    then = origin(outcome, now)
    return longest("Retry-After", sent, lambda text: _seconds(text, then))


def _seconds(text: str, then: float) -> float | None:
    if text.isascii() and text.isdigit():
        # Not by way of an integer, of which Python refuses thousands of digits.
        return min(float(text), MAX_DELAY)
    date = parse_http_date(text, then)
    return None if date is None else max(date - then, 0.0)


def origin(outcome: object, now: Callable[[], float]) -> float:
    """Return when a response was made, by the clock of who made it.

    Args:
        outcome: An error, a response, or anything else.
        now: What reads the wall clock, for one that does not say it.

    Returns:
        Seconds since 1970.
    """
    time = now()
    dates = (parse_http_date(each, time) for each in header_values(outcome, "date"))
    return next((date for date in dates if date is not None), time)


def milliseconds(header: str) -> "Milliseconds":
    """Return the hint that reads milliseconds from a header.

    Services have it under names of their own: ``x-amz-retry-after`` (AWS),
    ``retry-after-ms`` (OpenAI, Azure), ``x-ms-retry-after-ms`` (Azure Cosmos).
    A decimal fraction is read too, as the clients of these services do.

    >>> milliseconds("Retry-After-Ms")
    milliseconds('retry-after-ms')

    Args:
        header: The name of the header, in any case.

    Raises:
        ConfigError: *header* cannot be the name of one.
    """
    return Milliseconds(header_name(header))


def header_name(header: object) -> str:
    """Return the name of a header in lower case.

    Raises:
        ConfigError: *header* cannot be the name of one.
    """
    if not isinstance(header, str) or not _NAME.fullmatch(header):
        raise invalid_setting("header", "the name of a header", header)
    return header.lower()


@final
class Milliseconds(SerializableHint):
    """The hint of a header in milliseconds; `milliseconds` builds it.

    Attributes:
        header: The name of the header, in lower case.
    """

    __slots__ = ("header",)
    kind = "milliseconds"
    header: str

    def __call__(self, outcome: object, /) -> float | None:
        """Return the seconds that an error or a response asks for."""
        return longest(self.header, header_values(outcome, self.header), _parts)


def _parts(text: str) -> float | None:
    if not DECIMAL.fullmatch(text):
        return None
    return min(float(text) / 1_000, MAX_DELAY)


def longest(
    header: str, sent: list[str], read: Callable[[str], float | None]
) -> float | None:
    """Return the longest delay of those that were sent.

    Args:
        header: The name of the header, for the log.
        sent: Its values.
        read: What reads one: seconds, or None if it is no delay.

    Returns:
        Seconds; None if there is no delay among them.
    """
    delays = [read(text) for text in sent]
    if None in delays:
        odd = (
            safe_repr(x)[:_MOST] for x, y in zip(sent, delays, strict=True) if y is None
        )
        log = logging.getLogger("retrykit")
        log.debug("%s is ignored, as no delay: %s", header, ", ".join(odd))
    return max((delay for delay in delays if delay is not None), default=None)


# What a log tells of a header that is no delay, in characters.
_MOST = 80

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

DECIMAL = re.compile(r"[0-9]+(?:\.[0-9]+)?")
"""A number without a sign, as headers have it."""
