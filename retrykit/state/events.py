"""The one stream of events of retried calls, and who is told of it.

An observer is any callable that takes an event. It is called in the middle of
the call, so it should be quick; what it raises is logged and goes no further,
and of retried calls that it makes itself it is not told.
The state that an event has is the one state of its call, which goes on: to
keep what it is now, keep its `to_dict`.
"""

import logging
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Self, final

from retrykit._internal import fast_path
from retrykit._internal.frozen import Frozen
from retrykit._internal.introspection import accepts_one_argument, is_coroutine_function
from retrykit._internal.validation import invalid_setting
from retrykit.state.fault_log import log_fault
from retrykit.state.retry_state import Failure, RetryState

__all__ = ["AttemptFailed", "AttemptStarted", "Event", "GaveUp", "Observer"]
__all__ += [
    "RetryScheduled",
    "Succeeded",
    "Suspended",
    "check_observer",
    "process_observers",
]
__all__ += ["notify", "observe"]


@final
class AttemptStarted(Frozen):
    """An attempt begins: number ``state.attempt``."""

    __slots__ = ("state",)
    state: RetryState


@final
class AttemptFailed(Frozen):
    """An attempt raised an error, or gave a result that is refused."""

    __slots__ = ("failure", "state")
    state: RetryState
    failure: Failure


@final
class RetryScheduled(Frozen):
    """Another attempt will be made, after *delay* seconds."""

    __slots__ = ("delay", "state")
    state: RetryState
    delay: float


@final
class Succeeded(Frozen):
    """The call has its result."""

    __slots__ = ("state",)
    state: RetryState


@final
class GaveUp(Frozen):
    """The call makes no further attempt: ``state.stop_reason`` tells why."""

    __slots__ = ("state",)
    state: RetryState


@final
class Suspended(Frozen):
    """A durable job is left to its engine until its next attempt, maybe for days.

    It comes after `RetryScheduled`, and is the last event that has this state: the
    next attempt, in whatever process, has another one, which goes on from it.
    """

    __slots__ = ("state",)
    state: RetryState


Event = AttemptStarted | AttemptFailed | RetryScheduled | Suspended | Succeeded | GaveUp
"""What an observer is told; each event has the state of its call."""

Observer = Callable[[Event], object]
"""Takes an event; what it returns is ignored."""

process_observers: "list[observe]" = []
"""The registrations of the whole process: the same observer may have two.

Always the same list. To change it is one operation: no thread, signal handler or
fork sees it half done, so there is no lock.
"""


@final
class observe:  # noqa: N801  used as a function
    """Tell an observer of every retried call of this process, from now on.

    >>> heard = []
    >>> with observe(heard.append):
    ...     pass  # retried calls made here, in any thread, are heard

    Args:
        observer: Takes an `Event`. It is told until `close` is called or the
            ``with`` block ends.
        failures_only: Whether it is told of a call only from its first failure
            on. A call that succeeds at once then costs nothing more.

    Raises:
        ConfigError: *observer* is no plain function.
    """

    def __init__(self, observer: Observer, *, failures_only: bool = False) -> None:
        self.observer = check_observer("observer", observer)
        self.failures_only = failures_only
        process_observers.append(self)
        if not failures_only:
            fast_path.block()

    def close(self) -> None:
        """Tell the observer no more; closing twice does no harm."""
        try:
            process_observers.remove(self)
        except ValueError:
            return
        if not self.failures_only:
            fast_path.unblock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        self.close()


def check_observer(name: str, observer: object) -> Observer:
    """Return *observer* if it can be told of events, else raise `ConfigError`."""
    if not callable(observer) or is_coroutine_function(observer):
        rule = "a plain function (or callable) that takes an event"
        suggestion = (
            "start a task in it where it must await" if callable(observer) else ""
        )
        raise invalid_setting(name, rule, observer, suggestion)
    if not accepts_one_argument(observer):
        raise invalid_setting(
            name, "a function that takes the event, and nothing else", observer
        )
    return observer


_Busy = tuple[list[Observer], ...]
_busy: ContextVar[_Busy] = ContextVar("retrykit observers", default=())
"""Who is being told something in this context: emptied when it has been told, so
that tasks and threads which an observer starts do not inherit its silence."""


def notify(observers: tuple[Observer, ...], event: Event) -> None:
    """Tell the given observers, then those of the process.

    What they raise is logged. An observer that makes a retried call itself is
    not told of that one.
    """
    busy = [told for told in _busy.get() if told]
    failing = bool(event.state.failures)
    asked = [each for each in process_observers[:] if failing or not each.failures_only]
    for observer in (*observers, *(each.observer for each in asked)):
        if any(observer in told for told in busy):
            continue
        told, token = [observer], None
        try:
            token = _busy.set((*busy, told))
            observer(event)
        except Exception as fault:  # noqa: BLE001  the call goes on without it
            message, kind = "an observer failed on %s: %r", type(event).__name__
            log_fault(logging.ERROR, fault, message, kind, observer)
        finally:
            told.clear()
            if token is not None:  # pragma: no branch  (an interrupt leaves the loop)
                _busy.reset(token)
