"""The bounds of a schedule, asked for no further than they are needed."""

from collections.abc import Iterator
from itertools import count

from retrykit.schedules.base import Bounds, Schedule

__all__ = ["BoundsOnce", "UnknownDelayError"]


class BoundsOnce:
    """The bounds of the delays of a schedule, each asked for once, when needed."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._known: list[Bounds | None] = []
        self.complete = False

    def ends(self, side: int) -> Iterator[float]:
        """Give the shortest delays with 0, and the longest with 1, in seconds.

        Raises:
            UnknownDelayError: A delay is wanted that was not asked for while the
                bounds were not complete.
        """
        for retry in count():  # pragma: no branch  (a count has no end)
            if retry == len(self._known):
                if self.complete:
                    raise UnknownDelayError
                self._known.append(self._schedule.bounds(retry + 1))
            bounds = self._known[retry]
            if bounds is None:
                return
            yield float(bounds[side])


class UnknownDelayError(Exception):
    """A delay is not known, and may not be asked for."""
