"""Settings of retrying, as written in its calls.

Source: retrying 1.4.2. Times are in milliseconds; without a stop there is no limit,
without a wait there are no delays, and the longest of several waits counts.
``wait_exponential`` begins with twice its multiplier. The last error is raised, or
wrapped if ``wrap_exception`` is set.
"""

import math
from typing import Final

from retrykit.audit._arguments import Arguments, choose, count, error_names, seconds
from retrykit.audit._delays import NO_DELAYS, UNKNOWN_DELAYS, Delays
from retrykit.audit._libraries._reader import Readers
from retrykit.audit._sites import Behavior
from retrykit.audit._values import UNKNOWN, Call, Value

__all__ = ["READERS"]

_PARAMETERS = [
    "stop",
    "wait",
    "stop_max_attempt_number",
    "stop_max_delay",
    "wait_fixed",
    "wait_random_min",
    "wait_random_max",
    "wait_incrementing_start",
    "wait_incrementing_increment",
    "wait_incrementing_max",
    "wait_exponential_multiplier",
    "wait_exponential_max",
    "retry_on_exception",
    "retry_on_result",
    "wrap_exception",
    "stop_func",
    "wait_func",
    "wait_jitter_max",
]
_OTHERS = ("stop", "stop_func")
_OTHER_WAITS = ("wait", "wait_func")


def _read(call: Call) -> Behavior:
    arguments = Arguments(
        Call(call.function, (), call.named) if _decorates(call) else call, _PARAMETERS
    )
    wrap = arguments.get("wrap_exception", False)
    judged = arguments.get("retry_on_result", None)
    on = arguments.get("retry_on_exception", None)
    return Behavior(
        *_limits(arguments),
        _delays(arguments),
        ("Exception",)
        if on is None
        else error_names(on)
        if type(on) is tuple
        else None,
        results=judged is not None,
        ending=choose(wrap, "wrapped", "raises"),
    )


def _decorates(call: Call) -> bool:
    """Return whether a call is ``retry(function)``."""
    return len(call.positional) == 1 and not isinstance(call.positional[0], str)


def _limits(arguments: Arguments) -> tuple[float | None, float | None]:
    if any(arguments.get(each, None) is not None for each in _OTHERS):
        return None, math.inf
    calls = arguments.get("stop_max_attempt_number", None)
    time = arguments.get("stop_max_delay", None)
    return (
        math.inf if calls is None else count(calls),
        math.inf if time is None else _milliseconds(time),
    )


def _delays(arguments: Arguments) -> Delays:
    if any(arguments.get(each, None) is not None for each in _OTHER_WAITS):
        return UNKNOWN_DELAYS
    waits = [each for each in (reader(arguments) for reader in _WAITS) if each]
    if len(waits) > 1:
        jitter = any(each.jitter for each in waits)
        return UNKNOWN_DELAYS.replace(jitter=jitter)
    [found] = waits or [NO_DELAYS]
    added = arguments.get("wait_jitter_max", None)
    if added is None or added == 0:
        return found
    if found.shape == "none":
        return Delays("constant", _milliseconds(added), jitter=True, low=0.0)
    most = _milliseconds(added) or 0.0
    cap = None if found.cap is None else found.cap + most
    return found.replace(jitter=True, added=most, cap=cap)


def _fixed(arguments: Arguments) -> Delays | None:
    wait = arguments.get("wait_fixed", None)
    if wait is None:
        return None
    return NO_DELAYS if wait == 0 else Delays("constant", _milliseconds(wait))


def _random(arguments: Arguments) -> Delays | None:
    low = arguments.get("wait_random_min", None)
    high = arguments.get("wait_random_max", None)
    if low is None and high is None:
        return None
    least, most = _milliseconds(low or 0), _milliseconds(1000 if high is None else high)
    share = least / most if least and most else 0.0
    return Delays("constant", most, jitter=True, low=share)


def _incrementing(arguments: Arguments) -> Delays | None:
    start = arguments.get("wait_incrementing_start", None)
    step = arguments.get("wait_incrementing_increment", None)
    if start is None and step is None:
        return None
    return Delays(
        "linear",
        _milliseconds(0 if start is None else start),
        _milliseconds(100 if step is None else step),
        _cap(arguments.get("wait_incrementing_max", None)),
    )


def _exponential(arguments: Arguments) -> Delays | None:
    multiplier = arguments.get("wait_exponential_multiplier", None)
    longest = arguments.get("wait_exponential_max", None)
    if multiplier is None and longest is None:
        return None
    first = _milliseconds(1 if multiplier is None else multiplier)
    return Delays(
        "exponential", None if first is None else 2 * first, 2.0, _cap(longest)
    )


def _milliseconds(value: Value) -> float | None:
    found = None if value is UNKNOWN else seconds(value)
    return None if found is None else found / 1000


def _cap(value: Value) -> float | None:
    return math.inf if value is None else _milliseconds(value)


_WAITS = (_fixed, _random, _incrementing, _exponential)

READERS: Final[Readers] = {"retry": _read, "Retrying": _read}
"""The readers of the library's functions and classes, keyed by name."""
