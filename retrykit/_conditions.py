"""Conditions that select errors: exception types, or predicates of the error.

If a predicate returns neither True nor False, the truth value of its result is used,
and a warning is logged, once for each predicate: without it, a forgotten ``return``
would silently disable retries.
"""

from collections.abc import Awaitable, Callable, Iterable
from types import CoroutineType, UnionType
from typing import Any, Final
from weakref import ref

from retrykit._internal.error_texts import type_name
from retrykit._internal.introspection import accepts_one_argument, is_awaitable
from retrykit._internal.late_modules import logging
from retrykit._internal.tracebacks import add_note_once
from retrykit._internal.validation import invalid_setting, safe_repr

__all__ = ["BY_TYPE", "Condition", "amatches_condition", "aread_answer"]
__all__ += ["check_condition", "find_members", "format_value"]
__all__ += ["has_no_programming_error", "matches_condition"]
__all__ += ["default_condition", "read_answer", "reject_awaitable", "types_of"]

Condition = (
    type[Exception]
    | tuple[type[Exception], ...]
    | Callable[[Exception], bool]
    | Callable[[Exception], Awaitable[bool]]
)
"""Exception types, or a predicate of the error; it may be async under `aretry`."""


_PROGRAMMING_ERRORS = frozenset(
    {
        AssertionError,
        AttributeError,
        ImportError,
        NameError,
        NotImplementedError,
        RecursionError,
        SyntaxError,
        TypeError,
    }
)


has_no_programming_error: Final = _PROGRAMMING_ERRORS.isdisjoint
"""Takes the ``__mro__`` of an error's type; returns whether no class in it is a
programming error."""


class DefaultCondition:
    """The default condition, which applies to a policy without `on`.

    It matches every error except those of the following types, which mean a mistake in
    the code that no retry fixes: `AssertionError`, `AttributeError`, `ImportError`,
    `NameError`, `NotImplementedError`, `RecursionError`, `SyntaxError` and `TypeError`.

    >>> default_condition(OSError()), default_condition(ModuleNotFoundError())
    (True, False)
    """

    __slots__ = ()

    def __call__(self, error: Exception, /) -> bool:
        """Return whether an error matches."""
        return has_no_programming_error(type(error).__mro__)

    def __repr__(self) -> str:
        return "default_condition"

    def __reduce__(self) -> str:
        return "default_condition"


default_condition: Final = DefaultCondition()
"""The only instance of `DefaultCondition`."""


def find_members(error: Exception) -> list[Exception]:
    """Return the errors in an exception group and its subgroups.

    For any other error, the list has that error alone.
    """
    found = [error]
    for each in found:
        if isinstance(each, ExceptionGroup):
            found += each.exceptions
    return [each for each in found if not isinstance(each, ExceptionGroup)]


def check_condition(name: str, value: object) -> object:
    """Return *value*; raise a `ConfigError` unless it is a condition on errors."""
    kinds = value if isinstance(value, tuple) else (value,)
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, Exception):
            continue
        if isinstance(kind, type) and issubclass(kind, BaseException):
            rule = "an Exception type, since no other is ever retried"
            raise invalid_setting(name, rule, kind, "write Exception, or narrower")
        if isinstance(kind, type) or isinstance(value, tuple) or not callable(kind):
            rule = "an Exception type, a tuple of them, or a predicate of the error"
            raise invalid_setting(name, rule, value, _suggest_types(kind))
        if not accepts_one_argument(kind):
            raise invalid_setting(name, "a predicate that takes the error", value)
    return value


def _suggest_types(value: object) -> str:
    """Return the suggestion for a value that is not a condition, or an empty string."""
    if value is None:
        return "write () for no errors"
    if isinstance(value, str):
        return "name the type itself, without quotes"
    if isinstance(value, BaseException):
        return f"name its type, {type(value).__name__}"
    if isinstance(value, Iterable | UnionType):
        return "put the types in a tuple, as (ConnectionError, TimeoutError)"
    return ""


BY_TYPE = (type, tuple)
"""The types of a condition that is not a predicate."""


def matches_condition(name: str, condition: Condition, error: Exception) -> bool:
    """Return whether an error matches a condition."""
    if isinstance(condition, BY_TYPE):
        return isinstance(error, condition)
    return read_answer(name, condition, condition(error), error)


async def amatches_condition(name: str, condition: Condition, error: Exception) -> bool:
    """Return whether an error matches a condition, which may be an async predicate."""
    if isinstance(condition, BY_TYPE):
        return isinstance(error, condition)
    return await aread_answer(name, condition, condition(error), error)


def read_answer(
    name: str, predicate: object, answer: object, error: Exception | None = None
) -> bool:
    """Return the answer of a sync predicate as a bool; raise an error for an awaitable.

    >>> read_answer("on_result", len, len("busy"))
    True
    """
    if isinstance(answer, bool):
        return answer
    reject_awaitable(name, answer)
    return _as_bool(name, predicate, answer, error)


async def aread_answer(
    name: str, predicate: object, answer: object, error: Exception | None = None
) -> bool:
    """Return the answer of a sync or async predicate as a bool."""
    if is_awaitable(answer):
        answer = await answer
    if isinstance(answer, bool):
        return answer
    return _as_bool(name, predicate, answer, error)


def reject_awaitable(
    name: str,
    answer: object,
    rule: str = "a sync function under retry",
    suggestion: str = "use aretry for async functions",
) -> None:
    """Raise a `ConfigError` if an answer is awaitable.

    A coroutine is closed first.
    """
    if is_awaitable(answer):
        if isinstance(answer, CoroutineType):
            answer.close()
        raise invalid_setting(name, rule, answer, suggestion, code="async-mismatch")


# By name, since numpy may be missing; before 2.0 with an underscore.
_NUMPY_BOOLS = ("numpy.bool", "numpy.bool_")


def _as_bool(
    name: str, predicate: object, answer: object, error: Exception | None
) -> bool:
    truth, kind = bool(answer), type_name(type(answer))
    if kind not in _NUMPY_BOOLS and _is_first_warning(predicate):
        function = getattr(predicate, "__qualname__", None) or safe_repr(predicate)
        returned = "None" if answer is None else f"a value of type {kind}"
        text = f"{name}={function} returned {returned}, neither True nor False: it "
        text += f"counts as {truth}; return a bool"
        logging.getLogger("retrykit").warning("%s", text)
        if error is not None:
            add_note_once(error, text)
    return truth


_warned: dict[int, ref[Any]] = {}
"""Weak references to predicates, or their classes, that were warned about, by id."""


def _is_first_warning(predicate: object) -> bool:
    """Note a warning about a predicate; return whether it is the first one."""
    key, forget = id(predicate), _warned.pop
    try:
        mark = ref(predicate, lambda _: forget(key, None))
    except TypeError:
        # Without weak references to it, its class is remembered instead.
        return _is_first_warning(type(predicate))
    # A single operation, so that only one thread is the first.
    return _warned.setdefault(key, mark) is mark


def format_value(value: object) -> str:
    """Return a setting as text: types and functions by name, others by ``repr``."""
    if isinstance(value, tuple):
        return f"({', '.join(map(format_value, value))}{',' * (len(value) == 1)})"
    if isinstance(value, type):
        return type_name(value)
    return getattr(value, "__qualname__", None) or repr(value)


def types_of(condition: Condition) -> tuple[type[Exception], ...]:
    """Return the exception types of a condition; empty if it is a predicate."""
    if isinstance(condition, tuple):
        return condition
    return (condition,) if isinstance(condition, type) else ()
