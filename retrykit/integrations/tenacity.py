"""Hooks that were written for tenacity, as settings of a policy.

They get an object with the attributes of tenacity's `RetryCallState`. It is made for
each call of a hook, and tells of that moment. tenacity itself is not imported; what it
has to build hooks with, such as ``before_sleep_log``, ``wait_fixed`` or a subclass of
``stop_base``, is called in the same way as a function of your own.

A hook may be async under `aretry`, where tenacity awaits it, too. An error that a hook
raises ends the call, as in tenacity.
"""

import time
from collections.abc import Callable
from concurrent import futures
from typing import Any, final

from retrykit._core.call import current_state
from retrykit._core.failures import Failure, StopReason
from retrykit._core.retry_state import RetryState
from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.introspection import is_awaitable, is_coroutine_function
from retrykit._internal.validation import invalid_setting, user_facing
from retrykit.errors import GiveUp, RetryAfter
from retrykit.events import Event, Observer
from retrykit.hints import Hint
from retrykit.integrations._hooks import Adapter, Hook, check_hook
from retrykit.schedules._base import Bounds, Schedule, ScheduleLike, as_schedule
from retrykit.schedules._randomness import Random

__all__ = ["Future", "RetryAction", "RetryCallState", "RetryObject", "after", "before"]
__all__ += ["before_sleep", "retry_error_callback", "retry_on_error"]
__all__ += ["retry_on_result", "stop", "stop_after_delay", "stop_before_delay"]
__all__ += ["wait"]

StateHook = Callable[[Any], Any]
"""Takes a `RetryCallState`."""


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
    """The limits of a call, under the names of ``stop_after_attempt`` and others.

    A limit that the call does not have is no attribute.
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
    """The attributes of tenacity's ``Retrying`` object that are known.

    Attributes:
        statistics: The dict of the keys ``start_time``, ``attempt_number``,
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
    """The attributes of tenacity's class of this name.

    Attributes:
        start_time: When the call began, by `time.monotonic`.
        retry_object: A `RetryObject`.
        fn: The function that is retried; None for a block.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        attempt_number: The number of the attempt, from 1.
        outcome: The `Future` of the attempt; None before its end.
        outcome_timestamp: When the attempt ended, by `time.monotonic`, or None.
        idle_for: Sum of the delays, in seconds; with the one to come in
            ``before_sleep``.
        next_action: A `RetryAction` in ``before_sleep``; else None.
        upcoming_sleep: The delay to come in ``before_sleep``; the one before in
            ``before`` and ``after``, or 0.0. In ``retry_error_callback`` that of
            `wait`, or 0.0: other delays are not drawn after the last attempt.
        seconds_since_start: When the attempt ended, in seconds since the call
            began, or None.
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
        """Return the full name of the function; of a block, its own name."""
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
        ConfigError: *hook* is no function of one argument.
    """
    return Before((check_hook("hook", hook, _TAKES),), "attempt_started")


@user_facing
def after(hook: StateHook) -> Observer:
    """Return an observer that calls a hook after each failed attempt.

    As in tenacity, only if the error or the result is one to retry. Beside `wait` or
    `stop` of this module, write it as ``after=`` of these: tenacity calls it first.

    Args:
        hook: Takes the `RetryCallState`.

    Raises:
        ConfigError: *hook* is no function of one argument.
    """
    return After((check_hook("hook", hook, _TAKES),), "attempt_failed")


@user_facing
def before_sleep(hook: StateHook) -> Observer:
    """Return an observer that calls a hook before each delay.

    Retries are then logged by nobody else.

    >>> from retrykit import Policy
    >>> hook = before_sleep(lambda state: print("wait", state.next_action.sleep))
    >>> policy = Policy(schedule=[0], observers=[hook], fallback=None)
    >>> policy.call(int, "seven")
    wait 0.0

    Args:
        hook: Takes the `RetryCallState`.

    Raises:
        ConfigError: *hook* is no function of one argument.
    """
    return BeforeSleep((check_hook("hook", hook, _TAKES),), "retry_scheduled")


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
        ConfigError: *callback* is no function of one argument.
    """
    return RetryErrorCallback(check_hook("callback", callback, _TAKES))


@user_facing
def wait(
    function: StateHook,
    *,
    stop: StateHook | None = None,
    after: StateHook | None = None,
) -> Hint:
    """Return a `hint` that waits as long as a function of the state says.

    Write ``schedule=constant(0), hint=wait(function), hint_cap=None``: the delay is
    then that of the function alone.

    >>> from retrykit import Policy
    >>> from retrykit.schedules import constant
    >>> hint = wait(lambda state: 0.01 * state.attempt_number)
    >>> policy = Policy(schedule=constant(0), hint=hint, hint_cap=None, max_attempts=3)
    >>> [f.delay for f in policy.run(int, "seven").state.failures]
    [0.01, 0.02, None]

    Args:
        function: Takes the `RetryCallState`; returns seconds, >= 0.
        stop: As `stop`; it knows the `upcoming_sleep`.
        after: Called before both, in place of the observer `after`.

    Raises:
        ConfigError: One of them is no function of one argument.
    """
    return Decision(
        check_sync("function", function),
        None if stop is None else check_sync("stop", stop),
        None if after is None else check_sync("after", after),
    )


@user_facing
def stop(function: StateHook, *, after: StateHook | None = None) -> Hint:
    """Return a `hint` that ends the call if a function of the state says so.

    The delays are those of the policy's schedule, and not known to the function:
    `wait` has a parameter for one that reads ``upcoming_sleep``.

    >>> from retrykit import Policy
    >>> hint = stop(lambda state: state.attempt_number >= 3)
    >>> policy = Policy(schedule=[0] * 9, hint=hint)
    >>> policy.run(int, "seven").state.attempt
    3

    Args:
        function: Takes the `RetryCallState`; true ends the call.
        after: Called before that, in place of the observer `after`.

    Raises:
        ConfigError: One of them is no function of one argument.
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
        ConfigError: *predicate* is no function of one argument.
    """
    return Predicate(check_hook("predicate", predicate, _TAKES), judges_errors=True)


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
        ConfigError: *predicate* is no function of one argument.
    """
    return Predicate(check_hook("predicate", predicate, _TAKES), judges_errors=False)


@user_facing
def stop_after_delay(limit: Duration, schedule: ScheduleLike) -> Schedule:
    """Return a schedule that ends once *limit* has passed, or is reached exactly.

    ``max_elapsed=limit, deadline="overshoot"`` is the same, but for an attempt that
    ends within a microsecond of the limit, as in tests with a clock of their own: it
    is followed by another there, and by none in tenacity, stamina and retrying.

    >>> from retrykit.schedules import constant
    >>> stop_after_delay("1m", constant(10)).bounds(1)
    (10.0, 10.0)

    Args:
        limit: Since the call began. A duration, >= 0.
        schedule: The delays.

    Raises:
        ConfigError: *limit* is no duration, or *schedule* no schedule.
    """
    limit = parse_duration("limit", limit)
    return Limited(as_schedule(schedule), limit, with_delay=False)


@user_facing
def stop_before_delay(limit: Duration, schedule: ScheduleLike) -> Schedule:
    """Return a schedule that ends if the next delay would reach *limit*.

    ``max_elapsed=limit`` is the same, but for an attempt that would begin exactly at
    the limit: it is made there, and not in tenacity.

    Args:
        limit: Since the call began. A duration, >= 0.
        schedule: The delays.

    Raises:
        ConfigError: *limit* is no duration, or *schedule* no schedule.
    """
    limit = parse_duration("limit", limit)
    return Limited(as_schedule(schedule), limit, with_delay=True)


_TAKES = "the RetryCallState"


def check_sync(name: str, value: Any) -> StateHook:
    """Return *value* if it is a sync function of one argument."""
    function = check_hook(name, value, _TAKES)
    if is_coroutine_function(function):
        rule = f"a sync function that takes {_TAKES}, even under aretry"
        raise invalid_setting(name, rule, value)
    return function


@final
class Before(Hook):
    """Calls hooks before each attempt."""

    __slots__ = ()

    def adapt(self, event: Event, /) -> RetryCallState:
        """Return the state of an attempt that begins."""
        state = event.state
        last = _last(state)
        return RetryCallState(
            state,
            event.function,
            event.args,
            event.kwargs,
            idle_for=state.total_delay,
            upcoming_sleep=_delay(last),
            earlier=_end(last),
        )


@final
class After(Hook):
    """Calls hooks after each attempt whose outcome is one to retry."""

    __slots__ = ()

    def __call__(self, event: Event, /) -> object:
        """Call the hooks, unless `give_up_on` has ended the call."""
        if event.state.stop_reason is StopReason.GAVE_UP:
            return None
        return Hook.__call__(self, event)

    def adapt(self, event: Event, /) -> RetryCallState:
        """Return the state after an attempt, before the next delay is known."""
        return _after(event.state, event, _last(event.state))


@final
class BeforeSleep(Hook):
    """Calls hooks before each delay."""

    __slots__ = ()

    def adapt(self, event: Event, /) -> RetryCallState:
        """Return the state before a delay."""
        state = event.state
        last = _last(state)
        made = RetryCallState(
            state,
            event.function,
            event.args,
            event.kwargs,
            outcome=_future(last),
            since_start=_end(last),
            idle_for=state.total_delay + _delay(last),
            upcoming_sleep=_delay(last),
            earlier=_end(last),
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
        """Return the answer of the callback."""
        last = _last(state)
        made = RetryCallState(
            state,
            state.function,
            state.args,
            state.kwargs,
            outcome=_future(last),
            since_start=None if last is None else _end(last),
            idle_for=state.total_delay,
            upcoming_sleep=(last and last.hint) or 0.0,
            earlier=_end(last),
        )
        return self.callback(made)


@final
class Decision(Adapter):
    """A hint that asks functions of the state how long to wait, and whether to stop.

    Attributes:
        wait: Returns the delay, in seconds; None leaves it to the schedule.
        stop: Returns whether to end the call; None goes on.
        after: Called first; or None.
    """

    __slots__ = ("after", "stop", "wait")
    wait: StateHook | None
    stop: StateHook | None
    after: StateHook | None

    def __call__(self, outcome: object, /) -> RetryAfter | GiveUp | None:
        """Return the delay after an error or a rejected result."""
        made = _running(outcome, failed=isinstance(outcome, Exception))
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
class Limited(Schedule):
    """A schedule that ends at a limit of the time since its call began.

    Attributes:
        of: The schedule.
        limit: In seconds.
        with_delay: Whether the delay that comes counts.
    """

    __slots__ = ("limit", "of", "with_delay")
    of: Schedule
    limit: float
    with_delay: bool

    def delay(
        self, retry: int, previous: float | None, random: Random, /
    ) -> float | None:
        delay = self.of.delay(retry, previous, random)
        try:
            elapsed = current_state().elapsed
        except LookupError:
            # Somebody looks at the schedule.
            return delay
        if delay is None or elapsed + delay * self.with_delay >= self.limit:
            return None
        return delay

    def bounds(self, retry: int, /) -> Bounds | None:
        return self.of.bounds(retry)


@final
class Predicate(Adapter):
    """A condition on errors or results that is a function of the state.

    Attributes:
        predicate: Returns whether to retry.
        judges_errors: Whether it is asked about errors, or about results.
    """

    __slots__ = ("judges_errors", "predicate")
    predicate: StateHook
    judges_errors: bool

    def __call__(self, outcome: object, /) -> Any:
        """Return the answer about an error or a result."""
        answer = self.predicate(_running(outcome, failed=self.judges_errors))
        return answer if is_awaitable(answer) else bool(answer)


def _running(outcome: object, *, failed: bool) -> RetryCallState:
    """Return the state of the attempt that has just ended, before it is recorded."""
    state = current_state()
    last = _last(state)
    return RetryCallState(
        state,
        state.function,
        state.args,
        state.kwargs,
        outcome=_new_future(state.attempt, outcome, failed=failed),
        since_start=state.elapsed,
        idle_for=state.total_delay,
        upcoming_sleep=_delay(last),
        earlier=_end(last),
    )


def _after(state: RetryState, call: Event, last: Failure | None) -> RetryCallState:
    *_, before = (None, *state.failures[:-1])
    return RetryCallState(
        state,
        call.function,
        call.args,
        call.kwargs,
        outcome=_future(last),
        since_start=_end(last),
        idle_for=state.total_delay,
        upcoming_sleep=_delay(before),
        earlier=_end(before),
    )


def _last(state: RetryState) -> Failure | None:
    return state.failures[-1] if state.failures else None


def _delay(failure: Failure | None) -> float:
    return 0.0 if failure is None else failure.delay or 0.0


def _end(failure: Failure | None) -> float:
    """Return when an attempt ended, in seconds since the call began."""
    return 0.0 if failure is None else failure.started + failure.duration


def _future(failure: Failure | None) -> Future | None:
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
