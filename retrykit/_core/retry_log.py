"""The log record of every scheduled retry, and the texts of all records.

Scheduled retries are warnings of the logger ``retrykit.retries``, unless an observer of
the call logs them. Retries of rejected results are logged at level DEBUG if the policy
has ``on=()``: such a call polls. The location of a record is the line of the caller.
``logging.getLogger("retrykit.retries").setLevel("ERROR")`` switches the records off.
"""

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, cast, final

from retrykit._core.call_record import CallFacts, Terms
from retrykit._core.events import EventHook, Observer, function_of
from retrykit._core.failures import Failure, status_of
from retrykit._internal.durations import duration_in_words
from retrykit._internal.late_modules import logging
from retrykit._internal.redaction import Redaction, redact_text, request_target
from retrykit._internal.validation import escape_unprintable

__all__ = [
    "POLL_LEVEL",
    "RetryMessage",
    "calling_frame",
    "describe_last_failure",
    "describe_retry",
]
__all__ += ["is_logged", "log_check", "log_retry", "logs_retries", "record_fields"]
__all__ += ["title_of"]

# As in `logging`, which is imported late.
_WARNING: Final = 30
POLL_LEVEL: Final = 10
"""The level of a retry after a rejected result, in a call that polls."""


_log: "logging.Logger | None" = None


def _retry_log() -> "logging.Logger":
    global _log  # noqa: PLW0603  quicker than a cache, and each failed call asks
    _log = logging.getLogger("retrykit.retries")
    return _log


def is_logged(level: int = _WARNING) -> bool:
    """Return whether the logger of scheduled retries is enabled for a level."""
    try:
        return (_log or _retry_log()).isEnabledFor(level)
    except OSError:
        # Nobody has imported logging, and no file can be opened to do it.
        return False


def log_check() -> Callable[[int], bool]:
    """Return `is_logged` or, once logging is imported, the method that it calls."""
    return is_logged if _log is None else _log.isEnabledFor


@final
class RetryMessage:
    """The text about a scheduled retry, made when a handler first asks for it.

    Args:
        terms: What was known of the call before it began.
        request: The method and the URL of the request that the call makes, or None.
        failure: The failed attempt.
        elapsed: Seconds since the call began, at the failure.
        before: Number of attempts before the current row of failures.

    Attributes:
        elapsed: Seconds since the call began, at the failure.
    """

    __slots__ = (
        "_before",
        "_failure",
        "_request",
        "_terms",
        "_text",
        "elapsed",
    )

    def __init__(
        self,
        terms: Terms,
        request: tuple[str, object] | None,
        failure: Failure,
        elapsed: float,
        before: int = 0,
    ) -> None:
        self._before = before
        self._terms, self._request, self._text = terms, request, ""
        self._failure: Failure | None = failure
        self.elapsed = elapsed

    @property
    def level(self) -> int:
        """The logging level of the record."""
        polls = self._terms.polls and cast("Failure", self._failure).error is None
        return POLL_LEVEL if polls else _WARNING

    def fields(self) -> dict[str, Any]:
        """Return the fields of the record, for formatters that write JSON."""
        failure = cast("Failure", self._failure)
        return {
            "name": self._terms.name,
            "attempt": failure.attempt,
            "elapsed": self.elapsed,
            "delay": failure.delay,
            "reason": None,
        }

    def __str__(self) -> str:
        failure = self._failure
        if failure is not None:
            text = text_of(
                self._terms,
                self._request,
                failure,
                before=self._before,
            )
            self._text = escape_unprintable(text)
            # The record may be kept for a long time, and must not keep the error.
            self._failure = self._request = None
        return self._text

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)


def log_retry(message: RetryMessage, /) -> None:
    """Log a scheduled retry, if its level is enabled."""
    log, level = _log or _retry_log(), message.level
    if not log.isEnabledFor(level):
        return
    frame, extra = calling_frame(_DRIVER), {"retrykit": message.fields()}
    code = frame.f_code
    # Not `Logger.log`, which would look for the frame itself, and takes longer.
    record = log.makeRecord(
        log.name,
        level,
        code.co_filename,
        frame.f_lineno,
        # Some handlers take a message without arguments for data.
        "%s",
        (message,),
        None,
        code.co_name,
        extra,
    )
    log.handle(record)


def calling_frame(depth: int = 1) -> FrameType:
    """Return the frame that made the retried call.

    It is the first frame outside this package and those of `_BETWEEN`, such as clients
    and event loops. In a thread or task whose function is the call itself, there is no
    such frame, and it is the first one outside this package.

    Args:
        depth: How far up the search begins, >= 1; 1 is the caller of this function.
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


# Below it are `log_retry`, `notify_one` and the controller. Python makes every frame
# that is looked at.
_DRIVER: Final = 4

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


def describe_retry(call: CallFacts, delay: float) -> str:
    """Return the text about a scheduled retry.

    >>> from retrykit._core.call_record import Terms, new_record
    >>> call = new_record(Terms("fetch", max_attempts=5), seed=7)
    >>> describe_retry(call, 2.4)
    'retrying fetch in 2.4 s (attempt 2 of 5)'
    """
    failure = call.last_failure or Failure(call.attempt, None, None, 0.0, 0.0, None)
    last = "" if call.last_failure is None else None
    before = 0 if call.stream is None else call.stream.attempts_before
    failure = failure._replace(delay=delay)
    return text_of(call.terms, call.request, failure, last, before)


def text_of(
    terms: Terms,
    request: tuple[str, object] | None,
    failure: Failure,
    last: str | None = None,
    before: int = 0,
) -> str:
    """Return the text about the retry after a failure.

    Args:
        terms: What was known of the call before it began.
        request: The method and the URL of the request that the call makes, or None.
        failure: The failed attempt.
        last: The text about that attempt; None to make it.
        before: Number of attempts before the current row of failures.
    """
    title = _title(terms, request)
    last = describe_failure(failure, terms.redact) if last is None else last
    after = f" after {last}" if last else ""
    most = "" if terms.max_attempts is None else f" of {terms.max_attempts}"
    delay, number = duration_in_words(failure.delay or 0.0), failure.attempt + 1
    count = f"attempt {number}{most}"
    if before:
        count = f"attempt {number}, {number - before}{most} in a row"
    if terms.names:
        following = terms.names[failure.attempt % len(terms.names)]
        return f"going on with {following}{after} ({title}, {count})"
    return f"retrying {title} in {delay}{after} ({count})"


def title_of(call: CallFacts) -> str:
    """Return the name of a call, or the text about its request."""
    return _title(call.terms, call.request)


def _title(terms: Terms, request: tuple[str, object] | None) -> str:
    if request is None:
        return terms.name
    method, url = request
    text = f"{method} {url}" if terms.redact is False else request_target(method, url)
    if callable(terms.redact):
        text = redact_text(text, terms.redact)
    return " ".join(text.split())


def describe_last_failure(call: CallFacts) -> str:
    """Return the last failure as text on one line; empty if there was none."""
    last = call.last_failure
    return "" if last is None else describe_failure(last, call.terms.redact)


def describe_failure(last: Failure, redact: Redaction) -> str:
    """Return a failure as text on one line: its error, or the status of its result."""
    if last.error is not None:
        return " ".join(last.describe(redact=redact).split())
    # Not the result, which is the user's data.
    status = status_of(last.result)
    if status is None:
        return "a rejected result"
    # Other objects may have a status of their own.
    is_http = _HTTP[0] <= status <= _HTTP[1]
    return f"status {status}" if is_http else f"a rejected result (status {status})"


_HTTP: Final = (100, 599)


def record_fields(call: CallFacts) -> dict[str, Any]:
    """Return the fields of a record about a call, for formatters that write JSON."""
    return {
        "name": call.terms.name,
        "attempt": call.attempt,
        "elapsed": call.elapsed,
        "delay": call.next_delay,
        "reason": call.stop_reason and call.stop_reason.value,
    }
