"""Exceptions that retrykit raises.

::

    Exception
    └── RetrykitError          base class
        ├── ConfigError        a setting is invalid; also a ValueError
        ├── NestingError       a context block is opened or closed out of order
        ├── NestedRetryError   a call inside this one gave up, under nested="raise"
        ├── CommitUnknown      a database transaction may have been committed
        ├── StreamChangedError a restarted stream has fewer items than before
        ├── DownloadError      a download cannot continue
        ├── EventStreamError   server-sent events cannot continue
        ├── AttemptTimeout     an attempt took too long; also a TimeoutError
        │   └── ItemTimeout        an item of a stream did
        ├── RefusedError       a limit refused a call
        │   └── CircuitOpenError   a circuit breaker did
        ├── RetryError         a call gave up; wraps its last error, if there is one
        └── Signal             raised by a retried function to control its call
            ├── RetryAfter     retry, after this delay
            └── GiveUp         stop at once, with this cause
    ExceptionGroup
    └── FailureGroup           the errors of a call that gave up

By default a call that gives up raises its last error, and a `RetryError` only if its
last result was rejected.
"""

from typing import TYPE_CHECKING, Any, Final, final

from retrykit._internal.durations import Duration, duration_in_words, parse_duration
from retrykit._internal.validation import (
    ConfigError,
    ErrorCode,
    NestingError,
    RetrykitError,
    invalid_setting,
    user_facing,
)

if TYPE_CHECKING:
    from retrykit._core.retry_state import RetryState

__all__ = ["AttemptTimeout", "CircuitOpenError", "CommitUnknown", "ConfigError"]
__all__ += ["DownloadError", "ErrorCode", "EventStreamError"]
__all__ += [
    "FailureGroup",
    "GiveUp",
    "ItemTimeout",
    "NestedRetryError",
    "NestingError",
    "RefusedError",
    "RetryAfter",
    "RetryError",
]
__all__ += ["RetrykitError", "Signal", "StreamChangedError"]

STATE_ATTRIBUTE: Final = "__retrykit_state__"
"""The name of the attribute of an outcome that holds the state of its call."""


class AttemptTimeout(RetrykitError, TimeoutError):  # noqa: N818  told by its name
    """An attempt took longer than its policy allows, and was cancelled.

    The attempt is retried whatever the policy's `on` says, unless `give_up_on`
    matches. The traceback shows where the attempt was cancelled.

    >>> raise AttemptTimeout(1.5)
    Traceback (most recent call last):
    ...
    retrykit.errors.AttemptTimeout: the attempt took longer than 1.5 s

    Attributes:
        timeout: The time limit of the attempt, in seconds, >= 0.
    """

    _text = "the attempt took longer than"

    def __init__(self, timeout: float) -> None:
        super().__init__(timeout)
        self.timeout = timeout

    def __str__(self) -> str:
        # The time left of a deadline has many digits.
        timeout = round(self.timeout, 3) or self.timeout
        text = f"{timeout * 1000:g} ms" if 0 < timeout < 1 else f"{timeout:g} s"
        return f"{self._text} {text}"


@final
class ItemTimeout(AttemptTimeout):
    """An item of a stream took longer than its mode allows.

    >>> raise ItemTimeout(1.5)
    Traceback (most recent call last):
    ...
    retrykit.errors.ItemTimeout: no item came within 1.5 s
    """

    _text = "no item came within"


class RefusedError(RetrykitError):
    """A limit refused a call, which was not made.

    >>> raise RefusedError("db", "full: 10 calls run, and 5 wait", None)
    Traceback (most recent call last):
    ...
    retrykit.errors.RefusedError: limit 'db' is full: 10 calls run, and 5 wait

    Attributes:
        limit: The name, the scope or the key of the limit; None if it has none.
        reason: The limit's state, and what caused it.
        retry_in: Seconds until the limit will let a call through, >= 0; None if that is
            unknown, because it depends on another call or a person.
    """

    _noun = "limit"

    def __init__(self, limit: str | None, reason: str, retry_in: float | None) -> None:
        super().__init__(limit, reason, retry_in)
        self.limit = limit
        self.reason = reason
        self.retry_in = retry_in

    def __str__(self) -> str:
        name = "" if self.limit is None else f" {self.limit!r}"
        text = f"{self._noun}{name} is {self.reason}"
        if self.retry_in is None:
            return text
        return f"{text}; try again in {duration_in_words(self.retry_in)}"


@final
class CircuitOpenError(RefusedError):
    """A circuit breaker refused a call, which was not made.

    >>> raise CircuitOpenError("api", "open, as 6 of 10 calls failed", 12.5)
    Traceback (most recent call last):
    ...
    retrykit.errors.CircuitOpenError: circuit breaker 'api' is open, as 6 of 10 calls \
failed; try again in 12.5 s

    If a retried function calls a breaker itself, not through the `admission` of its
    policy, choose what to do: ``give_up_on=CircuitOpenError`` ends the call, and
    ``hint=hints.attribute("retry_in")`` waits until the breaker lets calls through.
    """

    _noun = "circuit breaker"

    @property
    def breaker(self) -> str | None:
        """The name, the scope or the key of the breaker; None if it has none."""
        return self.limit


class CommitUnknown(RetrykitError):  # noqa: N818  told by its name
    """The connection was lost during COMMIT: the transaction may have been committed.

    The database integrations raise it. The transaction is not retried unless it is
    ``idempotent``, and calls around it are not retried unless they have
    ``nested="retry"``. Look in the database before you repeat the transaction. The
    ``__cause__`` is the driver's error.
    """


@final
class StreamChangedError(RetrykitError):
    """A restarted generator ended with fewer items than had been handed out.

    ``streams.restart(skip_seen=True)`` is for a source that gives the same items again.

    Attributes:
        expected: Number of items that had been handed out, >= 1.
        found: Number of items that the new attempt had, less than *expected*.
    """

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(expected, found)
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        return (
            f"the source has changed: {self.expected} items were handed out, and a "
            f"new attempt had {self.found}"
        )


@final
class DownloadError(RetrykitError):
    """A download cannot continue, because the file has changed, for example.

    The downloads of `retrykit.integrations` raise it. Throw away what you have, and
    download the file again.

    >>> raise DownloadError(2048, "the file has changed")
    Traceback (most recent call last):
    ...
    retrykit.errors.DownloadError: the download cannot continue after 2048 bytes: the \
file has changed

    Attributes:
        offset: Number of the file's bytes that were handed out, >= 0.
        reason: Why it cannot continue.
    """

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(offset, reason)
        self.offset = offset
        self.reason = reason

    def __str__(self) -> str:
        return f"the download cannot continue after {self.offset} bytes: {self.reason}"


@final
class EventStreamError(RetrykitError):
    """A stream of server-sent events cannot continue.

    The streams of `retrykit.integrations` raise it: the server no longer knows the last
    id, so that events are lost, or its answer is not an event stream.

    Attributes:
        last_event_id: The id of the last event that was handed out; empty if there is
            none.
        reason: Why it cannot continue, and which events are lost, if any.
    """

    def __init__(self, last_event_id: str, reason: str) -> None:
        super().__init__(last_event_id, reason)
        self.last_event_id = last_event_id
        self.reason = reason

    def __str__(self) -> str:
        return f"the event stream cannot continue: {self.reason}"


@final
class RetryError(RetrykitError):
    """A call gave up.

    Raised under ``raises="retry_error"``, with the last error as its ``__cause__``, if
    `on` includes that error; and where there is no error to raise, because the result
    of the last attempt was rejected. It can be pickled: its state then holds records of
    the errors.

    Attributes:
        state: The history of the call.
    """

    def __init__(self, state: "RetryState") -> None:
        super().__init__(state)
        self.state = state

    def __str__(self) -> str:
        state = self.state
        if not hasattr(state, "describe"):
            # A string, from which Celery rebuilds the error of a JSON result.
            return str(state)
        last = [f.describe(redact=state.redact) for f in state.failures[-1:]]
        return "; last failure: ".join([f"{state.name} {state.describe()}", *last])


@final
class NestedRetryError(RetrykitError, RuntimeError):
    """A retried call gave up inside another retried call.

    Raised under ``nested="raise"``, from the final error of the nested call. `state_of`
    returns the history of the outer call, whose `nested_state` is the history of the
    nested one.

    >>> from retrykit import Policy
    >>> inner = Policy(schedule=[0], name="inner")
    >>> Policy(nested="raise", name="outer").call(inner.call, int, "seven")
    Traceback (most recent call last):
    ...
    retrykit.errors.NestedRetryError: inner is retried inside outer
    """


@final
class FailureGroup(ExceptionGroup[Exception]):
    """The errors that the state of a call keeps, under ``raises="group"``.

    The groups that ``except*`` splits it into keep the state of the call.
    """

    def derive(self, errors: Any, /) -> Any:
        """Return a group of some of the errors, with the state of the call."""
        part = FailureGroup(self.message, errors)
        vars(part)[STATE_ATTRIBUTE] = vars(self)[STATE_ATTRIBUTE]
        return part


class Signal(RetrykitError):  # noqa: N818  an instruction, not an error
    """Base class of exceptions that a function raises to control its own retrying.

    A signal that a call raises as its final error controls the call around it.
    """

    around: BaseException | None = None
    """The error whose handler encloses the retry block that raised the signal."""

    def __init__(self, *args: object, cause: Exception | None) -> None:
        if cause is not None and not isinstance(cause, Exception):
            rule = "an exception (an instance of Exception)"
            suggestion = (
                f"write raise {type(self).__name__} from error, or raise an error"
            )
            raise invalid_setting("cause", rule, cause, suggestion)
        super().__init__(*args)
        self.cause = cause

    @property
    def error(self) -> Exception:
        """The error to record and to raise.

        The `cause`, else the error after ``from``, else the error whose handler raised
        the signal, else the signal itself. ``from None`` excludes the handler's error.
        """
        if self.cause is not None:
            return self.cause
        if isinstance(self.__cause__, Exception):
            return self.__cause__
        context = None if self.__suppress_context__ else self.__context__
        if context is self.around or not isinstance(context, Exception):
            return self
        if self._was_raised_handling(context):
            return context
        return self

    def _was_raised_handling(self, error: Exception) -> bool:
        """Return whether the signal was raised while handling an error of its call.

        It was if its traceback shares a frame with the error's: the frame that
        caught the error. An error handled outside the call shares none, and an error
        handled around a retry block is excluded by `around`.
        """
        caught, trace = error.__traceback__, self.__traceback__
        while caught is not None and trace is not None:
            if trace.tb_frame is caught.tb_frame:
                return True
            trace = trace.tb_next
        return False


@final
class RetryAfter(Signal):
    """Retry after *delay* instead of the schedule's delay, whatever the error.

    Without a delay, the retry follows after the schedule's delay. The limits of the
    policy still apply: attempts, time, budget, and the end of the schedule. `hint_cap`
    does not, since it limits what others ask for. If the call gives up, it raises the
    cause; without one, the signal itself.

    >>> RetryAfter("2s")
    RetryAfter(2.0, None)
    >>> str(RetryAfter(2, ValueError("busy")))
    'asked for another attempt after 2 s'
    >>> str(RetryAfter())
    'asked for another attempt'

    Args:
        delay: Time before the next attempt. Seconds, timedelta or string, >= 0;
            0 means now; None, the default, leaves it to the schedule.
        cause: The error to record; by default the one whose ``except`` clause raises
            the signal. ``raise RetryAfter(2) from error`` names another, and
            ``from None`` none.

    Raises:
        ConfigError: *delay* is invalid, or *cause* is not an exception.
    """

    @user_facing
    def __init__(
        self, delay: Duration | None = None, cause: Exception | None = None
    ) -> None:
        self.delay: float | None = (
            None if delay is None else parse_duration("delay", delay)
        )
        super().__init__(self.delay, cause, cause=cause)

    def __str__(self) -> str:
        asked = "asked for another attempt"
        if self.delay is None:
            return asked
        return f"{asked} after {duration_in_words(self.delay)}"


@final
class GiveUp(Signal):
    """Stop the call at once; it raises *cause*.

    >>> GiveUp(PermissionError("revoked")).error
    PermissionError('revoked')

    Args:
        cause: The error to raise; by default the one whose ``except`` clause raises
            the signal. ``raise GiveUp() from error`` names another. Without an error,
            or with ``from None``, the signal itself is raised.

    Raises:
        ConfigError: *cause* is not an exception.
    """

    @user_facing
    def __init__(self, cause: Exception | None = None) -> None:
        super().__init__(cause, cause=cause)

    def __str__(self) -> str:
        return "asked to give up" if self.cause is None else f"gave up: {self.cause}"


def requested_delay(answer: float | RetryAfter | GiveUp | None) -> float | None:
    """Return the seconds that a hint or a signal requests; None without a request."""
    if isinstance(answer, GiveUp):
        return None
    return answer.delay if isinstance(answer, RetryAfter) else answer
