"""SIGTERM in the child processes of a worker that is stopping.

Supervisors such as systemd send it to every process of a service. By default, Celery's
children then end at once, in the middle of their attempts. Here they continue while the
worker stops warmly, and end if it stops coldly, or has not begun to stop a second
later.
"""

import mmap
import os
import signal
import threading
from typing import Any, Final

__all__ = ["ChildSignals"]

_RUNNING, _WARM, _COLD = 0, 1, 2
# How much later than a child the worker may learn that it has to stop, in seconds.
_DELAY: Final = 1.0


class ChildSignals:
    """Handler of SIGTERM in children of a worker; create it before they are forked.

    Args:
        worker: The process id of the worker.
    """

    def __init__(self, worker: int) -> None:
        self._worker: Final = worker
        self._stopping: Final = mmap.mmap(-1, 1)
        self._installed = self._ends = False
        self._before: Any = None

    def stop(self, *, warm: bool) -> None:
        """Tell the children that the worker stops: after its attempts if *warm*."""
        self._stopping[0] = _WARM if warm else _COLD

    def protect(self, **_: Any) -> None:
        """Install the handler, if this process is a child and has none yet.

        This is a receiver of ``task_prerun``: the pool would replace a handler that is
        installed earlier. SIGTERM is not simply ignored, since the processes that a job
        starts would then ignore it, too.
        """
        if os.getpid() == self._worker or self._installed:
            return
        self._installed = True
        self._before = signal.signal(signal.SIGTERM, self._handle)

    def _handle(self, number: int, _frame: object) -> None:
        if self._ends or self._stopping[0] == _COLD:
            signal.signal(number, self._before or signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif self._stopping[0] == _RUNNING:
            # Sent to the worker as well, or to this child alone: its task was revoked.
            later = threading.Timer(_DELAY, self._end_unless_warm, (number,))
            later.daemon = True
            later.start()

    def _end_unless_warm(self, number: int) -> None:
        if self._stopping[0] != _WARM:
            self._ends = True
            os.kill(os.getpid(), number)
