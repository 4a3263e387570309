"""The sends of one attempt: their outcomes, and the release of unused results."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

from retrykit._core.result_conditions import arelease_with, release_with

__all__ = ["Release", "Sends", "SentOutcome", "arelease_all", "best_of", "release_all"]


class SentOutcome(NamedTuple):
    """The outcome of a send.

    Attributes:
        number: The number of the send in its attempt, from 1.
        result: What the send returned; None if it raised an error.
        error: What the send raised; None if it returned.
    """

    number: int
    result: Any
    error: BaseException | None


Release = Callable[[Any], Any]
"""Frees what a send's result holds, such as a connection; may be async in tasks."""


class Sends(Protocol):
    """Sends that run concurrently, in threads.

    Attributes:
        ended: Outcomes that `wait` has not returned.
        release: Frees what the result of a send holds, also after the block; None if
            results hold nothing.
    """

    ended: list[SentOutcome]
    release: Release | None

    def start(self, send: Callable[[], Any]) -> bool:
        """Begin a send; return False if it cannot begin. The first always can."""
        ...

    def wait(self, delay: float | None) -> SentOutcome | None:
        """Wait for the end of a send, for at most *delay* seconds; None is unlimited.

        Return its outcome, or None if no send ended in time. If several have ended, one
        that succeeded comes first.
        """
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...


def best_of(ended: list[SentOutcome]) -> SentOutcome | None:
    """Remove and return the outcome that counts first: a success, else the earliest."""
    for each in ended:
        if each.error is None:
            ended.remove(each)
            return each
    return ended.pop(0) if ended else None


def release_all(release: Release, outcomes: list[SentOutcome]) -> None:
    """Release the results of the sends that returned one."""
    for outcome in outcomes:
        if outcome.error is None:
            release_with(release, outcome.result)


async def arelease_all(release: Release, outcomes: list[SentOutcome]) -> None:
    """Release the results of sends: all of them, even if the release is cancelled."""
    async with AsyncExitStack() as stack:
        for outcome in outcomes:
            if outcome.error is None:
                stack.push_async_callback(arelease_with, release, outcome.result)
