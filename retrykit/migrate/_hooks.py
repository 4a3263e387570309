"""Observers in place of other libraries' hooks."""

from retrykit.migrate._expressions import OURS, call_text

__all__ = ["log_observer"]

_SILENT = ("gave_up", "succeeded")


def log_observer(logger: str, event: str, level: str, **others: str) -> str:
    """Return the text of an observer that logs one kind of events.

    Args:
        logger: The text of a logger.
        event: The kind of the event.
        level: The text of its level.
        **others: The levels of other kinds of events.
    """
    levels = {event: level, **others}
    if event != "retry_scheduled" and "retry_scheduled" not in levels:
        levels["retry_scheduled"] = "None"
    levels |= {kind: "None" for kind in _SILENT if kind not in levels}
    table = ", ".join(f'"{kind}": {text}' for kind, text in levels.items())
    function = f"{OURS}.integrations.logging.observer"
    return call_text(function, logger, levels=f"{{{table}}}")
