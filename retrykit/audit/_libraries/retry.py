"""Settings of retry and retry2, as written in their calls.

Source: retry 0.9.2 and retry2 0.9.5, both imported as ``retry``. Without ``tries``
there is no limit, and without ``delay`` the first retry comes at once. After each retry
the delay is multiplied by ``backoff``, and ``jitter`` is added to all later delays.
"""

import math
from typing import Final

from retrykit.audit._arguments import (
    Arguments,
    count,
    error_names,
    includes_cancellation,
    seconds,
)
from retrykit.audit._delays import NO_DELAYS, UNKNOWN_DELAYS, Delays
from retrykit.audit._libraries._reader import Readers
from retrykit.audit._sites import Behavior
from retrykit.audit._values import Call

__all__ = ["READERS"]

_SETTINGS = ("exceptions", "tries", "delay", "max_delay", "backoff", "jitter")


def _retry(call: Call) -> Behavior:
    return _read(Arguments(call, _SETTINGS))


def _retry_call(call: Call) -> Behavior:
    return _read(Arguments(call, ["f", "fargs", "fkwargs", *_SETTINGS]))


def _read(arguments: Arguments) -> Behavior:
    tries = count(arguments.get("tries", -1))
    retried = ("Exception",)
    given = arguments.get("exceptions", None)
    found = retried if given is None else error_names(given)
    return Behavior(
        math.inf if tries is not None and tries < 0 else tries,
        math.inf,
        _delays(arguments),
        found,
        # In retry2 a handler may end the call, which then returns None.
        ending="hidden" if "on_exception" in arguments else "raises",
        swallows=includes_cancellation(found),
    )


def _delays(arguments: Arguments) -> Delays:
    jitter = arguments.get("jitter", 0)
    first = seconds(arguments.get("delay", 0))
    growth = seconds(arguments.get("backoff", 1))
    longest = arguments.get("max_delay", None)
    cap = math.inf if longest is None else seconds(longest)
    if type(jitter) is tuple:
        return UNKNOWN_DELAYS.replace(first=first, cap=cap, jitter=True)
    step = seconds(jitter)
    if step:
        # The jitter is added to every delay.
        shape = "linear" if growth == 1 else "unknown"
        return Delays(shape, first, step, cap)
    if step is None:
        return UNKNOWN_DELAYS
    if first == 0:
        return NO_DELAYS
    if growth == 1:
        return Delays("constant", first)
    return Delays("exponential", first, growth, cap)


READERS: Final[Readers] = {"retry": _retry, "retry_call": _retry_call}
"""The readers of the library's functions and classes, keyed by name."""
