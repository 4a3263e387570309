"""Caps in a schedule, and the retries at which they take effect.

A cap takes effect at a retry if the delay would differ under another cap.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, final

from retrykit._internal.frozen import Frozen, fields_of
from retrykit.schedules._base import Schedule
from retrykit.schedules._randomized import MAX_INTERVAL
from retrykit.schedules._randomness import MAX_DELAY

__all__ = ["Cap", "caps"]

# The difference must exceed the rounding error that `round_down` tolerates.
_SLIGHTLY_LESS = 1 - 1e-9

# Each costs a thousand comparisons, and practical schedules have no more.
_MAX_CAPS = 5


@final
class Cap(Frozen):
    """A cap somewhere in a schedule.

    Attributes:
        text: The expression of the cap.
        fix: The fix to suggest if the cap has no effect.
        part: The part of a schedule that is capped.
        lower: That part with a slightly lower cap.
        higher: That part without the cap.
        whole: The whole schedule.
        uncapped: The whole schedule without the cap.
    """

    __slots__ = ("fix", "higher", "lower", "part", "text", "uncapped", "whole")
    text: str
    fix: str
    part: Schedule
    lower: Schedule
    higher: Schedule
    whole: Schedule
    uncapped: Schedule

    def reached(self, retry: int) -> bool:
        """Return whether the delay of the part before a retry may reach the cap."""
        bounds = self.part.bounds(retry)
        others = self.lower.bounds(retry), self.higher.bounds(retry)
        return others != (bounds, bounds)

    def removes_jitter(self, retry: int) -> bool:
        """Return whether the cap turns the random delay of a retry into a fixed one."""
        low, high = self.whole.bounds(retry) or (0.0, 0.0)
        least, most = self.uncapped.bounds(retry) or (0.0, 0.0)
        return 0 < low == high and least < most


def caps(schedule: Schedule) -> Iterator[Cap]:
    """Yield the caps in a schedule, outer ones first, five at most.

    >>> from retrykit.schedules import exponential
    >>> [(cap.text, cap.reached(2)) for cap in caps(exponential(5).cap(60).cap(8))]
    [('.cap(8.0)', True), ('.cap(60.0)', False)]
    """
    return islice(_caps(schedule, schedule, lambda other: other), _MAX_CAPS)


def _caps(
    whole: Schedule, part: Any, rebuild: Callable[[Schedule], Schedule]
) -> Iterator[Cap]:
    """Yield the caps in a part of a schedule.

    *rebuild* returns the whole schedule with another part in place of this one.
    """
    if part.kind == "cap":
        lower = part.replace(limit=part.limit * _SLIGHTLY_LESS)
        higher = part.replace(limit=MAX_DELAY)
        text, fix = f".cap({part.limit!r})", f"remove .cap({part.limit!r})"
        yield Cap(text, fix, part, lower, higher, whole, rebuild(higher))
    elif part.kind == "google_interval":
        less = part.max_interval - 0.001
        first = min(part.initial_interval, less)
        lower = part.replace(initial_interval=first, max_interval=less)
        higher = part.replace(max_interval=MAX_INTERVAL)
        text, fix = f"max_interval={part.max_interval!r}", "a shorter max_interval"
        yield Cap(text, fix, part, lower, higher, whole, rebuild(higher))
    # The user's own schedule classes (without a kind) need not be rebuildable.
    for name, inner in fields_of(part).items() if part.kind else ():
        if isinstance(inner, Schedule):
            yield from _caps(whole, inner, _rebuild_with(rebuild, part, name))


def _rebuild_with(
    rebuild: Callable[[Schedule], Schedule], part: Schedule, name: str
) -> Callable[[Schedule], Schedule]:
    return lambda other: rebuild(part.replace(**{name: other}))
