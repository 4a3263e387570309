"""Retrying in tests, without waiting.

- `virtual_time`: retried calls see a fake clock and sleep on it, in this thread
  or task, or ``everywhere=True``. It gives a `FakeClock`, which knows every nap;
  its `FakeClock.new_event_loop` makes a loop of asyncio whose timeouts are
  virtual, too.
- `retries_disabled`: every function is called once. `limited`: a few times, and
  without delays.
- `record`: the events of every retried call, with assertions about them.
- `Script`, `AsyncScript`: fake functions that fail as they are told.
- `retrykit.testing.strategies`: schedules, policies and scripts for hypothesis.

pytest has all that as fixtures, from `retrykit.testing.pytest_plugin`: ``retry_clock``
(or the marker ``retry_time``), ``retry_loop``, ``no_retries``, ``retry_events``.

Nothing here is imported by the rest of retrykit.
"""

from typing import TYPE_CHECKING

from retrykit._internal.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from retrykit.errors import NestingError
    from retrykit.testing.fake_clock import FakeClock
    from retrykit.testing.recording import Recording, record
    from retrykit.testing.retry_limits import limited, retries_disabled
    from retrykit.testing.scripted_function import (
        AsyncScript,
        Called,
        Script,
        ScriptError,
    )
    from retrykit.testing.sleep_guard import RealSleepError
    from retrykit.testing.time_control import virtual_time
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "retrykit.errors": ["NestingError"],
            "retrykit.testing.fake_clock": ["FakeClock"],
            "retrykit.testing.retry_limits": ["limited", "retries_disabled"],
            "retrykit.testing.sleep_guard": ["RealSleepError"],
            "retrykit.testing.recording": ["Recording", "record"],
            "retrykit.testing.scripted_function": [
                "AsyncScript",
                "Called",
                "Script",
                "ScriptError",
            ],
            "retrykit.testing.time_control": ["virtual_time"],
        },
    )

__all__ = ["AsyncScript", "Called", "FakeClock", "NestingError", "RealSleepError"]
__all__ += ["Recording", "Script", "ScriptError", "limited", "record"]
__all__ += ["retries_disabled", "virtual_time"]
