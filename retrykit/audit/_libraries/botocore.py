"""Retries of botocore's clients, by default or as set in a ``Config``.

Source: botocore 1.44.8. Without a configuration, a client makes three requests, and a
DynamoDB client four. ``total_max_attempts`` includes the first request;
``max_attempts`` does not. In the modes "standard" (the default) and "adaptive", the
n-th delay is drawn from zero to a bound: ``0.05 * 2 ** (n - 1)`` s, or twenty times
that after a throttling error, but at most 20 s. The larger bound is reported here. In
the mode "legacy", a client makes five requests, and the bound is ``2 ** (n - 1)`` s.
"""

import math
from typing import Final

from retrykit.audit._arguments import MISSING, Arguments, calls_of, count
from retrykit.audit._delays import UNKNOWN_DELAYS, Delays
from retrykit.audit._libraries._reader import Readers
from retrykit.audit._sites import Behavior
from retrykit.audit._values import UNKNOWN, Call, Dictionary

__all__ = ["METHODS", "READERS"]

_ERRORS = ("ClientError", "EndpointConnectionError", "HTTPClientError")
_FIRST = {"legacy": 1.0, "standard": 1.0, "adaptive": 1.0}


def _config(call: Call) -> Behavior | None:
    retries = Arguments(call).get("retries")
    if retries is MISSING or retries is None:
        return None
    settings = (
        Arguments(Call(call.function, (), (("", retries),)))
        if type(retries) is Dictionary
        else Arguments(Call(call.function, (UNKNOWN,)))
    )
    mode = settings.get("mode", "standard")
    total = settings.get("total_max_attempts", None)
    more = settings.get("max_attempts", None)
    if total is not None:
        calls = count(total)
    elif more is not None:
        calls = calls_of(more)
    else:
        calls = {"legacy": 5.0}.get(mode, 3.0) if type(mode) is str else None
    if type(mode) is not str or mode not in _FIRST:
        delays = UNKNOWN_DELAYS.replace(jitter=True)
    else:
        cap = math.inf if mode == "legacy" else 20.0
        delays = Delays("exponential", _FIRST[mode], 2.0, cap, jitter=True, low=0.0)
    return Behavior(
        calls, math.inf, delays, _ERRORS, ending="raises", layer=calls in (0, 1)
    )


def _client(call: Call) -> Behavior | None:
    """Return the behavior of a client; None if a configuration may set its retries."""
    arguments = Arguments(call, ["service_name"])
    config = arguments.get("config", None)
    if config is not None and (type(config) is not Call or _config(config)):
        # The configuration is reported instead.
        return None
    service = arguments.get("service_name")
    of_dynamodb = type(service) is str and service.startswith("dynamodb")
    return Behavior(
        4.0 if of_dynamodb else 3.0,
        math.inf,
        Delays("exponential", 1.0, 2.0, 20.0, jitter=True, low=0.0),
        _ERRORS,
        ending="raises",
        layer=True,
    )


READERS: Final[Readers] = {
    "Config": _config,
    "AioConfig": _config,
    "client": _client,
    "resource": _client,
}
"""The readers of the library's functions and classes, keyed by name."""
METHODS: Final[Readers] = {
    "client": _client,
    "resource": _client,
    "create_client": _client,
}
"""The readers of a session's methods, keyed by name."""
