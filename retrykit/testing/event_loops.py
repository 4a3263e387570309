"""The event loops whose tasks live by one fake clock."""

from typing import Protocol, final

from retrykit._internal.loop_clock import running_trio
from retrykit.execution.attempt_timeout import TimeoutScope
from retrykit.testing.asyncio_backend import InAsyncio, running_loop
from retrykit.testing.call_tracker import Worker
from retrykit.testing.scheduler import VirtualScheduler
from retrykit.testing.virtual_loop import VirtualLoop

__all__ = ["Loop", "Loops"]


class Loop(Protocol):
    """One event loop, asyncio's or a run of trio."""

    async def sleep(self, delay: float, /) -> None:
        """Let other tasks run until *delay* virtual seconds have passed."""
        ...

    def limit(self, timeout: float, /) -> TimeoutScope:
        """Return a ``with`` block that takes at most so many virtual seconds."""
        ...

    def guard(self, worker: Worker, /) -> None:
        """Refuse that an attempt which begins in this task really sleeps."""
        ...

    def leave(self) -> None:
        """Look at this loop no more; asked in the loop itself."""
        ...


@final
class Loops:
    """What is known of each loop; asked in the thread of the loop itself."""

    def __init__(self, timeline: VirtualScheduler) -> None:
        self._timeline = timeline
        self._known: dict[object, Loop] = {}

    def here(self) -> Loop | None:
        """Return the loop that runs this code; None outside of any."""
        trio = running_trio()
        if trio is not None:
            token = trio.lowlevel.current_trio_token()
            if token not in self._known:
                # Imported here, because only who runs trio has it.
                from retrykit.testing.trio_backend import InTrio  # noqa: PLC0415

                self._known[token] = InTrio(self._timeline)
            return self._known[token]
        loop = running_loop()
        if loop is None:
            return None
        if isinstance(loop, VirtualLoop) and loop.timeline is self._timeline:
            return loop
        if loop not in self._known:
            self._known[loop] = InAsyncio(self._timeline, loop)
        return self._known[loop]

    def leave(self) -> None:
        """Look no more at the loop that runs this code."""
        here = self.here()
        if here is not None:
            here.leave()
