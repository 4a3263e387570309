"""The delays between attempts, as far as they are known."""

import math
from typing import Any, Final, final

from retrykit._internal.durations import duration_in_words
from retrykit._internal.frozen import Frozen

__all__ = ["NO_DELAYS", "UNKNOWN_DELAYS", "Delays"]

_LISTED = 3
_MOST = 10_000


@final
class Delays(Frozen):
    """The delays between attempts.

    >>> print(Delays("exponential", first=1.0, growth=2.0, cap=60.0))
    1 s, 2 s, 4 s ... at most 1 min

    Attributes:
        shape: "none", "constant", "linear", "fibonacci", "exponential" or "unknown".
        first: The first delay, in seconds; None if it is not known.
        growth: The factor or the step from one delay to the next; None if unknown.
        cap: The longest delay, with what is added, in seconds; infinity without one;
            None if unknown.
        jitter: Whether the delays are random; None if that is unknown.
        low: The share of a delay that its least value is. From 0 to 1.
        added: Random seconds that are added, at most.
        at_once: The number of first retries that have no delay.
        least: The shortest of the other delays before they are made random, in seconds.
    """

    __slots__ = (
        "added",
        "at_once",
        "cap",
        "first",
        "growth",
        "jitter",
        "least",
        "low",
        "shape",
    )
    shape: str
    first: float | None
    growth: float | None
    cap: float | None
    jitter: bool | None
    low: float
    added: float
    at_once: int
    least: float

    def __init__(  # noqa: PLR0913, PLR0917  a field each
        self,
        shape: str,
        first: float | None = None,
        growth: float | None = None,
        cap: float | None = math.inf,
        jitter: bool | None = False,  # noqa: FBT001, FBT002  a field
        low: float = 1.0,
        added: float = 0.0,
        at_once: int = 0,
        least: float = 0.0,
    ) -> None:
        Frozen.__init__(
            self, shape, first, growth, cap, jitter, low, added, at_once, least
        )

    def replace(self, **changes: Any) -> "Delays":
        """Return the same delays with some fields changed."""
        found: Delays = Frozen.replace(self, **changes)
        return found

    def longest(self, retry: int) -> float | None:
        """Return the longest delay before a retry, in seconds; None if unknown."""
        if self.shape == "none" or retry <= self.at_once:
            return 0.0
        if self.first is None or self.cap is None or self.shape == "unknown":
            return None
        if self.shape == "constant":
            return min(max(self.first, self.least) + self.added, self.cap)
        if self.growth is None:
            return None
        grown = self._grown(self.first, self.growth, retry)
        # A cap below the least delay does not shorten it.
        return max(min(grown + self.added, self.cap), self.least)

    def _grown(self, first: float, growth: float, retry: int) -> float:
        if self.shape == "linear":
            return first + growth * (retry - 1)
        if self.shape == "fibonacci":
            one, other = 0.0, first
            for _ in range(retry - 1):
                one, other = other, one + other
            return other
        try:
            return first * growth ** (retry - 1)
        except OverflowError:
            return math.inf

    def total(self, retries: float) -> float | None:
        """Return the longest sum of the delays before so many retries, in seconds."""
        if retries > _MOST:
            return math.inf if self.shape != "none" else 0.0
        found = 0.0
        for retry in range(1, int(retries) + 1):
            delay = self.longest(retry)
            if delay is None:
                return None
            found += delay
        return found

    @property
    def grows(self) -> bool:
        """True if each delay is longer than the last one, without an end."""
        if (
            self.shape not in ("linear", "fibonacci", "exponential")
            or self.cap != math.inf
        ):
            return False
        if self.growth is None:
            return True
        return self.growth > (0 if self.shape == "linear" else 1)

    def __str__(self) -> str:
        if self.shape == "none":
            return "no delay"
        if self.shape == "unknown":
            return "delays: ?" if self.jitter is not True else "random delays: ?"
        delays = [self.longest(each) for each in range(1, _LISTED + 1)]
        if None in delays:
            text = f"{self.shape} delays"
        elif self.shape == "constant":
            text = _duration(delays[0])
        else:
            text = ", ".join(map(_duration, delays)) + " ..."
        if self.cap not in (None, math.inf) and self.shape != "constant":
            text += f" at most {_duration(self.cap)}"
        return text


def _duration(seconds: float | None) -> str:
    return "?" if seconds is None else duration_in_words(float(f"{seconds:.4g}"))


NO_DELAYS: Final = Delays("none")
"""The delays of retries that follow each other at once."""

UNKNOWN_DELAYS: Final = Delays("unknown", cap=None, jitter=None)
"""Delays of which nothing can be read."""
