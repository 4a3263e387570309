"""Settings of backoff, as written in its calls.

Source: backoff 2.2.1. ``max_tries`` includes the first call; without ``max_tries`` and
``max_time`` there is no limit. Each delay is drawn from zero to what the generator
yields (``full_jitter``), unless ``jitter=`` is given.
"""

import math
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
from retrykit.audit._delays import UNKNOWN_DELAYS, Delays
from retrykit.audit._libraries._reader import Readers
from retrykit.audit._sites import Behavior
from retrykit.audit._values import Call, Reference, Value

__all__ = ["READERS"]

_EVERY = frozenset(["BaseException", "Exception"])
_GOLDEN = (1 + math.sqrt(5)) / 2


def _on_exception(call: Call) -> Behavior:
    arguments = Arguments(call, ["wait_gen", "exception"])
    retried = error_names(arguments.get("exception"))
    every = not _EVERY.isdisjoint(retried or ())
    told_apart = arguments.get("giveup") is not MISSING and every
    raises = arguments.get("raise_on_giveup", True)
    return Behavior(
        *_limits(arguments),
        _delays(arguments),
        None if told_apart else retried,
        ending=choose(raises, "raises", "hidden"),
        swallows=includes_cancellation(retried),
    )


def _on_predicate(call: Call) -> Behavior:
    arguments = Arguments(call, ["wait_gen", "predicate"])
    # The last result is returned, whatever it is.
    return Behavior(
        *_limits(arguments), _delays(arguments), (), results=True, ending="raises"
    )


def _limits(arguments: Arguments) -> tuple[float | None, float | None]:
    tries, time = arguments.get("max_tries", None), arguments.get("max_time", None)
    return (
        math.inf if tries is None else count(tries),
        math.inf if time is None else seconds(time),
    )


def _delays(arguments: Arguments) -> Delays:
    jitter = arguments.get("jitter", Reference("backoff.full_jitter"))
    name = jitter.last if type(jitter) is Reference else ""
    found = _generated(arguments)
    if jitter is None:
        return found.replace(jitter=False)
    if name == "full_jitter":
        return found.replace(jitter=True, low=0.0)
    if name == "random_jitter":
        # Beyond max_value.
        cap = None if found.cap is None else found.cap + 1.0
        return found.replace(jitter=True, added=1.0, cap=cap)
    return UNKNOWN_DELAYS


def _generated(arguments: Arguments) -> Delays:
    """Return the delays that the generator of a call yields."""
    wait = arguments.get("wait_gen")
    name = wait.last if type(wait) is Reference else ""
    longest = _cap(arguments.get("max_value", None))
    if name == "expo":
        first = seconds(arguments.get("factor", 1))
        return Delays("exponential", first, seconds(arguments.get("base", 2)), longest)
    if name == "fibo":
        return Delays("fibonacci", 1.0, _GOLDEN, longest)
    if name == "constant":
        return Delays("constant", seconds(arguments.get("interval", 1)))
    return UNKNOWN_DELAYS


def _cap(value: Value) -> float | None:
    return math.inf if value is None or value is MISSING else seconds(value)


READERS: Final[Readers] = {"on_exception": _on_exception, "on_predicate": _on_predicate}
"""The readers of the library's functions and classes, keyed by name."""
