"""The log record of every scheduled retry, and the texts of all records.

Scheduled retries are warnings of the logger ``retrykit.retries``, unless an observer of
the call logs them. Those of a call that polls, which retries results but no errors, are
of level DEBUG. The location of a record is the line of the caller. To switch them off,
in one place: ``logging.getLogger("retrykit.retries").setLevel("ERROR")``.
"""

import os
import sys
from functools import cache
from types import FrameType
from typing import Any, Final, cast

from retrykit._internal.durations import duration_in_words
from retrykit._internal.late_modules import logging
from retrykit._internal.redaction import redact_text, request_target
from retrykit._internal.validation import escape_unprintable
from retrykit.state.events import Event, EventHook, Observer, function_of
from retrykit.state.records import status_of
from retrykit.state.retry_state import RetryState

__all__ = ["POLL_LEVEL", "calling_frame", "describe_last_failure", "describe_retry"]
__all__ += ["is_logged", "log_retry", "logs_retries", "record_fields", "title_of"]

# As in `logging`, which is imported late.
_WARNING: Final = 30
POLL_LEVEL: Final = 10
"""The level of a retry of a call that polls."""


@cache
def _retry_log() -> "logging.Logger":
    return logging.getLogger("retrykit.retries")


def is_logged() -> bool:
    """Return whether scheduled retries are logged that no observer logs."""
    try:
        return _retry_log().isEnabledFor(_WARNING)
    except OSError:
        # Nobody has imported logging, and no file can be opened to do it.
        return False


def log_retry(event: Event, /) -> None:
    """Log the scheduled retry of a call."""
    state, log = event.state, _retry_log()
    level = POLL_LEVEL if state._polls else _WARNING
    if not log.isEnabledFor(level):
        return
    text = describe_retry(state, state.next_delay or 0.0)
    if not text.isprintable():
        text = escape_unprintable(text)
    frame, extra = calling_frame(_DRIVER), {"retrykit": record_fields(state)}
    code = frame.f_code
    # Not `Logger.log`, which would look for the frame itself, and takes longer.
    record = log.makeRecord(
        log.name,
        level,
        code.co_filename,
        frame.f_lineno,
        "%s",
        (text,),
        None,
        code.co_name,
        extra,
    )
    log.handle(record)


def calling_frame(depth: int = 1) -> FrameType:
    """Return the frame that made the retried call.

    It is the first frame outside this package, the clients that it extends and
    event loops; in a thread or task that was started with the call itself, where
    there is none, the first one outside this package.

    Args:
        depth: How far up the search begins, >= 1: at the caller of this function.
    """
    frame: FrameType | None = sys._getframe(depth)  # noqa: SLF001  as logging does
    outside = None
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            outside = outside or frame
            name = frame.f_globals.get("__name__", "")
            if str(name).partition(".")[0] not in _BETWEEN:
                return frame
        frame = frame.f_back
    return cast("FrameType", outside)


# Below it are `log_retry`, `notify_one`, the controller and a step. Python makes every
# frame that is looked at.
_DRIVER: Final = 5

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")  # noqa: PTH118, PTH120  pathlib takes long to import
_BETWEEN = {
    *("aiohttp", "grpc", "httpcore", "httpx", "httpx2", "requests", "urllib3"),
    *("anyio", "asyncio", "concurrent", "contextlib", "threading", "trio", "wrapt"),
}
"""Packages whose frames may be between the caller and the retried call."""


def logs_retries(observer: Observer) -> bool:
    """Return whether an observer logs retries itself."""
    if isinstance(observer, EventHook) and observer.kind != "retry_scheduled":
        return False
    return getattr(function_of(observer), "logs_retries", False) is True


def describe_retry(state: RetryState, delay: float) -> str:
    """Return the text about a scheduled retry.

    >>> state = RetryState("fetch", 7, 0.0, max_attempts=5)
    >>> describe_retry(state, 2.4)
    'retrying fetch in 2.4 s (attempt 2 of 5)'
    """
    title, last = title_of(state), describe_last_failure(state)
    after = f" after {last}" if last else ""
    most = "" if state.max_attempts is None else f" of {state.max_attempts}"
    number = f"(attempt {state.attempt + 1}{most})"
    return f"retrying {title} in {duration_in_words(delay)}{after} {number}"


def title_of(state: RetryState) -> str:
    """Return the name of a call, or the method, host, port and path of its request."""
    if state._request is None:
        return state.name
    method, url = state._request
    text = f"{method} {url}" if state.redact is False else request_target(method, url)
    return " ".join(redact_text(text, state.redact).split())


def describe_last_failure(state: RetryState) -> str:
    """Return the type and text of the last error on one line, or an empty string."""
    if not state._failures:
        return ""
    last = state._failures[-1]
    if last.error is not None:
        return " ".join(last.describe(redact=state.redact).split())
    # Not the result, which is the user's data.
    status = status_of(last.result)
    if status is None:
        return "a rejected result"
    # Other objects may have a status of their own.
    is_http = _HTTP[0] <= status <= _HTTP[1]
    return f"status {status}" if is_http else f"a rejected result (status {status})"


_HTTP: Final = (100, 599)


def record_fields(state: RetryState) -> dict[str, Any]:
    """Return the fields of a record, for formatters that write JSON."""
    return {
        "name": state.name,
        "attempt": state.attempt,
        "elapsed": state.elapsed,
        "delay": state.next_delay,
        "reason": state.stop_reason and state.stop_reason.value,
    }
