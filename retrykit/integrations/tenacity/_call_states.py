"""The call states that tenacity's hooks expect."""

import time
from collections.abc import Callable
from concurrent import futures
from typing import Any, final

from retrykit._core.call import current_state
from retrykit._core.failures import Failure
from retrykit._core.retry_state import RetryState
from retrykit.events import Event

__all__ = ["Future", "RetryAction", "RetryCallState", "RetryObject", "Stop", "delay_of"]
__all__ += ["end_of", "future_of", "last_failure", "running_state", "state_after"]


@final
class Future(futures.Future[Any]):
    """The outcome of an attempt: its error or its result.

    Attributes:
        attempt_number: The number of the attempt, from 1.
    """

    attempt_number: int

    def __init__(self, attempt_number: int) -> None:
        super().__init__()
        self.attempt_number = attempt_number

    @property
    def failed(self) -> bool:
        """True if the attempt raised an error."""
        return self.exception() is not None


@final
class RetryAction:
    """The next action: to retry, after *sleep* seconds."""

    NAME = "retry"
    REPR_FIELDS = ("sleep",)

    sleep: float

    def __init__(self, sleep: float) -> None:
        self.sleep = float(sleep)

    def __repr__(self) -> str:
        return f"RetryAction(sleep={self.sleep!r})"


@final
class Stop:
    """The limits of a call, as attributes with the names that tenacity's stops use.

    Attributes:
        max_attempt_number: As in ``stop_after_attempt``; missing without such a limit.
        max_delay: As in ``stop_after_delay``, in seconds; missing without such a limit.
    """

    max_attempt_number: int
    max_delay: float

    def __init__(self, state: RetryState) -> None:
        if state.max_attempts is not None:
            self.max_attempt_number = state.max_attempts
        if state.max_elapsed is not None:
            self.max_delay = state.max_elapsed


@final
class RetryObject:
    """A stand-in for tenacity's ``Retrying`` object, with the attributes known here.

    Attributes:
        statistics: A dict with the keys ``start_time``, ``attempt_number``,
            ``idle_for`` and ``delay_since_first_attempt``.
        stop: An object with `max_attempt_number` and `max_delay`, as far as the call
            has these limits.
    """

    statistics: dict[str, Any]
    stop: Stop

    def __init__(self, state: RetryState, statistics: dict[str, Any]) -> None:
        self.statistics = statistics
        self.stop = Stop(state)
        self._name = state.name

    def __str__(self) -> str:
        return self._name


@final
class RetryCallState:
    """An object with the attributes of tenacity's class of the same name.

    Attributes:
        start_time: When the call began, by `time.monotonic`.
        retry_object: A `RetryObject`.
        fn: The function that is retried; None for a block.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        attempt_number: The number of the attempt, from 1.
        outcome: The `Future` of the attempt; None before its end.
        outcome_timestamp: When the attempt ended, by `time.monotonic`; None if it has
            not.
        idle_for: Sum of the delays, in seconds; in ``before_sleep``, with the delay to
            come.
        next_action: A `RetryAction` in ``before_sleep``; else None.
        upcoming_sleep: The delay to come in ``before_sleep``; the previous delay in
            ``before`` and ``after``, or 0.0. In ``retry_error_callback`` the delay of
            `wait`, or 0.0: other delays are not drawn after the last attempt.
        seconds_since_start: When the attempt ended, in seconds since the call began;
            None if it has not.
    """

    start_time: float
    retry_object: RetryObject
    fn: Callable[..., Any] | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    attempt_number: int
    outcome: Future | None
    outcome_timestamp: float | None
    idle_for: float
    next_action: RetryAction | None
    upcoming_sleep: float
    seconds_since_start: float | None

    def __init__(  # noqa: PLR0913  as much as is known
        self,
        state: RetryState,
        fn: Callable[..., Any] | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        idle_for: float,
        upcoming_sleep: float,
        since_start: float | None = None,
        outcome: Future | None = None,
        earlier: float = 0,
    ) -> None:
        self.start_time = time.monotonic() - state.elapsed
        self.fn, self.args, self.kwargs = fn, args, kwargs
        self.attempt_number = state.attempt
        self.outcome, self.seconds_since_start = outcome, since_start
        self.outcome_timestamp = None
        if since_start is not None:
            self.outcome_timestamp = self.start_time + since_start
        self.idle_for, self.upcoming_sleep = idle_for, upcoming_sleep
        self.next_action = None
        self.retry_object = RetryObject(
            state,
            {
                "start_time": self.start_time,
                "attempt_number": state.attempt,
                "idle_for": idle_for,
                "delay_since_first_attempt": earlier,
            },
        )

    def get_fn_name(self) -> str:
        """Return the full name of the function; for a block, the name of the block."""
        if self.fn is None:
            return str(self.retry_object)
        name = getattr(self.fn, "__qualname__", None) or getattr(
            self.fn, "__name__", None
        )
        module = getattr(self.fn, "__module__", None)
        if name is None:
            return repr(self.fn)
        return f"{module}.{name}" if module else name

    def __repr__(self) -> str:
        result = "none yet"
        if self.outcome is not None and self.outcome.failed:
            error = self.outcome.exception()
            result = f"failed ({type(error).__name__} {error})"
        elif self.outcome is not None:
            result = f"returned {self.outcome.result()}"
        slept = float(round(self.idle_for, 2))
        text = f"attempt #{self.attempt_number}; slept for {slept}"
        return f"<RetryCallState {id(self)}: {text}; last result: {result}>"


def running_state(outcome: object, *, failed: bool) -> RetryCallState:
    """Return the state of the attempt that has just ended, before it is recorded."""
    state = current_state()
    last = last_failure(state)
    return RetryCallState(
        state,
        state.function,
        state.args,
        state.kwargs,
        outcome=_new_future(state.attempt, outcome, failed=failed),
        since_start=state.elapsed,
        idle_for=state.total_delay,
        upcoming_sleep=delay_of(last),
        earlier=end_of(last),
    )


def state_after(state: RetryState, call: Event, last: Failure | None) -> RetryCallState:
    """Return the state after an attempt that has failed."""
    *_, before = (None, *state.failures[:-1])
    return RetryCallState(
        state,
        call.function,
        call.args,
        call.kwargs,
        outcome=future_of(last),
        since_start=end_of(last),
        idle_for=state.total_delay,
        upcoming_sleep=delay_of(before),
        earlier=end_of(before),
    )


def last_failure(state: RetryState) -> Failure | None:
    """Return the last failure of a call; None if there is none."""
    return state.failures[-1] if state.failures else None


def delay_of(failure: Failure | None) -> float:
    """Return the delay after a failure, in seconds; 0.0 if there was none."""
    return 0.0 if failure is None else failure.delay or 0.0


def end_of(failure: Failure | None) -> float:
    """Return when a failed attempt ended, in seconds since the call began; else 0.0."""
    return 0.0 if failure is None else failure.started + failure.duration


def future_of(failure: Failure | None) -> Future | None:
    """Return the outcome of a failed attempt; None if there is no failure."""
    if failure is None:
        return None
    error = failure.error
    outcome = failure.result if error is None else error
    return _new_future(failure.attempt, outcome, failed=error is not None)


def _new_future(attempt: int, outcome: Any, *, failed: bool) -> Future:
    future = Future(attempt)
    if failed:
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
    return future
