"""Texts of errors for records, notes and logs, without secrets."""

from collections.abc import Callable
from typing import Any

from retrykit._internal.redaction import (
    Redaction,
    is_response,
    redact_text,
    request_summary,
)
from retrykit._internal.tracebacks import (
    FrameLocations,
    format_traceback,
    has_attributes,
    related_errors,
)
from retrykit._internal.type_names import type_name

__all__ = ["error_text", "redact_related", "safe_str", "traceback_text"]


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
