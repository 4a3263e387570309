"""Signatures and docstrings that list the settings of a policy.

Type checkers and editors read them from `PolicySettings`; `help`, `inspect.signature`,
Jupyter and the reference read what this module adds at run time.
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any, cast

from retrykit._conditions import Condition
from retrykit._core.events import Observer
from retrykit._core.policy import Policy
from retrykit._core.result_conditions import ResultCondition
from retrykit._core.settings import SETTINGS, PolicySettings, SleepFunction
from retrykit._internal.durations import Duration
from retrykit._internal.introspection import LateSignature
from retrykit._internal.late_modules import inspect
from retrykit.hints._base import Hint
from retrykit.schedules._base import ScheduleLike

__all__ = ["list_settings"]


def list_settings(function: Callable[..., Any]) -> None:
    """List the settings in the signature of a function that takes them by name.

    >>> def order(policy=None, **changes): ...
    >>> list_settings(order)
    >>> inspect.signature(order).parameters["seed"]
    <Parameter "seed: int | None = None">
    """
    own = cast("FunctionType", getattr(function, "__wrapped__", function))
    function.__dict__["__signature__"] = LateSignature(lambda: _signature_of(own))
    before, line, after = (function.__doc__ or "").partition(_LINE)
    if line and _LINES:
        lines = ("\n" + before.rpartition("\n")[2]).join(_LINES)
        function.__doc__ = f"{before}{lines}{after}"


def _copy(fn: FunctionType) -> FunctionType:
    """Return a function with the parameters of *fn*, and without its attributes."""
    copy = FunctionType(fn.__code__, fn.__globals__, argdefs=fn.__defaults__)
    copy.__kwdefaults__, copy.__annotations__ = fn.__kwdefaults__, fn.__annotations__
    return copy


def _signature_of(function: FunctionType) -> "inspect.Signature":
    """Return the signature of a function, with a parameter for each setting."""
    own = inspect.signature(_copy(function))
    named = inspect.Parameter.VAR_KEYWORD
    parameters = [each for each in own.parameters.values() if each.kind != named]
    names = {each.name for each in parameters}
    parameters += [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=getattr(Policy, name),
            annotation=_Annotation(PolicySettings.__annotations__[name]),
        )
        for name in SETTINGS
        if name not in names
    ]
    return own.replace(parameters=parameters)


class _Annotation:
    """An annotation that is shown with the names of its type aliases."""

    def __init__(self, annotation: object) -> None:
        self._annotation = annotation

    def __repr__(self) -> str:
        text = inspect.formatannotation(self._annotation)
        for name, alias in _ALIASES.items():
            text = text.replace(inspect.formatannotation(alias), name)
        return text


# The wider ones first.
_ALIASES: dict[str, object] = {
    "ScheduleLike": ScheduleLike,
    "Observer": Observer,
    "Condition": Condition,
    "ResultCondition": ResultCondition,
    "Hint": Hint,
    "SleepFunction": SleepFunction,
    "Duration": Duration,
}

# The line of a docstring that stands for all settings.
_LINE = "**changes: Settings that differ from it, as for `Policy`."
# Those of `Policy`, which has none under ``python -OO``.
_TEXT = (Policy.__doc__ or "").partition("Args:\n")[2].partition("\n\n")[0]
_INDENT = len(_TEXT) - len(_TEXT.lstrip())
_LINES = [line[_INDENT:] for line in _TEXT.splitlines()]

for _each in (Policy.__init__, Policy.replace):
    list_settings(_each)
