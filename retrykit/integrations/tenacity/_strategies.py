"""Tenacity's waits, stops and conditions that are functions of the state."""

from collections.abc import Callable
from typing import Any, final

from retrykit._internal.introspection import is_awaitable, is_coroutine_function
from retrykit._internal.validation import invalid_setting, user_facing
from retrykit.errors import GiveUp, RetryAfter
from retrykit.hints import Hint
from retrykit.integrations._hooks import Adapter, check_hook
from retrykit.integrations.tenacity._call_states import running_state
from retrykit.integrations.tenacity._hooks import TAKES, StateHook

__all__ = ["Decision", "Predicate", "check_sync", "retry_on_error", "retry_on_result"]
__all__ += ["stop", "wait"]


@user_facing
def wait(
    function: StateHook,
    *,
    stop: StateHook | None = None,
    after: StateHook | None = None,
) -> Hint:
    """Return a `hint` that waits for the delay that a function of the state returns.

    Write ``schedule=constant(0), hint=wait(function), hint_cap=None``: the delay is
    then the function's alone.

    >>> from retrykit import Policy
    >>> from retrykit.schedules import constant
    >>> hint = wait(lambda state: 0.01 * state.attempt_number)
    >>> policy = Policy(schedule=constant(0), hint=hint, hint_cap=None, max_attempts=3)
    >>> [f.delay for f in policy.run(int, "seven").state.failures]
    [0.01, 0.02, None]

    Args:
        function: Takes the `RetryCallState`; returns seconds, >= 0.
        stop: A function as for `stop`; it knows the `upcoming_sleep`.
        after: Called before *function* and *stop*, instead of the observer `after`.

    Raises:
        ConfigError: An argument is not a sync function of one argument.
    """
    return Decision(
        check_sync("function", function),
        None if stop is None else check_sync("stop", stop),
        None if after is None else check_sync("after", after),
    )


@user_facing
def stop(function: StateHook, *, after: StateHook | None = None) -> Hint:
    """Return a `hint` that ends the call if a function of the state returns true.

    The delays come from the policy's schedule, and the function does not know them:
    `wait` has a parameter for a function that reads ``upcoming_sleep``.

    >>> from retrykit import Policy
    >>> hint = stop(lambda state: state.attempt_number >= 3)
    >>> policy = Policy(schedule=[0] * 9, hint=hint)
    >>> policy.run(int, "seven").state.attempt
    3

    Args:
        function: Takes the `RetryCallState`; true ends the call.
        after: Called before *function*, instead of the observer `after`.

    Raises:
        ConfigError: An argument is not a sync function of one argument.
    """
    return Decision(
        None,
        check_sync("function", function),
        None if after is None else check_sync("after", after),
    )


@user_facing
def retry_on_error(predicate: StateHook) -> Callable[[Exception], Any]:
    """Return a condition `on` that asks a predicate of the state about an error.

    Args:
        predicate: Takes the `RetryCallState`; true retries the error.

    Raises:
        ConfigError: *predicate* is not a function of one argument.
    """
    return Predicate(check_hook("predicate", predicate, TAKES), judges_errors=True)


@user_facing
def retry_on_result(predicate: StateHook) -> Callable[[object], Any]:
    """Return a predicate `on_result` that asks a predicate of the state about a result.

    >>> from retrykit import Policy
    >>> def retry(state):
    ...     return not state.outcome.failed and state.outcome.result() < 9
    >>> policy = Policy(on=(), on_result=retry_on_result(retry), schedule=[0])
    >>> policy.run(int, "7").state.attempt
    2

    Args:
        predicate: Takes the `RetryCallState`; true rejects the result.

    Raises:
        ConfigError: *predicate* is not a function of one argument.
    """
    return Predicate(check_hook("predicate", predicate, TAKES), judges_errors=False)


def check_sync(name: str, value: Any) -> StateHook:
    """Return *value* if it is a sync function of one argument."""
    function = check_hook(name, value, TAKES)
    if is_coroutine_function(function):
        rule = f"a sync function that takes {TAKES}, even under aretry"
        raise invalid_setting(name, rule, value)
    return function


@final
class Decision(Adapter):
    """A hint that asks functions of the state how long to wait, and whether to stop.

    Attributes:
        wait: Returns the delay, in seconds; None leaves it to the schedule.
        stop: Returns whether to end the call; None if nothing ends it here.
        after: Called first; None if there is no such hook.
    """

    __slots__ = ("after", "stop", "wait")
    wait: StateHook | None
    stop: StateHook | None
    after: StateHook | None

    def __call__(self, outcome: object, /) -> RetryAfter | GiveUp | None:
        """Return the delay or a `GiveUp`; None leaves the delay to the schedule."""
        made = running_state(outcome, failed=isinstance(outcome, Exception))
        if self.after is not None:
            self.after(made)
        if self.wait is not None:
            made.upcoming_sleep = self.wait(made)
        if self.stop is not None:
            statistics = made.retry_object.statistics
            statistics["delay_since_first_attempt"] = made.seconds_since_start
            if self.stop(made):
                return GiveUp()
        return None if self.wait is None else RetryAfter(made.upcoming_sleep)


@final
class Predicate(Adapter):
    """A condition on errors or results that is a function of the state.

    Attributes:
        predicate: Returns whether to retry.
        judges_errors: True if it is asked about errors; False if about results.
    """

    __slots__ = ("judges_errors", "predicate")
    predicate: StateHook
    judges_errors: bool

    def __call__(self, outcome: object, /) -> Any:
        """Return the predicate's answer about an outcome, or an awaitable of it."""
        answer = self.predicate(running_state(outcome, failed=self.judges_errors))
        return answer if is_awaitable(answer) else bool(answer)
