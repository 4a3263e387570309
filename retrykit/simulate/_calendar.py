"""Future events, sorted one short page of time after another."""

from bisect import insort
from collections import defaultdict
from typing import Any, Final, final

from retrykit.simulate._events import nanoseconds

__all__ = ["Calendar", "Item"]

Item = tuple[Any, ...]
"""An event: its time and its other sort keys come first."""

# Calls that begin in the time of one page, on average: few to sort, but enough to turn
# the page seldom.
_CALLS: Final = 32


@final
class Calendar:
    """Events that are taken in ascending order; only the current page is sorted.

    Args:
        rate: Calls per second.
        end: The end, in nanoseconds; events at this time or later are left out.

    Attributes:
        items: The events of the current page, in order. The last one marks the end of
            the page, and has only a time.
        page_end: The time at the end of the page, in nanoseconds.
        pages: The events of later pages, unsorted, keyed by the number of the page.
        bits: A page lasts 2 ** bits nanoseconds.
    """

    __slots__ = ("_end", "_page", "bits", "items", "page_end", "pages")

    def __init__(self, rate: float, end: int) -> None:
        self.bits = nanoseconds(_CALLS / rate).bit_length()
        self.pages: defaultdict[int, list[Item]] = defaultdict(list)
        self._page, self._end = -1, end
        self.items: list[Item] = []
        self.page_end = 0

    def add(self, item: Item, position: int) -> None:
        """Add an event.

        Args:
            item: The event, not earlier than those that have been taken.
            position: How many events of the page have been taken.
        """
        time = item[0]
        if time < self.page_end:
            insort(self.items, item, position)
        elif time < self._end:
            self.pages[time >> self.bits].append(item)

    def turn(self) -> list[Item]:
        """Make the next page the current one, and return its `items`."""
        self._page += 1
        self.items = items = self.pages.pop(self._page, [])
        items.sort()
        self.page_end = min(self._page + 1 << self.bits, self._end)
        items.append((self.page_end,))
        return items
