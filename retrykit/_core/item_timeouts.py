"""Timeouts of the items of async streams."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, final

from retrykit._core.attempt_timeout import timeout_scope
from retrykit.errors import ItemTimeout

__all__ = ["with_timeouts"]


def with_timeouts(
    fn: Callable[..., AsyncGenerator[Any, Any]],
    first: float | None,
    further: float | None,
) -> Callable[..., Any]:
    """Return a function that returns generators whose items have timeouts.

    Args:
        fn: An async generator function.
        first: The time limit of the first item, in seconds; None is unlimited.
        further: The time limit of each further item, in seconds; None is unlimited.
    """

    def open_timed(*args: Any, **kwargs: Any) -> TimedItems:
        return TimedItems(fn(*args, **kwargs), first, further)

    return open_timed


@final
class TimedItems:
    """An async generator that is cancelled if an item takes longer than its timeout."""

    __slots__ = ("_further", "_items", "_next")

    def __init__(
        self,
        items: AsyncGenerator[Any, Any],
        first: float | None,
        further: float | None,
    ) -> None:
        self._items, self._next, self._further = items, first, further

    async def __anext__(self) -> Any:
        return await self._within(self._items.__anext__())

    async def asend(self, value: object) -> Any:
        """Send a value, and return the next item."""
        return await self._within(self._items.asend(value))

    async def athrow(self, error: BaseException) -> Any:
        """Raise an error in the generator, and return the next item."""
        return await self._within(self._items.athrow(error))

    async def aclose(self) -> None:
        """Close the generator."""
        await self._items.aclose()

    async def _within(self, item: Awaitable[Any]) -> Any:
        timeout, self._next = self._next, self._further
        if timeout is None:
            return await item
        scope = timeout_scope(timeout)
        scope.kind = ItemTimeout
        with scope:
            return await item
