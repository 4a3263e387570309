"""One attempt of a job, and what came of it.

What a driver does in a loop, done once: the engine sleeps in between, for as
long as it takes and in whatever process. Nothing is kept here: a process that is
killed in the middle of an attempt leaves the envelope as it was, and the attempt
is made again.
"""

import weakref
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, final

from retrykit._internal.clocks import AsyncClock, Clock, ClockSource, sync_clock, wall
from retrykit._internal.frozen import Frozen
from retrykit._internal.loop_clock import async_clock
from retrykit.durable.envelope import Envelope
from retrykit.errors import RetrykitError
from retrykit.execution.call import current_entry
from retrykit.execution.manual import ManualCall
from retrykit.policy.policy import Policy
from retrykit.state.retry_state import Failure, RetryState
from retrykit.state.signals import Signal

__all__ = ["JobAttempt", "JobFailed", "aattempt", "attempt", "idempotency_key"]


@final
class JobAttempt(Frozen):
    """What came of an attempt.

    Attributes:
        envelope: What is to be kept. It says whether the job waits, has
            succeeded or is dead.
        result: What the job returned, if it has succeeded. Whether it can be kept
            is the engine's affair.
        error: What it gave up with, if it is dead; what the attempt failed with,
            if it waits and there was an error. Who keeps it, in a local variable
            too, keeps the frames of the attempt.
    """

    __slots__ = ("envelope", "error", "result")
    envelope: Envelope
    result: Any
    error: Exception | None


class JobFailed(RetrykitError):  # noqa: N818  told by its name
    """A job gave up, or cannot be attempted; what an engine ends it with."""


_attempted: "ContextVar[_Known]" = ContextVar("retrykit job")


def idempotency_key() -> str:
    """Return what names the attempt that this code runs in: ``job:attempt``.

    Everything durable happens at least once: an attempt whose worker was killed
    is made again, under the same key. Who is asked to do something only once
    is told the key, and does nothing when it comes a second time.

    Raises:
        LookupError: No attempt of a durable job runs in this context.
    """
    attempted = _attempted.get(None)
    if attempted is None or attempted.abandoned():
        msg = "idempotency_key() is for the functions of durable jobs; none runs"
        raise LookupError(msg)
    return attempted.key


def attempt(
    policy: Policy,
    fn: Callable[..., Any],
    envelope: Envelope,
    /,
    *args: Any,
    **kwargs: Any,
) -> JobAttempt:
    """Make the attempt that is due, and return what came of it.

    Args:
        policy: What the job is held to.
        fn: What is called.
        envelope: The history until now.
        *args: What *fn* is called with.
        **kwargs: What *fn* is called with by name.

    Raises:
        BaseException: What is no Exception: the attempt was not made to its
            end, and is to be made again.
    """
    with _Attempt(policy, envelope, sync_clock) as made:
        try:
            result = fn(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  the policy says what it means
            made.failed(error, made.call.fail(error))
        else:
            if made.call.succeed(result):
                made.succeeded(result)
            else:
                made.failed(None, made.call.fail(None, result))
    return made.came()


async def aattempt(
    policy: Policy,
    fn: Callable[..., Any],
    envelope: Envelope,
    /,
    *args: Any,
    **kwargs: Any,
) -> JobAttempt:
    """Make the attempt that is due, and await it, as `attempt` does."""
    with _Attempt(policy, envelope, async_clock) as made:
        try:
            result = await fn(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  the policy says what it means
            made.failed(error, await made.call.afail(error))
        else:
            if await made.call.asucceed(result):
                made.succeeded(result)
            else:
                made.failed(None, await made.call.afail(None, result))
    return made.came()


@final
class _Known:
    """What the context of an attempt knows; tasks that outlive it go on knowing it."""

    __slots__ = ("_attempt", "key", "over")

    def __init__(self, key: str, attempt: "_Attempt") -> None:
        self.key = key
        self.over = False
        self._attempt = weakref.ref(attempt)

    def abandoned(self) -> bool:
        """Return whether an interrupt has ended the attempt, and it was not told."""
        return not self.over and self._attempt() is None


@final
class _Attempt:
    """The book of one attempt of a job, which its context knows meanwhile.

    When it is over, nothing in it leads to the error: the frame that has it is the
    one from which the failed function was called, and lives as long as the error.
    Its context does not keep it: an interrupt that it is not told of ends it, too.
    """

    def __init__(
        self,
        policy: Policy,
        envelope: Envelope,
        clock: ClockSource[Clock] | ClockSource[AsyncClock],
    ) -> None:
        self.envelope = envelope
        state = _resumed_state(envelope)
        self.call = ManualCall(
            policy, envelope.job, clock, resumed=state, driven=True, owner=self
        )
        self._came: list[JobAttempt] = []

    def __enter__(self) -> Self:
        self._around = self.call.enter()
        self._known = _Known(self.envelope.key, self)
        self._outer = _attempted.set(self._known)
        # What is left of the delay is the engine's affair: it is made now.
        if self.call.start() is not None:
            self.call.next()
        self._state = self.call.state
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exit_: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> bool:
        try:
            if isinstance(exit_, Exception):
                self._broke(exit_)
            elif exit_ is not None:
                self.call.abort(exit_)
        finally:
            self._known.over = True
            _attempted.reset(self._outer)
            current_entry.reset(self._around)
        return isinstance(exit_, Exception)

    def succeeded(self, result: object) -> None:
        """Write down that the job has its result."""
        self._over(result, None)

    def failed(self, error: Exception | None, outcome: float | Exception) -> None:
        """Record the outcome of a failed attempt."""
        if isinstance(outcome, Exception):
            self._over(None, outcome)
            return
        self.call.suspend()
        self._over(None, error.error if isinstance(error, Signal) else error)

    def _broke(self, fault: Exception) -> None:
        """Write down that the policy itself fails on the outcome, as it would again."""
        state = self._state
        lasted = state.elapsed - state.attempt_started
        parts = state.attempt, fault, None, state.attempt_started, lasted, None
        state.record(Failure(*parts))
        self.call.abort(fault)
        self._over(None, fault)

    def _over(self, result: object, error: Exception | None) -> None:
        after = self.envelope.after_attempt(self._state, wall())
        del self._state
        self._came.append(JobAttempt(after, result, error))

    def came(self) -> JobAttempt:
        """Return what came of it, once."""
        return self._came.pop()


def _resumed_state(envelope: Envelope) -> RetryState:
    """Return the state that goes on: its time went on while nothing ran."""
    state, now = envelope.state, wall()
    if not envelope.failed:
        # The time of a job begins with its first attempt, not in the queue.
        return replace(state, epoch=now)
    return replace(state, elapsed_at_end=max(state.elapsed_at_end, now - state.epoch))
