"""The bounds on a delay that are anywhere in a schedule.

Each is known by what the schedule would be under another bound: where that
makes no difference, the bound is not at work.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, final

from retrykit._internal.frozen import Frozen, fields_of
from retrykit.schedules.base import Schedule
from retrykit.schedules.randomized import MAX_INTERVAL
from retrykit.schedules.randomness import MAX_DELAY

__all__ = ["Cap", "caps"]

# More than `round_down` takes for an error of the floats.
_HAIR_LESS = 1 - 1e-9


@final
class Cap(Frozen):
    """A bound on a delay, somewhere in a schedule.

    Attributes:
        text: How it is written.
        without: How to do without it.
        schedule: The whole schedule.
        lower: The same, were the bound a hair lower.
        higher: The same, were there no such bound.
    """

    __slots__ = ("higher", "lower", "schedule", "text", "without")
    text: str
    without: str
    schedule: Schedule
    lower: Schedule
    higher: Schedule

    def reached(self, retry: int) -> bool:
        """Return whether a delay before that retry may come to the bound."""
        bounds = self.schedule.bounds(retry)
        others = self.lower.bounds(retry), self.higher.bounds(retry)
        return others != (bounds, bounds)

    def takes_chance(self, retry: int) -> bool:
        """Return whether it makes one delay of what would be spread."""
        low, high = self.schedule.bounds(retry) or (0.0, 0.0)
        least, most = self.higher.bounds(retry) or (0.0, 0.0)
        return 0 < low == high and least < most


def caps(schedule: Schedule) -> Iterator[Cap]:
    """Give the bounds in a schedule, the outer ones first, five at most.

    >>> from retrykit.schedules import exponential
    >>> [(cap.text, cap.reached(2)) for cap in caps(exponential(5).cap(60).cap(8))]
    [('.cap(8.0)', True), ('.cap(60.0)', False)]
    """
    return islice(_caps(schedule, schedule, lambda other: other), _MOST)


# Each is asked for a thousand delays, and no schedule of use has as many.
_MOST = 5


def _caps(
    whole: Schedule, part: Any, put: Callable[[Schedule], Schedule]
) -> Iterator[Cap]:
    """Give the bounds in a part of a schedule.

    Args:
        whole: The whole schedule.
        part: The part of it.
        put: Returns the whole with something else in the place of that part.
    """
    if part.kind == "cap":
        lower = part.replace(limit=part.limit * _HAIR_LESS)
        higher = part.replace(limit=MAX_DELAY)
        text = f".cap({part.limit!r})"
        yield Cap(text, f"leave out {text}", whole, put(lower), put(higher))
    elif part.kind == "google_interval":
        less = part.max_interval - 0.001
        first = min(part.initial_interval, less)
        lower = part.replace(initial_interval=first, max_interval=less)
        higher = part.replace(max_interval=MAX_INTERVAL)
        text = f"max_interval={part.max_interval!r}"
        yield Cap(text, "a shorter max_interval", whole, put(lower), put(higher))
    # What a class of the user's is made of is known to itself alone.
    for name, inner in fields_of(part).items() if part.kind else ():
        if isinstance(inner, Schedule):
            yield from _caps(whole, inner, _putting(put, part, name))


def _putting(
    put: Callable[[Schedule], Schedule], part: Schedule, name: str
) -> Callable[[Schedule], Schedule]:
    return lambda other: put(part.replace(**{name: other}))
