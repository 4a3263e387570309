"""Activities of Temporal that are held to a policy.

Temporal numbers the attempts and waits in between, for as long as the policy
says, or up to a second longer. Not run against a server by this project's tests:
they make attempts in Temporal's `ActivityEnvironment`.

An activity that is made again is told the number of the attempt, and when it was
first scheduled, but not what came of the attempts before. (Heartbeats could carry
that, but their details are the activity's own, from which it goes on.) So it is
worked out by `retrykit.durable.attempt_replay`, and this is lost: the list of earlier
errors, the delays that errors asked for, and rules, which are refused. Time in
the queue before the first attempt counts, once that has failed.

An attempt whose worker was lost, or whose time was over, ends without an error:
another follows after the delay of `retry_policy`, under the next number.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from functools import wraps
from typing import Any, Final, TypeVar, cast

from temporalio.activity import info
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError, is_cancelled_exception

from retrykit._internal.introspection import is_coroutine_function
from retrykit.durable import Envelope, Job, JobAttempt
from retrykit.durable.attempt_replay import check_replayable, envelope_for_attempt
from retrykit.execution.callables import check_retryable, qualified_name
from retrykit.policy.policy import Policy
from retrykit.state.records import error_text
from retrykit.state.signals import GiveUp, RetryAfter

__all__ = ["retried", "retry_policy"]

F = TypeVar("F", bound=Callable[..., Any])

# A century, in seconds. Temporal counts nanoseconds in 64 bits.
_LONGEST: Final = 100 * 365.25 * 86_400


def retried(policy: Policy) -> Callable[[F], F]:
    """Hold an activity, of either colour, to a policy.

    >>> from temporalio import activity
    >>> @activity.defn
    ... @retried(Policy(schedule=["1m", "1h"], max_elapsed=None, on=ConnectionError))
    ... async def verify(host: str) -> bool: ...

    An attempt that fails raises an ``ApplicationError`` from the error, with the
    name of its class as the type. It says when the next attempt is due, or that
    there is none: then the last of its details is the `Envelope` as plain data.
    What an activity asks for by an ``ApplicationError`` of its own holds as if it
    had raised `RetryAfter` or `GiveUp`. That it was cancelled is let out at once.

    `retrykit.durable.idempotency_key` is made of the ids of the workflow, of its
    run and of the activity, and of the number of the attempt.

    Args:
        policy: What the activity is held to. Temporal ends it earlier where its
            own ``schedule_to_close_timeout`` does.

    Raises:
        ConfigError: The function cannot be retried, or not under that policy.
    """
    check_replayable(policy)

    def decorate(fn: F) -> F:
        check_retryable(fn)
        hearing = _aheard() if is_coroutine_function(fn) else _heard()
        job = Job(hearing(fn), policy, qualified_name(fn))

        @wraps(fn)
        def once(*args: Any) -> Any:
            with _cancellable():
                came = job.attempt(_envelope(job), args, {})
                return _result(came, redact=policy.redact)

        @wraps(fn)
        async def aonce(*args: Any) -> Any:
            with _cancellable():
                came = await job.aattempt(_envelope(job), args, {})
                return _result(came, redact=policy.redact)

        return cast("F", aonce if job.awaited else once)

    return decorate


def retry_policy(policy: Policy) -> RetryPolicy:
    """Return what to give Temporal as the ``retry_policy`` of such an activity.

    It has no end of its own. Its delay, the longest that the policy's first may
    be, and 1 s at least, is for attempts that end without an error.

    >>> retry_policy(Policy(schedule=["1m", "1h"])).initial_interval
    datetime.timedelta(seconds=60)
    """
    first = (policy.schedule.bounds(1) or (0.0, 0.0))[1]
    interval = timedelta(seconds=min(max(first, 1.0), _LONGEST))
    return RetryPolicy(interval, 1.0, interval, maximum_attempts=0)


def _envelope(job: Job) -> Envelope:
    """Return the envelope of the activity that this code runs in."""
    told, most = info(), job.policy.max_attempts
    # One that is started on its own has no workflow; and in every run of a
    # workflow its activities have the same ids.
    ids = told.workflow_id, told.workflow_run_id, told.activity_id, told.activity_run_id
    name = "/".join(filter(None, ids))
    if most is not None and told.attempt > most:
        msg = f"{name}: max attempts reached, and the last was lost"
        raise ApplicationError(msg, non_retryable=True)
    return envelope_for_attempt(
        job, name, told.attempt, told.scheduled_time.timestamp()
    )


def _result(came: JobAttempt, *, redact: bool) -> Any:
    """Return what an activity returned, or raise what tells Temporal what follows."""
    error, state = came.error, came.envelope.state
    if came.envelope.status == "succeeded":
        return came.result
    own = (
        error if isinstance(error, ApplicationError) else _failure(came, redact=redact)
    )
    message, details, delay = own.message, own.details, state.next_delay
    known: dict[str, Any] = {"type": own.type, "category": own.category}
    if delay is None:
        end = state.describe()
        # A RetryError says it already.
        message = message if end in message else f"{message}; {end}"
        details = *details, came.envelope.to_dict()
        raise ApplicationError(
            message, *details, non_retryable=True, **known
        ) from error
    # One of 0 is taken for none: Temporal would wait by its own.
    after = timedelta(seconds=min(max(delay, 1e-6), _LONGEST))
    raise ApplicationError(
        message, *details, next_retry_delay=after, **known
    ) from error


def _failure(came: JobAttempt, *, redact: bool) -> ApplicationError:
    error = came.error
    if error is None:
        return ApplicationError(came.envelope.state.failures[-1].describe())
    text = error_text(error, redact=redact)
    return ApplicationError(text, type=type(error).__name__)


class _Cancelled(BaseException):
    """What no policy retries; Temporal's own in a thread is an Exception."""


@contextmanager
def _heard() -> Iterator[None]:
    """Let what an activity raises mean to the policy what it means to Temporal."""
    try:
        yield
    except ApplicationError as error:
        if error.non_retryable:
            raise GiveUp from error
        if error.next_retry_delay is not None:
            raise RetryAfter(error.next_retry_delay) from error
        raise
    except Exception as error:
        if is_cancelled_exception(error):
            raise _Cancelled(error) from None
        raise


@asynccontextmanager
async def _aheard() -> AsyncIterator[None]:
    with _heard():
        yield


@contextmanager
def _cancellable() -> Iterator[None]:
    try:
        yield
    except _Cancelled as signal:
        cancelled: BaseException = signal.args[0]
    else:
        return
    raise cancelled
