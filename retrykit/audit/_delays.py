"""The delays between attempts, as far as they are known."""

import math
from collections.abc import Sequence
from typing import Any, Final, final

from retrykit._internal.durations import duration_in_words
from retrykit._internal.frozen import Frozen

__all__ = ["GROWING", "NO_DELAYS", "UNKNOWN_DELAYS", "Delays", "describe_duration"]

GROWING: Final = frozenset(["linear", "fibonacci", "exponential"])
"""The shapes of delays that grow from one to the next."""
_SHOWN = 3
"""The most delays of a series that a description lists."""
_SHOWN_OF_LIST = 6
_MOST = 10_000
_LONGEST = 100 * 365 * 86_400.0
"""Seconds; longer times are described as "over 100 years"."""


@final
class Delays(Frozen):
    """The delays between attempts.

    >>> print(Delays("exponential", first=1.0, growth=2.0, cap=60.0))
    1 s, 2 s, 4 s ... at most 1 min

    Attributes:
        shape: "none", "constant", "linear", "fibonacci", "exponential", "listed" or
            "unknown".
        first: The longest delay before the first retry, in seconds, without the effects
            of *at_once*, *least*, *added* and *cap*; None if it is not known. Later
            delays grow from it.
        growth: The factor or the step from one delay to the next; None if it is
            unknown, or if the shape has none.
        cap: The longest delay in seconds, including *added*; infinity if there is no
            limit; None if it is unknown. A growing delay is still at least *least*.
        jitter: Whether the delays are random; None if that is unknown.
        low: The shortest random delay, as a share of the longest, 0 to 1; both without
            *added*.
        added: The longest random time that is added to each delay, in seconds.
        at_once: How many of the first retries have no delay.
        least: The lower bound of the other delays before they are made random, in
            seconds.
        listed: If the shape is "listed", each delay in seconds; the last one repeats.
    """

    __slots__ = (
        "added",
        "at_once",
        "cap",
        "first",
        "growth",
        "jitter",
        "least",
        "listed",
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
    listed: tuple[float, ...]

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
        listed: tuple[float, ...] = (),
    ) -> None:
        Frozen.__init__(
            self, shape, first, growth, cap, jitter, low, added, at_once, least, listed
        )

    @classmethod
    def of_list(
        cls,
        delays: Sequence[float | None],
        jitter: bool | None = False,  # noqa: FBT001, FBT002  a field
    ) -> "Delays":
        """Return delays that are written one by one; None is an unknown delay."""
        known = tuple(each for each in delays if each is not None)
        first = delays[0] if delays else None
        if not known or len(known) != len(delays):
            return cls("unknown", first, cap=None, jitter=jitter)
        if jitter is False and len(set(known)) == 1:
            return cls("constant", first) if first else NO_DELAYS
        low = 1.0 if jitter is False else 0.0
        cap = max(known)
        return cls("listed", first, cap=cap, jitter=jitter, low=low, listed=known)

    def replace(self, **changes: Any) -> "Delays":
        """Return the same delays with some fields changed."""
        found: Delays = Frozen.replace(self, **changes)
        return found

    def longest(self, retry: int) -> float | None:
        """Return the longest delay before a retry, in seconds; None if unknown.

        Args:
            retry: The number of the retry, from 1.
        """
        if self.shape == "none" or retry <= self.at_once:
            return 0.0
        if self.first is None or self.cap is None or self.shape == "unknown":
            return None
        if self.shape == "listed":
            return self.listed[min(retry, len(self.listed)) - 1] + self.added
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
        """Return the longest sum of the delays before some retries, in seconds.

        Args:
            retries: The number of retries.

        Returns:
            The sum; None if a delay is unknown. For more than 10,000 retries it is
            infinity, unless the shape is "none".
        """
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
        """True if the delays have no cap, and grow or may grow."""
        if self.shape not in GROWING or self.cap != math.inf:
            return False
        if self.growth is None:
            return True
        return self.growth > (0 if self.shape == "linear" else 1)

    def __str__(self) -> str:
        return self.describe()

    def describe(self, retries: float | None = None) -> str:
        """Return a short description of the delays.

        >>> Delays("exponential", first=1.0, growth=2.0, cap=60.0).describe(retries=2)
        '1 s, 2 s'

        Args:
            retries: The most retries there can be; infinity without a limit; None if
                that is not known.
        """
        if self.shape == "none":
            return "no delay"
        if self.shape == "unknown":
            return "random delays" if self.jitter else "delays: ?"
        first = self.longest(self.at_once + 1)
        if self.shape == "constant":
            return "constant delays" if first is None else describe_duration(first)
        if first is None or self.longest(self.at_once + 2) is None:
            return f"{self.shape} delays{self._at_most()}"
        most = _SHOWN
        if self.shape == "listed":
            most = min(_SHOWN_OF_LIST, len(self.listed))
        count = int(most if retries is None else min(most, max(retries, 1)))
        shown = [self.longest(each) or 0.0 for each in range(1, count + 1)]
        text = ", ".join(map(describe_duration, shown))
        if retries is not None and retries <= count:
            return text
        # The last one repeats.
        told = self.shape == "listed" and count == len(self.listed)
        return f"{text} ..." if told else f"{text} ...{self._at_most(retries)}"

    def _at_most(self, retries: float | None = None) -> str:
        """Return the words about the longest delay; "" if the delays have no known cap.

        Args:
            retries: The most retries there can be; infinity without a limit; None if
                that is not known.
        """
        if self.cap is None or self.cap == math.inf:
            return ""
        last = self.longest(int(min(retries, _MOST))) if retries else self.cap
        return f" at most {describe_duration(last or 0.0)}"


def describe_duration(seconds: float) -> str:
    """Return a duration in words, with only the digits that matter.

    >>> describe_duration(91.237), describe_duration(1e30)
    ('1 min 31 s', 'over 100 years')
    """
    if seconds > _LONGEST:
        return "over 100 years"
    return duration_in_words(float(f"{seconds:.4g}"))


NO_DELAYS: Final = Delays("none")
"""The delays of retries that follow each other at once."""

UNKNOWN_DELAYS: Final = Delays("unknown", cap=None, jitter=None)
"""Delays about which nothing is known."""
