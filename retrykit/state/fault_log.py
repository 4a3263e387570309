"""Log records about code that a policy was given, and that failed."""

import logging

from retrykit._internal.exceptions import add_note_once
from retrykit._internal.type_names import type_name
from retrykit.state.records import error_text, traceback_text

__all__ = ["log_fault", "note_policy_fault"]


def log_fault(level: int, fault: Exception, message: str, *args: object) -> None:
    """Log that the user's code failed, with its traceback without secrets of URLs.

    The traceback is part of the message: as the ``exc_info`` of a record it would be
    formatted whole, with the error that was being handled.

    Args:
        level: The level of the record.
        fault: What the code raised.
        message: What failed, as a format.
        *args: What is put into the format.
    """
    text = f"{message}\n%s"
    log = logging.getLogger("retrykit")
    log.log(level, text, *args, traceback_text(fault).rstrip(), stacklevel=2)


def note_policy_fault(error: Exception, fault: Exception) -> None:
    """Say on the user's error that the policy itself failed on it."""
    told = f"{type_name(type(fault))}: {error_text(fault)}"
    add_note_once(error, f"not retried, because its policy failed with {told}")
    log_fault(logging.ERROR, fault, "not retried, because the policy failed")
