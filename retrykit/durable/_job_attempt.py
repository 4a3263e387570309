"""A single attempt of a job, and its outcome.

Nothing is stored here. If the process is killed during an attempt, the engine still
has the old envelope, and repeats the attempt.
"""

import asyncio
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self, final

from retrykit._core.call import current_entry
from retrykit._core.manual import ManualCall
from retrykit._core.policy import Policy
from retrykit._core.retry_state import Failure, RetryState
from retrykit._internal.clocks import AsyncClock, Clock, ClockSource, wall
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import safe_repr
from retrykit.durable._envelope import Envelope
from retrykit.errors import RetrykitError, Signal

__all__ = ["JobAttempt", "JobFailed", "RunningAttempt", "idempotency_key"]
__all__ += ["protect_worker", "stopping_failure"]


@final
class JobAttempt(Frozen):
    """The outcome of an attempt.

    Attributes:
        envelope: The envelope to store. Its status says whether the job waits, has
            succeeded or is dead.
        result: The result, if the job has succeeded. It need not be serializable.
        error: The final error of a dead job, or the error of the attempt if the job
            waits; None if the job has succeeded, or waits after a rejected result. Its
            traceback keeps the frames of the attempt alive.
    """

    __slots__ = ("envelope", "error", "result")
    envelope: Envelope
    result: Any
    error: Exception | None


class JobFailed(RetrykitError):  # noqa: N818  reads as a status
    """A job gave up, or cannot be attempted.

    Attributes:
        job: The id of the job; empty if that is unknown.
    """

    def __init__(self, reason: str, job: str = "") -> None:
        super().__init__(reason)
        self.job = job


_current: "ContextVar[_Context | None]" = ContextVar("retrykit job", default=None)


def idempotency_key() -> str:
    """Return the idempotency key of the running attempt: ``job:attempt``.

    For a requeued job it is ``job#run:attempt``. A durable job runs at least once: an
    attempt whose worker was killed is repeated under the same key. Pass the key to
    services that must act only once, so that they ignore the repetition.

    Raises:
        LookupError: No attempt of a durable job runs in this context.
    """
    context = _current.get()
    if context is None or context.is_abandoned():
        msg = "idempotency_key() must be called within an attempt of a durable job"
        raise LookupError(msg)
    return context.key


class _Context:
    """The key of an attempt, for its code and for tasks that outlive it."""

    __slots__ = ("_attempt", "finished", "key")

    def __init__(self, key: str, attempt: "RunningAttempt") -> None:
        self.key = key
        self.finished = False
        self._attempt = weakref.ref(attempt)

    def is_abandoned(self) -> bool:
        """Return whether an interrupt ended the attempt without its ``__exit__``."""
        return not self.finished and self._attempt() is None


class RunningAttempt:
    """Context manager that records the outcome of one attempt.

    Once its outcome is taken, it holds no reference to the error, whose traceback
    holds the frame that holds this object. `_Context` refers to it weakly, so that the
    attempt also ends if an interrupt skips ``__exit__``.
    """

    def __init__(
        self,
        policy: Policy,
        envelope: Envelope,
        clock: ClockSource[Clock] | ClockSource[AsyncClock],
    ) -> None:
        self._envelope = envelope
        state = _resumed_state(envelope)
        self.call = ManualCall(
            policy, envelope.job, clock, resumed=state, driven=True, runner=self
        )
        self._outcomes: list[JobAttempt] = []

    def __enter__(self) -> Self:
        self._call_token = self.call.enter()
        self._context = _Context(self._envelope.key, self)
        self._token = _current.set(self._context)
        # The engine has waited already: skip a remaining delay.
        if self.call.start() is not None:
            self.call.next()
        self._state = self.call.state
        return self

    def __exit__(
        self, _: object, error: BaseException | None, trace: object, /
    ) -> bool:
        try:
            if isinstance(error, Exception):
                self._fail_by_policy(error)
            elif error is not None:
                self.call.abort(error)
        finally:
            self._context.finished = True
            _current.reset(self._token)
            current_entry.reset(self._call_token)
        return isinstance(error, Exception)

    def fail(self, error: Exception | None, result: object = None) -> None:
        """Record a failed attempt, with its error, or None and its rejected result."""
        outcome = self.call.fail(error, result)
        if isinstance(outcome, Exception):
            self.end(None, outcome)
            return
        self.call.suspend()
        self.end(None, error.error if isinstance(error, Signal) else error)

    async def afail(self, error: Exception | None, result: object = None) -> None:
        """Record a failed attempt of a coroutine function, as `fail` does."""
        outcome = await self.call.afail(error, result)
        if isinstance(outcome, Exception):
            self.end(None, outcome)
            return
        await self.call.asuspend()
        self.end(None, error.error if isinstance(error, Signal) else error)

    def end(self, result: object, error: Exception | None) -> None:
        """Record the outcome of the attempt."""
        after = self._envelope.after_attempt(self._state, wall())
        del self._state
        self._outcomes.append(JobAttempt(after, result, error))

    def take_outcome(self) -> JobAttempt:
        """Remove the outcome, and return it."""
        return self._outcomes.pop()

    def _fail_by_policy(self, fault: Exception) -> None:
        """Fail the job: its policy raised an error, as it would in every attempt."""
        state = self._state
        started = state.attempt_started
        duration = state.elapsed - started
        failure = Failure(state.attempt, fault, None, started, duration, None)
        state._record.add_failure(failure)
        self.call.abort(fault)
        self.end(None, fault)


def _resumed_state(envelope: Envelope) -> RetryState:
    """Return the state to continue, with the time since the first attempt began."""
    state, now = envelope.state, wall()
    if not envelope.failed_attempts:
        # max_elapsed excludes the time in the queue before the first attempt.
        return state._replace(epoch=now)
    return state._replace(elapsed_at_end=max(state.elapsed_at_end, now - state.epoch))


@contextmanager
def protect_worker() -> Iterator[None]:
    """Turn an error in the block that is not an Exception into a `JobFailed`.

    Such an error, for example SystemExit, would stop the worker, or interrupt the
    attempt, which would be repeated forever or remain without an outcome. A
    cancellation from outside is passed on: the attempt has to be repeated.
    """
    try:
        yield
    except BaseException as error:
        if isinstance(error, Exception) or _is_cancelled_from_outside():
            raise
        raise stopping_failure(error) from error


def stopping_failure(error: BaseException) -> JobFailed:
    """Return the failure of a job whose error would have stopped its worker."""
    return JobFailed(f"the job would have stopped its worker: {safe_repr(error)}")


def _is_cancelled_from_outside() -> bool:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        # A thread without an event loop cannot be cancelled.
        return False
    return task is not None and task.cancelling() > 0
