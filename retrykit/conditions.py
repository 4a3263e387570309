"""Which outcome of an attempt deserves another one.

Only an `Exception` is ever asked about: cancellation and Ctrl-C never come
here. The two colours of each question differ in nothing but ``await``.
"""

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import UnionType
from typing import Any, Protocol

from retrykit.answers import atruth, refuse_awaitable, truth
from retrykit.checks import refuse
from retrykit.errors import ConfigError
from retrykit.fault_log import log_fault
from retrykit.inspection import takes_one
from retrykit.records import error_text, type_name
from retrykit.signals import GiveUp, Signal
from retrykit.state import StopReason
from retrykit.verdicts import leave_note

__all__ = ["Condition", "Conditions", "ResultCondition", "accepted", "arejects"]
__all__ += ["arelease", "aruling", "check_condition", "check_predicate", "rejects"]
__all__ += ["release", "report", "ruling", "shown"]

Condition = (
    type[Exception]
    | tuple[type[Exception], ...]
    | Callable[[Exception], bool]
    | Callable[[Exception], Awaitable[bool]]
)
"""Errors by type, or a predicate of the error; it may be async under `aretry`.

A predicate that returns neither True nor False is warned of, once.
"""

ResultCondition = Callable[[Any], bool] | Callable[[Any], Awaitable[bool]]
"""A predicate of the result; it may be async under `aretry`.

One that has a method ``release(result)`` is handed there each result that it
refused and that another attempt replaces, to close what that holds open.
"""


class HasOn(Protocol):
    """A part of a policy for some errors."""

    @property
    def on(self) -> Condition: ...


class Conditions(Protocol):
    """The part of a policy that is asked here."""

    @property
    def on(self) -> Condition: ...
    @property
    def give_up_on(self) -> Condition: ...
    @property
    def rules(self) -> Sequence[HasOn]: ...
    @property
    def on_result(self) -> ResultCondition | None: ...


def check_condition(name: str, value: object) -> object:
    """Return *value* if it selects errors, and nothing but errors.

    Raises:
        ConfigError: It is no exception type, no tuple of them and no
            predicate; or it includes what is never retried.
    """
    kinds = value if isinstance(value, tuple) else (value,)
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, Exception):
            continue
        if isinstance(kind, type) and issubclass(kind, BaseException):
            rule = "an Exception type, since no other is ever retried"
            raise refuse(name, rule, kind, "write Exception, or narrower")
        if isinstance(kind, type) or isinstance(value, tuple) or not callable(kind):
            rule = "an Exception type, a tuple of them, or a predicate of the error"
            raise refuse(name, rule, value, _as_types(kind))
        if not takes_one(kind):
            raise refuse(name, "a predicate that takes the error", value)
    return value


def _as_types(value: object) -> str:
    """Return how to write what seems to be meant by no condition."""
    if isinstance(value, str):
        return "name the type itself, without quotes"
    if isinstance(value, BaseException):
        return f"name its type, {type(value).__name__}"
    if isinstance(value, Iterable | UnionType):
        return "put the types in a tuple, as (ConnectionError, TimeoutError)"
    return ""


def check_predicate(name: str, value: object) -> object:
    """Return *value* if it can be asked about a result.

    Raises:
        ConfigError: It is a type, or it cannot be called.
    """
    if isinstance(value, type) or not callable(value):
        raise refuse(name, "a predicate of the result", value, "write a function")
    if not takes_one(value):
        raise refuse(name, "a predicate that takes the result", value)
    return value


# Tuples, since this is asked of every failure and a union is built each time.
_SPOKEN = (Signal, ConfigError)
_BY_TYPE = (type, tuple)


def ruling(
    policy: Conditions, error: Exception, *, own: bool = False
) -> StopReason | int | None:
    """Return by what an error is retried, or why it is not.

    Args:
        policy: Its conditions and rules.
        error: What the attempt raised.
        own: Whether the policy itself made it, by ending the attempt: it needs
            no `on` then.

    Returns:
        The place of the rule that holds for it, from 0; None if it is retried
        and no rule holds; the reason if it may not be retried.
    """
    if isinstance(error, _SPOKEN):
        return _spoken(error)
    never, on = policy.give_up_on, policy.on
    try:
        if never and accepted("give_up_on", never, error):
            return StopReason.GAVE_UP
        if policy.rules:
            for place, rule in enumerate(policy.rules):
                if accepted("on", rule.on, error):
                    return place
        # Most policies name types: those are told without another call.
        by_type = isinstance(error, on) if isinstance(on, _BY_TYPE) else None
        if own or by_type or (by_type is None and accepted("on", on, error)):
            return None
    except Exception as fault:  # noqa: BLE001  the user's error must come through
        report(error, fault)
    return StopReason.NOT_RETRYABLE


async def aruling(
    policy: Conditions, error: Exception, *, own: bool = False
) -> StopReason | int | None:
    """Return by what an error is retried, or why it is not, as `ruling` does."""
    if isinstance(error, _SPOKEN):
        return _spoken(error)
    never, on = policy.give_up_on, policy.on
    try:
        if never and await _aaccepted("give_up_on", never, error):
            return StopReason.GAVE_UP
        if policy.rules:
            for place, rule in enumerate(policy.rules):
                if await _aaccepted("on", rule.on, error):
                    return place
        if on is Exception or own or await _aaccepted("on", on, error):
            return None
    except Exception as fault:  # noqa: BLE001  the user's error must come through
        report(error, fault)
    return StopReason.NOT_RETRYABLE


def rejects(conditions: Conditions, result: object) -> bool:
    """Return whether a result is to be treated as a failure."""
    predicate = conditions.on_result
    return predicate is not None and truth("on_result", predicate, predicate(result))


async def arejects(conditions: Conditions, result: object) -> bool:
    """Return whether a result is to be treated as a failure."""
    predicate = conditions.on_result
    return predicate is not None and await atruth(
        "on_result", predicate, predicate(result)
    )


def release(conditions: Conditions, result: object) -> None:
    """Let go of a refused result that another attempt replaces.

    A predicate of results that has a method ``release`` is handed each of them:
    an open response holds a connection, which would be held for as long as the
    delay lasts. It may be async under `aretry`.
    """
    let_go = getattr(conditions.on_result, "release", None)
    if let_go is not None:
        try:
            refuse_awaitable("release", let_go(result))
        except Exception as fault:  # noqa: BLE001  the call goes on without it
            _not_released(fault)


async def arelease(conditions: Conditions, result: object) -> None:
    """Let go of a refused result that another attempt replaces, as `release` does."""
    let_go = getattr(conditions.on_result, "release", None)
    if let_go is not None:
        try:
            released = let_go(result)
            if inspect.isawaitable(released):
                await released
        except Exception as fault:  # noqa: BLE001  the call goes on without it
            _not_released(fault)


def _not_released(fault: Exception) -> None:
    log_fault(logging.WARNING, fault, "a refused result could not be released")


def shown(value: object) -> str:
    """Return the expression of a condition: names for types and functions."""
    if isinstance(value, tuple):
        return f"({', '.join(map(shown, value))}{',' * (len(value) == 1)})"
    if isinstance(value, type):
        return type_name(value)
    return getattr(value, "__qualname__", None) or repr(value)


def report(error: Exception, fault: Exception) -> None:
    """Say on the user's error that the policy itself failed on it."""
    told = f"{type_name(type(fault))}: {error_text(fault)}"
    leave_note(error, f"not retried, because its policy failed with {told}")
    log_fault(logging.ERROR, fault, "not retried, because the policy failed")


def _spoken(error: Exception) -> StopReason | None:
    """Return what a signal asks for; a wrong setting is wrong every time."""
    if isinstance(error, ConfigError):
        return StopReason.NOT_RETRYABLE
    return StopReason.GAVE_UP if isinstance(error, GiveUp) else None


def accepted(name: str, condition: Condition, error: Exception) -> bool:
    """Return whether a condition holds for an error.

    Args:
        name: The setting that the condition was given as.
        condition: The condition.
        error: The error.

    Raises:
        ConfigError: It is a predicate whose answer must be awaited.
    """
    if isinstance(condition, _BY_TYPE):
        return isinstance(error, condition)
    return truth(name, condition, condition(error), error)


async def _aaccepted(name: str, condition: Condition, error: Exception) -> bool:
    if isinstance(condition, _BY_TYPE):
        return isinstance(error, condition)
    return await atruth(name, condition, condition(error), error)
