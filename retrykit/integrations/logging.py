"""Observers that log retried calls to a logger of choice, at levels of choice.

Without an observer, only scheduled retries are logged, to ``retrykit.retries``.
"""

import logging
import sys
from collections.abc import Mapping
from typing import Any, get_args

from retrykit._core.failures import NEVER_RETRIED
from retrykit._core.retry_log import (
    POLL_LEVEL,
    calling_frame,
    describe_last_failure,
    describe_retry,
    record_fields,
    title_of,
)
from retrykit._core.retry_state import RetryState
from retrykit._internal.validation import (
    check_choice,
    check_instance,
    escape_unprintable,
    invalid_setting,
    user_facing,
)
from retrykit.events import (
    AttemptFailed,
    AttemptStarted,
    Event,
    EventKind,
    GaveUp,
    HedgeStarted,
    Observer,
    RetryScheduled,
    Succeeded,
    Suspended,
)

__all__ = ["observer"]

Level = int | str | None
"""A level of `logging`, by its number or its name; None logs nothing."""

_LEVELS: dict[str, int | None] = {
    "retry_scheduled": logging.WARNING,
    "gave_up": logging.ERROR,
    "succeeded": logging.INFO,
    "poll": POLL_LEVEL,
}
"""Default levels, keyed by kind of event; other kinds are not logged.

A ``poll`` is a retry after a rejected result, under a policy with ``on=()``.
"""


@user_facing
def observer(
    logger: Any = None, *, levels: dict[EventKind, Level] | None = None
) -> Observer:
    """Return an observer that logs the retries and the ends of calls.

    A scheduled retry is a WARNING, or DEBUG after a rejected result if the policy has
    ``on=()``: such a call polls. Giving up is an ERROR, and a success after failures is
    INFO. The location of a record is the line that made the call.

    The end of a call is not logged if its first attempt succeeds, is cancelled, or has
    an error that is not retryable. Durable jobs are logged in the same way, under their
    ids, with the time until the next attempt. Arguments and results of the call are
    never logged. Errors are logged by type and text, without the secrets of requests
    and URLs unless the policy has ``redact=False``.

    Each record has an attribute ``retrykit``, for formatters that write JSON: a dict
    with the ``name`` of the call, the number of the ``attempt``, the seconds that have
    ``elapsed``, the ``delay`` in seconds, and the ``reason`` for the end.

    >>> from retrykit import observe
    >>> with observe(observer(levels={"gave_up": "CRITICAL", "succeeded": None})):
    ...     pass  # retried calls made here are logged

    Args:
        logger: The logger; by default the logger named ``retrykit``. Any object with
            the methods ``debug``, ``info``, ``warning`` and ``error``, such as a logger
            of structlog; if it has a method ``bind``, the fields are bound with it.
        levels: The levels that differ from the default, keyed by kind of event:
            ``attempt_started``, ``hedge_started``, ``attempt_failed``,
            ``retry_scheduled``, ``suspended``, ``succeeded`` and ``gave_up``. None logs
            nothing. The level of ``retry_scheduled`` also applies to calls that poll.

    Raises:
        ConfigError: *logger* is not a logger, or *levels* has an unknown event or
            level.
    """
    log = logging.getLogger("retrykit") if logger is None else logger
    _check_logger(log)
    chosen = dict(_LEVELS)
    for kind, level in check_instance("levels", levels or {}, dict).items():
        check_choice("levels", kind, get_args(EventKind))
        chosen[kind] = _check_level(f"levels[{kind!r}]", level)
        if kind == "retry_scheduled":
            chosen["poll"] = chosen[kind]
    return LogObserver(log, chosen)


def _is_poll(event: Event) -> bool:
    """Return whether an event is a retry after a rejected result, with ``on=()``."""
    if event.kind != "retry_scheduled":
        return False
    return event.state._record.terms.polls and event.state.failures[-1].error is None


class LogObserver:
    """Logs events; nothing else logs the retries of the calls that it observes."""

    logs_retries = True

    def __init__(self, logger: Any, levels: Mapping[str, int | None]) -> None:
        self._logger, self._levels = logger, levels

    def __call__(self, event: Event, /) -> None:
        """Log an event, if it has a level and a text."""
        level = self._levels.get("poll" if _is_poll(event) else event.kind)
        log = self._logger
        ours = isinstance(log, logging.Logger | logging.LoggerAdapter)
        if level is None or (ours and not log.isEnabledFor(level)):
            return
        text, fields = (
            escape_unprintable(_describe(event)),
            record_fields(event.state._record),
        )
        if not text:
            return
        if ours:
            extra, caller = {"retrykit": fields}, _stack_level()
            log.log(level, "%s", text, extra=extra, stacklevel=caller)
            return
        if hasattr(log, "bind"):
            log = log.bind(retrykit=fields)
        if hasattr(log, "opt"):
            # A loguru logger, which counts from 0.
            log = log.opt(depth=_stack_level() - 1)
        # Other loggers may have no other levels.
        method = next(name for least, name in _METHODS if level >= least)
        getattr(log, method)(text)


def _stack_level() -> int:
    """Return the `stacklevel` at which `LogObserver` logs the line of the caller."""
    frame, caller, level = sys._getframe(1), calling_frame(), 1  # noqa: SLF001
    while frame is not caller and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    return level


_METHODS = [
    (logging.ERROR, "error"),
    (logging.WARNING, "warning"),
    (logging.INFO, "info"),
    (0, "debug"),
]


def _check_logger(logger: object) -> None:
    methods = (getattr(logger, name, None) for _, name in _METHODS)
    if isinstance(logger, type) or not all(map(callable, methods)):
        suggestion = (
            "write observer() for an observer, logging.getLogger(name) for a name"
        )
        raise invalid_setting("logger", "a logger", logger, suggestion)


def _check_level(name: str, level: object) -> int | None:
    if isinstance(level, str):
        level = logging.getLevelNamesMapping().get(level.upper(), level)
    if level is not None and type(level) is not int:
        rule = "a level of logging, such as 'INFO', or None for no record"
        raise invalid_setting(name, rule, level)
    return level


def _describe(event: Event) -> str:
    """Return the text of an event; empty for an end that is not logged.

    An end is not logged if the first attempt succeeds, is cancelled or fails for good.
    """
    state = event.state
    text = f"{title_of(state._record)}: attempt {state.attempt}"
    match event:
        case RetryScheduled(delay=delay):
            text = describe_retry(state._record, delay)
        case AttemptStarted():
            text = f"{text} has started"
        case HedgeStarted(number=number):
            text = f"{text} takes long: send {number} has started"
        case AttemptFailed():
            text = f"{text} failed{_failure(state)}"
        case Suspended():
            text = f"{text} failed, and the next one waits in the job engine"
        case Succeeded():
            text = (
                f"{title_of(state._record)} {state.describe()}"
                if state.failures
                else ""
            )
        case GaveUp() if _was_not_to_retry(state):
            text = ""
        case _:
            text = f"{title_of(state._record)} {state.describe()}{_failure(state)}"
    return text


def _failure(state: RetryState) -> str:
    last = describe_last_failure(state._record)
    return f"; {last}" if last else ""


def _was_not_to_retry(state: RetryState) -> bool:
    """Return whether a call was cancelled or failed for good in its first attempt."""
    return state.attempt == 1 and state.stop_reason in NEVER_RETRIED
