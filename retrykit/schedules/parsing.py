"""Schedules as people write them in a line of text.

Either delays separated by commas, or the expression that prints a schedule.
It is read and never run: what is not one of the constructors, methods and
operators of schedules is refused by its name.
"""

import ast
import inspect
import operator
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from retrykit._internal.durations import parse_duration
from retrykit._internal.validation import check_instance, did_you_mean, invalid_setting
from retrykit.schedules.base import Schedule, as_schedule
from retrykit.schedules.kinds import CONSTRUCTORS
from retrykit.schedules.parts import MAX_LEVELS, check_size
from retrykit.schedules.sequences import sequence

__all__ = ["parse_schedule"]

# No schedule of use is near to these; what is far beyond them ends in an error
# of Python's own that says nothing of schedules.
_LONGEST = 100_000
# A list of numbers that is a schedule has two levels beside its own.
_DEEPEST = MAX_LEVELS + 2
_SHOWN = 80

_METHODS = (
    "at_least",
    "cap",
    "equal_jitter",
    "full_jitter",
    "jitter",
    "round_down",
    "switch",
    "take",
    "then",
    "within",
    "without_jitter",
)
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Schedule]] = {
    ast.Add: operator.add,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.Mult: operator.mul,
}


def parse_schedule(text: str) -> Schedule:
    """Return the schedule that a text describes.

    >>> parse_schedule("1s, 5s, 1m")
    sequence([1.0, 5.0, 60.0])
    >>> parse_schedule('exponential("500ms", factor=2).cap("30s").full_jitter()')
    exponential(0.5, factor=2.0).cap(30.0).full_jitter()
    >>> parse_schedule("constant(15) + linear(30).full_jitter()").bounds(2)
    (15.0, 75.0)
    >>> parse_schedule("exponentail(1)")
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: schedule must be made of constructors, methods and \
operators of schedules, got 'exponentail'; did you mean exponential(...)?

    Args:
        text: Two or more delays with their units, separated by commas; a list,
            as ``[1, "5s"]``; or an expression of the names in
            `retrykit.schedules`, the methods of `Schedule` that make a schedule,
            the operators ``+``, ``*``, ``|`` and ``&``, numbers, texts and lists.
            At most 1,000 parts in 100 levels.

    Raises:
        ConfigError: The text is something else, or a number or a duration in it
            is out of its bounds.
    """
    # A line: in a file it may be broken into several.
    told = " ".join(check_instance("schedule", text, str).split())
    if len(told) > _LONGEST:
        rule = f"a string of at most {_LONGEST} characters"
        raise invalid_setting("schedule", rule, _short(told))
    if "(" not in told and not told.startswith("["):
        return _listed(told)
    try:
        return check_size(as_schedule(_value(_parsed(told), _DEEPEST)))
    except (MemoryError, RecursionError):
        rule = f"an expression of at most {MAX_LEVELS} levels"
        raise invalid_setting("schedule", rule, _short(told)) from None


def _listed(text: str) -> Schedule:
    delays = [delay.strip() for delay in text.split(",")]
    if len(delays) == 1:
        rule = 'delays such as "1s, 5s, 1m", or an expression such as constant("5s")'
        suggestion = (
            "for a single delay write constant() around it, or [] for one retry"
        )
        if not text[:1].isdigit():
            suggestion = _constructor(text)
        raise invalid_setting("schedule", rule, _short(text), suggestion)
    return sequence(
        [parse_duration(f"schedule[{i}]", delay) for i, delay in enumerate(delays)]
    )


def _parsed(text: str) -> ast.expr:
    try:
        with warnings.catch_warnings():
            # Of what it warns is refused below, or harmless: nothing of it is run.
            # No other warning is ignored: the filters are those of all threads.
            warnings.simplefilter("ignore", SyntaxWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            return ast.parse(text, mode="eval").body
    except UnicodeEncodeError:
        rule = "text that can be encoded in UTF-8"
        raise invalid_setting("schedule", rule, _short(text)) from None
    except (SyntaxError, ValueError) as error:
        # The latter of a null byte, before Python 3.11.4.
        raise invalid_setting(
            "schedule", "an expression", _short(text), error.args[0]
        ) from None


def _value(node: ast.expr, levels: int) -> Any:
    """Return the schedule, number, text or list that an expression is.

    Args:
        node: The expression.
        levels: How many levels it may have. Count, >= 0.
    """
    if not levels:
        raise RecursionError
    match node:
        case ast.Constant(int() | float() | str() as value):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)):
            return -value
        case ast.List(parts):
            return [_value(part, levels - 1) for part in parts]
        case ast.BinOp(left, sign, right) if type(sign) in _OPERATORS:
            return _joined(node, _value(left, levels - 1), _value(right, levels - 1))
        case ast.Call(func):
            return _called(node, _function(func, levels - 1), levels - 1)
    return _not_allowed(node)


def _joined(node: ast.BinOp, left: Any, right: Any) -> Schedule:
    # A number may stand on either side of ``*``; what else is wrong with the
    # other side, the schedule says itself.
    turned = isinstance(node.op, ast.Mult) and isinstance(right, Schedule)
    if not isinstance(left, Schedule) and not turned:
        _not_allowed(node, "an operator stands behind a schedule")
    return _OPERATORS[type(node.op)](left, right)


def _function(node: ast.expr, levels: int) -> Callable[..., Schedule]:
    """Return the constructor or the bound method that is called."""
    match node:
        case ast.Name(name) if name in CONSTRUCTORS:
            return CONSTRUCTORS[name]
        case ast.Attribute(of, name):
            schedule = _value(of, levels)
            if isinstance(schedule, Schedule) and name in _METHODS:
                method: Callable[..., Schedule] = getattr(schedule, name)
                return method
            suggestion = (
                did_you_mean(name, _METHODS) or f"there are {', '.join(_METHODS)}"
            )
            rule = "made with the methods of schedules"
            raise invalid_setting("schedule", rule, _short(f".{name}"), suggestion)
    return _not_allowed(node)


def _called(node: ast.Call, build: Callable[..., Schedule], levels: int) -> Schedule:
    given = [_value(each, levels) for each in node.args]
    named = {str(each.arg): _value(each.value, levels) for each in node.keywords}
    known = inspect.signature(build).parameters
    if len(named) < len(node.keywords):
        _not_allowed(node, "name each argument once")
    try:
        inspect.signature(build).bind(*given, **named)
    except TypeError as error:
        unknown = next((name for name in named if name not in known), "")
        suggestion = did_you_mean(unknown, known) or str(error)
        rule = f"made with {build.__name__}({', '.join(known)})"
        raise invalid_setting(
            "schedule", rule, _short(_written(node)), suggestion
        ) from None
    return build(*given, **named)


def _not_allowed(node: ast.expr, suggestion: str = "") -> NoReturn:
    told = _written(node)
    if isinstance(node, ast.Name):
        suggestion = _constructor(told) or f"there are {', '.join(CONSTRUCTORS)}"
    rule = "made of constructors, methods and operators of schedules"
    raise invalid_setting("schedule", rule, _short(told), suggestion)


def _written(node: ast.expr) -> str:
    try:
        return ast.unparse(node)
    except ValueError:
        # Python reads hexadecimal integers of any length, and prints few of them.
        return "an integer of thousands of digits"


def _constructor(name: str) -> str:
    return did_you_mean(name, CONSTRUCTORS).replace("?", "(...)?")


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
