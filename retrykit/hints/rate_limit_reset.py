"""When a rate limit begins anew, as headers say that have no standard.

Some services send a time and some a length of time, under the same names; no
number is both.
"""

from collections.abc import Callable
from typing import final

from retrykit._internal.clocks import wall
from retrykit._internal.validation import invalid_setting
from retrykit.hints.headers import header_values
from retrykit.hints.retry_after_header import DECIMAL, header_name, longest, origin
from retrykit.hints.serializable import SerializableHint

__all__ = ["ResetAt", "reset_at", "until_reset"]


def reset_at(header: str = "x-ratelimit-reset") -> "ResetAt":
    """Return the hint that reads when a rate limit begins anew.

    A number below 10**9 is a length in seconds, which would else be 31 years;
    from there on it is a time in seconds since 1970, which else would be before
    September 2001. It is taken relative to the ``Date`` of the response.

    Services send it with every response. So it asks for something only where
    nothing is left, as far as they say that too, in the header whose name has
    ``remaining`` in place of ``reset``.

    >>> reset_at("RateLimit-Reset")
    reset_at('ratelimit-reset')

    Args:
        header: The name of the header, in any case, with ``reset`` in it.

    Raises:
        ConfigError: *header* is no such name.

    Source:
        "Rate limits for the REST API", GitHub Docs (a time);
        "RateLimit header fields for HTTP", IETF draft 07, 2023 (a length).
    """
    name = header_name(header)
    if "reset" not in name:
        raise invalid_setting("header", "the name of a header with reset in it", header)
    return ResetAt(name)


@final
class ResetAt(SerializableHint):
    """The hint of a rate limit; `reset_at` builds it.

    Attributes:
        header: The name of the header, in lower case.
    """

    __slots__ = ("header",)
    kind = "reset_at"
    header: str

    def __call__(self, outcome: object, /) -> float | None:
        """Return the seconds that an error or a response asks for."""
        return until_reset(outcome, self.header, wall)


def until_reset(outcome: object, header: str, now: Callable[[], float]) -> float | None:
    """Return how long it is until a rate limit begins anew.

    Args:
        outcome: An error, a response, or anything else.
        header: The name of the header that says it, in lower case.
        now: What reads the wall clock, in seconds since 1970.

    Returns:
        Seconds, >= 0; None if there is no such header, or something is left.
    """
    sent = header_values(outcome, header)
    left = header_values(outcome, header.replace("reset", "remaining"))
    if not sent or any(each.strip("0.") for each in left):
        return None
    then = origin(outcome, now)
    return longest(header, sent, lambda text: _seconds(text, then))


def _seconds(text: str, then: float) -> float | None:
    number = float(text) if DECIMAL.fullmatch(text) else _LATEST
    if number >= _LATEST:
        return None
    return number if number < _FIRST else max(number - then, 0.0)


# In September 2001, and in the year 5138: what is beyond is in another unit.
_FIRST = 1e9
_LATEST = 1e11
