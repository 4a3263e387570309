"""Retrying in tests: names, and nothing else.

Nothing here is imported by the rest of retrykit.
"""

from retrykit.errors import NestingError
from retrykit.testing.fake_clock import FakeClock
from retrykit.testing.limits import limited, retries_disabled
from retrykit.testing.real_sleeps import RealSleepError
from retrykit.testing.recording import Recording, record
from retrykit.testing.script import AsyncScript, Called, Script, ScriptError
from retrykit.testing.virtual import virtual_time

__all__ = ["AsyncScript", "Called", "FakeClock", "NestingError", "RealSleepError"]
__all__ += ["Recording", "Script", "ScriptError", "limited", "record"]
__all__ += ["retries_disabled", "virtual_time"]
