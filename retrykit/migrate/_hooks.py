"""Observers in place of other libraries' hooks."""

from retrykit.migrate._expressions import OURS, call_text

__all__ = ["log_observer"]

_SILENT = ("gave_up", "succeeded")


def log_observer(logger: str, event: str, level: str, **others: str) -> str:
    """Return the text of an observer that logs some kinds of events.

    A retry, a success or the end of a failed call is logged only if its kind is given.

    Args:
        logger: The text of a logger.
        event: A kind of event.
        level: The text of its level.
        **others: The texts of the levels of other kinds.
    """
    levels = {event: level, **others}
    if event != "retry_scheduled" and "retry_scheduled" not in levels:
        levels["retry_scheduled"] = "None"
    levels |= {kind: "None" for kind in _SILENT if kind not in levels}
    table = ", ".join(f'"{kind}": {text}' for kind, text in levels.items())
    function = f"{OURS}.integrations.logging.observer"
    return call_text(function, logger, levels=f"{{{table}}}")
