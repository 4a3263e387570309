"""Settings of stamina, as written in its calls.

Source: stamina 26.1.0. By default 10 calls within 45 s; the n-th delay is
``wait_initial * wait_exp_base ** (n - 1)`` plus a random time of up to ``wait_jitter``,
at most ``wait_max``. The last error is raised.
"""

import math
from typing import Final

from retrykit.audit._arguments import (
    MISSING,
    Arguments,
    count,
    error_names,
    includes_cancellation,
    seconds,
)
from retrykit.audit._delays import Delays
from retrykit.audit._libraries._reader import Readers
from retrykit.audit._sites import Behavior
from retrykit.audit._values import Call, Value

__all__ = ["READERS"]

_SETTINGS = (
    "attempts",
    "timeout",
    "wait_initial",
    "wait_max",
    "wait_jitter",
    "wait_exp_base",
)


def _retry(call: Call) -> Behavior:
    return _read(Arguments(call, ["on", *_SETTINGS]))


def _caller(call: Call) -> Behavior:
    return _read(Arguments(call, _SETTINGS))


def _read(arguments: Arguments) -> Behavior:
    attempts, timeout = arguments.get("attempts", 10), arguments.get("timeout", 45.0)
    added = seconds(arguments.get("wait_jitter", 1.0))
    on: Value = arguments.get("on", MISSING)
    retried = error_names(on)
    return Behavior(
        math.inf if attempts is None else count(attempts),
        math.inf if timeout is None else seconds(timeout),
        Delays(
            "exponential",
            seconds(arguments.get("wait_initial", 0.1)),
            seconds(arguments.get("wait_exp_base", 2)),
            seconds(arguments.get("wait_max", 5.0)),
            jitter=added != 0,
            added=added or 0.0,
        ),
        retried,
        ending="raises",
        swallows=includes_cancellation(retried),
    )


READERS: Final[Readers] = {
    "retry": _retry,
    "retry_context": _retry,
    "RetryingCaller": _caller,
    "AsyncRetryingCaller": _caller,
}
"""The readers of the library's functions and classes, keyed by name."""
