"""Discrete events, in the order of their times in whole nanoseconds."""

from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any, Final, final

from retrykit._internal.durations import CENTURY

__all__ = ["SECOND", "After", "Event", "Events", "nanoseconds"]

SECOND: Final = 1_000_000_000
"""Nanoseconds."""

Event = list[Any]
"""Its time, its number, and the action to call with its argument; None if cancelled."""

After = Callable[[Callable[[Any], object], Any], Event]
"""Calls an action with its argument after a delay."""

# No simulation lasts as long.
_CENTURY: Final = int(CENTURY) * SECOND
_ACTION: Final = 2
_FEW: Final = 64


def nanoseconds(seconds: float) -> int:
    """Return a time in whole nanoseconds, rounded; at most that of a century.

    >>> nanoseconds(0.1)
    100000000
    """
    return round(seconds * SECOND) if seconds < CENTURY else _CENTURY


@final
class Events:
    """The events to come. Those of one time happen in the order of their making.

    Most are due after one of a few times, such as a timeout. They are in order by
    themselves: each such time has a lane, and only the others need a heap. Cancelled
    events leave together, once they are half of all.

    Attributes:
        now: The virtual time, in nanoseconds since the beginning.
    """

    __slots__ = ("_cancelled", "_heap", "_lanes", "_number", "now")

    def __init__(self) -> None:
        self.now = 0
        self._heap: list[Event] = []
        self._lanes: dict[int, deque[Event]] = {}
        self._number = self._cancelled = 0

    def __len__(self) -> int:
        return len(self._heap) + sum(map(len, self._lanes.values()))

    def at(self, time: int, action: Callable[[Any], object], argument: Any) -> Event:
        """Call an action at a time, which must not be over.

        Returns:
            The event, for `cancel`.
        """
        self._number = number = self._number + 1
        event = [time, number, action, argument]
        heappush(self._heap, event)
        return event

    def always_after(self, delay: int) -> After:
        """Return a function that does the same as `at`, for one delay from now on.

        It takes the action and its argument.
        """
        append = self._lanes.setdefault(delay, deque()).append

        def after(action: Callable[[Any], object], argument: Any) -> Event:
            self._number = number = self._number + 1
            event = [self.now + delay, number, action, argument]
            append(event)
            return event

        return after

    def cancel(self, event: Event) -> None:
        """Cancel an event that has not happened yet."""
        event[_ACTION] = event[_ACTION + 1] = None
        self._cancelled += 1
        if self._cancelled > _FEW and 2 * self._cancelled > len(self):
            heap = self._heap
            heap[:] = [each for each in heap if each[_ACTION] is not None]
            heapify(heap)
            for lane in self._lanes.values():
                left = [each for each in lane if each[_ACTION] is not None]
                lane.clear()
                lane.extend(left)
            self._cancelled = 0

    def run(self, until: int) -> None:
        """Call the actions that are due before a time, and advance to that time."""
        heap, lanes = self._heap, [*self._lanes.values()]
        end: Event = [until, 0]
        first: Event
        found: deque[Event] | None
        while True:
            first, found = (heap[0] if heap else end), None
            time, number = first[0], first[1]
            for lane in lanes:
                if lane:
                    head = lane[0]
                    other = head[0]
                    # A comparison of integers takes half as long as one of lists.
                    if other < time or (other == time and head[1] < number):
                        first, found, time, number = head, lane, other, head[1]
            if time >= until:
                break
            if found is None:
                heappop(heap)
            else:
                found.popleft()
            action = first[2]
            if action is None:
                self._cancelled -= 1
                continue
            self.now = time
            action(first[3])
        self.now = until
