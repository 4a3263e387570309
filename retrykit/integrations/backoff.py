"""Hooks, conditions, waits and limits that were written for backoff, as settings.

Handlers get the dict that backoff calls ``details``. backoff itself is not imported.

Under `aretry`, a handler may be async, as with async functions in backoff. An error
that a handler raises ends the call, as in backoff.
"""

import math
from collections.abc import Awaitable, Callable
from typing import Any, cast, final

from retrykit._conditions import BY_TYPE, check_condition
from retrykit._core.call import current_state
from retrykit._core.retry_state import RetryState
from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.introspection import is_awaitable
from retrykit._internal.validation import invalid_setting, user_facing
from retrykit.errors import GiveUp, RetryAfter
from retrykit.events import Event, Observer
from retrykit.hints import Hint
from retrykit.integrations._hooks import Adapter, Hook, call_in_turn, check_hook
from retrykit.schedules._base import Bounds, Schedule, ScheduleLike, as_schedule
from retrykit.schedules._randomness import MAX_DELAY, Random

__all__ = ["giveup", "on_backoff", "on_giveup", "on_success", "predicate", "wait"]
__all__ += ["wait_gen"]

Handler = Callable[[Any], object]
"""A function that takes the dict of details."""


@user_facing
def on_backoff(*handlers: Handler) -> Observer:
    """Return an observer that calls handlers before each delay.

    retrykit then does not log retries itself.

    >>> from retrykit import Policy
    >>> observer = on_backoff(lambda details: print(details["tries"], details["wait"]))
    >>> Policy(schedule=[0], observers=[observer], fallback=None).call(int, "seven")
    1 0.0

    Args:
        *handlers: Each takes the details: a dict of ``target``, ``args``, ``kwargs``,
            ``tries``; ``elapsed``, the seconds from the start of the call to the start
            of the attempt; ``wait``, the delay; and ``exception`` or ``value``.

    Raises:
        ConfigError: There is no handler, or one is not a function of one argument.
    """
    return Details(_check_handlers(handlers), "retry_scheduled")


@user_facing
def on_giveup(*handlers: Handler) -> Observer:
    """Return an observer that calls handlers when a call gives up.

    As in backoff, the handlers are not called if the error is not one to retry.

    Args:
        *handlers: Each takes the details, without ``wait``.

    Raises:
        ConfigError: There is no handler, or one is not a function of one argument.
    """
    return Details(_check_handlers(handlers), "gave_up")


@user_facing
def on_success(*handlers: Handler) -> Observer:
    """Return an observer that calls handlers when a call succeeds.

    The details have no ``value``, as in backoff's ``on_exception``; for handlers of its
    ``on_predicate``, use `predicate`.

    Args:
        *handlers: Each takes the details, without ``wait``.

    Raises:
        ConfigError: There is no handler, or one is not a function of one argument.
    """
    return Details(_check_handlers(handlers), "succeeded")


@user_facing
def predicate(
    function: Callable[[Any], object], *on_success: Handler
) -> Callable[[Any], Any]:
    """Return an `on_result` that calls handlers with each result that is accepted.

    >>> from retrykit import Policy
    >>> accept = predicate(lambda x: x < 9, lambda details: print(details["value"]))
    >>> Policy(on=(), on_result=accept, schedule=[0]).call(int, "12")
    12
    12

    Args:
        function: Takes the result; a true answer rejects it.
        *on_success: Handlers, each of which takes the details, with ``value``.

    Raises:
        ConfigError: An argument is not a function of one argument.
    """
    check_hook("function", function, "the result")
    return Predicate(function, _check_handlers(on_success, "on_success"))


@user_facing
def giveup(
    function: Callable[[Any], object],
    exception: type[Exception] | tuple[type[Exception], ...] = Exception,
) -> Callable[[Exception], Any]:
    """Return a `give_up_on` that asks a function about some types of errors only.

    backoff asks the function only about errors that its decorator retries.

    Args:
        function: Takes the error; a true answer ends the call.
        exception: The type of the errors, or a tuple of types.

    Raises:
        ConfigError: *function* is not a function of one argument, or *exception* is
            neither a type of exceptions nor a tuple of them.
    """
    check_condition("exception", exception)
    if not isinstance(exception, BY_TYPE):
        rule = "an Exception type, or a tuple of them"
        raise invalid_setting("exception", rule, exception)
    return Giveup(check_hook("function", function, "the error"), exception)


@user_facing
def wait(
    schedule: ScheduleLike,
    *,
    jitter: Callable[[float], float] | None = None,
    max_time: Duration | None = None,
) -> Schedule:
    """Return a schedule with a jitter function and a time limit as in backoff.

    With *max_time*, no attempt follows one that began at that time or later, and each
    delay is at most the time that was left when the failed attempt began. `max_elapsed`
    also counts the time of that attempt.

    >>> from retrykit.schedules import constant
    >>> list(wait(constant(2), jitter=lambda delay: delay / 4).take(2).draw())
    [0.5, 0.5]

    Args:
        schedule: The delays.
        jitter: Takes a delay, in seconds; returns the delay to wait.
        max_time: A duration, >= 0; None is unlimited. It counts only in a retried call.

    Raises:
        ConfigError: *schedule* is not a schedule, *jitter* is not a function of one
            argument, or *max_time* is not a duration.
    """
    if jitter is not None:
        check_hook("jitter", jitter, "the delay")
    limit = None if max_time is None else parse_duration("max_time", max_time)
    return Wait(as_schedule(schedule), jitter, limit)


@user_facing
def wait_gen(
    function: Callable[..., Any],
    /,
    *,
    jitter: Callable[[float], float] | None = None,
    max_time: Duration | None = None,
    **arguments: Any,
) -> Hint:
    """Return a `hint` that waits for the delays of a backoff wait generator.

    Write ``schedule=constant(0), hint=wait_gen(function), hint_cap=None``. The
    generator is made at the first failure of a call, is sent each error or rejected
    result, and ends the call when it ends.

    >>> from retrykit import Policy
    >>> from retrykit.schedules import constant
    >>> def halves():
    ...     delay = yield
    ...     for delay in (0.02, 0.01):
    ...         yield delay
    >>> policy = Policy(schedule=constant(0), hint=wait_gen(halves), hint_cap=None)
    >>> [f.delay for f in policy.run(int, "seven").state.failures]
    [0.02, 0.01, None]

    Args:
        function: Returns a generator, whose first ``yield`` gives no delay.
        jitter: As in `wait`.
        max_time: As in `wait`.
        **arguments: Arguments of *function*. One that can be called without arguments
            is replaced by its result.

    Raises:
        ConfigError: *function* is not callable, or another argument is invalid.
    """
    if not callable(function):
        raise invalid_setting("function", "a generator function", function)
    if jitter is not None:
        check_hook("jitter", jitter, "the delay")
    limit = None if max_time is None else parse_duration("max_time", max_time)
    return WaitGenerator(function, tuple(arguments.items()), jitter, limit)


def _check_handlers(
    handlers: tuple[object, ...], name: str = "handlers"
) -> tuple[Handler, ...]:
    for index, each in enumerate(handlers):
        check_hook(f"{name}[{index}]", each, "the details")
    if not handlers and name == "handlers":
        raise invalid_setting(name, "at least one function", handlers)
    return cast("tuple[Handler, ...]", handlers)


@final
class Details(Hook):
    """Calls handlers with the details of a call."""

    __slots__ = ()

    def adapt(self, event: Event, /) -> dict[str, Any]:
        """Return the dict of details that describes an event."""
        state = event.state
        details = _details(state, event.function, event.args, event.kwargs)
        if event.kind == "succeeded" or not state.failures:
            return details
        last = state.failures[-1]
        wait = {"wait": last.delay} if event.kind == "retry_scheduled" else {}
        if last.error is None:
            return {**details, "value": last.result, **wait}
        return {**details, **wait, "exception": last.error}


@final
class Predicate(Adapter):
    """A predicate of results that calls handlers for the results it accepts.

    Attributes:
        function: Returns whether a result is rejected.
        on_success: The handlers.
    """

    __slots__ = ("function", "on_success")
    function: Callable[[Any], object]
    on_success: tuple[Handler, ...]

    def __call__(self, result: object, /) -> Any:
        """Return whether a result is rejected, after calling handlers if it is not.

        If a handler is async, the answer for an accepted result is an awaitable.
        """
        if self.function(result):
            return True
        state = current_state()
        details = _details(state, state.function, state.args, state.kwargs)
        pending = call_in_turn(self.on_success, {**details, "value": result})
        return False if pending is None else _then_false(pending)


async def _then_false(pending: Awaitable[None]) -> bool:
    await pending
    return False


@final
class Giveup(Adapter):
    """A condition that asks a function about errors of some types.

    Attributes:
        function: Returns whether to give up.
        exception: The types.
    """

    __slots__ = ("exception", "function")
    function: Callable[[Any], Any]
    exception: type[Exception] | tuple[type[Exception], ...]

    def __call__(self, error: Exception, /) -> Any:
        """Return the function's answer as a bool; False for errors of other types.

        If the function is async, its answer is returned as it is: an awaitable.
        """
        if not isinstance(error, self.exception):
            return False
        answer = self.function(error)
        return answer if is_awaitable(answer) else bool(answer)


@final
class Wait(Schedule):
    """A schedule under a jitter function and a time limit as in backoff.

    Attributes:
        of: The schedule.
        change: Takes a delay and returns another; or None.
        max_time: The limit, in seconds; or None.
    """

    __slots__ = ("change", "max_time", "of")
    of: Schedule
    change: Callable[[float], float] | None
    max_time: float | None

    def delay(
        self, retry: int, previous: float | None, random: Random, /
    ) -> float | None:
        left = _time_left(self.max_time)
        delay = self.of.delay(retry, previous, random) if left > 0 else None
        if delay is None:
            return None
        return min(delay if self.change is None else self.change(delay), left)

    def bounds(self, retry: int, /) -> Bounds | None:
        found = self.of.bounds(retry)
        if found is None:
            return None
        low, high = found if self.change is None else (0.0, MAX_DELAY)
        return (low, high) if self.max_time is None else (0.0, min(high, self.max_time))


@final
class WaitGenerator(Adapter):
    """A hint that gets delays from backoff wait generators: each call has its own.

    Attributes:
        function: Returns a generator.
        arguments: Its keyword arguments, as pairs of name and value.
        jitter: Takes a delay and returns another; or None.
        max_time: The limit, in seconds; or None.
    """

    __slots__ = ("arguments", "function", "jitter", "max_time")
    function: Callable[..., Any]
    arguments: tuple[tuple[str, Any], ...]
    jitter: Callable[[float], float] | None
    max_time: float | None

    def __call__(self, outcome: object, /) -> RetryAfter | GiveUp:
        """Return the delay after an error or a rejected result.

        Returns:
            A `GiveUp` if the generator has ended, or no time is left.
        """
        left = _time_left(self.max_time)
        if left <= 0:
            return GiveUp()
        # Kept by the call, so that they live as long as it does.
        generators = vars(current_state()._record).setdefault("wait_generators", {})
        generator = generators.get(id(self))
        if generator is None:
            values = {name: _called(value) for name, value in self.arguments}
            generators[id(self)] = generator = self.function(**values)
            generator.send(None)
        try:
            delay = generator.send(outcome)
        except StopIteration:
            return GiveUp()
        if self.jitter is not None:
            delay = self.jitter(delay)
        return RetryAfter(min(delay, left))


def _called(value: Any) -> Any:
    """Return an argument, or its result if it can be called without arguments."""
    try:
        return value() if callable(value) else value
    except TypeError:
        return value


def _time_left(max_time: float | None) -> float:
    """Return the time that was left when the running attempt began, in seconds.

    It is infinite without *max_time*, and *max_time* outside a call.
    """
    if max_time is None:
        return math.inf
    try:
        return max_time - current_state().attempt_started
    except LookupError:
        # The schedule is only inspected, outside a call.
        return max_time


def _details(
    state: RetryState,
    function: Callable[..., Any] | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> dict[str, Any]:
    return {
        "target": function,
        "args": args,
        "kwargs": kwargs,
        "tries": state.attempt,
        "elapsed": state.attempt_started,
    }
