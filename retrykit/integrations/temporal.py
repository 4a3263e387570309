"""Temporal activities that are retried under a policy.

Temporal counts the attempts, and waits between them for the delays of the policy, or up
to a second longer. The tests use Temporal's `ActivityEnvironment`, not a server.

An activity gets the number of the attempt and the time when it was first scheduled, but
not the errors of earlier attempts. (The details of heartbeats belong to the activity.)
The state is reconstructed without earlier errors and the delays that they requested;
policies with rules are not supported. Once the first attempt has failed, `max_elapsed`
includes the time in the queue before it.

An attempt that times out, or whose worker is lost, ends without an error: the next one
follows after the delay of `retry_policy`.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from functools import wraps
from typing import Any, TypeVar, cast

from retrykit._core.drivers import check_retryable
from retrykit._core.policy import Policy
from retrykit._internal.clocks import wall
from retrykit._internal.durations import CENTURY
from retrykit._internal.error_texts import error_text
from retrykit._internal.extras import needs
from retrykit._internal.introspection import is_coroutine_function, qualified_name
from retrykit._internal.redaction import Redaction
from retrykit._internal.validation import user_facing
from retrykit.durable import Envelope, Job, JobAttempt
from retrykit.durable._attempt_replay import check_replayable, envelope_for_attempt
from retrykit.errors import GiveUp, RetryAfter

with needs("temporal"):
    from temporalio.activity import info
    from temporalio.common import RetryPolicy
    from temporalio.exceptions import ApplicationError, is_cancelled_exception

__all__ = ["retried", "retry_policy"]

F = TypeVar("F", bound=Callable[..., Any])


@user_facing
def retried(policy: Policy) -> Callable[[F], F]:
    """Retry an activity, sync or async, under a policy.

    >>> from temporalio import activity
    >>> @activity.defn
    ... @retried(Policy(schedule=["1m", "1h"], on=ConnectionError))
    ... async def verify(host: str) -> bool: ...

    A failed attempt raises an ``ApplicationError`` from the error. Its ``type`` is the
    name of the error's class, or the error's own ``type`` if the error is an
    ``ApplicationError``. The raised error has the delay before the next attempt; or it
    is not retryable, and its last detail is the `Envelope`, as plain data. An
    ``ApplicationError`` that the activity raises with a delay, or as not retryable,
    acts as `RetryAfter` or `GiveUp`. Cancellation is never retried.

    `retrykit.durable.idempotency_key` is made from the ids of the workflow, its run and
    the activity, and the number of the attempt.

    Args:
        policy: The policy of the activity. Temporal's ``schedule_to_close_timeout``
            may end it earlier.

    Raises:
        ConfigError: The policy is not supported, or the function cannot be retried
            under it.
    """
    check_replayable(policy)

    def decorate(fn: F) -> F:
        check_retryable(fn)
        is_async = is_coroutine_function(fn)
        translate = _atranslate_errors() if is_async else _translate_errors()
        job = Job(translate(fn), policy, qualified_name(fn))

        @wraps(fn)
        def attempt_once(*args: Any) -> Any:
            with _unwrap_cancellation():
                attempt = job.attempt(_build_envelope(job), args, {})
                return _finish(attempt, redact=policy.redact)

        @wraps(fn)
        async def aattempt_once(*args: Any) -> Any:
            with _unwrap_cancellation():
                attempt = await job.aattempt(_build_envelope(job), args, {})
                return _finish(attempt, redact=policy.redact)

        return cast("F", aattempt_once if is_async else attempt_once)

    return decorate


def retry_policy(policy: Policy) -> RetryPolicy:
    """Return the ``retry_policy`` to give Temporal for a `retried` activity.

    With it, Temporal never gives up by itself. Its delay, which follows attempts that
    end without an error, is the longest first delay of *policy* if that is known and at
    least 1 s, otherwise 1 s.

    >>> retry_policy(Policy(schedule=["1m", "1h"])).initial_interval
    datetime.timedelta(seconds=60)
    """
    first = (policy.schedule.bounds(1) or (0.0, 0.0))[1]
    interval = timedelta(seconds=min(max(first, 1.0), CENTURY))
    return RetryPolicy(interval, 1.0, interval, maximum_attempts=0)


def _build_envelope(job: Job) -> Envelope:
    """Return the envelope of the running activity.

    Raises:
        ApplicationError: The policy allows no further attempt.
    """
    activity, policy = info(), job.policy
    # A standalone activity has no workflow; activity ids repeat in each run of one.
    workflow = activity.workflow_id, activity.workflow_run_id
    ids = *workflow, activity.activity_id, activity.activity_run_id
    name, number = "/".join(filter(None, ids)), activity.attempt
    epoch = activity.scheduled_time.timestamp()
    used = policy.max_attempts is not None and number > policy.max_attempts
    if used and policy.limits == "all" and policy.max_elapsed is not None:
        used = wall() - epoch >= policy.max_elapsed
    if used:
        msg = f"{name}: max attempts reached; the last attempt timed out or was lost"
        raise ApplicationError(msg, non_retryable=True)
    return envelope_for_attempt(job, name, number, epoch)


def _finish(attempt: JobAttempt, *, redact: Redaction) -> Any:
    """Return the result of an activity, or raise the error for Temporal."""
    error, state = attempt.error, attempt.envelope.state
    if attempt.envelope.status == "succeeded":
        return attempt.result
    if isinstance(error, ApplicationError):
        base = error
    elif error is None:
        base = ApplicationError(state.failures[-1].describe(redact=redact))
    else:
        text = error_text(error, redact=redact)
        base = ApplicationError(text, type=type(error).__name__)
    message, details, delay = base.message, base.details, state.next_delay
    options: dict[str, Any] = {"type": base.type, "category": base.category}
    if delay is None:
        end = state.describe()
        # The message of a RetryError contains it already.
        message = message if end in message else f"{message}; {end}"
        details = *details, attempt.envelope.to_dict()
        options["non_retryable"] = True
    else:
        # Temporal ignores a delay of 0, and would use its own.
        seconds = min(max(delay, 1e-6), CENTURY)
        options["next_retry_delay"] = timedelta(seconds=seconds)
    raise ApplicationError(message, *details, **options) from error


class _Cancelled(BaseException):
    """Wraps a cancellation, which in threads is an Exception that would be retried."""


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Translate Temporal's errors in a block into signals, and wrap cancellations."""
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
async def _atranslate_errors() -> AsyncIterator[None]:
    with _translate_errors():
        yield


@contextmanager
def _unwrap_cancellation() -> Iterator[None]:
    try:
        yield
    except _Cancelled as signal:
        cancelled: BaseException = signal.args[0]
    else:
        return
    raise cancelled
