"""Upper bounds on a delay, anywhere in a schedule, and where they take effect.

A bound takes effect at a retry if the schedule under another bound differs there.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, final

from retrykit._internal.frozen import Frozen, fields_of
from retrykit.schedules.base import Schedule
from retrykit.schedules.randomized import MAX_INTERVAL
from retrykit.schedules.randomness import MAX_DELAY

__all__ = ["Cap", "caps"]

# A larger difference than the rounding errors that `round_down` tolerates.
_SLIGHTLY_LESS = 1 - 1e-9

# Each is compared for a thousand delays, and no practical schedule has more.
_MAX_CAPS = 5


@final
class Cap(Frozen):
    """An upper bound on a delay, somewhere in a schedule.

    Attributes:
        text: Its expression.
        without: The fix that removes it.
        schedule: The whole schedule.
        lower: The whole schedule with a slightly lower bound.
        higher: The whole schedule without the bound.
    """

    __slots__ = ("higher", "lower", "schedule", "text", "without")
    text: str
    without: str
    schedule: Schedule
    lower: Schedule
    higher: Schedule

    def reached(self, retry: int) -> bool:
        """Return whether the delay before a retry may reach the bound."""
        bounds = self.schedule.bounds(retry)
        others = self.lower.bounds(retry), self.higher.bounds(retry)
        return others != (bounds, bounds)

    def removes_jitter(self, retry: int) -> bool:
        """Return whether it turns a random delay into a fixed one."""
        low, high = self.schedule.bounds(retry) or (0.0, 0.0)
        least, most = self.higher.bounds(retry) or (0.0, 0.0)
        return 0 < low == high and least < most


def caps(schedule: Schedule) -> Iterator[Cap]:
    """Yield the bounds in a schedule, outer ones first, five at most.

    >>> from retrykit.schedules import exponential
    >>> [(cap.text, cap.reached(2)) for cap in caps(exponential(5).cap(60).cap(8))]
    [('.cap(8.0)', True), ('.cap(60.0)', False)]
    """
    return islice(_caps(schedule, schedule, lambda other: other), _MAX_CAPS)


def _caps(
    whole: Schedule, part: Any, put: Callable[[Schedule], Schedule]
) -> Iterator[Cap]:
    """Yield the bounds in a part of a schedule."""
    if part.kind == "cap":
        lower = part.replace(limit=part.limit * _SLIGHTLY_LESS)
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
    # A schedule class of the user's (without a kind) may not be rebuilt.
    for name, inner in fields_of(part).items() if part.kind else ():
        if isinstance(inner, Schedule):
            yield from _caps(whole, inner, _put_into(put, part, name))


def _put_into(
    put: Callable[[Schedule], Schedule], part: Schedule, name: str
) -> Callable[[Schedule], Schedule]:
    return lambda other: put(part.replace(**{name: other}))
