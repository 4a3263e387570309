"""Texts of errors without secrets, and log records about faults of user code."""

from collections.abc import Callable
from typing import Any

from retrykit._internal.late_modules import logging
from retrykit._internal.redaction import (
    Redaction,
    is_response,
    redact_text,
    request_summary,
)
from retrykit._internal.tracebacks import (
    FrameLocations,
    add_note_once,
    format_traceback,
    has_attributes,
    related_errors,
)
from retrykit._internal.type_names import type_name

__all__ = ["error_text", "log_fault", "note_policy_fault", "redact_related"]
__all__ += ["safe_str", "traceback_text"]


def error_text(error: Exception, *, redact: Redaction = True) -> str:
    """Return the text of an error."""
    # Most errors are of a built-in type, and have no attributes.
    plain = type(error).__module__ == "builtins" and not has_attributes(error)
    summary = None if redact is False or plain else request_summary(error)
    return redact_text(safe_str(error) if summary is None else summary, redact)


def traceback_text(
    error: Exception,
    locations: FrameLocations | None = None,
    *,
    redact: Redaction = True,
) -> str:
    """Return the formatted traceback of an error, with its notes and its causes."""
    text = safe_str(error, lambda error: format_traceback(error, locations or ()))
    return redact_related(error, text, redact=redact)


def redact_related(error: Exception, text: str, *, redact: Redaction) -> str:
    """Return a text about an error and its causes without secrets."""
    if redact is not False:
        for each in filter(is_response, related_errors(error)):
            text = text.replace(safe_str(each), request_summary(each) or "")
    return redact_text(text, redact)


def safe_str(value: object, form: Callable[[Any], str] = str) -> str:
    """Return the text of a value, or a placeholder if its own code fails."""
    try:
        return form(value)
    except Exception as error:  # noqa: BLE001  a broken repr must not lose the rest
        return f"<{type_name(type(error))} while formatting>"


def log_fault(level: int, fault: Exception, message: str, *args: object) -> None:
    """Log a failure of user code and its traceback, without secrets of URLs.

    The traceback is part of the message: as ``exc_info`` it would be formatted
    without redaction, together with the error being handled.
    """
    text = f"{message}\n%s"
    log = logging.getLogger("retrykit")
    log.log(level, text, *args, traceback_text(fault).rstrip(), stacklevel=2)


def note_policy_fault(error: Exception, fault: Exception) -> None:
    """Note on the user's error, and log, that the policy failed on it."""
    text = f"{type_name(type(fault))}: {error_text(fault)}"
    add_note_once(error, f"not retried, because its policy failed with {text}")
    log_fault(logging.ERROR, fault, "not retried, because the policy failed")
