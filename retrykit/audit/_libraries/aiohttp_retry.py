"""Settings of aiohttp-retry, as written in its calls.

Source: aiohttp-retry 2.9.1. By default it makes three attempts; the n-th delay of
``ExponentialRetry``, the default, is ``start_timeout * factor ** n``, at most 30 s.
Statuses of 500 and above are retried with every method, and errors only if
``exceptions`` contains them. Retry-After is not obeyed.
"""

import math
from typing import Final

from retrykit.audit._arguments import (
    MISSING,
    Arguments,
    count,
    error_names,
    methods_of,
    seconds,
)
from retrykit.audit._delays import UNKNOWN_DELAYS, Delays
from retrykit.audit._libraries._reader import Readers
from retrykit.audit._sites import Behavior
from retrykit.audit._values import Call

__all__ = ["READERS"]

_METHODS = frozenset(
    ["HEAD", "GET", "PUT", "DELETE", "OPTIONS", "TRACE", "POST", "CONNECT", "PATCH"]
)


def _read(arguments: Arguments, delays: Delays) -> Behavior:
    errors = arguments.get("exceptions", None)
    methods = arguments.get("methods", None)
    timeouts = arguments.get("timeouts", None)
    attempts = arguments.get("attempts", 3)
    calls = count(len(timeouts) if type(timeouts) is tuple else attempts)
    return Behavior(
        calls,
        math.inf,
        delays,
        () if errors is None else error_names(errors),
        results=True,
        ending="raises",
        hint=False,
        methods=_METHODS if methods is None else methods_of(methods),
        layer=calls == 1,
    )


def _exponential(call: Call) -> Behavior:
    arguments = Arguments(call, ["attempts", "start_timeout", "max_timeout", "factor"])
    start = seconds(arguments.get("start_timeout", 0.1))
    factor = seconds(arguments.get("factor", 2.0))
    first = None if start is None or factor is None else start * factor
    cap = seconds(arguments.get("max_timeout", 30.0))
    return _read(arguments, Delays("exponential", first, factor, cap))


def _jitter(call: Call) -> Behavior:
    found = _exponential(call)
    arguments = Arguments(call)
    size = seconds(arguments.get("random_interval_size", 2.0))
    factor = seconds(arguments.get("factor", 2.0))
    added = 0.0 if size is None or factor is None else size**factor
    delays = found.delays
    cap = None if delays.cap is None else delays.cap + added
    return found.replace(delays=delays.replace(jitter=True, added=added, cap=cap))


def _random(call: Call) -> Behavior:
    arguments = Arguments(call, ["attempts"])
    low = seconds(arguments.get("min_timeout", 0.1))
    high = seconds(arguments.get("max_timeout", 3.0))
    share = low / high if low and high else 0.0
    delays = Delays("constant", high, jitter=True, low=share)
    return _read(arguments, delays)


def _list(call: Call) -> Behavior:
    arguments = Arguments(call, ["timeouts"])
    return _read(arguments, UNKNOWN_DELAYS.replace(jitter=False))


def _fibonacci(call: Call) -> Behavior:
    arguments = Arguments(call, ["attempts", "multiplier"])
    cap = seconds(arguments.get("max_timeout", 3.0))
    return _read(arguments, UNKNOWN_DELAYS.replace(cap=cap, jitter=False))


def _client(call: Call) -> Behavior | None:
    arguments = Arguments(
        call, ["client_session", "logger", "retry_options", "raise_for_status"]
    )
    # Options are reported instead.
    if arguments.get("retry_options") is not MISSING:
        return None
    return _exponential(Call(call.function))


READERS: Final[Readers] = {
    "RetryClient": _client,
    "ExponentialRetry": _exponential,
    "RetryOptions": _exponential,
    "JitterRetry": _jitter,
    "RandomRetry": _random,
    "ListRetry": _list,
    "FibonacciRetry": _fibonacci,
}
"""The readers of the library's functions and classes, keyed by name."""
