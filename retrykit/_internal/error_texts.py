"""Texts of errors without secrets, names of their types, and log records of faults.

Reading the name of a type, ``OSError`` or ``package.module:Name``, never imports a
module.
"""

import builtins
import sys
from collections.abc import Callable
from typing import Any

from retrykit._internal.late_modules import inspect, logging
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
from retrykit._internal.validation import invalid_setting, safe_repr

__all__ = ["error_text", "log_fault", "note_policy_fault", "redact_related"]
__all__ += ["safe_str", "traceback_text", "type_from_name", "type_name", "type_to_name"]


def error_text(error: Exception, *, redact: Redaction = True) -> str:
    """Return the text of an error, or a summary of its request, without secrets.

    If *redact* is False, return the whole text.
    """
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
    """Return the formatted traceback of an error, with its notes and its causes.

    Args:
        error: The error.
        locations: The locations of frames that were released.
        redact: As in a policy: whether to remove secrets.
    """
    text = safe_str(error, lambda error: format_traceback(error, locations or ()))
    return redact_related(error, text, redact=redact)


def redact_related(error: Exception, text: str, *, redact: Redaction) -> str:
    """Remove the secrets from a text about an error and its causes.

    If *redact* is False, return *text*.
    """
    if redact is not False:
        for each in filter(is_response, related_errors(error)):
            text = text.replace(safe_str(each), request_summary(each) or "")
    return redact_text(text, redact)


def safe_str(value: object, form: Callable[[Any], str] = str) -> str:
    """Return the text that *form* makes of a value, or a placeholder if that fails."""
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
    """Note on the user's error that its policy failed, and log the failure."""
    text = f"{type_name(type(fault))}: {error_text(fault)}"
    add_note_once(error, f"not retried, because its policy failed with {text}")
    log_fault(logging.ERROR, fault, "not retried, because the policy failed")


def type_name(kind: type) -> str:
    """Return ``module.Name`` for a class, ``Name`` for a built-in one."""
    name = kind.__qualname__
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"


def type_to_name(name: str, kind: object) -> str:
    """Return the name by which `type_from_name` finds a type."""
    if isinstance(kind, type):
        module = "" if kind.__module__ == "builtins" else f"{kind.__module__}:"
        text = f"{module}{kind.__qualname__}"
        if _find(text) is kind:
            return text
    rule = "importable exception types in a policy that is written as data"
    suggestion = f"leave it out, and add it with .replace({name}=...)"
    raise invalid_setting(name, rule, kind, suggestion, code="not-expressible")


def type_from_name(name: str, text: object) -> object:
    """Return the type with a name such as ``OSError`` or ``package.module:Name``."""
    found = _find(text) if isinstance(text, str) else None
    if not isinstance(text, str) or not isinstance(found, type):
        module = text.rpartition(":")[0] if isinstance(text, str) else ""
        rule = "the name of an exception type, such as OSError or module:Name"
        suggestion = "write module:Name for a type that is not built in"
        if module:
            imported = module in sys.modules
            shown = safe_repr(module).strip("'")
            missing = f"{shown} has no such type"
            suggestion = missing if imported else f"import {shown} first"
        raise invalid_setting(name, rule, text, suggestion, code="unknown-name")
    return found


def _find(text: str) -> object:
    module, colon, path = text.rpartition(":")
    # An import would let a settings file run code, and so would a dynamic attribute
    # of a lazy module or a property.
    found: object = sys.modules.get(module) if colon else builtins
    for part in path.split("."):
        if found is None:
            break
        found = inspect.getattr_static(found, part, None)
    return found
