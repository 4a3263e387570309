"""Retries of urllib3, and of adapters in requests.

Source: urllib3 2.8.0 and requests 2.34.2. By default there are ten retries; the first
comes at once, and the n-th after ``backoff_factor * 2 ** (n - 1)``, at most 120 s. A
number in place of a ``Retry`` means that many retries without delays. Requests that can
be repeated are retried, and others only if they never reached the server.
"""

import math
from typing import Final

from retrykit.audit._arguments import (
    MISSING,
    Arguments,
    calls_of,
    methods_of,
    seconds,
)
from retrykit.audit._delays import NO_DELAYS, UNKNOWN_DELAYS, Delays
from retrykit.audit._libraries._reader import Readers
from retrykit.audit._sites import Behavior
from retrykit.audit._values import UNKNOWN, Call, Value, is_number

__all__ = ["READERS", "REPEATABLE"]

REPEATABLE: Final = frozenset(["HEAD", "GET", "PUT", "DELETE", "OPTIONS", "TRACE"])
"""The methods that urllib3 and httpx-retries retry by default."""

_EVERY: Final = REPEATABLE | {"POST", "PATCH"}
_COUNTS = ("connect", "read", "redirect", "status", "other")


def _retry(call: Call) -> Behavior:
    arguments = Arguments(call, ["total", *_COUNTS])
    obeyed = arguments.get("respect_retry_after_header", True)
    calls = _calls(arguments)
    return Behavior(
        calls,
        math.inf,
        _delays(arguments),
        ("HTTPError", *_statuses(arguments)),
        ending="wrapped",
        hint=obeyed if type(obeyed) is bool else None,
        methods=_methods(arguments),
        layer=calls == 1,
    )


def _calls(arguments: Arguments) -> float | None:
    total = arguments.get("total", 10)
    if total is False:
        return 1.0
    if total is not None:
        return calls_of(total)
    # Several kinds of failures are counted by themselves.
    given = [arguments.get(each, None) for each in _COUNTS if each != "redirect"]
    known = [calls_of(each) for each in given if each is not None]
    if not known:
        return math.inf
    return known[0] if len(known) == 1 else None


def _statuses(arguments: Arguments) -> tuple[str, ...]:
    statuses = arguments.get("status_forcelist", ())
    if type(statuses) is tuple and all(type(each) is int for each in statuses):
        return tuple(map(str, statuses))
    return ()


def _methods(arguments: Arguments) -> frozenset[str] | None:
    given = arguments.get("allowed_methods", arguments.get("method_whitelist"))
    if given is MISSING:
        return REPEATABLE
    if given is None or given is False:
        return _EVERY
    found = methods_of(given)
    # None means every method.
    return _EVERY if found == frozenset() else found


def _delays(arguments: Arguments) -> Delays:
    factor = seconds(arguments.get("backoff_factor", 0))
    added = seconds(arguments.get("backoff_jitter", 0))
    cap = seconds(arguments.get("backoff_max", 120))
    if added is None:
        return UNKNOWN_DELAYS
    if factor == 0:
        if added == 0:
            return NO_DELAYS
        return Delays("constant", added, cap=cap, jitter=True, low=0.0, at_once=1)
    jitter = added != 0
    return Delays(
        "exponential", factor, 2.0, cap, jitter=jitter, added=added, at_once=1
    )


def _adapter(call: Call) -> Behavior | None:
    arguments = Arguments(
        call, ["pool_connections", "pool_maxsize", "max_retries", "pool_block"]
    )
    retries = arguments.get("max_retries")
    if retries is UNKNOWN:
        # Such as an attribute that may be a number or a `Retry`.
        return Behavior(None, ending="wrapped", methods=REPEATABLE)
    return _number(retries)


def _pools(call: Call) -> Behavior | None:
    return _number(Arguments(call).get("retries"))


def _number(retries: Value) -> Behavior | None:
    """Return the behavior for a number of retries; None if it is not a number."""
    if not is_number(retries):
        return None
    calls = calls_of(retries)
    return Behavior(
        calls,
        math.inf,
        NO_DELAYS,
        ("HTTPError",),
        ending="wrapped",
        hint=True,
        methods=REPEATABLE,
        layer=calls == 1,
    )


READERS: Final[Readers] = {
    "Retry": _retry,
    "from_int": lambda call: _number(Arguments(call, ["retries"]).get("retries")),
    "HTTPAdapter": _adapter,
    "PoolManager": _pools,
    "ProxyManager": _pools,
}
"""The readers of the library's functions and classes, keyed by name."""
