"""Log records about failures of user code: predicates, observers, releases."""

from retrykit._internal.error_texts import error_text, traceback_text
from retrykit._internal.late_modules import logging
from retrykit._internal.tracebacks import add_note_once
from retrykit._internal.type_names import type_name

__all__ = ["log_fault", "note_policy_fault"]


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
