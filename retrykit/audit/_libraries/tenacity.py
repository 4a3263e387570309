"""Settings of tenacity, as written in its calls.

Source: tenacity 9.2.1. Without ``stop=`` there is no limit; without ``wait=``, or with
None or 0, there are no delays; without ``retry=``, every ``Exception`` is retried. The
last error is wrapped in a ``RetryError``, unless ``reraise=True``.
"""

import math
from functools import reduce
from typing import Final

from retrykit.audit._arguments import (
    MISSING,
    Arguments,
    choose,
    count,
    error_names,
    includes_cancellation,
    seconds,
)
from retrykit.audit._delays import NO_DELAYS, UNKNOWN_DELAYS, Delays
from retrykit.audit._libraries._reader import Readers
from retrykit.audit._sites import Behavior
from retrykit.audit._values import UNKNOWN, Call, Operation, Reference, Value

__all__ = ["READERS"]

Limits = tuple[float | None, float | None]

_ENDLESS: Final[Limits] = (math.inf, math.inf)
_LARGEST: Final = 4_611_686_018_427_387_903.0
_PARAMETERS = [
    "sleep",
    "stop",
    "wait",
    "retry",
    "before",
    "after",
    "before_sleep",
    "reraise",
    "retry_error_cls",
    "retry_error_callback",
]


def _read(call: Call) -> Behavior | None:
    arguments = Arguments(call, _PARAMETERS)
    if _decorates(call):
        return Behavior(math.inf, math.inf, NO_DELAYS, ("Exception",), ending="wrapped")
    calls, elapsed = _limits(arguments.get("stop"))
    retry = arguments.get("retry")
    retried, results = _retried(retry)
    return Behavior(
        calls,
        elapsed,
        _delays(arguments.get("wait")),
        retried,
        results=results,
        ending=_ending(arguments),
        swallows=includes_cancellation(retried) or _retries_others(retry),
    )


def _decorates(call: Call) -> bool:
    """Return whether a call is ``retry(function)``, without any settings."""
    return (
        type(call.function) is Reference
        and call.function.last == "retry"
        and len(call.positional) == 1
        and not call.named
    )


def _ending(arguments: Arguments) -> str:
    callback = arguments.get("retry_error_callback", None)
    if callback is not None:
        return "?"
    return choose(arguments.get("reraise", False), "raises", "wrapped")


def _parts(value: Value, name: str) -> tuple[list[Value], bool] | None:
    """Return the parts that ``|``, ``&``, ``..._any`` or ``..._all`` combine.

    Returns:
        The parts, and whether any of them is enough; None if nothing is combined.
    """
    if type(value) is Operation and value.sign in ("|", "&"):
        return [value.left, value.right], value.sign == "|"
    if type(value) is Call and _name(value) in (f"{name}_any", f"{name}_all"):
        return [*value.positional], _name(value) == f"{name}_any"
    return None


def _limits(stop: Value) -> Limits:
    """Return the most calls and the most seconds that a ``stop=`` allows."""
    combined = _parts(stop, "stop")
    if combined is not None:
        parts, is_any = combined
        return reduce(_first if is_any else _last, map(_limits, parts or [UNKNOWN]))
    name = _name(stop)
    if stop is MISSING or stop is None or name == "stop_never":
        return _ENDLESS
    if type(stop) is Call and name == "stop_after_attempt":
        attempts = Arguments(stop, ["max_attempt_number"]).get("max_attempt_number")
        return count(attempts), math.inf
    if type(stop) is Call and name in ("stop_after_delay", "stop_before_delay"):
        return math.inf, seconds(Arguments(stop, ["max_delay"]).get("max_delay"))
    return None, math.inf


def _first(one: Limits, other: Limits) -> Limits:
    return _earlier(one[0], other[0]), _earlier(one[1], other[1])


def _last(one: Limits, other: Limits) -> Limits:
    found = _later(one[0], other[0]), _later(one[1], other[1])
    if found == _ENDLESS and _ENDLESS not in (one, other):
        # One limits the calls, and the other one the time.
        return None, math.inf
    return found


def _earlier(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        known = [x for x in (one, other) if x is not None and x != math.inf]
        return known[0] if known else None
    return min(one, other)


def _later(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else max(one, other)


_NAMED: Final[dict[str, tuple[tuple[str, ...], bool]]] = {
    "retry_if_result": ((), True),
    "retry_if_not_result": ((), True),
    "retry_always": (("BaseException",), True),
    "retry_never": ((), False),
}


_ALL_BUT_SOME = frozenset(
    ["retry_if_not_exception_type", "retry_unless_exception_type"]
)


def _retried(retry: Value) -> tuple[tuple[str, ...] | None, bool]:
    """Return the errors that a ``retry=`` retries, and whether it tests results.

    Returns:
        The names of the errors, or None if they are not known; and whether results
        are tested.
    """
    if retry is MISSING:
        return ("Exception",), False
    combined = _parts(retry, "retry")
    if combined is not None:
        parts, is_any = combined
        found = [_retried(each) for each in parts]
        names = [each for each, _ in found]
        results = any(each for _, each in found)
        if not is_any or None in names:
            return None, results
        return tuple(dict.fromkeys(x for each in names for x in each or ())), results
    name = _name(retry)
    if type(retry) is Call and name == "retry_if_exception_type":
        arguments = Arguments(retry, ["exception_types"])
        given = arguments.get("exception_types", Reference("Exception"))
        return error_names(given), False
    return _NAMED.get(name, (None, False))


def _retries_others(retry: Value) -> bool:
    """Return whether all errors but some are retried, and a cancellation with them."""
    combined = _parts(retry, "retry")
    if combined is not None:
        parts, is_any = combined
        return is_any and any(map(_retries_others, parts))
    if type(retry) is not Call or _name(retry) not in _ALL_BUT_SOME:
        return False
    excluded = error_names(Arguments(retry, ["exception_types"]).get("exception_types"))
    return excluded is not None and not includes_cancellation(excluded)


def _delays(wait: Value) -> Delays:
    """Return the delays of a ``wait=``."""
    if wait is MISSING or wait is None or wait == 0:
        return NO_DELAYS
    if type(wait) is Operation and wait.sign == "+":
        return _sum(_delays(wait.left), _delays(wait.right))
    name = _name(wait)
    if name == "wait_none":
        return NO_DELAYS
    if type(wait) is not Call:
        return UNKNOWN_DELAYS
    reader = _WAITS.get(name)
    return UNKNOWN_DELAYS if reader is None else reader(wait)


def _sum(one: Delays, other: Delays) -> Delays:
    """Return the sum of two series of delays."""
    for first, second in ((one, other), (other, one)):
        if second.shape == "none":
            return first
        if second.shape == "constant" and second.low == 0.0:
            if second.first is None or first.cap is None:
                return first.replace(jitter=True)
            return first.replace(
                jitter=True,
                added=first.added + second.first,
                cap=first.cap + second.first,
            )
    jitter = True if True in (one.jitter, other.jitter) else one.jitter
    return UNKNOWN_DELAYS.replace(jitter=jitter)


def _fixed(call: Call) -> Delays:
    delay = seconds(Arguments(call, ["wait"]).get("wait", 0))
    return NO_DELAYS if delay == 0 else Delays("constant", delay)


def _random(call: Call) -> Delays:
    arguments = Arguments(call, ["min", "max"])
    low, high = seconds(arguments.get("min", 0)), seconds(arguments.get("max", 1))
    share = low / high if high and low is not None else 0.0
    return Delays("constant", high, jitter=True, low=share if low else 0.0)


def _incrementing(call: Call) -> Delays:
    arguments = Arguments(call, ["start", "increment", "max"])
    start = seconds(arguments.get("start", 0))
    step = seconds(arguments.get("increment", 100))
    return Delays("linear", start, step, _cap(arguments.get("max")))


def _exponential(call: Call) -> Delays:
    arguments = Arguments(call, ["multiplier", "max", "exp_base", "min"])
    first = seconds(arguments.get("multiplier", 1))
    base = seconds(arguments.get("exp_base", 2))
    least = seconds(arguments.get("min", 0))
    cap = _cap(arguments.get("max"))
    if least is None:
        return Delays("exponential", None, base, cap)
    return Delays("exponential", first, base, cap, least=least)


def _random_exponential(call: Call) -> Delays:
    return _exponential(call).replace(jitter=True, low=0.0)


def _exponential_jitter(call: Call) -> Delays:
    arguments = Arguments(call, ["initial", "max", "exp_base", "jitter", "multiplier"])
    first = seconds(arguments.get("multiplier", arguments.get("initial", 1)))
    added = seconds(arguments.get("jitter", 1))
    return Delays(
        "exponential",
        first,
        seconds(arguments.get("exp_base", 2)),
        _cap(arguments.get("max")),
        jitter=added != 0,
        added=added or 0.0,
        least=seconds(arguments.get("min", 0)) or 0.0,
    )


def _cap(value: Value) -> float | None:
    if value is MISSING:
        return math.inf
    cap = seconds(value)
    return math.inf if cap is not None and cap >= _LARGEST else cap


def _combined(call: Call) -> Delays:
    found = NO_DELAYS
    for each in call.positional:
        found = _sum(found, _delays(each)) if found is not NO_DELAYS else _delays(each)
    return found


def _chain(call: Call) -> Delays:
    parts = [_delays(each) for each in call.positional]
    if UNKNOWN in call.positional or not parts:
        return UNKNOWN_DELAYS
    jitter = (
        None if any(x.jitter is None for x in parts) else any(x.jitter for x in parts)
    )
    return Delays.of_list([each.longest(1) for each in parts], jitter)


_WAITS = {
    "wait_fixed": _fixed,
    "wait_random": _random,
    "wait_incrementing": _incrementing,
    "wait_exponential": _exponential,
    "wait_random_exponential": _random_exponential,
    "wait_full_jitter": _random_exponential,
    "wait_exponential_jitter": _exponential_jitter,
    "wait_combine": _combined,
    "wait_chain": _chain,
}


def _name(value: Value) -> str:
    if type(value) is Call:
        value = value.function
    return value.last if type(value) is Reference else ""


READERS: Final[Readers] = dict.fromkeys(
    ("retry", "Retrying", "AsyncRetrying", "TornadoRetrying", "retry_with"), _read
)
"""The readers of the library's functions and classes, keyed by name."""
