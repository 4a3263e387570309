"""Hints: their type, the classes of built-in hints, and the reader of any hint."""

from collections.abc import Callable
from types import FunctionType
from typing import Any, cast, final

from retrykit._conditions import reject_awaitable
from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.error_texts import error_text, log_fault, type_name
from retrykit._internal.frozen import Frozen
from retrykit._internal.introspection import (
    accepts_one_argument,
    is_coroutine_function,
    raises_errors,
)
from retrykit._internal.late_modules import logging
from retrykit._internal.tracebacks import with_traceback
from retrykit._internal.validation import invalid_setting, safe_repr, user_facing
from retrykit.errors import GiveUp, RetryAfter, requested_delay
from retrykit.schedules._randomness import MAX_DELAY

__all__ = ["FirstOf", "Hint", "SerializableHint", "check_hint", "first_of"]
__all__ += ["parse_answer", "read_hint"]

Hint = Callable[[Any], Duration | RetryAfter | GiveUp | None]
"""A function of the error that was raised, or of the result that was rejected.

It returns a duration, to wait at least that long and no less than the schedule
says; ``RetryAfter(delay)``, to wait exactly that long; ``GiveUp()``, to stop
retrying; or None, if nothing is requested.
"""


def check_hint(name: str, value: object) -> object:
    """Return *value* if it is a hint."""
    if isinstance(value, FunctionType) and str(value.__module__).startswith(
        "retrykit.hints."
    ):
        rule = "a hint, not a function that builds one"
        raise invalid_setting(name, rule, value, f"call it: {value.__name__}(...)")
    if isinstance(value, type) or not callable(value):
        rule = "a function of the error or result"
        raise invalid_setting(
            name, rule, value, "write one, or use one of retrykit.hints"
        )
    if not accepts_one_argument(value):
        raise invalid_setting(name, "a function that takes the error or result", value)
    if is_coroutine_function(value):
        rule = "a sync function, even under aretry"
        raise invalid_setting(
            name, rule, value, "it reads only what it is given", code="async-mismatch"
        )
    return value


class SerializableHint(Frozen):
    """A built-in hint, which can be compared, pickled and written as a string.

    Attributes:
        kind: The name of the function that built it.
        arguments: The arguments of that function, as strings.
        read: A function of the error or result and these arguments; it returns the
            answer.
    """

    __slots__ = ("arguments", "kind", "read")
    kind: str
    arguments: tuple[Any, ...]
    read: Callable[..., Duration | RetryAfter | GiveUp | None]

    def __call__(self, outcome: object, /) -> Duration | RetryAfter | GiveUp | None:
        """Return the delay or the signal that an error or a result asks for, if any."""
        return self.read(outcome, *self.arguments)

    @property
    def text(self) -> str:
        """The hint as a string for `parse_hint`: its name and its arguments."""
        return ":".join([self.kind, *self.arguments])

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(map(repr, self.arguments))})"


def read_hint(
    hint: Hint,
    outcome: object,
    error: Exception | None,
    already_warned: Callable[[], bool] | None = None,
    longest: float | None = None,
) -> float | RetryAfter | GiveUp | None:
    """Return a hint's answer about an outcome; log a warning if the hint is broken.

    If the hint has an attribute `raises_errors` that is True, its errors are raised.

    >>> read_hint(lambda error: error.args[0], OSError("250ms"), None)
    0.25

    Args:
        hint: The hint.
        outcome: The error, or the rejected result.
        error: The error; None if the outcome is a result.
        already_warned: Returns whether a warning about a hint has already been logged
            for this call; if so, no other is. If None, every warning is logged.
        longest: Longest wait in seconds; an answer with a longer one is ignored. None
            is unlimited.

    Returns:
        The minimum wait in seconds, from 0 to `MAX_DELAY`; or a signal; None if nothing
        is requested, or the answer is ignored.
    """
    if isinstance(hint, FirstOf):
        return hint.first_answer(outcome, error, already_warned, longest)
    trace = error.__traceback__ if error is not None else None
    try:
        answer = hint(outcome)
    except Exception as fault:
        if raises_errors(hint):
            raise
        # The user's error must come through.
        reason = f"it raised {type_name(type(fault))}: {error_text(fault)}"
        _warn(hint, reason, fault, already_warned)
        if error is not None:
            # A hint that raises the error itself extends its traceback.
            with_traceback(error, trace)
        return None
    try:
        parsed = parse_answer(answer)
    except Exception as fault:  # noqa: BLE001  an invalid answer is ignored
        _warn(hint, error_text(fault), None, already_warned)
        return None
    too_long = longest is not None and (requested_delay(parsed) or 0.0) > longest
    return None if too_long else parsed


def parse_answer(answer: object) -> float | RetryAfter | GiveUp | None:
    """Return the answer of a hint, with durations in seconds, at most `MAX_DELAY`.

    A `RetryAfter` without a delay requests nothing, and becomes None.

    >>> parse_answer("1m30s"), parse_answer(float("inf")) == MAX_DELAY
    (90.0, True)
    """
    if answer is None or isinstance(answer, _SIGNALS):
        # Without a delay it asks for nothing that the schedule does not do.
        return None if getattr(answer, "delay", answer) is None else answer
    rule = "a delay, not an awaitable, even under aretry"
    reject_awaitable(_ANSWER, answer, rule, suggestion="")
    if isinstance(answer, float | int) and answer > MAX_DELAY:
        return MAX_DELAY
    # Turns -0.0 into 0.0.
    return parse_duration(_ANSWER, answer) + 0.0


@user_facing
def first_of(*hints: Hint) -> Hint:
    """Return the hint that tries several in order, until one has an answer.

    >>> from retrykit.hints import milliseconds, retry_after
    >>> first_of(milliseconds("retry-after-ms"), retry_after())
    first_of(milliseconds('retry-after-ms'), retry_after())

    Args:
        *hints: At least one, the best first. A broken one is skipped with a warning.

    Raises:
        ConfigError: No hint is given, or one is not a hint.
    """
    if not hints:
        raise invalid_setting("hints", "at least one hint", hints)
    known = [cast("Hint", check_hint("hints", hint)) for hint in hints]
    flat = [
        each
        for hint in known
        for each in (hint.hints if isinstance(hint, FirstOf) else (hint,))
    ]
    return FirstOf(tuple(flat)) if len(flat) > 1 else flat[0]


@final
class FirstOf(Frozen):
    """The hint that `first_of` builds.

    Attributes:
        hints: The hints in the order in which they are read.
    """

    __slots__ = ("hints",)
    hints: tuple[Hint, ...]

    def __call__(self, outcome: object, /) -> float | RetryAfter | GiveUp | None:
        """Return the answer of the first hint that has one, else None."""
        # By type(), since __class__ may be a property of the user's.
        failed = issubclass(type(outcome), Exception)
        error = cast("Exception", outcome) if failed else None
        return self.first_answer(outcome, error)

    def first_answer(
        self,
        outcome: object,
        error: Exception | None,
        already_warned: Callable[[], bool] | None = None,
        longest: float | None = None,
    ) -> float | RetryAfter | GiveUp | None:
        """Return the answer of the first hint that has one; `read_hint` reads each."""
        answers = (
            read_hint(x, outcome, error, already_warned, longest) for x in self.hints
        )
        return next((answer for answer in answers if answer is not None), None)

    def __repr__(self) -> str:
        return f"first_of({', '.join(map(repr, self.hints))})"


_ANSWER = "its answer"

# A tuple: every failure is checked, and a union would be built each time.
_SIGNALS = (RetryAfter, GiveUp)


def _warn(
    hint: object,
    reason: str,
    fault: Exception | None,
    already_warned: Callable[[], bool] | None,
) -> None:
    if already_warned is not None and already_warned():
        return
    name = getattr(hint, "__qualname__", None)
    hint_name = name if isinstance(name, str) else safe_repr(hint)
    message = "hint %s is ignored, and the schedule's delay is kept: %s"
    if fault is not None:
        log_fault(logging.WARNING, fault, message, hint_name, reason)
    else:
        logging.getLogger("retrykit").warning(message, hint_name, reason)
