"""Tenacity hooks as observers and fallbacks."""

from collections.abc import Callable
from typing import Any, cast, final

from retrykit._core.failures import StopReason
from retrykit._core.retry_state import RetryState
from retrykit._internal.introspection import accepts_one_argument
from retrykit._internal.validation import invalid_setting, user_facing
from retrykit.events import Event, Observer
from retrykit.integrations._hooks import Adapter, Hook, check_hook
from retrykit.integrations.tenacity._call_states import (
    RetryAction,
    RetryCallState,
    delay_of,
    end_of,
    future_of,
    last_failure,
    state_after,
)

__all__ = ["TAKES", "After", "Before", "BeforeSleep", "RetryErrorCallback"]
__all__ += ["RetryErrorClass", "StateHook", "after", "before", "before_sleep"]
__all__ += ["retry_error_callback", "retry_error_cls"]


StateHook = Callable[[Any], Any]
"""Takes a `RetryCallState`."""


TAKES = "the RetryCallState"
"""The argument of hooks, as error messages name it."""


@user_facing
def before(hook: StateHook) -> Observer:
    """Return an observer that calls a hook before each attempt.

    >>> from retrykit import Policy
    >>> hook = before(lambda state: print("attempt", state.attempt_number))
    >>> Policy(observers=[hook]).call(int, "7")
    attempt 1
    7

    Args:
        hook: Takes the `RetryCallState`.

    Raises:
        ConfigError: *hook* is not a function of one argument.
    """
    return Before((check_hook("hook", hook, TAKES),), "attempt_started")


@user_facing
def after(hook: StateHook) -> Observer:
    """Return an observer that calls a hook after each failed attempt.

    As in tenacity, it is called only if the error or the result is one to retry. With
    `wait` or `stop` of this package, pass the hook as their ``after=`` instead:
    tenacity calls it before them.

    Args:
        hook: Takes the `RetryCallState`.

    Raises:
        ConfigError: *hook* is not a function of one argument.
    """
    return After((check_hook("hook", hook, TAKES),), "attempt_failed")


@user_facing
def before_sleep(hook: StateHook) -> Observer:
    """Return an observer that calls a hook before each delay.

    retrykit then does not log retries itself.

    >>> from retrykit import Policy
    >>> hook = before_sleep(lambda state: print("wait", state.next_action.sleep))
    >>> policy = Policy(schedule=[0], observers=[hook], fallback=None)
    >>> policy.call(int, "seven")
    wait 0.0

    Args:
        hook: Takes the `RetryCallState`.

    Raises:
        ConfigError: *hook* is not a function of one argument.
    """
    return BeforeSleep((check_hook("hook", hook, TAKES),), "retry_scheduled")


@user_facing
def retry_error_callback(callback: StateHook) -> Callable[[RetryState], Any]:
    """Return a `fallback` that returns what a callback returns.

    >>> from retrykit import Policy
    >>> fallback = retry_error_callback(lambda state: state.outcome.failed)
    >>> Policy(schedule=[0], fallback=fallback).call(int, "seven")
    True

    Args:
        callback: Takes the `RetryCallState`.

    Raises:
        ConfigError: *callback* is not a function of one argument.
    """
    return RetryErrorCallback(check_hook("callback", callback, TAKES))


@final
class Before(Hook):
    """Calls hooks before each attempt."""

    __slots__ = ()

    def adapt(self, event: Event, /) -> RetryCallState:
        """Return the state of an attempt that is about to begin."""
        state = event.state
        last = last_failure(state)
        return RetryCallState(
            state,
            event.function,
            event.args,
            event.kwargs,
            idle_for=state.total_delay,
            upcoming_sleep=delay_of(last),
            earlier=end_of(last),
        )


@final
class After(Hook):
    """Calls hooks after each attempt whose outcome is one to retry."""

    __slots__ = ()

    def __call__(self, event: Event, /) -> object:
        """Call the hooks, as `Hook` does.

        They are not called if `give_up_on`, `GiveUp` or a hint ended the call.
        """
        if event.state.stop_reason is StopReason.GAVE_UP:
            return None
        return Hook.__call__(self, event)

    def adapt(self, event: Event, /) -> RetryCallState:
        """Return the state after an attempt, before the next delay is known."""
        return state_after(event.state, event, last_failure(event.state))


@final
class BeforeSleep(Hook):
    """Calls hooks before each delay."""

    __slots__ = ()

    def adapt(self, event: Event, /) -> RetryCallState:
        """Return the state before a delay."""
        state = event.state
        last = last_failure(state)
        made = RetryCallState(
            state,
            event.function,
            event.args,
            event.kwargs,
            outcome=future_of(last),
            since_start=end_of(last),
            idle_for=state.total_delay + delay_of(last),
            upcoming_sleep=delay_of(last),
            earlier=end_of(last),
        )
        made.next_action = RetryAction(made.upcoming_sleep)
        made.retry_object.statistics["attempt_number"] += 1
        return made


@final
class RetryErrorCallback(Adapter):
    """A fallback that returns what a callback returns.

    Attributes:
        callback: The callback.
    """

    __slots__ = ("callback",)
    callback: StateHook

    def __call__(self, state: RetryState, /) -> Any:
        """Return what the callback returns."""
        last = last_failure(state)
        made = RetryCallState(
            state,
            state.function,
            state.args,
            state.kwargs,
            outcome=future_of(last),
            since_start=None if last is None else end_of(last),
            idle_for=state.total_delay,
            upcoming_sleep=(last and last.hint) or 0.0,
            earlier=end_of(last),
        )
        return self.callback(made)


@user_facing
def retry_error_cls(kind: Any) -> Callable[[RetryState], Any]:
    """Return a `fallback` that raises an error of a class, made from the last attempt.

    Args:
        kind: The class, like tenacity's ``retry_error_cls``: it takes the `Future` of
            the last attempt.

    Raises:
        ConfigError: *kind* cannot be called with one argument.
    """
    if not callable(kind) or not accepts_one_argument(kind):
        raise invalid_setting("kind", "a class that takes the last attempt", kind)
    return RetryErrorClass(cast("Callable[[Any], Exception]", kind))


@final
class RetryErrorClass(Adapter):
    """A fallback that raises an error of a class.

    Attributes:
        kind: The class.
    """

    __slots__ = ("kind",)
    kind: Callable[[Any], Exception]

    def __call__(self, state: RetryState, /) -> Any:
        """Raise an error of the class, from the error of the last attempt."""
        last = last_failure(state)
        cause = None if last is None else last.error
        error = self.kind(future_of(last))
        error.__cause__ = cause if isinstance(cause, BaseException) else None
        raise error
