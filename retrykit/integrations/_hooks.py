"""Observers that pass events to another library's hooks, in the form they expect."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from retrykit._core.failures import StopReason
from retrykit._internal.frozen import Frozen
from retrykit._internal.introspection import accepts_one_argument, is_awaitable
from retrykit._internal.validation import invalid_setting
from retrykit.events import Event, EventKind

__all__ = ["UNMATCHED", "Adapter", "Hook", "call_in_turn", "check_hook"]

UNMATCHED = (StopReason.NOT_RETRYABLE, StopReason.CANCELLED)
"""The reasons for which a call ends without calling another library's hooks.

The error is not one to retry, a hook raised it, or the call was cancelled.
"""


class Adapter(Frozen):
    """An observer, hint or condition that calls functions made for another library."""

    __slots__ = ()
    raises_errors: ClassVar[bool] = True
    """True, so that an error that these functions raise ends the call."""


class Hook(Adapter):
    """An observer of one kind of event.

    Attributes:
        functions: The functions to call, in this order.
        kind: The kind of the events.
        logs_retries: Whether the functions log the retries instead of retrykit.
    """

    __slots__ = ("functions", "kind")
    functions: tuple[Callable[[Any], object], ...]
    kind: EventKind

    @property
    def logs_retries(self) -> bool:
        """True for hooks called before a delay, where other libraries log retries."""
        return self.kind == "retry_scheduled"

    def __call__(self, event: Event, /) -> object:
        """Call the functions, if the event is of their kind.

        They are not called if the call has ended for one of the reasons in `UNMATCHED`.

        Returns:
            None, or an awaitable if a function is async.
        """
        if event.kind != self.kind or event.state.stop_reason in UNMATCHED:
            return None
        return call_in_turn(self.functions, self.adapt(event))

    @abstractmethod
    def adapt(self, event: Event, /) -> object:
        """Return the object to pass to the functions in place of the event."""


def call_in_turn(
    functions: tuple[Callable[[Any], object], ...], value: object
) -> Awaitable[None] | None:
    """Call functions in order with the same value.

    Returns:
        None if all of them are sync. Otherwise an awaitable, which awaits the first
        async function and then calls the functions after it.
    """
    for index, function in enumerate(functions):
        answer = function(value)
        if is_awaitable(answer):
            return _await_in_turn(answer, functions[index + 1 :], value)
    return None


async def _await_in_turn(
    answer: Awaitable[object],
    functions: tuple[Callable[[Any], object], ...],
    value: object,
) -> None:
    await answer
    rest = call_in_turn(functions, value)
    if rest is not None:
        await rest


def check_hook(name: str, value: Any, takes: str) -> Callable[[Any], Any]:
    """Return *value* if it is a callable of one argument, and not a class.

    Args:
        name: The name of the setting.
        value: The value of the setting.
        takes: A phrase for the argument of the function, for the error.

    Raises:
        ConfigError: It is not.
    """
    if isinstance(value, type) or not callable(value):
        raise invalid_setting(name, f"a function that takes {takes}", value)
    if not accepts_one_argument(value):
        rule = f"a function that takes {takes}, and nothing else"
        raise invalid_setting(name, rule, value)
    function: Callable[[Any], Any] = value
    return function
