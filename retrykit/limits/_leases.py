"""Answers of limits: leases and refusals."""

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

from retrykit._internal.clocks import sync_clock

__all__ = ["Lease", "Refusal"]


class Refusal(NamedTuple):
    """The answer of a limit that does not allow an attempt now.

    Attributes:
        reason: Why, in words.
        retry_in: How long until the limit will allow an attempt, in seconds, >= 0; None
            if that is unknown.
    """

    reason: str
    retry_in: float | None

    @property
    def delay(self) -> float:
        """Infinite, since the attempt may not be made.

        So an answer with a delay of 0 always allows the attempt now.
        """
        return math.inf


class Lease(ABC):
    """Permission to make one attempt, whose outcome is reported to it.

    The first report counts, and others have no effect. A lease that is dropped without
    a report gives its place back, as after `ignored`. Any thread may report.

    Attributes:
        delay: How long to wait before the attempt, in seconds, >= 0; infinite if that
            is not known, as in a queue. If it is not 0, `wait` or `wait_async` comes
            first.
    """

    __slots__ = ("__weakref__",)

    delay: float = 0.0

    @property
    @abstractmethod
    def generation(self) -> int:
        """The number of the state that granted the lease, from 0.

        Once the limit is in another state, a report counts only for its metrics.
        """

    @abstractmethod
    def succeeded(self) -> None:
        """Report that the attempt succeeded."""

    @abstractmethod
    def failed(self, error: Exception | None = None) -> None:
        """Report that the attempt failed.

        Args:
            error: Its error; None if its result was rejected.
        """

    @abstractmethod
    def ignored(self) -> None:
        """Report that the attempt does not count, as when it was cancelled."""

    def wait(self, at_most: float | None = None) -> Refusal | None:
        """Block this thread until the attempt may be made.

        Args:
            at_most: The longest time to wait, in seconds, >= 0; None is unlimited.

        Returns:
            None if the attempt may be made; a refusal if *at_most* is too short. After
            a refusal or an interrupted wait, the lease has been given back.
        """
        refusal = self.refuse_long_wait(at_most)
        if refusal is None:
            try:
                sync_clock.sleep(self.delay)
            except BaseException:
                self.ignored()
                raise
        return refusal

    async def wait_async(self, at_most: float | None = None) -> Refusal | None:
        """Suspend this task until the attempt may be made, as `wait` does."""
        # Imported here: sync code needs no event loop.
        from retrykit._internal.loop_clock import async_clock  # noqa: PLC0415

        refusal = self.refuse_long_wait(at_most)
        if refusal is None:
            try:
                await async_clock.sleep(self.delay)
            except BaseException:
                self.ignored()
                raise
        return refusal

    def refuse_long_wait(self, at_most: float | None) -> Refusal | None:
        """Return a refusal, and give the lease back, if its delay exceeds *at_most*.

        *at_most* is in seconds; None is unlimited.
        """
        if at_most is None or self.delay <= at_most:
            return None
        self.ignored()
        return Refusal("busy for longer than the call may wait", self.delay)
