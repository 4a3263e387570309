"""Retries of redis-py: with ``Retry``, or by default in its clients.

Source: redis 8.1.0. ``Retry(backoff, retries)``: the n-th delay of an exponential
backoff is ``base * 2 ** n``, at most ``cap``; a negative number of retries is
unlimited. A client without ``retry=`` retries ten times, after up to 20 ms, 40 ms, and
so on, at most 1 s.
"""

import math
from typing import Final

from retrykit.audit._arguments import (
    MISSING,
    Arguments,
    calls_of,
    error_names,
    seconds,
)
from retrykit.audit._delays import NO_DELAYS, UNKNOWN_DELAYS, Delays
from retrykit.audit._libraries._reader import Readers
from retrykit.audit._sites import Behavior
from retrykit.audit._values import Call, Reference, Value, is_number

__all__ = ["READERS"]

_ERRORS = ("ConnectionError", "TimeoutError")
# The shortest random delay, as a share of the delay.
_SPREADS: Final[dict[str, float | None]] = {
    "ExponentialBackoff": 1.0,
    "FullJitterBackoff": 0.0,
    "EqualJitterBackoff": 0.5,
    "ExponentialWithJitterBackoff": 0.0,
}


def _retry(call: Call) -> Behavior:
    arguments = Arguments(call, ["backoff", "retries", "supported_errors"])
    retries = arguments.get("retries")
    endless = is_number(retries) and retries < 0
    errors = arguments.get("supported_errors", None)
    calls = math.inf if endless else calls_of(retries)
    return Behavior(
        calls,
        math.inf,
        _delays(arguments.get("backoff")),
        _ERRORS if errors is None else error_names(errors),
        ending="raises",
        layer=calls == 1,
    )


def _delays(backoff: Value) -> Delays:
    if type(backoff) is not Call or type(backoff.function) is not Reference:
        return UNKNOWN_DELAYS
    name = backoff.function.last
    if name == "NoBackoff":
        return NO_DELAYS
    if name == "ConstantBackoff":
        delay = seconds(Arguments(backoff, ["backoff"]).get("backoff"))
        return Delays("constant", delay)
    arguments = Arguments(backoff, ["cap", "base"])
    cap = seconds(arguments.get("cap", 0.512))
    base = seconds(arguments.get("base", 0.008))
    low = _SPREADS.get("EqualJitterBackoff" if name == "default_backoff" else name)
    if low is None:
        jitter = True if name == "DecorrelatedJitterBackoff" else None
        return UNKNOWN_DELAYS.replace(cap=cap, jitter=jitter)
    first = None if base is None else 2 * base
    return Delays("exponential", first, 2.0, cap, jitter=low < 1, low=low)


def _client(call: Call) -> Behavior | None:
    """Return the behavior of a client; None if ``retry=`` is given."""
    arguments = Arguments(call)
    if arguments.get("retry") is not MISSING:
        return None
    extra = arguments.get("retry_on_error", ())
    names = error_names(extra) or ()
    return Behavior(
        11.0,
        math.inf,
        Delays("exponential", 0.02, 2.0, 1.0, jitter=True, low=0.0),
        tuple(dict.fromkeys([*_ERRORS, *names])),
        ending="raises",
        layer="retry_on_error" not in arguments,
    )


READERS: Final[Readers] = {
    "Retry": _retry,
    "Redis": _client,
    "StrictRedis": _client,
    "from_url": _client,
}
"""The readers of the library's functions and classes, keyed by name."""
