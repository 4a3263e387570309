"""Conditions that select errors: exception types, or predicates of the error.

A predicate that answers neither True nor False is counted by the truth of its
answer, and warned of once: a forgotten ``return`` would otherwise switch retrying
off in silence.
"""

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from types import UnionType
from typing import Any
from weakref import ref

from retrykit._internal.exceptions import add_note_once
from retrykit._internal.introspection import accepts_one_argument
from retrykit._internal.type_names import type_name
from retrykit._internal.validation import invalid_setting, safe_repr

__all__ = [
    "Condition",
    "amatches_condition",
    "aread_answer",
    "check_condition",
    "matches_condition",
]
__all__ += ["read_answer", "reject_awaitable"]

Condition = (
    type[Exception]
    | tuple[type[Exception], ...]
    | Callable[[Exception], bool]
    | Callable[[Exception], Awaitable[bool]]
)
"""Errors by type, or a predicate of the error; it may be async under `aretry`.

A predicate that returns neither True nor False is warned of, once.
"""


def check_condition(name: str, value: object) -> object:
    """Return *value* if it selects errors, and nothing but errors.

    Raises:
        ConfigError: It is no exception type, no tuple of them and no
            predicate; or it includes what is never retried.
    """
    kinds = value if isinstance(value, tuple) else (value,)
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, Exception):
            continue
        if isinstance(kind, type) and issubclass(kind, BaseException):
            rule = "an Exception type, since no other is ever retried"
            raise invalid_setting(name, rule, kind, "write Exception, or narrower")
        if isinstance(kind, type) or isinstance(value, tuple) or not callable(kind):
            rule = "an Exception type, a tuple of them, or a predicate of the error"
            raise invalid_setting(name, rule, value, _as_types(kind))
        if not accepts_one_argument(kind):
            raise invalid_setting(name, "a predicate that takes the error", value)
    return value


def _as_types(value: object) -> str:
    """Return how to write what seems to be meant by no condition."""
    if isinstance(value, str):
        return "name the type itself, without quotes"
    if isinstance(value, BaseException):
        return f"name its type, {type(value).__name__}"
    if isinstance(value, Iterable | UnionType):
        return "put the types in a tuple, as (ConnectionError, TimeoutError)"
    return ""


_BY_TYPE = (type, tuple)


def matches_condition(name: str, condition: Condition, error: Exception) -> bool:
    """Return whether a condition holds for an error.

    Args:
        name: The setting that the condition was given as.
        condition: The condition.
        error: The error.

    Raises:
        ConfigError: It is a predicate whose answer must be awaited.
    """
    if isinstance(condition, _BY_TYPE):
        return isinstance(error, condition)
    return read_answer(name, condition, condition(error), error)


async def amatches_condition(name: str, condition: Condition, error: Exception) -> bool:
    """Return whether a condition holds for an error, as `matches_condition` does."""
    if isinstance(condition, _BY_TYPE):
        return isinstance(error, condition)
    return await aread_answer(name, condition, condition(error), error)


def read_answer(
    name: str, predicate: object, answer: object, error: Exception | None = None
) -> bool:
    """Return whether an answer counts as True.

    >>> read_answer("on_result", len, len("busy"))
    True

    Args:
        name: The setting that the predicate was given as.
        predicate: What answered.
        answer: Its answer.
        error: The error that it was asked about; None if it was a result.

    Raises:
        ConfigError: The answer must be awaited.
    """
    if isinstance(answer, bool):
        return answer
    reject_awaitable(name, answer)
    return _counted(name, predicate, answer, error)


async def aread_answer(
    name: str, predicate: object, answer: object, error: Exception | None = None
) -> bool:
    """Return whether an answer, which may be awaited, counts as True."""
    if inspect.isawaitable(answer):
        answer = await answer
    if isinstance(answer, bool):
        return answer
    return _counted(name, predicate, answer, error)


def reject_awaitable(name: str, answer: object) -> None:
    """Raise `ConfigError` if an answer must be awaited."""
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        rule = "a predicate that answers at once, under retry"
        raise invalid_setting(name, rule, answer, "use aretry for one that is awaited")


# By name, since numpy need not be installed; before 2.0 there is an underscore.
_NUMPY_BOOLS = ("numpy.bool", "numpy.bool_")


def _counted(
    name: str, predicate: object, answer: object, error: Exception | None
) -> bool:
    counts, kind = bool(answer), type_name(type(answer))
    if kind not in _NUMPY_BOOLS and _is_first(predicate):
        which = getattr(predicate, "__qualname__", None) or safe_repr(predicate)
        given = "None" if answer is None else f"a {kind}"
        text = f"{name}={which} returned {given}, neither True nor False: it counts "
        text += f"as {counts}; return True or False, as bool(...) does"
        logging.getLogger("retrykit").warning("%s", text)
        if error is not None:
            add_note_once(error, text)
    return counts


_warned: dict[int, ref[Any]] = {}
"""The predicates that were warned of, by their identity while they live."""


def _is_first(predicate: object) -> bool:
    """Return whether a predicate was not warned of before; now it is."""
    key, forget = id(predicate), _warned.pop
    try:
        mark = ref(predicate, lambda _: forget(key, None))
    except TypeError:
        # It cannot be known again without being kept alive, but its class can.
        return _is_first(type(predicate))
    # One step, so that of several threads one is the first.
    return _warned.setdefault(key, mark) is mark
