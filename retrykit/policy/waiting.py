"""Checks of the settings for the wait between two attempts: an event, a function."""

import functools
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from retrykit._internal.introspection import accepts_one_argument, is_coroutine_function
from retrykit._internal.validation import invalid_setting

__all__ = ["SleepFunction", "StopEvent", "check_event_kind", "check_sleep"]
__all__ += ["check_stop_event"]


class StopEvent(Protocol):
    """An event of threading, multiprocessing, asyncio, trio or anyio."""

    def is_set(self) -> bool:
        """Return whether the event has happened."""
        ...

    @property
    def wait(self) -> Callable[..., Any]:
        """Waits for the event; its result is awaitable in asyncio, trio and anyio."""
        ...


SleepFunction = Callable[[float], object] | Callable[[float], Awaitable[object]]
"""Waits for a number of seconds; it may be async under `aretry`."""


def check_stop_event(name: str, value: Any) -> Any:
    """Return *value* if it is an event."""
    parts = getattr(value, "is_set", None), getattr(value, "wait", None)
    if isinstance(value, type) or not all(map(callable, parts)):
        rule = "an event with is_set() and wait()"
        suggestion = "write threading.Event(), or asyncio.Event() under aretry"
        raise invalid_setting(name, rule, value, suggestion)
    return value


def check_sleep(name: str, value: Any) -> Any:
    """Return *value* if it is a function of a number of seconds."""
    if isinstance(value, type) or not callable(value):
        suggestion = "for delays write schedule=..."
        raise invalid_setting(name, "a function of the seconds", value, suggestion)
    if not accepts_one_argument(value):
        raise invalid_setting(name, "a function that takes the seconds", value)
    return value


def check_sleep_kind(sleep: SleepFunction | None, *, awaited: bool) -> None:
    """Check that a function that waits does not block the event loop."""
    if sleep is None or not awaited:
        return
    function: Any = sleep
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None), getattr(function, "__module__", None)
    owner = type(getattr(function, "__self__", None))
    blocks = name in _BLOCKING or (owner.__module__, name[0]) == ("threading", "wait")
    if blocks:
        rule, suggestion = "an async function under aretry", "it would block the event "
        suggestion += "loop: leave it out, or write asyncio.sleep"
        raise invalid_setting("sleep", rule, sleep, suggestion)


_BLOCKING = {
    ("sleep", "time"),
    ("sleep", "gevent.hub"),
    ("sleep", "eventlet.greenthread"),
}


def check_event_kind(event: StopEvent | None, *, awaited: bool) -> None:
    """Check that an event can be waited for, by a thread or by a task."""
    if event is None or is_coroutine_function(event.wait) is awaited:
        return
    rule, suggestion = "a threading.Event under retry", "asyncio.Event needs aretry"
    if awaited:
        rule = "an asyncio.Event or a trio.Event under aretry"
        suggestion = "to wait for a thread's event would block the event loop"
    raise invalid_setting("stop_event", rule, event, suggestion)
