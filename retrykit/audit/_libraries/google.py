"""Retries of google-api-core and google-genai.

Source: google-api-core 2.44.0: transient errors are retried for 120 s; the n-th delay
is drawn from zero to ``initial * multiplier ** (n - 1)``, at most ``maximum``; no call
begins after the timeout. google-genai 3.6.1: with ``HttpRetryOptions``, a client makes
five attempts; the delays double from 1 s to at most 60 s, and up to 1 s of jitter is
added. Without these options, it makes one attempt.
"""

import math
from typing import Final

from retrykit.audit._arguments import (
    MISSING,
    Arguments,
    count,
    error_names,
    seconds,
)
from retrykit.audit._delays import Delays
from retrykit.audit._libraries._reader import Readers
from retrykit.audit._sites import Behavior
from retrykit.audit._values import Call, Reference, Value

__all__ = ["READERS"]

_TRANSIENT = (
    "InternalServerError",
    "TooManyRequests",
    "ServiceUnavailable",
    "ConnectionError",
    "ChunkedEncodingError",
    "TransportError",
)


def _retry(call: Call) -> Behavior:
    arguments = Arguments(
        call, ["predicate", "initial", "maximum", "multiplier", "timeout", "on_error"]
    )
    limit = arguments.get("deadline", arguments.get("timeout", 120.0))
    return Behavior(
        math.inf,
        math.inf if limit is None else seconds(limit),
        Delays(
            "exponential",
            seconds(arguments.get("initial", 1.0)),
            seconds(arguments.get("multiplier", 2.0)),
            seconds(arguments.get("maximum", 60.0)),
            jitter=True,
            low=0.0,
        ),
        _retried(arguments.get("predicate")),
        ending="wrapped",
    )


def _retried(predicate: Value) -> tuple[str, ...] | None:
    if predicate is MISSING:
        return _TRANSIENT
    if type(predicate) is Reference and predicate.last == "if_transient_error":
        return _TRANSIENT
    if type(predicate) is not Call or type(predicate.function) is not Reference:
        return None
    if predicate.function.last != "if_exception_type":
        return None
    return error_names(predicate.positional)


def _options(call: Call) -> Behavior:
    arguments = Arguments(call)
    calls = count(arguments.get("attempts", 5))
    added = seconds(arguments.get("jitter", 1.0))
    return Behavior(
        calls,
        math.inf,
        Delays(
            "exponential",
            seconds(arguments.get("initial_delay", 1.0)),
            seconds(arguments.get("exp_base", 2.0)),
            seconds(arguments.get("max_delay", 60.0)),
            jitter=added != 0,
            added=added or 0.0,
        ),
        ("APIError",),
        ending="raises",
        layer=calls in (0, 1),
    )


READERS: Final[Readers] = {
    "Retry": _retry,
    "AsyncRetry": _retry,
    "StreamingRetry": _retry,
    "AsyncStreamingRetry": _retry,
    "HttpRetryOptions": _options,
}
"""The readers of the library's functions and classes, keyed by name."""
