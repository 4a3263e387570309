"""What the other threads do, as far as one can see from outside.

Python shows in which function each thread is, and nothing more: a thread that
waits looks like one that works.
"""

import sys
import threading
from typing import Final, final

__all__ = ["Threads"]

# Threads that start one another take turns of 5 ms.
_BREATH: Final = 0.01

# Where the threads of pools and of servers wait for work: module and function.
_IDLE: Final = {
    ("concurrent.futures.thread", "_worker"),
    ("selectors", "select"),
    ("socket", "accept"),
    ("trio._core._thread_cache", "_work"),
}


@final
class Threads:
    """The threads of the process, since this was made.

    Those that were busy then are taken for servers, and never counted.

    Attributes:
        blocked: Those that wait for what asks here, which are not counted.
    """

    def __init__(self) -> None:
        self.blocked: set[int] = set()
        self._before = _known().keys()
        self._settled = self._busy()

    def working(self) -> set[int]:
        """Return the other threads that may do something one should wait for."""
        return self._busy() - self._settled - {threading.get_ident()}

    def settle(self) -> None:
        """Count those that are busy now no more, as long as they are busy."""
        busy = self._busy()
        self._settled = self._settled & busy | busy - {threading.get_ident()}

    def breath(self, *, pools: bool = False) -> float:
        """Return the real seconds that threads get to begin with their work.

        Args:
            pools: Whether threads count that were there before, waiting for work.
        """
        known = _known()
        begun = known.keys() - self._before
        waiting = pools and any(known.values())
        return _BREATH if begun or waiting else 0.0

    def _busy(self) -> set[int]:
        known = _known().items()
        return {each for each, idle in known if not idle} - self.blocked


def _known() -> dict[int, bool]:
    """Return every thread, and whether it is one that waits for work."""
    return {
        thread: (frame.f_globals.get("__name__"), frame.f_code.co_name) in _IDLE
        for thread, frame in sys._current_frames().items()  # noqa: SLF001  documented
    }
