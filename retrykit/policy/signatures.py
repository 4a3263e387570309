"""Signatures and docstrings that list the settings of a policy.

Type checkers and editors read them from `PolicySettings`; `help`, `inspect.signature`,
Jupyter and the reference read what this module adds at run time.
"""

import inspect
from collections.abc import Callable
from typing import Any

from retrykit._internal.durations import Duration
from retrykit._internal.error_conditions import Condition
from retrykit.hints.base import Hint
from retrykit.policy.conditions import ResultCondition
from retrykit.policy.policy import Policy
from retrykit.policy.validators import VALIDATORS, PolicySettings
from retrykit.policy.waiting import SleepFunction
from retrykit.schedules import ScheduleLike
from retrykit.state.events import Observer

__all__ = ["list_settings"]


def list_settings(function: Callable[..., Any]) -> None:
    """List the settings in the signature of a function that takes them by name.

    >>> def order(policy=None, **changes): ...
    >>> list_settings(order)
    >>> inspect.signature(order).parameters["seed"]
    <Parameter "seed: int | None = None">
    """
    own = inspect.signature(function)
    parameters = [each for each in own.parameters.values() if each.kind != _NAMED]
    names = {each.name for each in parameters}
    parameters += [each for each in _SETTINGS if each.name not in names]
    listed = own.replace(parameters=parameters)
    function.__dict__["__signature__"] = listed
    if function.__doc__:
        function.__doc__ = inspect.cleandoc(function.__doc__).replace(_LINE, _LINES)


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

_NAMED = inspect.Parameter.VAR_KEYWORD
_SETTINGS = [
    inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=getattr(Policy, name),
        annotation=_Annotation(PolicySettings.__annotations__[name]),
    )
    for name in VALIDATORS
]

# The line of a docstring that stands for all settings, without its indentation.
_LINE = "    **changes: Settings that differ from it, as for `Policy`."
# Those of `Policy`, which has none under ``python -OO``.
_LINES = inspect.cleandoc(Policy.__doc__ or "").partition("Args:\n")[2]
_LINES = _LINES.partition("\n\nRaises:")[0] or _LINE

for _each in (Policy.__init__, Policy.replace):
    list_settings(_each)
