"""Discrete events, in the order of their times in whole nanoseconds."""

from collections import defaultdict
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any, Final, final

from retrykit._internal.durations import CENTURY

__all__ = ["SECOND", "Event", "Events", "nanoseconds"]

SECOND: Final = 1_000_000_000
"""A second, in nanoseconds."""

Event = list[Any]
"""A time, a number, an action, and the argument to call it with.

In a cancelled event, the action and the argument are None.
"""

# No simulation lasts as long.
_CENTURY: Final = int(CENTURY) * SECOND
_ACTION: Final = 2
_FEW: Final = 64
# Calls that begin in the time of one page, on average.
_CALLS: Final = 8


def nanoseconds(seconds: float) -> int:
    """Return a time in whole nanoseconds, rounded; at most a century.

    >>> nanoseconds(0.1)
    100000000
    """
    return round(seconds * SECOND) if seconds < CENTURY else _CENTURY


@final
class Events:
    """Future events. Simultaneous ones happen in the order in which they were made.

    Only the events that are due soon are in a heap, which is small. The others, such as
    timeouts, are in pages, each of which has the events of one short period, in any
    order. Cancelled events are removed together, once they outnumber the events left by
    the previous removal, and are more than 64.

    Args:
        rate: Calls per second.

    Attributes:
        now: The virtual time, in nanoseconds since the beginning.
        number: The number of the event that happens now.
        made: Number of events that were made.
    """

    __slots__ = (
        "_bits",
        "_cancelled",
        "_heap",
        "_most",
        "_page_end",
        "_pages",
        "made",
        "now",
        "number",
    )

    def __init__(self, rate: float = 1.0) -> None:
        self.now = self.number = self.made = 0
        self._bits = nanoseconds(_CALLS / rate).bit_length()
        self._pages: defaultdict[int, list[Event]] = defaultdict(list)
        self._heap: list[Event] = []
        self._cancelled, self._most = 0, _FEW
        self._turn(0)

    def __len__(self) -> int:
        # Without the event that turns the page.
        return len(self._heap) - 1 + sum(map(len, self._pages.values()))

    def _turn(self, page: int) -> None:
        """Put the events of a page into the heap."""
        heap = self._heap
        heap += self._pages.pop(page, ())
        self._page_end = end = page + 1 << self._bits
        # Before all others of its time.
        heap.append([end, 0, self._turn, page + 1])
        heapify(heap)

    def at(self, time: int, action: Callable[[Any], object], argument: Any) -> Event:
        """Schedule an action.

        Args:
            time: When to call it, in nanoseconds; not before `now`.
            action: The action.
            argument: The argument to call it with.

        Returns:
            The event, for `cancel`.
        """
        self.made = made = self.made + 1
        event = [time, made, action, argument]
        # As `put`, for the most frequent call of all.
        if time < self._page_end:
            heappush(self._heap, event)
        else:
            self._pages[time >> self._bits].append(event)
        return event

    def put(self, event: Event) -> None:
        """Add an event whose number was taken from `made` earlier."""
        if event[0] < self._page_end:
            heappush(self._heap, event)
        else:
            self._pages[event[0] >> self._bits].append(event)

    def cancel(self, event: Event) -> None:
        """Cancel an event that has not happened yet."""
        event[_ACTION] = event[_ACTION + 1] = None
        self._cancelled += 1
        if self._cancelled > self._most:
            heap, pages = self._heap, self._pages
            heap[:] = [each for each in heap if each[_ACTION] is not None]
            heapify(heap)
            for page, events in [*pages.items()]:
                left = [each for each in events if each[_ACTION] is not None]
                if left:
                    pages[page] = left
                else:
                    del pages[page]
            self._cancelled, self._most = 0, max(len(self), _FEW)

    def run(self, until: int) -> None:
        """Call the actions that are due before a time, and advance to that time."""
        heap = self._heap
        while True:
            event = heappop(heap)
            time, number, action, argument = event
            if time >= until:
                break
            if action is None:
                self._cancelled -= 1
                continue
            self.now, self.number = time, number
            action(argument)
        heappush(heap, event)
        self.now = until
