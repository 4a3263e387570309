"""Guard that rejects real sleeps in attempts that run in virtual time.

While an attempt runs, its thread is profiled for calls of ``time.sleep``,
``asyncio.sleep`` and ``trio.sleep``, under whatever name.
"""

import asyncio
import sys
import threading
import time
from types import FrameType
from typing import Any, Final, final

from retrykit._internal.loop_clock import running_trio
from retrykit.testing._scheduler import TrackedCall, current_call

__all__ = ["RealSleepError", "guard", "unguard"]

# Real seconds. Shorter async sleeps are meant to let other tasks run.
_SHORT: Final = 0.05


@final
class RealSleepError(BaseException):
    """An attempt that runs in virtual time tried to sleep for real.

    It is not an `Exception`, so nothing retries it, and it ends the test.
    """


_guarded: list[int] = []
"""The thread of each guarded attempt; every change is one atomic operation."""


def guard(call: TrackedCall) -> None:
    """Reject real sleeps of the attempt that starts in this thread and task.

    A thread that has a profiler already keeps it, and is not guarded.
    """
    # The end of the previous attempt may have been seen by another clock.
    unguard(call)
    ident = threading.get_ident()
    call.guarded = ident, _current_task()
    _guarded.append(ident)
    if sys.getprofile() is None:
        sys.setprofile(_on_call)


def unguard(call: TrackedCall) -> None:
    """End the guard of an attempt, if there is one."""
    if call.guarded is None:
        return
    _guarded.remove(call.guarded[0])
    # At the next call in that thread, the profiler removes itself.
    call.guarded = None


# Python does not trace profilers, so coverage does not see these three.
def _on_call(  # pragma: no cover
    frame: FrameType, event: str, called: Any
) -> None:
    if threading.get_ident() not in _guarded:
        # The attempt has ended in another thread.
        sys.setprofile(None)
        return
    sleep = ""
    # By its name, since tools wrap time.sleep, and Pyodide does.
    if event == "c_call" and called.__name__ == "sleep" and called.__self__ is time:
        sleep = "time.sleep"
    elif event == "call" and frame.f_code.co_name == "sleep":
        sleep = _async_sleep(frame)
    error = _rejection(sleep) if sleep else None
    if error is not None:
        __tracebackhide__ = True
        raise error


def _async_sleep(frame: FrameType) -> str:  # pragma: no cover
    """Return the text of a long sleep of asyncio or trio, else an empty string."""
    trio = running_trio()
    module, name = (trio, "trio") if trio else (asyncio, "asyncio")
    if frame.f_code is not module.sleep.__code__:
        return ""
    delay = frame.f_locals[frame.f_code.co_varnames[0]]
    return f"{name}.sleep({delay:g})" if delay > _SHORT else ""


def _rejection(sleep: str) -> RealSleepError | None:  # pragma: no cover
    """Record and return the error for a sleep in a guarded attempt, or return None."""
    call = current_call()
    if call is None or call.guarded is None:
        return None
    # Threads and tasks that an attempt starts share its context.
    thread, task = call.guarded
    if thread != threading.get_ident():
        return None
    suggestion = "use clock.sleep() to simulate a slow attempt"
    if sleep != "time.sleep":
        # On a virtual loop, asyncio.sleep is virtual.
        if call.loop is not None or task is not _current_task():
            return None
        suggestion = "use clock.asleep() to simulate a slow attempt"
        if sleep.startswith("asyncio"):
            suggestion += (
                ", or clock.new_event_loop() or the fixture retry_loop to make it "
                "virtual"
            )
    error = RealSleepError(
        f"attempt {call.state.attempt} of {call.state.name} must not sleep in real "
        f"time, got {sleep}; {suggestion}; to allow it, pass allow_real_sleep=True to "
        "virtual_time or the marker retry_time"
    )
    call.scheduler.errors.append(error)
    return error


def _current_task() -> Any:
    """Return the asyncio or trio task that runs this code, or None."""
    trio = running_trio()
    if trio is not None:
        return trio.lowlevel.current_task()
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
