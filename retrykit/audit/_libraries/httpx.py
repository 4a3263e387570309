"""Retries of httpx and httpx-retries transports.

Source: httpx 0.28.1: a transport repeats only failed connections, first at once, and
then after 0.5, 1, 2 s, and so on. httpx-retries 0.6.0: by default, a transport retries
ten times, without delays. If ``backoff_factor`` is set, the n-th delay is drawn from
zero to ``backoff_factor * 2 ** n``, by default at most 120 s.
"""

import math
from typing import Final

from retrykit.audit._arguments import (
    MISSING,
    Arguments,
    calls_of,
    error_names,
    methods_of,
    seconds,
)
from retrykit.audit._delays import NO_DELAYS, Delays
from retrykit.audit._libraries._reader import Readers
from retrykit.audit._libraries.urllib3 import REPEATABLE
from retrykit.audit._sites import Behavior
from retrykit.audit._values import Call, is_number

__all__ = ["READERS", "READERS_OF_RETRIES"]

_CONNECTS = Delays("exponential", 0.25, 2.0, at_once=1)
_ERRORS = ("TimeoutException", "NetworkError", "RemoteProtocolError")


def _transport(call: Call) -> Behavior | None:
    retries = Arguments(call).get("retries")
    if not is_number(retries):
        return None
    calls = calls_of(retries)
    return Behavior(
        calls,
        math.inf,
        _CONNECTS,
        ("ConnectError", "ConnectTimeout"),
        ending="raises",
        layer=calls == 1,
    )


def _retry(call: Call) -> Behavior:
    arguments = Arguments(
        call, ["total", "allowed_methods", "status_forcelist", "retry_on_exceptions"]
    )
    obeyed = arguments.get("respect_retry_after_header", True)
    errors = arguments.get("retry_on_exceptions", None)
    methods = arguments.get("allowed_methods", None)
    return Behavior(
        calls_of(arguments.get("total", 10)),
        math.inf,
        _delays(arguments),
        _ERRORS if errors is None else error_names(errors),
        results=True,
        ending="raises",
        hint=obeyed if type(obeyed) is bool else None,
        methods=REPEATABLE if methods is None else methods_of(methods),
    )


def _delays(arguments: Arguments) -> Delays:
    factor = seconds(arguments.get("backoff_factor", 0.0))
    if factor == 0:
        return NO_DELAYS
    spread = seconds(arguments.get("backoff_jitter", 1.0))
    return Delays(
        "exponential",
        None if factor is None else 2 * factor,
        2.0,
        seconds(arguments.get("max_backoff_wait", 120.0)),
        jitter=None if spread is None else spread > 0,
        low=1 - (spread or 0.0),
    )


def _retry_transport(call: Call) -> Behavior | None:
    retry = Arguments(call, ["transport", "retry"]).get("retry")
    # A ``retry=`` is reported instead.
    return _retry(Call(call.function)) if retry is MISSING else None


READERS: Final[Readers] = {
    "HTTPTransport": _transport,
    "AsyncHTTPTransport": _transport,
}
"""The readers of httpx's classes, keyed by name."""
READERS_OF_RETRIES: Final[Readers] = {
    "Retry": _retry,
    "RetryTransport": _retry_transport,
}
"""The readers of the classes of httpx-retries, keyed by name."""
