"""Events of retried calls, and the observers that are notified of them.

An observer runs in the middle of the call, so it should be quick. An error that it
raises is logged. It is not notified of retried calls that it makes itself.

An event refers to the live state of its call: for a snapshot, call `state.to_dict()`.
"""

import logging
from collections.abc import Callable
from contextvars import ContextVar
from typing import Self, final

from retrykit._internal import fast_path
from retrykit._internal.frozen import Frozen
from retrykit._internal.introspection import accepts_one_argument, is_coroutine_function
from retrykit._internal.validation import invalid_setting
from retrykit.state.fault_log import log_fault
from retrykit.state.retry_state import Failure, RetryState

__all__ = ["AttemptFailed", "AttemptStarted", "Event", "GaveUp", "Observer"]
__all__ += ["RetryScheduled", "Succeeded", "Suspended", "check_observer", "notify"]
__all__ += ["observe", "process_observers"]


@final
class AttemptStarted(Frozen):
    """An attempt has started: number ``state.attempt``."""

    __slots__ = ("state",)
    state: RetryState


@final
class AttemptFailed(Frozen):
    """An attempt raised an error, or its result was rejected."""

    __slots__ = ("failure", "state")
    state: RetryState
    failure: Failure


@final
class RetryScheduled(Frozen):
    """The call will be retried after *delay* seconds, >= 0."""

    __slots__ = ("delay", "state")
    state: RetryState
    delay: float


@final
class Succeeded(Frozen):
    """The call has succeeded."""

    __slots__ = ("state",)
    state: RetryState


@final
class GaveUp(Frozen):
    """The call has given up, because of ``state.stop_reason``."""

    __slots__ = ("state",)
    state: RetryState


@final
class Suspended(Frozen):
    """A durable job waits in its engine for its next attempt, maybe for days.

    Follows `RetryScheduled`, and is the last event with this state: the next
    attempt, in whatever process, continues from a copy.
    """

    __slots__ = ("state",)
    state: RetryState


Event = AttemptStarted | AttemptFailed | RetryScheduled | Suspended | Succeeded | GaveUp
"""An event of a call; each kind has the state of its call."""

Observer = Callable[[Event], object]
"""Takes an event; its return value is ignored."""

process_observers: "list[observe]" = []
"""The process-wide registrations; an observer may be registered twice.

Always the same list. Changes are single operations, so threads, signal handlers and
forks need no lock.
"""


@final
class observe:  # noqa: N801  used as a function
    """Notify an observer of every retried call of this process, from now on.

    >>> events = []
    >>> with observe(events.append):
    ...     pass  # collects the events of retried calls, in any thread

    Args:
        observer: Takes an `Event`. It is notified until `close` is called or the
            ``with`` block ends.
        failures_only: Whether to notify it of a call only from its first failure
            on. A call that succeeds at once then costs nothing more.

    Raises:
        ConfigError: *observer* is not callable with one argument, or it is async.
    """

    def __init__(self, observer: Observer, *, failures_only: bool = False) -> None:
        self.observer = check_observer("observer", observer)
        self.failures_only = failures_only
        process_observers.append(self)
        if not failures_only:
            fast_path.block()

    def close(self) -> None:
        """Stop notifying the observer; closing twice is harmless."""
        try:
            process_observers.remove(self)
        except ValueError:
            return
        if not self.failures_only:
            fast_path.unblock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_observer(name: str, observer: object) -> Observer:
    """Return *observer* if it is a sync callable of one argument."""
    if not callable(observer) or is_coroutine_function(observer):
        rule = "a sync function that takes an event"
        suggestion = (
            "to await something, start a task in it" if callable(observer) else ""
        )
        raise invalid_setting(name, rule, observer, suggestion)
    if not accepts_one_argument(observer):
        raise invalid_setting(
            name, "a function that takes the event, and nothing else", observer
        )
    return observer


_active: ContextVar[tuple[list[Observer], ...]]
_active = ContextVar("retrykit observers", default=())
"""The observers that are running in this context, one to a list.

Each list is emptied when its observer returns: tasks and threads that the observer
started inherit the context, and their calls are observed again.
"""


def notify(observers: tuple[Observer, ...], event: Event) -> None:
    """Notify the given observers, then those of the process.

    Errors that they raise are logged.
    """
    active = [running for running in _active.get() if running]
    failing = bool(event.state.failures)
    others = [x for x in process_observers[:] if failing or not x.failures_only]
    for observer in (*observers, *(each.observer for each in others)):
        if any(observer in running for running in active):
            continue
        running, token = [observer], None
        try:
            token = _active.set((*active, running))
            observer(event)
        except Exception as fault:  # noqa: BLE001  the call goes on without it
            message, kind = "an observer of %s failed: %r", type(event).__name__
            log_fault(logging.ERROR, fault, message, kind, observer)
        finally:
            running.clear()
            if token is not None:  # pragma: no branch  (an interrupt leaves the loop)
                _active.reset(token)
