"""What an attribute of an error or a result asks for.

Whether it is a delay at all is judged where hints are asked.
"""

from typing import Literal, final

from retrykit._internal.durations import Duration
from retrykit._internal.validation import check_choice, invalid_setting
from retrykit.hints.serializable import SerializableHint

__all__ = ["Attribute", "attribute"]


def attribute(path: str, unit: Literal["s", "ms"] = "s") -> "Attribute":
    """Return the hint that reads an attribute of the error or result.

    >>> error = OSError("busy")
    >>> error.retry_after = 2
    >>> attribute("retry_after")(error), attribute("retry_after", "ms")(error)
    (2, 0.002)
    >>> attribute("response.retry_after")(error) is None
    True

    Args:
        path: The name of an attribute, or of several with dots between them.
        unit: What a number in it means: seconds, or milliseconds. A timedelta
            or a text, such as ``"1m30s"``, says itself what it means.

    Raises:
        ConfigError: *path* is no name, or *unit* none of these.
    """
    check_choice("unit", unit, ["s", "ms"])
    return Attribute(_path(path), unit)


def _path(value: object) -> str:
    if not isinstance(value, str) or not all(map(str.isidentifier, value.split("."))):
        rule = "the name of an attribute, or several with dots between them"
        raise invalid_setting("path", rule, value)
    return value


@final
class Attribute(SerializableHint):
    """The hint of an attribute; `attribute` builds it.

    Attributes:
        path: Names with dots between them.
        unit: What a number means, ``"s"`` or ``"ms"``.
    """

    __slots__ = ("path", "unit")
    kind = "attribute"
    path: str
    unit: str

    def __call__(self, outcome: object, /) -> Duration | None:
        """Return what the attribute says; None if there is none."""
        try:
            for name in self.path.split("."):
                outcome = getattr(outcome, name)
            # A proxy of something remote has any attribute, and none of these.
            told = outcome if isinstance(outcome, int | Duration) else None
        except Exception:  # noqa: BLE001  attributes may be anyone's code
            return None
        if self.unit == "s" or isinstance(told, bool):
            return told
        return told / 1_000 if isinstance(told, int | float) else told

    def _arguments(self) -> tuple[object, ...]:
        return (self.path,) if self.unit == "s" else (self.path, self.unit)
