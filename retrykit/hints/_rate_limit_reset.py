"""Hint that reads the reset time of a rate limit from a response header."""

from collections.abc import Callable

from retrykit._internal.clocks import wall
from retrykit._internal.validation import invalid_setting, user_facing
from retrykit.hints._base import SerializableHint
from retrykit.hints._retry_after_header import (
    DECIMAL,
    check_header_name,
    header_values,
    longest_delay,
    parse_wait,
    response_date,
)

__all__ = ["reset_at", "until_reset"]


@user_facing
def reset_at(header: str = "x-ratelimit-reset") -> SerializableHint:
    """Return the hint that reads the reset time of a rate limit.

    Services send a duration or a time under the same names. A number below 10**9 is a
    duration in seconds (up to 31 years); one from there to 10**11 is a time in seconds
    since 1970 (from 2001 on); and one from 10**12 to 10**14 is such a time in
    milliseconds. Other numbers are ignored. A text is a duration such as ``6m0s``, an
    RFC 3339 timestamp or an HTTP date. The delay until a time is counted from the
    ``Date`` of the response, or from now if it has none.

    Services send the header with every response, so it is ignored while requests
    remain, according to the header whose name has ``remaining`` in place of ``reset``.

    >>> reset_at("RateLimit-Reset")
    reset_at('ratelimit-reset')

    Args:
        header: The name of the header, in any case, with ``reset`` in it.

    Raises:
        ConfigError: *header* is not a header name with ``reset`` in it.

    Source:
        "Rate limits for the REST API", GitHub Docs (a time); "RateLimit header fields
        for HTTP", IETF draft 07, 2023 (a duration); "Rate limits", OpenAI (``6m0s``);
        "Rate limits", Anthropic (RFC 3339).
    """
    name = check_header_name(header)
    if "reset" not in name:
        raise invalid_setting("header", "the name of a header with reset in it", header)
    return SerializableHint("reset_at", (name,), _read_reset)


def _read_reset(outcome: object, header: str) -> float | None:
    return until_reset(outcome, header, wall)


def until_reset(outcome: object, header: str, now: Callable[[], float]) -> float | None:
    """Return the seconds until a rate limit resets.

    None if requests remain, or the header is missing or cannot be read.
    """
    values = header_values(outcome, header)
    remaining = header_values(outcome, header.replace("reset", "remaining"))
    if not values or any(each.strip("0.") for each in remaining):
        return None
    sent_at = response_date(outcome, now)
    return longest_delay(header, values, lambda text: _parse_reset(text, sent_at))


def _parse_reset(text: str, sent_at: float) -> float | None:
    if not DECIMAL.fullmatch(text):
        return parse_wait(text, sent_at)
    number = float(text)
    if number < _FIRST_TIME:
        return number
    for first, units in ((_FIRST_TIME, 1), (_FIRST_TIME * 1_000, 1_000)):
        if first <= number < first * 100:
            return max(number / units - sent_at, 0.0)
    return None


# September 2001, in seconds since 1970; a hundred times that is the year 5138.
_FIRST_TIME = 1e9
