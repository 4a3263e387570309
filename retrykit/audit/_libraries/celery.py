"""Retries of Celery tasks.

Source: Celery 5.7.0. ``autoretry_for`` retries three times by default, 180 s apart.
With ``retry_backoff=factor``, each delay is drawn from zero to a bound, in whole
seconds: ``factor * 2 ** (n - 1)`` for the n-th delay, at most 600 s; with
``retry_jitter=False`` the delay is that bound. Without ``autoretry_for``,
``self.retry`` retries: three times, after ``countdown`` or 180 s.
"""

import math
from typing import Final

from retrykit.audit._arguments import (
    MISSING,
    Arguments,
    calls_of,
    error_names,
    includes_cancellation,
    seconds,
)
from retrykit.audit._delays import NO_DELAYS, UNKNOWN_DELAYS, Delays
from retrykit.audit._libraries._reader import Readers
from retrykit.audit._sites import Behavior
from retrykit.audit._values import (
    Call,
    Operation,
    Reference,
    Value,
    is_number,
)

__all__ = ["METHODS", "READERS", "within_task"]

_OF_TASK = ("max_retries", "default_retry_delay")


def _task(call: Call) -> Behavior | None:
    """Return the behavior of a task decorator; None without ``autoretry_for``."""
    arguments = Arguments(call)
    errors = arguments.get("autoretry_for", ())
    if errors == ():
        return None
    extra = _keywords(arguments.get("retry_kwargs", None), call)
    most = extra.get("max_retries", arguments.get("max_retries", 3))
    retried = error_names(errors)
    return Behavior(
        math.inf if most is None else calls_of(most),
        math.inf,
        _backoff(arguments, extra),
        retried,
        ending="raises",
        swallows=includes_cancellation(retried),
    )


def _keywords(given: Value, call: Call) -> Arguments:
    named = () if given is None else (("", given),)
    return Arguments(Call(call.function, (), named))


def _backoff(arguments: Arguments, extra: Arguments) -> Delays:
    factor = arguments.get("retry_backoff", False)
    if factor is False or factor == 0:
        delay = arguments.get("default_retry_delay", 180)
        return _constant(extra.get("countdown", delay))
    jitter = arguments.get("retry_jitter", True)
    # It is rounded down, to at least a second.
    first = max(1, int(factor)) if is_number(factor) or factor is True else None
    return Delays(
        "exponential",
        first,
        2.0,
        seconds(arguments.get("retry_backoff_max", 600)),
        jitter=jitter if type(jitter) is bool else None,
        low=1.0 if jitter is False else 0.0,
    )


def _constant(delay: Value) -> Delays:
    found = seconds(delay)
    return NO_DELAYS if found == 0 else Delays("constant", found)


def _retry(call: Call) -> Behavior:
    """Return the behavior of ``self.retry(...)``."""
    arguments = Arguments(call, ["args", "kwargs", "exc", "throw", "eta"])
    most = arguments.get("max_retries", 3)
    delay = arguments.get("countdown", arguments.get("default_retry_delay", 180))
    if arguments.get("eta") is not MISSING:
        delays = UNKNOWN_DELAYS
    else:
        delays = _countdown(delay)
    return Behavior(
        math.inf if most is None else calls_of(most),
        math.inf,
        delays,
        None,
        ending="raises" if "exc" in arguments else "?",
    )


def _countdown(delay: Value) -> Delays:
    """Return the delays of a ``countdown=``, such as ``2 ** self.request.retries``."""
    if type(delay) is Operation:
        return _formula(delay)
    if type(delay) is Call:
        name = delay.function.last if type(delay.function) is Reference else ""
        if name == "min":
            parts = [seconds(each) for each in delay.positional]
            known = [each for each in parts if each is not None]
            for each in delay.positional:
                if type(each) is Operation and known:
                    return _formula(each).replace(cap=min(known))
        if name in ("uniform", "randint", "random", "randrange"):
            return UNKNOWN_DELAYS.replace(jitter=True)
        if name == "int" and len(delay.positional) == 1:
            return _countdown(delay.positional[0])
    # A setting is the same before each retry.
    stays = type(delay) is Reference or seconds(delay) is not None
    return _constant(delay) if stays else UNKNOWN_DELAYS


def _formula(delay: Operation) -> Delays:
    left, right = seconds(delay.left), seconds(delay.right)
    if delay.sign == "**" and left is not None:
        return Delays("exponential", 1.0, left)
    if delay.sign == "*":
        for factor, other in ((left, delay.right), (right, delay.left)):
            if factor is not None and type(other) is Operation:
                found = _formula(other)
                if found.first is not None:
                    return found.replace(first=factor * found.first)
    if delay.sign == "+":
        for other, part in ((delay.left, delay.right), (delay.right, delay.left)):
            found = _countdown(part)
            if found.jitter and type(other) is Operation:
                return _formula(other).replace(jitter=True)
    return UNKNOWN_DELAYS


def within_task(call: Call, decorator: Call) -> Call:
    """Return a call of ``self.retry``, completed with its task's settings.

    Args:
        call: The call of ``self.retry``.
        decorator: The call that makes the function around *call* a task.
    """
    given = Arguments(call)
    of_task = Arguments(decorator)
    added = tuple(
        (name, of_task.get(name))
        for name in _OF_TASK
        if name in of_task and name not in given
    )
    return Call(call.function, call.positional, (*call.named, *added))


READERS: Final[Readers] = {"shared_task": _task, "task": _task, "retry": _retry}
"""The readers of the library's functions and classes, keyed by name."""
METHODS: Final[Readers] = {"task": _task}
"""The readers of an application's methods, keyed by name."""
