"""Which outcome of an attempt deserves another one.

Only an `Exception` is ever asked about: cancellation and Ctrl-C never come
here. The two colours of each question differ in nothing but ``await``.
"""

import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

from retrykit._internal.error_conditions import (
    Condition,
    amatches_condition,
    aread_answer,
    matches_condition,
    read_answer,
    reject_awaitable,
)
from retrykit._internal.introspection import accepts_one_argument, is_coroutine_function
from retrykit._internal.type_names import type_name
from retrykit._internal.validation import invalid_setting
from retrykit.errors import ConfigError
from retrykit.state.fault_log import log_fault, note_policy_fault
from retrykit.state.retry_state import StopReason
from retrykit.state.signals import GiveUp, Signal

__all__ = ["NEEDS_ARETRY", "Conditions", "ResultCondition", "arejects_result"]
__all__ += [
    "amatch_error",
    "arelease_result",
    "check_predicate",
    "check_predicates",
    "rejects_result",
]
__all__ += ["format_condition", "match_error", "release_result"]

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


def check_predicate(name: str, value: object) -> object:
    """Return *value* if it can be asked about a result.

    Raises:
        ConfigError: It is a type, or it cannot be called.
    """
    if isinstance(value, type) or not callable(value):
        raise invalid_setting(
            name, "a predicate of the result", value, "write a function"
        )
    if not accepts_one_argument(value):
        raise invalid_setting(name, "a predicate that takes the result", value)
    return value


NEEDS_ARETRY: Final = "what is async needs aretry"
"""The usual way out for what cannot be awaited."""


def check_predicates(policy: Conditions, suggestion: str = NEEDS_ARETRY) -> None:
    """Check that a policy's predicates answer at once.

    Args:
        policy: What holds them.
        suggestion: What to do with one that must be awaited.

    Raises:
        ConfigError: A predicate is async.
    """
    asked = [("on", policy.on), ("give_up_on", policy.give_up_on)]
    asked += [("on", rule.on) for rule in policy.rules]
    for name, predicate in [*asked, ("on_result", policy.on_result)]:
        if is_coroutine_function(predicate):
            rule = "a plain function where nothing can await it"
            raise invalid_setting(name, rule, predicate, suggestion)


# Tuples, since this is asked of every failure and a union is built each time.
_SPOKEN = (Signal, ConfigError)
_BY_TYPE = (type, tuple)


def match_error(
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
        return _signal_reason(error)
    never, on = policy.give_up_on, policy.on
    try:
        if never and matches_condition("give_up_on", never, error):
            return StopReason.GAVE_UP
        if policy.rules:
            for place, rule in enumerate(policy.rules):
                if matches_condition("on", rule.on, error):
                    return place
        # Most policies name types: those are told without another call.
        by_type = isinstance(error, on) if isinstance(on, _BY_TYPE) else None
        if own or by_type or (by_type is None and matches_condition("on", on, error)):
            return None
    except Exception as fault:  # noqa: BLE001  the user's error must come through
        note_policy_fault(error, fault)
    return StopReason.NOT_RETRYABLE


async def amatch_error(
    policy: Conditions, error: Exception, *, own: bool = False
) -> StopReason | int | None:
    """Return by what an error is retried, or why it is not, as `match_error` does."""
    if isinstance(error, _SPOKEN):
        return _signal_reason(error)
    never, on = policy.give_up_on, policy.on
    try:
        if never and await amatches_condition("give_up_on", never, error):
            return StopReason.GAVE_UP
        if policy.rules:
            for place, rule in enumerate(policy.rules):
                if await amatches_condition("on", rule.on, error):
                    return place
        if on is Exception or own or await amatches_condition("on", on, error):
            return None
    except Exception as fault:  # noqa: BLE001  the user's error must come through
        note_policy_fault(error, fault)
    return StopReason.NOT_RETRYABLE


def rejects_result(conditions: Conditions, result: object) -> bool:
    """Return whether a result is to be treated as a failure."""
    predicate = conditions.on_result
    return predicate is not None and read_answer(
        "on_result", predicate, predicate(result)
    )


async def arejects_result(conditions: Conditions, result: object) -> bool:
    """Return whether a result is to be treated as a failure."""
    predicate = conditions.on_result
    return predicate is not None and await aread_answer(
        "on_result", predicate, predicate(result)
    )


def release_result(conditions: Conditions, result: object) -> None:
    """Let go of a refused result that another attempt replaces.

    A predicate of results that has a method ``release`` is handed each of them:
    an open response holds a connection, which would be held for as long as the
    delay lasts. It may be async under `aretry`.
    """
    let_go = getattr(conditions.on_result, "release", None)
    if let_go is not None:
        try:
            reject_awaitable("release", let_go(result))
        except Exception as fault:  # noqa: BLE001  the call goes on without it
            _not_released(fault)


async def arelease_result(conditions: Conditions, result: object) -> None:
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


def format_condition(value: object) -> str:
    """Return the expression of a condition: names for types and functions."""
    if isinstance(value, tuple):
        return f"({', '.join(map(format_condition, value))}{',' * (len(value) == 1)})"
    if isinstance(value, type):
        return type_name(value)
    return getattr(value, "__qualname__", None) or repr(value)


def _signal_reason(error: Exception) -> StopReason | None:
    """Return what a signal asks for; a wrong setting is wrong every time."""
    if isinstance(error, ConfigError):
        return StopReason.NOT_RETRYABLE
    return StopReason.GAVE_UP if isinstance(error, GiveUp) else None
