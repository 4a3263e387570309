"""Tests of retried code, without waiting.

- `virtual_time`: a block in which retried calls read a fake clock and sleep on it. Its
  value is a `FakeClock`, which records every sleep; its `FakeClock.new_event_loop`
  makes an asyncio loop whose timeouts are also virtual.
- `disable_retries`: every function is called once. `limit_retries`: at most a few
  times, and without delays. Of these blocks and `virtual_time`, the innermost applies.
- `record`: the events of every retried call, with assertions about them.
- `ScriptedFunction`, `AsyncScriptedFunction`: fakes that fail as scripted.
- `retrykit.testing.strategies`: schedules, policies and scripts for hypothesis.

`retrykit.testing.pytest_plugin` provides fixtures: ``retry_clock`` (or the marker
``retry_time``), ``retry_loop``, ``no_retries``, ``retry_events``.
"""

from typing import TYPE_CHECKING

from retrykit._internal.late_modules import lazy_exports

if TYPE_CHECKING:
    from retrykit.errors import NestingError
    from retrykit.testing._fake_clock import FakeClock, virtual_time
    from retrykit.testing._recording import Recording, record
    from retrykit.testing._retry_limits import disable_retries, limit_retries
    from retrykit.testing._scheduler import TimeStalledError
    from retrykit.testing._scripted_function import (
        AsyncScriptedFunction,
        RecordedCall,
        ScriptedFunction,
        ScriptError,
    )
    from retrykit.testing._sleep_guard import RealSleepError
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "errors": "NestingError",
            "testing._fake_clock": "FakeClock virtual_time",
            "testing._retry_limits": "limit_retries disable_retries",
            "testing._scheduler": "TimeStalledError",
            "testing._sleep_guard": "RealSleepError",
            "testing._recording": "Recording record",
            "testing._scripted_function": "AsyncScriptedFunction RecordedCall "
            "ScriptedFunction ScriptError",
        },
    )

__all__ = ["AsyncScriptedFunction", "FakeClock", "NestingError", "RealSleepError"]
__all__ += ["RecordedCall", "Recording", "ScriptError", "ScriptedFunction"]
__all__ += ["TimeStalledError", "disable_retries", "limit_retries", "record"]
__all__ += ["virtual_time"]
