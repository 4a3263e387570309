"""The arguments of a call, keyed by parameter, and readers of their values."""

from collections.abc import Sequence
from typing import Final

from retrykit.audit._values import (
    UNKNOWN,
    Call,
    Dictionary,
    Operation,
    Reference,
    Value,
    is_number,
)

__all__ = ["MISSING", "Arguments", "calls_of", "choose", "count", "error_names"]
__all__ += ["CANCELLATIONS", "includes_cancellation", "methods_of", "seconds"]


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""The value of an argument that is not given."""


class Arguments:
    """The arguments of a call.

    Args:
        call: The call; its references have been resolved.
        parameters: The names of the positional parameters, in order.
    """

    def __init__(self, call: Call, parameters: Sequence[str] = ()) -> None:
        self._given: dict[str, Value] = {}
        self._others_unknown = UNKNOWN in call.positional
        self.positional = call.positional
        if not self._others_unknown:
            self._given.update(zip(parameters, call.positional, strict=False))
        for name, value in call.named:
            if name:
                self._given[name] = value
            elif type(value) is Dictionary:
                self._add(value)
            else:
                self._others_unknown = True

    def _add(self, dictionary: Dictionary) -> None:
        for key, value in dictionary.items:
            if type(key) is str:
                self._given.setdefault(key, value)
            else:
                self._others_unknown = True

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def get(self, name: str, default: Value = MISSING) -> Value:
        """Return the value of an argument.

        Returns:
            The value. If the call does not give one: UNKNOWN if an unknown argument,
            ``*arguments`` or ``**keywords`` may contain it, otherwise the default.
        """
        if name in self._given:
            return self._given[name]
        return UNKNOWN if self._others_unknown else default


def count(value: Value) -> float | None:
    """Return a number of calls as a float; None if it is not known."""
    return float(value) if is_number(value) else None


def seconds(value: Value) -> float | None:
    """Return a number or a ``timedelta`` in seconds; None if it is not known."""
    if is_number(value):
        return float(value)
    if type(value) is Call and type(value.function) is Reference:
        return _timedelta(value) if value.function.last == "timedelta" else None
    return None


# Classes of socket and select.
_ERRORS = frozenset(["timeout", "error", "gaierror", "herror"])
_UNITS = {
    "weeks": 604_800.0,
    "days": 86_400.0,
    "hours": 3_600.0,
    "minutes": 60.0,
    "seconds": 1.0,
    "milliseconds": 1e-3,
    "microseconds": 1e-6,
}
_ORDER = ("days", "seconds", "microseconds", "milliseconds", "minutes", "hours")


def _timedelta(call: Call) -> float | None:
    found = 0.0
    pairs = [*zip(_ORDER, call.positional, strict=False), *call.named]
    for unit, value in pairs:
        if unit not in _UNITS or not is_number(value):
            return None
        found += _UNITS[unit] * value
    return found


def error_names(value: Value) -> tuple[str, ...] | None:
    """Return the names of error classes, without their modules.

    Args:
        value: A class, a tuple of classes, or several of these joined by ``+`` or
            ``|``.

    Returns:
        The names; None if any of them is not known.
    """
    if type(value) is Reference:
        # Others are predicates, or constants of another library.
        is_class = value.last[:1].isupper() and not value.last.isupper()
        return (value.last,) if is_class or value.last in _ERRORS else None
    if type(value) is tuple:
        found: list[str] = []
        for each in value:
            names = error_names(each)
            if names is None:
                return None
            found += names
        return tuple(dict.fromkeys(found))
    if type(value) is Operation and value.sign in ("+", "|"):
        left, right = error_names(value.left), error_names(value.right)
        return None if left is None or right is None else (*left, *right)
    return None


CANCELLATIONS: Final = frozenset(
    [
        "BaseException",
        "CancelledError",
        "GeneratorExit",
        "KeyboardInterrupt",
        "SystemExit",
    ]
)
"""The errors that stop a task or a program, and their base class."""


def includes_cancellation(retried: tuple[str, ...] | None) -> bool:
    """Return whether errors include cancellation or Ctrl-C; False if not known."""
    return not CANCELLATIONS.isdisjoint(retried or ())


def choose(flag: Value, if_true: str, if_false: str) -> str:
    """Return one of two texts, depending on a flag; "?" if the flag is not known."""
    if type(flag) is not bool:
        return "?"
    return if_true if flag else if_false


def calls_of(retries: Value) -> float | None:
    """Return the number of calls for a number of retries; None if it is not known."""
    return 1.0 + max(retries, 0) if is_number(retries) else None


def methods_of(value: Value) -> frozenset[str] | None:
    """Return the HTTP methods in a collection, in upper case; None if not known."""
    if type(value) is Call and value.function in _COLLECTIONS:
        value = value.positional[0] if value.positional else ()
    if type(value) is tuple and all(type(each) is str for each in value):
        return frozenset(each.upper() for each in value)
    return None


_COLLECTIONS = (Reference("frozenset"), Reference("set"), Reference("list"))
