"""Observer that reports retried calls to Sentry.

A failed attempt is a breadcrumb, and a call that has given up is one event.
"""

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from retrykit._core.failures import ErrorRecord, Failure
from retrykit._core.final_error import attached_state
from retrykit._core.retry_log import describe_last_failure, title_of
from retrykit._core.retry_state import RetryState, StopReason
from retrykit._internal.error_texts import error_text, redact_related, type_name
from retrykit._internal.extras import needs
from retrykit._internal.redaction import Redaction, redact_text
from retrykit.durable._job_attempt import JobFailed
from retrykit.errors import RetryError
from retrykit.events import AttemptFailed, Event, GaveUp, Observer

with needs("sentry"):
    import sentry_sdk
    from sentry_sdk.integrations.logging import ignore_logger
    from sentry_sdk.scope import add_global_event_processor
    from sentry_sdk.utils import event_from_exception

if TYPE_CHECKING:
    from sentry_sdk.types import Event as SentryEvent, Hint

__all__ = ["observer"]


def observer() -> Observer:
    """Return an observer that sends breadcrumbs and events to Sentry.

    Each failed attempt is a breadcrumb of the category ``retry``, with the name of the
    call, the number of the attempt, the delay before the next one in seconds and the
    type of any error. A call that gives up is one event with its last error, the tags
    ``retry.name`` and ``retry.reason``, and the context ``retry``. The event is sent
    even if the error is handled later; a web framework that captures the error again
    sends no second event. There is no event for a call that is interrupted, for example
    cancelled, that a limit refuses before its first attempt, whose first error is not
    retryable, or whose error a nested call has reported.

    Arguments, results and local variables are never sent. Texts of errors come without
    the secrets of requests and URLs, unless the policy has ``redact=False``.

    `observer` also makes Sentry ignore the log records of retries, from the logger
    ``retrykit.retries``: as breadcrumbs they would repeat the same facts.

    >>> from retrykit import observe
    >>> with observe(observer(), failures_only=True):
    ...     pass  # retried calls made here are reported, if Sentry is initialized
    """
    ignore_logger("retrykit.retries")
    return _report


def _report(event: Event, /) -> None:
    state = event.state
    if isinstance(event, AttemptFailed):
        _add_breadcrumb(state, event.failure)
    elif isinstance(event, GaveUp):
        failure = state._record.last_failure
        # A call that is interrupted ends without a failure of its last attempt.
        if failure is None or failure.attempt != state.attempt:
            return
        if _was_reported(state, failure.error):
            _reported.append(_identity(state))
        elif state.attempt > 1 or state.stop_reason is not StopReason.NOT_RETRYABLE:
            _capture(state, failure.error)


def _add_breadcrumb(state: RetryState, failure: Failure) -> None:
    error, last = failure.error, describe_last_failure(state._record)
    sentry_sdk.add_breadcrumb(
        category="retry",
        level="warning",
        message=f"{title_of(state._record)}: attempt {failure.attempt} failed; {last}",
        data={
            "name": state.name,
            "attempt": failure.attempt,
            "delay": failure.delay,
            "error": None if error is None else type_name(type(error)),
        },
    )


def _capture(state: RetryState, error: Exception | ErrorRecord | None) -> None:
    """Send the event of a call that has given up."""
    client = sentry_sdk.get_client()
    if not client.is_active():
        return
    if not isinstance(error, Exception):
        error = RetryError(state)
    options = client.options | {"include_local_variables": False}
    mechanism = {"type": "retrykit", "handled": True}
    event, hint = event_from_exception(error, options, mechanism)
    chain = event.get("exception", {})["values"]
    for each in chain:
        each["value"] = redact_related(error, each["value"], redact=state.redact)
        for frame in each.get("stacktrace", {}).get("frames", ()):
            _redact_source(frame, state.redact)
    chain[-1]["value"] = error_text(error, redact=state.redact)
    reason = str(state.stop_reason)
    event["tags"] = {"retry.name": state.name, "retry.reason": reason}
    event["contexts"] = {
        "retry": {
            "name": state.name,
            "outcome": state.describe(),
            "attempts": state.attempt,
            "elapsed": state.elapsed,
            "total_delay": state.total_delay,
            "reason": reason,
        }
    }
    if sentry_sdk.capture_event(event, hint | {_OWN: True}) is not None:
        _reported.append(_identity(state))


def _redact_source(frame: dict[str, Any], redact: Redaction) -> None:
    """Redact the secrets of URLs in the source code that a frame shows."""
    for name in frame.keys() & {"pre_context", "context_line", "post_context"}:
        code = frame[name]
        lines = code if isinstance(code, list) else [code or ""]
        redacted = [redact_text(line, redact) for line in lines]
        frame[name] = redacted if isinstance(code, list) else redacted[0]


_OWN: Final = "retrykit"
"""The key in the hints of the events that this module sends."""

_Identity = tuple[str, int, float]

_reported: Final[deque[_Identity]] = deque(maxlen=1000)
"""The last calls that were reported, the latest at the end."""


def _identity(state: RetryState) -> _Identity:
    """Return what all copies of a call's state have in common."""
    return state.name, state.seed, state.epoch


def _was_reported(state: RetryState, error: object) -> bool:
    """Return whether a call nested in this one has already reported the error."""
    inner = attached_state(error) if isinstance(error, Exception) else None
    # An earlier call may have raised the same object.
    if inner is None or inner.epoch < state.epoch:
        inner = state.nested_state
    return inner is not None and _identity(inner) in _reported


# Sentry's own deduplication does not see an error that was captured in another thread
# or task, nor that a `RetryError` is about the same one.
@add_global_event_processor
def _drop_repeated(event: "SentryEvent", hint: "Hint") -> "SentryEvent | None":
    """Return the event; None if it repeats a call that was reported when it gave up."""
    if _OWN in hint:
        return event
    error = (hint.get("exc_info") or (None, None))[1]
    if isinstance(error, JobFailed):
        # An engine raises it in place of the last error.
        error = error.__cause__
    state = attached_state(error) if isinstance(error, BaseException) else None
    repeated = state is not None and _identity(state) in _reported
    record = hint.get("log_record")
    if record is not None and not repeated:
        # Engines log a line about a dead job, whose state has the name of the job.
        text = record.getMessage()
        repeated = any(text.startswith(f"{name}: dead, ") for name, *_ in [*_reported])
    return None if repeated else event
