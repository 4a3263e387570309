"""What the other threads do, as far as one can see from outside.

Python shows in which function each thread is, and nothing more: a thread that
waits looks like one that works.
"""

import sys
import threading
from collections.abc import Hashable
from types import FrameType
from typing import Final, final

__all__ = ["Threads"]

# Threads that start one another take turns of 5 ms.
_BREATH: Final = 0.01

_Place = tuple[object, str, bool]

# Where the threads of pools wait for work, as module, function, and whether they
# do it in a queue that is written in Python: nothing comes from them before they
# have some. The last one is that of pytest-xdist.
_IDLE: Final[set[_Place]] = {
    ("anyio._backends._asyncio", "run", True),
    ("concurrent.futures.thread", "_worker", False),
    ("trio._core._thread_cache", "_work", False),
    ("execnet.gateway_base", "read", False),
}

# Where servers wait for clients, and event loops for whatever comes.
_SERVING: Final[set[_Place]] = {
    ("selectors", "select", False),
    ("socket", "accept", False),
}

_WAITING: Final = {"queue", "threading"}


@final
class Threads:
    """The threads of the process, since this was made.

    Those that were busy then are taken for servers.

    Attributes:
        blocked: The threads that wait for what asks here, which do not count.
    """

    def __init__(self) -> None:
        self.blocked: set[int] = set()
        self._before = set(_names().values())
        self._settled = self._busy(_SERVING)

    def working(self) -> set[Hashable]:
        """Return the other threads that may do something one should wait for."""
        busy = self._busy(_SERVING)
        # One that waits for work in between is counted again.
        self._settled &= busy
        return busy - self._settled - {_names().get(threading.get_ident())}

    def others(self) -> set[Hashable]:
        """Return the other threads from which something may come."""
        return self._busy(set()) - {_names().get(threading.get_ident())}

    def settle(self) -> None:
        """Count those that are busy now no more, as long as they are busy."""
        self._settled |= self._busy(_SERVING) - {_names().get(threading.get_ident())}

    def startup_grace(self, *, pools: bool = False) -> float:
        """Return the real seconds that threads get to begin with their work.

        Args:
            pools: Whether threads count that were there before.
        """
        names = set(_names().values())
        counted = len(names) > 1 if pools else names - self._before
        return _BREATH if counted else 0.0

    def _busy(self, idle: set[_Place]) -> set[Hashable]:
        names = _names()
        return {
            names.get(ident, ident)
            for ident, frame in sys._current_frames().items()  # noqa: SLF001  documented
            if ident not in self.blocked and _place(frame) not in _IDLE | idle
        }


def _names() -> dict[int, Hashable]:
    """Return the threads by their numbers, which the system gives out again."""
    return {each.ident: each for each in threading.enumerate() if each.ident}


def _place(frame: FrameType | None) -> _Place:
    """Return where a thread is: the function that works, or that waits."""
    waits = False
    while frame is not None and frame.f_globals.get("__name__") in _WAITING:
        frame, waits = frame.f_back, True
    if frame is None:
        return None, "", waits
    return frame.f_globals.get("__name__"), frame.f_code.co_name, waits
