"""Observers that call hooks of another library with the object that they expect."""

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

The error is not one to retry, or a hook raised it.
"""


class Adapter(Frozen):
    """Calls functions that were written for another library; raises their errors."""

    __slots__ = ()
    raises_errors: ClassVar[bool] = True
    """Tells the caller of an observer or a hint that its errors end the call."""


class Hook(Adapter):
    """An observer of one kind of events.

    Attributes:
        functions: The functions that it calls, in this order.
        kind: The kind of the events.
        logs_retries: Whether it logs the retries instead of retrykit.
    """

    __slots__ = ("functions", "kind")
    functions: tuple[Callable[[Any], object], ...]
    kind: EventKind

    @property
    def logs_retries(self) -> bool:
        """True for hooks called before a delay, where other libraries log retries."""
        return self.kind == "retry_scheduled"

    def __call__(self, event: Event, /) -> object:
        """Call the functions, if the event is of their kind."""
        if event.kind != self.kind or event.state.stop_reason in UNMATCHED:
            return None
        return call_in_turn(self.functions, self.adapt(event))

    @abstractmethod
    def adapt(self, event: Event, /) -> object:
        """Return what the functions take in place of the event."""


def call_in_turn(
    functions: tuple[Callable[[Any], object], ...], value: object
) -> Awaitable[None] | None:
    """Call functions with the same value; return an awaitable if one is async."""
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
    """Return *value* if it is a function of one argument."""
    if isinstance(value, type) or not callable(value):
        raise invalid_setting(name, f"a function that takes {takes}", value)
    if not accepts_one_argument(value):
        rule = f"a function that takes {takes}, and nothing else"
        raise invalid_setting(name, rule, value)
    function: Callable[[Any], Any] = value
    return function
