"""Logs the events of retried calls to the standard library's ``logging``."""

import logging
from typing import Any

from retrykit._internal.durations import format_duration
from retrykit._internal.validation import invalid_setting
from retrykit.state.events import Event, GaveUp, Observer, RetryScheduled, Succeeded
from retrykit.state.records import status_of
from retrykit.state.retry_state import RetryState

__all__ = ["observer"]


def observer(
    logger: "logging.Logger | logging.LoggerAdapter[Any] | None" = None,
) -> Observer:
    """Return an observer that logs retries, failures and recoveries.

    A scheduled retry is a WARNING, giving up an ERROR, a success after failures an
    INFO; a call that succeeds at once is not logged. Durable jobs are logged in the
    same way, under their ids, with the time until the next attempt. Arguments and
    results of the call are never logged. Errors are logged by type and text, without
    the secrets of requests and URLs unless the policy has ``redact=False``.

    Each record has an attribute ``retrykit``, for formatters that write JSON: a dict
    with the name of the call, the number of the attempt, the elapsed seconds, the
    delay in seconds and the stop reason.

    >>> from retrykit import observe
    >>> with observe(observer()):
    ...     pass  # retried calls made here are logged

    Args:
        logger: The logger; by default the logger named ``retrykit``.
    """
    log = logging.getLogger("retrykit") if logger is None else logger
    if not isinstance(log, logging.Logger | logging.LoggerAdapter):
        suggestion = (
            "write observer() for an observer, logging.getLogger(name) for a name"
        )
        raise invalid_setting("logger", "a logger", logger, suggestion)

    def write(event: Event) -> None:
        state = event.state
        if isinstance(event, RetryScheduled):
            level, text = logging.WARNING, _format_retry(state, event.delay)
        elif isinstance(event, GaveUp):
            level = logging.ERROR
            text = f"{state.describe()}{_format_last_failure(state)}"
        elif isinstance(event, Succeeded) and state.failures:
            level, text = logging.INFO, state.describe()
        else:
            return
        fields = _record_fields(state)
        log.log(level, "%s: %s", state.name, text, extra={"retrykit": fields})

    return write


def _format_retry(state: RetryState, delay: float) -> str:
    text = f"attempt {state.attempt} failed, retrying in {format_duration(delay)}"
    return f"{text}{_format_last_failure(state)}"


def _format_last_failure(state: RetryState) -> str:
    if not state.failures:
        return ""
    last = state.failures[-1]
    if last.error is not None:
        return f"; {' '.join(last.describe(redact=state.redact).split())}"
    # Not the result, which is the user's data.
    status = status_of(last.result)
    detail = "" if status is None else f" (status {status})"
    return f"; result rejected{detail}"


def _record_fields(state: RetryState) -> dict[str, object]:
    return {
        "name": state.name,
        "attempt": state.attempt,
        "elapsed": state.elapsed,
        "delay": state.next_delay,
        "reason": state.stop_reason and state.stop_reason.value,
    }
