"""Events of retried calls, and the observers that are notified of them.

An observer runs in the middle of the call, so it should be quick. An error that it
raises is logged; if it has an attribute `raises_errors` that is True, the error ends
the call. An observer is not notified of retried calls that it makes itself.

An event refers to the live state of its call: for a snapshot, call `state.to_dict()`.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from types import CoroutineType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Self,
    final,
    get_args,
)

from retrykit._conditions import reject_awaitable
from retrykit._core.call_record import Arguments, CallFacts
from retrykit._core.retry_state import Failure, RetryState
from retrykit._internal import fast_path
from retrykit._internal.error_texts import log_fault
from retrykit._internal.frozen import Frozen
from retrykit._internal.introspection import (
    accepts_no_argument,
    accepts_one_argument,
    is_awaitable,
    is_coroutine_function,
    raises_errors,
)
from retrykit._internal.late_modules import logging
from retrykit._internal.validation import check_choice, invalid_setting, user_facing

__all__ = ["AttemptFailed", "AttemptStarted", "Event", "EventHook"]
__all__ += ["EventKind", "GaveUp", "HedgeStarted", "Observer", "Pending"]
__all__ += ["RetryScheduled", "Succeeded", "Suspended", "check_observer", "deliver"]
__all__ += ["discard", "function_of", "make_event", "notify_one", "observe"]
__all__ += ["process_observers"]


EventKind = Literal[
    "attempt_started",
    "hedge_started",
    "attempt_failed",
    "retry_scheduled",
    "suspended",
    "succeeded",
    "gave_up",
]
"""The kinds of events, as labels for metrics and keys of a dict of observers."""


class CallEvent(Frozen):
    """Base class of events, with the function and the arguments of the call.

    They are left out of comparisons and of `repr`, and so out of logs. An event that is
    kept keeps them alive.
    """

    # Mangled and without a type, so that it is not a field.
    __slots__ = ("__source",)
    kind: ClassVar[EventKind]
    """The kind of the event."""

    @property
    def function(self) -> Callable[..., Any] | None:
        """The function that is retried; None for a block of code or a client."""
        return self.__source_or_none()[1]

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments of the call; the first one of a method is `self`."""
        return (self.__source_or_none()[2] or _NO_ARGUMENTS)[0]

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments of the call."""
        return (self.__source_or_none()[2] or _NO_ARGUMENTS)[1]

    @property
    def _record(self) -> CallFacts:
        """The record of the call, for observers that need no view of it."""
        call: CallFacts | None = self.__source_or_none()[0]
        return self.state._record if call is None else call

    def __source_or_none(self) -> "_Source":
        return getattr(self, "_CallEvent__source", (None, None, None))

    if TYPE_CHECKING:
        state: RetryState
    else:

        def __getattr__(self, name: str) -> Any:
            """Return the state, which is made when somebody first asks for it."""
            if name != "state" or self.__source_or_none()[0] is None:
                msg = f"{type(self).__name__!r} object has no attribute {name!r}"
                raise AttributeError(msg, name=name, obj=self)
            state = self.__source[0].state
            object.__setattr__(self, "state", state)
            return state


_Source = tuple[Any, Callable[..., Any] | None, Arguments | tuple[()] | None]
"""A running call, its function and its arguments, if they are known."""

_NO_ARGUMENTS: Arguments = (), {}
_set_source = vars(CallEvent)["_CallEvent__source"].__set__


@final
class AttemptStarted(CallEvent):
    """An attempt has started: number ``state.attempt``."""

    __slots__ = ("state",)
    kind: ClassVar[Literal["attempt_started"]] = "attempt_started"
    state: RetryState


@final
class AttemptFailed(CallEvent):
    """An attempt raised an error, or its result was rejected."""

    __slots__ = ("failure", "state")
    kind: ClassVar[Literal["attempt_failed"]] = "attempt_failed"
    state: RetryState
    failure: Failure


@final
class HedgeStarted(CallEvent):
    """The running attempt was sent again by a hedge: send *number*, >= 2.

    It is not another attempt; see `retrykit.Hedge`.
    """

    __slots__ = ("number", "state")
    kind: ClassVar[Literal["hedge_started"]] = "hedge_started"
    state: RetryState
    number: int


@final
class RetryScheduled(CallEvent):
    """The call will be retried after *delay* seconds, >= 0."""

    __slots__ = ("delay", "state")
    kind: ClassVar[Literal["retry_scheduled"]] = "retry_scheduled"
    state: RetryState
    delay: float


@final
class Succeeded(CallEvent):
    """The call has succeeded."""

    __slots__ = ("state",)
    kind: ClassVar[Literal["succeeded"]] = "succeeded"
    state: RetryState


@final
class GaveUp(CallEvent):
    """The call has given up, because of ``state.stop_reason``."""

    __slots__ = ("state",)
    kind: ClassVar[Literal["gave_up"]] = "gave_up"
    state: RetryState


@final
class Suspended(CallEvent):
    """A durable job waits in its engine for its next attempt, maybe for days.

    It follows `RetryScheduled`, and is the last event with this state: the next
    attempt, in whatever process, continues from a copy.
    """

    __slots__ = ("state",)
    kind: ClassVar[Literal["suspended"]] = "suspended"
    state: RetryState


def make_event(
    kind: type["Event"],
    call: Any,
    function: Callable[..., Any] | None,
    detail: object = None,
) -> "Event":
    """Return an event of a running call.

    Args:
        kind: The class of the event.
        call: The call, which has a `state` and `arguments`.
        function: The function of the call; None for a block of code or a client.
        detail: The `failure` of an `AttemptFailed`, the `delay` of a `RetryScheduled`,
            the `number` of a `HedgeStarted`; None for other events.
    """
    event = _new_event(kind)
    _set_source(event, (call, function, call.arguments))
    if detail is None:
        return event
    if kind is AttemptFailed:
        _set_failure(event, detail)
    elif kind is RetryScheduled:
        _set_delay(event, detail)
    else:
        _set_number(event, detail)
    return event


# Quicker than the constructor.
_new_event: Callable[[type["Event"]], "Event"] = object.__new__
_set_failure = vars(AttemptFailed)["failure"].__set__
_set_delay = vars(RetryScheduled)["delay"].__set__
_set_number = vars(HedgeStarted)["number"].__set__

Event = (
    AttemptStarted
    | HedgeStarted
    | AttemptFailed
    | RetryScheduled
    | Suspended
    | Succeeded
    | GaveUp
)
"""An event of a call; each kind has the state of its call."""

Observer = Callable[[Event], object]
"""Takes an event. Its result is ignored, unless `aretry` can await it."""

process_observers: "list[observe]" = []
"""The process-wide registrations; an observer may be registered twice.

It is always the same list. Changes are single operations, so threads, signal handlers
and forks need no lock.
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

    @user_facing
    def __init__(self, observer: Observer, *, failures_only: bool = False) -> None:
        self.observer: Observer = check_observer("observer", observer)
        self.failures_only = failures_only
        process_observers.append(self)
        fast_path.block(failures_only=failures_only)

    def close(self) -> None:
        """Stop notifying the observer; closing twice is harmless."""
        try:
            process_observers.remove(self)
        except ValueError:
            return
        fast_path.unblock(failures_only=self.failures_only)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_observer(
    name: str, observer: object, *, allow_async: bool = False
) -> Observer:
    """Return *observer* if it is a function of one argument, and sync if it must be.

    Raises:
        ConfigError: *observer* is something else.
    """
    if not callable(observer):
        raise invalid_setting(name, "a function that takes an event", observer)
    if is_coroutine_function(observer) and not allow_async:
        rule = "a sync function that takes an event"
        suggestion = "to await something, start a task in it"
        raise invalid_setting(name, rule, observer, suggestion, code="async-mismatch")
    if not accepts_one_argument(observer):
        rule = "a function that takes the event, and nothing else"
        call = accepts_no_argument(observer)
        suggestion = "if it returns an observer, call it" if call else ""
        raise invalid_setting(name, rule, observer, suggestion)
    return observer


# What other libraries call these events.
_FOREIGN = {
    "before": "attempt_started",
    "after": "attempt_failed",
    "before_sleep": "retry_scheduled",
    "on_backoff": "retry_scheduled",
    "on_retry": "retry_scheduled",
    "on_success": "succeeded",
    "on_giveup": "gave_up",
}


@final
class EventHook(Frozen):
    """An observer of one kind of events.

    >>> EventHook("retry_scheduled", print)
    EventHook(kind='retry_scheduled', function=<built-in function print>)

    Attributes:
        kind: The kind of the events.
        function: Takes the event; it may be async under `aretry`.
    """

    __slots__ = ("function", "kind")
    kind: str
    function: Observer

    def __init__(self, kind: str, function: Callable[[Any], object]) -> None:
        suggestion = _FOREIGN.get(kind, "")
        suggestion = suggestion and f"write {suggestion}"
        check_choice("observers", kind, get_args(EventKind), suggestion)
        check_observer(f"observers[{kind!r}]", function, allow_async=True)
        Frozen.__init__(self, kind, function)

    def __call__(self, event: Event, /) -> object:
        """Call the function if the event is of the hook's kind."""
        return self.function(event) if event.kind == self.kind else None


def function_of(observer: Observer) -> Observer:
    """Return the function that an observer calls, or the observer itself."""
    return observer.function if isinstance(observer, EventHook) else observer


_active: ContextVar[tuple[list[Observer], ...]]
_active = ContextVar("retrykit observers", default=())
"""The observers that are running in this context, each in its own list.

Each list is emptied when its observer returns: tasks and threads that the observer
started inherit the context, and from then on their calls are observed.
"""


Pending = list[tuple[Observer, object, Awaitable[object]]]
"""Async observers, with an event and the awaitable that each returned for it."""


def notify_one(
    observer: Callable[[Any], object], event: object, pending: Pending | None
) -> None:
    """Notify an observer, unless it has made the call itself; log or raise its errors.

    Args:
        observer: The observer, or the default log.
        event: The event, or the message to log.
        pending: Collects what async observers return; None if nothing can await it.
    """
    active = _active.get()
    if active:
        active = tuple(running for running in active if running)
        if any(observer in running for running in active):
            return
    running, token = [observer], None
    try:
        token = _active.set(active + (running,))  # noqa: RUF005  quicker
        answer = observer(event)
        # Most return nothing, and need no further call.
        if answer is not None and is_awaitable(answer):
            if pending is None:
                reject_awaitable("observers", answer)
            else:
                pending.append((observer, event, answer))
    except Exception as fault:
        if raises_errors(function_of(observer)):
            raise
        _log_fault(observer, event, fault)
    finally:
        running.clear()
        if token is not None:  # pragma: no branch  (an interrupt leaves the loop)
            _active.reset(token)


async def deliver(pending: Pending) -> None:
    """Await what async observers have returned, in order; log or raise their errors."""
    while pending:
        observer, event, answer = pending.pop(0)
        running = [observer]
        token = _active.set((*_active.get(), running))
        try:
            await answer
        except Exception as fault:
            if raises_errors(function_of(observer)):
                raise
            _log_fault(observer, event, fault)
        finally:
            running.clear()
            _active.reset(token)


def discard(pending: Pending) -> None:
    """Close what async observers have returned, since the call was interrupted."""
    for _, _, answer in pending:
        if isinstance(answer, CoroutineType):
            answer.close()
    pending.clear()


def _log_fault(observer: Observer, event: object, fault: Exception) -> None:
    message = "an observer of %s failed: %r"
    # The default log is given a message in place of the event.
    known = isinstance(event, CallEvent)
    kind = type(event).__name__ if known else RetryScheduled.__name__
    log_fault(logging.ERROR, fault, message, kind, observer)
