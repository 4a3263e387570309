"""Hints that read a delay from a header of an HTTP response.

A value that cannot be parsed is logged at debug level and ignored.
"""

import logging
import re
from collections.abc import Callable

from retrykit._internal.clocks import wall
from retrykit._internal.validation import invalid_setting, safe_repr
from retrykit.hints.base import SerializableHint
from retrykit.hints.headers import header_values
from retrykit.hints.http_dates import parse_http_date
from retrykit.schedules.randomness import MAX_DELAY

__all__ = ["DECIMAL", "check_header_name", "longest_delay", "milliseconds"]
__all__ += ["parse_retry_after", "response_time", "retry_after"]


def retry_after() -> SerializableHint:
    """Return the hint that reads ``Retry-After``: seconds, or an HTTP date.

    >>> from urllib.error import HTTPError
    >>> hint = retry_after()
    >>> hint(HTTPError("http://[::1]/", 503, "busy", {"Retry-After": "120"}, None))
    120.0

    A date is taken relative to the ``Date`` of the same response, so the clocks
    need not agree; without one, relative to the wall clock. A past date is 0. If
    the header was sent repeatedly, the longest wait counts, since it satisfies
    all of them.

    Source:
        RFC 9110, "HTTP Semantics", section 10.2.3, 2022.
    """
    return SerializableHint("retry_after", (), _read_retry_after)


def _read_retry_after(outcome: object) -> float | None:
    return parse_retry_after(outcome, wall)


def parse_retry_after(outcome: object, now: Callable[[], float]) -> float | None:
    """Return the delay in the header ``Retry-After`` of an outcome.

    Returns:
        Seconds, >= 0 and at most `MAX_DELAY`; None if there is no valid value.
    """
    values = header_values(outcome, "retry-after")
    if not values:
        return None
    sent_at = response_time(outcome, now)
    return longest_delay("Retry-After", values, lambda text: _parse(text, sent_at))


def _parse(text: str, sent_at: float) -> float | None:
    if text.isascii() and text.isdigit():
        # int() rejects thousands of digits; float() does not.
        return min(float(text), MAX_DELAY)
    date = parse_http_date(text, sent_at)
    return None if date is None else max(date - sent_at, 0.0)


def response_time(outcome: object, now: Callable[[], float]) -> float:
    """Return the time at which a response was sent, by the server's clock."""
    time = now()
    dates = (parse_http_date(each, time) for each in header_values(outcome, "date"))
    return next((date for date in dates if date is not None), time)


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
    """Return the longest delay of the values of a header."""
    delays = [parse(text) for text in values]
    if None in delays:
        pairs = zip(values, delays, strict=True)
        invalid = (safe_repr(text)[:80] for text, delay in pairs if delay is None)
        log = logging.getLogger("retrykit")
        log.debug("%s is ignored, as no delay: %s", header, ", ".join(invalid))
    return max((delay for delay in delays if delay is not None), default=None)


_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

DECIMAL = re.compile(r"[0-9]+(?:\.[0-9]+)?")
"""An unsigned decimal number, as in headers."""
