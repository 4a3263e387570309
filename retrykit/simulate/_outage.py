"""An outage: when a server fails, for how long, and how."""

from typing import Final, Literal, final

from retrykit._internal.durations import (
    Duration,
    parse_duration,
    parse_positive_duration,
)
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import (
    check_choice,
    check_number,
    invalid_setting,
    user_facing,
)
from retrykit.simulate._named_values import NamedValue

__all__ = ["LONGEST", "Outage", "OutageKind"]

LONGEST: Final = 1_000_000.0
"""The longest time that each part of a simulation can last, in seconds."""

OutageKind = Literal["hang", "refuse", "error"]
"""How a server fails in an outage."""

_KINDS: Final = ("hang", "refuse", "error")


@final
class Outage(NamedValue):
    """A period in which a server fails.

    >>> Outage("10s", "error", retry_after="5s")
    Outage(duration=10.0, kind='error', begin=10.0, share=1.0, retry_after=5.0, \
slow_start=0.0)

    Args:
        duration: How long it lasts. A duration, > 0 and <= 1,000,000 s.
        kind: ``"hang"``, the default: the server accepts requests and serves none
            until the end, as in a pause. ``"refuse"``: it refuses connections at once,
            and does not work on requests that it has accepted. ``"error"``: it answers
            503 at once, and works on the requests that it has accepted.
        begin: Time from the start of the simulation until it begins. A duration, >= 0
            and <= 1,000,000 s; 10 s by default.
        share: Share of the requests that fail; the others are served. Dimensionless,
            0 < share <= 1. With a share below 1, the server also works on the requests
            that it has accepted; in an outage of kind ``"hang"``, that share gets no
            answer.
        retry_after: The ``Retry-After`` header of the 503. A duration, >= 0; None, the
            default, means no header.
        slow_start: How long the server takes after the outage until it is as fast as
            before: its capacity rises evenly from a tenth. A duration, >= 0 and
            <= 1,000,000 s; 0 by default.

    Raises:
        ConfigError: A setting is invalid.
    """

    __slots__ = ("begin", "duration", "kind", "retry_after", "share", "slow_start")
    duration: float
    kind: OutageKind
    begin: float
    share: float
    retry_after: float | None
    slow_start: float

    @user_facing
    def __init__(  # noqa: PLR0913  named
        self,
        duration: Duration,
        kind: OutageKind = "hang",
        *,
        begin: Duration = 10.0,
        share: float = 1.0,
        retry_after: Duration | None = None,
        slow_start: Duration = 0.0,
    ) -> None:
        check_choice("kind", kind, _KINDS)
        if retry_after is not None:
            if kind != "error":
                suggestion = "only a 503 has the header: write kind='error'"
                raise invalid_setting(
                    "retry_after",
                    f"None where kind is {kind!r}",
                    retry_after,
                    suggestion,
                    code="contradiction",
                )
            retry_after = parse_duration("retry_after", retry_after)
        if not check_number("share", share, at_most=1):
            raise invalid_setting(
                "share", "a number > 0 and <= 1", share, code="out-of-range"
            )
        parse_positive_duration("duration", duration)
        Frozen.__init__(
            self,
            duration=_parse_bounded("duration", duration),
            kind=kind,
            begin=_parse_bounded("begin", begin),
            share=float(share),
            retry_after=retry_after,
            slow_start=_parse_bounded("slow_start", slow_start),
        )


def _parse_bounded(name: str, value: object) -> float:
    seconds = parse_duration(name, value)
    if seconds > LONGEST:
        raise invalid_setting(
            name, f"a duration of at most {LONGEST:g} s", value, code="out-of-range"
        )
    return seconds
