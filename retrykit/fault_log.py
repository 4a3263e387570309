"""Log records about code that a policy was given, and that failed."""

import logging

from retrykit.records import traceback_text

__all__ = ["log_fault"]


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
