"""What a hint is: the delay that a failed attempt itself asks for.

A hint is a function of the user's, so it is asked with care. The hints that
there are stand in `retrykit.hints`; what is done with an answer is said where
policies are decided.
"""

import inspect
import logging
from collections.abc import Callable
from types import FunctionType
from typing import Any

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.introspection import accepts_one_argument, is_coroutine_function
from retrykit._internal.type_names import type_name
from retrykit._internal.validation import invalid_setting, safe_repr
from retrykit.schedules.randomness import MAX_DELAY
from retrykit.state.fault_log import log_fault
from retrykit.state.records import error_text
from retrykit.state.signals import GiveUp, RetryAfter

__all__ = [
    "CompositeHint",
    "Hint",
    "check_hint",
    "parse_answer",
    "read_hint",
    "requested_delay",
]

Hint = Callable[[Any], Duration | RetryAfter | GiveUp | None]
"""A function of the error that was raised, or of the result that was refused.

It returns what that asks for: a duration, to wait at least as long, and no less
than the schedule says; ``RetryAfter(delay)``, to wait as long, whatever the
schedule says; ``GiveUp()``, to make no further attempt; or None, where it asks for
nothing.
"""


def check_hint(name: str, value: object) -> object:
    """Return *value* if an outcome can be read by it.

    Raises:
        ConfigError: It is no function of one argument, or it must be awaited.
    """
    if isinstance(value, FunctionType) and str(value.__module__).startswith(_READY):
        rule = "a hint, not what makes one"
        raise invalid_setting(name, rule, value, f"call it: {value.__name__}(...)")
    if isinstance(value, type) or not callable(value):
        rule = "a function of the error or result"
        raise invalid_setting(
            name, rule, value, "write one, or take one of retrykit.hints"
        )
    if not accepts_one_argument(value):
        raise invalid_setting(name, "a function that takes the error or result", value)
    if is_coroutine_function(value):
        rule = "a plain function, under aretry too"
        raise invalid_setting(
            name, rule, value, "what it reads is there when it is asked"
        )
    return value


_READY = "retrykit.hints."


class CompositeHint:
    """A hint that is made of others, of which the first answer counts.

    Attributes:
        hints: The hints, in the order in which they are asked.
    """

    __slots__ = ()
    hints: tuple[Hint, ...]


def read_hint(
    hint: Hint,
    outcome: object,
    error: Exception | None,
    warned: Callable[[], bool] | None = None,
) -> float | RetryAfter | GiveUp | None:
    """Return what an outcome asks for, by a hint that may be broken.

    What cannot be understood asks for nothing, and a warning says so.

    >>> read_hint(lambda error: error.args[0], OSError("250ms"), None)
    0.25

    Args:
        hint: The function that reads the outcome.
        outcome: What the attempt raised or returned.
        error: What it raised, whose traceback is left as it is; None if it
            returned.
        warned: What says, when a warning is due, whether there was one already;
            None if there was none.

    Returns:
        Seconds, >= 0 and at most `MAX_DELAY`, to wait at least; or a signal; or
        None.
    """
    if isinstance(hint, CompositeHint):
        answers = (read_hint(each, outcome, error, warned) for each in hint.hints)
        return next((answer for answer in answers if answer is not None), None)
    trace = error.__traceback__ if error is not None else None
    try:
        answer = hint(outcome)
    except Exception as fault:  # noqa: BLE001  the user's error must come through
        reason = f"it raised {type_name(type(fault))}: {error_text(fault)}"
        _warn(hint, reason, fault, warned)
        if error is not None:
            # A hint that raises the error itself lengthens its traceback.
            BaseException.with_traceback(error, trace)
        return None
    try:
        return parse_answer(answer)
    except Exception as fault:  # noqa: BLE001  a wrong answer is none
        _warn(hint, error_text(fault), None, warned)
        return None


def parse_answer(answer: object) -> float | RetryAfter | GiveUp | None:
    """Return what a hint answered, a duration in seconds.

    >>> parse_answer("1m30s"), parse_answer(float("inf")) == MAX_DELAY
    (90.0, True)

    Raises:
        ConfigError: It is none of the answers that there are.
    """
    if answer is None or isinstance(answer, _SIGNALS):
        return answer
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        rule = "a delay that it gives at once, under aretry too"
        raise invalid_setting(_ANSWER, rule, answer)
    if isinstance(answer, float | int) and answer > MAX_DELAY:
        return MAX_DELAY
    # A zero may have a sign.
    return parse_duration(_ANSWER, answer) + 0.0


def requested_delay(answer: float | RetryAfter | GiveUp | None) -> float | None:
    """Return the seconds that an answer asks for; None if it asks for none."""
    if isinstance(answer, GiveUp):
        return None
    return answer.delay if isinstance(answer, RetryAfter) else answer


_ANSWER = "its answer"

# A tuple, since this is asked of every failure and a union is built each time.
_SIGNALS = (RetryAfter, GiveUp)


def _warn(
    hint: object,
    reason: str,
    fault: Exception | None,
    warned: Callable[[], bool] | None,
) -> None:
    if warned is not None and warned():
        return
    name = getattr(hint, "__qualname__", None)
    shown = name if isinstance(name, str) else safe_repr(hint)
    message = "hint %s is ignored, and the schedule's delay is kept: %s"
    if fault is not None:
        log_fault(logging.WARNING, fault, message, shown, reason)
    else:
        logging.getLogger("retrykit").warning(message, shown, reason)
