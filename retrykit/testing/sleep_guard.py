"""Sleeps that slip past virtual time: found where they begin, and named.

While an attempt runs, its thread is profiled for calls of ``time.sleep``, by
whatever name: Python tells a profiler before it makes them. What sleeps on an
event loop is found by looking at what its task awaits.
"""

import inspect
import sys
import threading
import time
from types import CodeType, FrameType
from typing import Any, final

from retrykit.testing.call_tracker import Worker, here

__all__ = ["RealSleepError", "awaited_frame", "guard_thread", "leave_thread"]
__all__ += ["refusal"]


@final
class RealSleepError(BaseException):
    """An attempt really sleeps, although its call lives in virtual time.

    No `Exception`, so that nothing retries it: it ends the test.
    """


def refusal(sleep: str, worker: Worker) -> RealSleepError:
    """Return the error for a sleep in an attempt of a call, and keep it.

    Args:
        sleep: What is called, as its user typed it.
        worker: The call.
    """
    state = worker.state
    suggestion = "clock.advance() stands for a slow attempt"
    if sleep.startswith("asyncio."):
        suggestion += (
            ", clock.new_event_loop() and the fixture retry_loop make it virtual"
        )
    error = RealSleepError(
        f"attempt {state.attempt} of {state.name} must not really sleep in virtual "
        f"time, got {sleep}; {suggestion}, and allow_real_sleep=True allows it, for "
        "virtual_time and the marker retry_time"
    )
    worker.workers.slips.append(error)
    return error


def awaited_frame(coroutine: Any, code: CodeType) -> FrameType | None:
    """Return the frame of the function with this code that a coroutine awaits.

    Python does not show what an asynchronous generator awaits.
    """
    while inspect.iscoroutine(coroutine):
        frame: FrameType | None = coroutine.cr_frame
        if frame is not None and frame.f_code is code:
            return frame
        coroutine = coroutine.cr_await
    return None


_watched: list[int] = []
"""The thread of each attempt that is watched; to change it is one operation."""


def guard_thread(worker: Worker) -> None:
    """Refuse that the attempt which begins in this thread really sleeps.

    Where the thread is profiled already, nothing is found.
    """
    # The end of the attempt before may have been told to another clock.
    leave_thread(worker)
    worker.guarded = threading.get_ident()
    _watched.append(worker.guarded)
    if sys.getprofile() is None:
        sys.setprofile(_listen)


def leave_thread(worker: Worker) -> None:
    """Let the attempt be over, if it is watched."""
    if worker.guarded is None:
        return
    _watched.remove(worker.guarded)
    worker.guarded = None
    # Another thread finds out when its next attempt is over.
    if threading.get_ident() not in _watched and sys.getprofile() is _listen:
        sys.setprofile(None)


def _listen(_frame: FrameType, event: str, called: object) -> None:
    # Another task of the thread may be in no attempt.
    if event == "c_call" and called is time.sleep:
        worker = here()
        if worker is not None and worker.guarded == threading.get_ident():
            __tracebackhide__ = True
            raise refusal("time.sleep", worker)
