"""Retrying in tests, without waiting.

- `virtual_time`: retried calls see a fake clock and sleep on it, in this thread
  or task, or ``process_wide=True``. It gives a `FakeClock`, which knows every nap;
  its `FakeClock.new_event_loop` makes a loop of asyncio whose timeouts are
  virtual, too.
- `disable_retries`: every function is called once. `limit_retries`: a few times, and
  without delays.
- `record`: the events of every retried call, with assertions about them.
- `ScriptedFunction`, `AsyncScriptedFunction`: fakes that fail as they are told.
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
    from retrykit.testing.retry_limits import disable_retries, limit_retries
    from retrykit.testing.scripted_function import (
        AsyncScriptedFunction,
        RecordedCall,
        ScriptedFunction,
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
            "retrykit.testing.retry_limits": ["limit_retries", "disable_retries"],
            "retrykit.testing.sleep_guard": ["RealSleepError"],
            "retrykit.testing.recording": ["Recording", "record"],
            "retrykit.testing.scripted_function": [
                "AsyncScriptedFunction",
                "RecordedCall",
                "ScriptedFunction",
                "ScriptError",
            ],
            "retrykit.testing.time_control": ["virtual_time"],
        },
    )

__all__ = [
    "AsyncScriptedFunction",
    "FakeClock",
    "NestingError",
    "RealSleepError",
    "RecordedCall",
]
__all__ += ["Recording", "ScriptError", "ScriptedFunction", "limit_retries", "record"]
__all__ += ["disable_retries", "virtual_time"]
