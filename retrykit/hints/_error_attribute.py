"""Hint that reads a delay from an attribute of an error or result."""

from typing import Literal

from retrykit._internal.durations import Duration
from retrykit._internal.validation import check_choice, invalid_setting, user_facing
from retrykit.hints._base import SerializableHint

__all__ = ["attribute"]


@user_facing
def attribute(path: str, unit: Literal["s", "ms"] = "s") -> SerializableHint:
    """Return the hint that reads an attribute of the error or result.

    >>> error = OSError("busy")
    >>> error.retry_after = 2
    >>> attribute("retry_after")(error), attribute("retry_after", "ms")(error)
    (2, 0.002)
    >>> attribute("response.retry_after")(error) is None
    True

    Args:
        path: The name of an attribute, or several joined by dots.
        unit: Unit of a plain number: seconds or milliseconds. A timedelta or a
            string such as ``"1m30s"`` has its own.

    Raises:
        ConfigError: *path* is not made of names of attributes, or *unit* is unknown.
    """
    check_choice("unit", unit, ["s", "ms"])
    given: object = path
    if not isinstance(given, str) or not all(map(str.isidentifier, given.split("."))):
        rule = "the name of an attribute, or several with dots between them"
        raise invalid_setting("path", rule, given)
    arguments = (given,) if unit == "s" else (given, unit)
    return SerializableHint("attribute", arguments, _read_attribute)


def _read_attribute(outcome: object, path: str, unit: str = "s") -> Duration | None:
    try:
        for name in path.split("."):
            outcome = getattr(outcome, name)
        # A remote proxy has every attribute, but of another type.
        delay = outcome if isinstance(outcome, int | Duration) else None
    except Exception:  # noqa: BLE001  attributes may run anyone's code
        return None
    if unit == "s" or isinstance(delay, bool):
        return delay
    return delay / 1_000 if isinstance(delay, int | float) else delay
