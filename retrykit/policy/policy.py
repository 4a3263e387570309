"""What a policy does: the settings with their verbs."""

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, ParamSpec, TypeVar, final

from retrykit._internal.frozen import Frozen
from retrykit.execution.drivers import build_driver
from retrykit.hints.base import read_hint
from retrykit.policy.conditions import check_predicates, match_error
from retrykit.policy.decision import Again, Decision, Stop, decide
from retrykit.policy.stored import Stored
from retrykit.state.events import Event
from retrykit.state.final_error import is_own_timeout
from retrykit.state.records import ErrorRecord
from retrykit.state.retry_state import Failure, RetryState, StopReason
from retrykit.state.signals import GiveUp, RetryAfter, Signal

__all__ = ["Outcome", "Policy"]

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@final
class Outcome(Frozen, Generic[T_co]):
    """What came of a call: its value or its error, and its history.

    Attributes:
        value: The result; None if the call gave up.
        error: What the call would have raised; None if it succeeded.
        state: The history of the call.
    """

    __slots__ = ("error", "state", "value")
    value: T_co | None
    error: Exception | None
    state: RetryState

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return self.error is None


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class Policy(Stored):
    """When a failed call is made again, and when no more: a frozen value.

    Policies compare, hash (if their parts do), print as the expression that
    builds them, and may be shared by threads and tasks: nothing that happens
    in a call is kept in them.

    >>> patient = Policy(schedule=[1, 5, "1m"], max_attempts=4, on=ConnectionError)
    >>> patient
    Policy(schedule=sequence([1.0, 5.0, 60.0]), max_attempts=4, on=ConnectionError)
    >>> patient.replace(max_attempts=None, max_elapsed="1h").max_elapsed
    3600.0
    >>> Policy(max_attempts=0)
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: max_attempts must be a whole number >= 1, got 0; \
the first call counts; None is unlimited

    Args:
        schedule: The delays: a schedule, a re-iterable of durations, or a
            generator function. Where it ends, retrying ends. By default
            ``exponential(0.5, factor=1.5).cap(60).jitter(0.5)``.
        max_attempts: Most calls of the function in all, the first included.
            Count, >= 1; None is unlimited; 5 by default.
        max_elapsed: Time allowed in all, from the start of the first attempt.
            A duration, >= 0; None is unlimited; 60 s by default.
        deadline: What happens when the next attempt could not start within
            `max_elapsed`: ``"stop"`` does not wait for it, ``"clip"`` makes one
            last attempt at the limit, ``"overshoot"`` stops only once the
            limit has passed.
        on: The errors that deserve another attempt: an Exception type, a tuple
            of them, or a predicate of the error, which under `aretry` may be
            async. `Exception` by default; nothing wider is ever retried.
        give_up_on: Errors that end the call at once although `on` includes
            them, in the same forms; none by default.
        on_result: A predicate of the result: where it is true, the result is
            treated as a failure. None by default.
        rules: Rules for some errors (`retrykit.policy.rules.Rule`), each with its own
            delays or attempts; the first one that accepts an error holds for
            it. None by default.
        hint: A function of the error, or of the refused result, that reads how
            long it asks to wait: one of `retrykit.hints`, or your own. Of a
            duration and the schedule's delay, the longer one is waited;
            RetryAfter is waited exactly; GiveUp ends the call. None by default.
            A hint that goes beyond `max_elapsed` ends the call.
        hint_cap: The longest wait that a hint may ask for. A duration, >= 0;
            None is unlimited; 1 h by default.
        on_long_hint: What happens where a hint asks for more: ``"give_up"``, the
            default, ends the call, ``"clip"`` waits for `hint_cap`,
            ``"honor"`` waits as long as it is asked to.
        budget: What must pay for each retry, and is shared by many calls: one
            of `retrykit.budgets`, or your own. None by default.
        attempt_timeout: Time allowed for each attempt. A duration, > 0; None,
            the default, is unlimited. An attempt under `aretry` is cancelled,
            and fails with an AttemptTimeout, which is retried whatever `on`
            says. A blocking one cannot be ended: `retrykit.policy.timeouts.AsArgument`
            hands the time to a parameter of the function. Under ``"stop"`` it
            is never more than what remains of `max_elapsed`.
        nested: What happens when a retried call inside of this one has given up:
            ``"respect"``, the default, does not retry its error, nor one that
            comes from it or from handling it; ``"retry"`` does; ``"raise"``
            raises a NestedRetryError. The time of a call around bounds the
            waits inside of it, under all of them.
        raises: What a call that gives up raises: ``"last"``, the last error
            itself; ``"retry_error"``, a `RetryError` from it; ``"group"``, an
            ExceptionGroup of all errors that the state keeps (records from
            another process are no errors to raise). An error that `on` does
            not include is let out as it is. Where the last attempt gave a
            refused result there is no last error: a `RetryError` is raised.
        redact: Whether secrets are left out of what is written of errors: in logs,
            notes, states as data and durable histories. An error that has a request
            or a response is told by its type, method, host and status; user info
            and queries of URLs are left out of all texts. The error itself is never
            changed. True by default.
        keep_tracebacks: Whether errors before the last keep their tracebacks, and
            with them all local variables of the functions that raised them, until
            the call has ended; under ``raises="group"`` they do. By default they
            keep the file, line and function of each frame, for
            `RetryState.to_dict`.
        max_failures: How many failures the state keeps: the first and the last
            ones. Count, >= 2; 100 by default.
        seed: The seed of every call's chance, for tests. An integer of at most 64
            bits, >= 0; by default each call draws its own.
        observers: Functions that are told every event of every call.
        name: What calls are called in logs, notes and states; by default the
            name of the function.

    Raises:
        ConfigError: A setting is unknown or wrong, or contradicts another.
    """

    __slots__ = ()

    def decide(
        self, state: RetryState, failure: Failure, *, budgeted: bool = True
    ) -> Decision:
        """Decide what follows a failure: `Again` with a delay, or `Stop`.

        Pure: the same arguments give the same answer, and nothing is written,
        slept or read from a clock. (A predicate of the policy that fails is
        noted on the error and logged, as in a call; and a hint that reads a date
        without a clock of its own beside it reads ours.) Whether a call inside
        of this one had given up is known to a call that runs, and not here.

        >>> state = RetryState("fetch", seed=7, epoch=0.0)
        >>> failure = Failure(1, OSError("refused"), None, 0.0, 0.1, None)
        >>> Policy(schedule=[2.5]).decide(state, failure)
        Again(delay=2.5)
        >>> Policy(on=ValueError).decide(state, failure)
        Stop(reason=<StopReason.NOT_RETRYABLE: 'not retryable'>)

        Args:
            state: The history before this failure.
            failure: The failed attempt; one without an error is of a refused
                result. Conditions and the hint are asked about errors and
                results only: a record of one is decided as an error that may
                be retried, by the rule and the hint that the failure names. A
                hint that it names is not asked for again.
            budgeted: Whether the policy's budget, if it has one, pays for a
                retry. A budget is shared, so it is asked by who carries out
                the decision, and its answer is handed in.

        Returns:
            `Again` with seconds, >= 0, or `Stop` with its reason.

        Raises:
            ConfigError: A predicate of the policy must be awaited, or its
                schedule gave what is no delay.
        """
        check_predicates(self)
        error = failure.error
        ruled: StopReason | int | None = failure.rule
        if isinstance(error, Exception):
            own = self.attempt_timeout is not None and is_own_timeout(error)
            ruled = match_error(self, error, own=own)
        elif isinstance(error, BaseException):
            ruled = StopReason.CANCELLED
        hint: float | RetryAfter | GiveUp | None = failure.hint
        unread = hint is None and not isinstance(error, ErrorRecord | Signal)
        if self.hint is not None and unread and not isinstance(ruled, str):
            raised = error if isinstance(error, Exception) else None
            outcome = failure.result if raised is None else raised
            hint = read_hint(self.hint, outcome, raised)
        elapsed = failure.started + failure.duration
        follows = decide(self, state, failure.attempt, elapsed, error, ruled, hint)
        if isinstance(follows, StopReason):
            return Stop(follows)
        return Again(follows) if budgeted else Stop(StopReason.BUDGET)

    def call(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function under this policy, without decorating it.

        >>> Policy().call(int, "7")
        7

        Raises:
            ConfigError: The function must be awaited.
        """
        result: T = build_driver(self, fn, awaited=False)(*args, **kwargs)
        return result

    async def acall(
        self, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a coroutine function under this policy, and await it.

        Raises:
            ConfigError: What the function returns cannot be awaited.
        """
        result: T = await build_driver(self, fn, awaited=True)(*args, **kwargs)
        return result

    def run(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Outcome[T]:
        """Call a function under this policy, and return what came of it.

        >>> outcome = Policy(schedule=[0, 0]).run(int, "seven")
        >>> outcome.ok, len(outcome.state.errors), outcome.state.stop_reason.value
        (False, 3, 'schedule ended')

        Returns:
            The value or the error that the call gave up with, and its state.

        Raises:
            Exception: An error that `on` does not include, as it is.
            ConfigError: The function must be awaited.
        """
        events: deque[Event] = deque(maxlen=1)
        try:
            call = build_driver(self._heard(events), fn, awaited=False)
            return Outcome(call(*args, **kwargs), None, events[-1].state)
        except Exception as error:
            if _not_handled(events):
                raise
            return Outcome(None, error, events[-1].state)
        finally:
            # The errors' tracebacks hold this frame, and it must not hold them.
            events.clear()

    async def arun(
        self, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Outcome[T]:
        """Await a coroutine function, and return what came of it, as `run` does.

        Returns:
            What `run` returns, and it raises what `run` raises.
        """
        events: deque[Event] = deque(maxlen=1)
        try:
            call = build_driver(self._heard(events), fn, awaited=True)
            return Outcome(await call(*args, **kwargs), None, events[-1].state)
        except Exception as error:
            if _not_handled(events):
                raise
            return Outcome(None, error, events[-1].state)
        finally:
            # The errors' tracebacks hold this frame, and it must not hold them.
            events.clear()

    def _heard(self, events: deque[Event]) -> "Policy":
        return self.replace(observers=(*self.observers, events.append))


def _not_handled(events: deque[Event]) -> bool:
    """Return whether an error is none of the policy's business."""
    return not events or events[-1].state.stop_reason is StopReason.NOT_RETRYABLE
