"""Settings of opnieuw and retryhttp, as written in their calls.

Source: opnieuw 4.0.0: at most three calls within 60 s; each delay is drawn from zero up
to a bound that doubles, and the bounds add up to 60 s. retryhttp 1.5.0, on tenacity:
three attempts; the delay depends on the error, and obeys Retry-After.
"""

import math
from typing import Final

from retrykit.audit._arguments import Arguments, choose, count, error_names, seconds
from retrykit.audit._delays import UNKNOWN_DELAYS, Delays
from retrykit.audit._libraries._reader import Readers
from retrykit.audit._sites import Behavior
from retrykit.audit._values import Call

__all__ = ["READERS", "READERS_OF_RETRYHTTP"]

_HTTP = ("HTTPStatusError", "HTTPError", "ConnectError", "ConnectionError", "Timeout")


def _retry(call: Call) -> Behavior:
    arguments = Arguments(call)
    calls = count(arguments.get("max_calls_total", 3))
    window = seconds(arguments.get("retry_window_after_first_call_in_seconds", 60))
    first = None
    if calls is not None and window is not None:
        first = window / max(2.0 ** (min(calls, 1000.0) - 1) - 1, 1)
    return Behavior(
        calls,
        window,
        Delays("exponential", first, 2.0, window, jitter=True, low=0.0),
        error_names(arguments.get("retry_on_exceptions")),
        ending="raises",
    )


def _http(call: Call) -> Behavior:
    arguments = Arguments(call)
    return Behavior(
        None if "stop" in arguments else count(arguments.get("max_attempt_number", 3)),
        math.inf,
        UNKNOWN_DELAYS,
        None if "retry" in arguments else _HTTP,
        ending=choose(arguments.get("reraise", False), "raises", "wrapped"),
        hint=None if "wait" in arguments or "wait_rate_limited" in arguments else True,
    )


READERS: Final[Readers] = {"retry": _retry, "retry_async": _retry}
"""The readers of opnieuw's functions, keyed by name."""
READERS_OF_RETRYHTTP: Final[Readers] = {"retry": _http}
"""The readers of retryhttp's functions, keyed by name."""
