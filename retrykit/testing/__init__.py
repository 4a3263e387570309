"""Retrying in tests: names, and nothing else.

Nothing here is imported by the rest of retrykit.
"""

from retrykit.testing.fake_clock import FakeClock, virtual_time
from retrykit.testing.limits import limited, retries_disabled
from retrykit.testing.script import AsyncScript, Called, Script, ScriptError

__all__ = ["AsyncScript", "Called", "FakeClock", "Script", "ScriptError", "limited"]
__all__ += ["retries_disabled", "virtual_time"]
