"""Schedules read from strings and other data, and written as strings.

A string lists delays, or is an expression. An expression is parsed and never run: names
other than those of constructors and methods of schedules are rejected.
"""

import ast
import operator
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from retrykit._internal.durations import parse_duration
from retrykit._internal.late_modules import inspect
from retrykit._internal.validation import (
    check_instance,
    did_you_mean,
    invalid_setting,
    user_facing,
)
from retrykit.schedules._base import (
    MAX_LEVELS,
    Schedule,
    as_schedule,
    check_size,
    has_user_code,
)
from retrykit.schedules._kinds import CONSTRUCTORS
from retrykit.schedules._sequences import sequence

__all__ = ["parse_schedule", "schedule_from_data", "schedule_to_text"]

# Far above any useful schedule. Without these limits, Python's parser would fail with
# errors that do not mention schedules.
_MAX_LENGTH = 100_000
# A sequence adds two levels: its list, and the numbers in the list.
_MAX_DEPTH = MAX_LEVELS + 2

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


@user_facing
def parse_schedule(text: str) -> Schedule:
    """Return the schedule that a string describes.

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
operators of schedules, got 'exponentail'; did you mean exponential(...)?  \
[unknown-name]

    Args:
        text: Two or more delays with units, separated by commas; a list such as
            ``[1, "5s"]``; or an expression of the constructors in
            `retrykit.schedules`, the methods and operators of `Schedule` that return a
            schedule, numbers, strings, lists, True and False. At most 1,000 parts in
            100 levels, and 100,000 characters.

    Raises:
        ConfigError: The string is something else, or an argument in it is invalid.
    """
    # In a file, the expression may take several lines.
    line = " ".join(check_instance("schedule", text, str).split())
    if len(line) > _MAX_LENGTH:
        rule = f"a string of at most {_MAX_LENGTH} characters"
        raise invalid_setting("schedule", rule, line, code="out-of-range")
    if "(" not in line and not line.startswith("["):
        return _parse_delays(line)
    try:
        return check_size(as_schedule(_evaluate(_parse(line), _MAX_DEPTH)))
    except (MemoryError, RecursionError):
        rule = f"an expression of at most {MAX_LEVELS} levels"
        raise invalid_setting("schedule", rule, line, code="out-of-range") from None


def schedule_from_data(data: object) -> Schedule:
    """Return the schedule of a string for `parse_schedule`, or of a list of durations.

    >>> schedule_from_data([1, "5s"]) == schedule_from_data("1s, 5s")
    True
    """
    if isinstance(data, list | tuple):
        return sequence(data)
    if isinstance(data, str):
        return parse_schedule(data)
    raise invalid_setting("schedule", "a string, or a list of durations", data)


def schedule_to_text(schedule: Schedule) -> str:
    """Return the expression from which `parse_schedule` makes the same schedule.

    Raises:
        ConfigError: The schedule is too large, or has parts that are user code.
    """
    if has_user_code(check_size(schedule)):
        rule = "made of retrykit's own parts, to be written as data"
        raise invalid_setting(
            "schedule", rule, schedule, "list its delays", code="not-expressible"
        )
    text = repr(schedule)
    if len(text) > _MAX_LENGTH:
        rule = f"written in at most {_MAX_LENGTH} characters"
        raise invalid_setting("schedule", rule, text, code="out-of-range")
    return text


def _parse_delays(text: str) -> Schedule:
    delays = [delay.strip() for delay in text.split(",")]
    if len(delays) == 1:
        rule = 'delays such as "1s, 5s, 1m", or an expression such as constant("5s")'
        suggestion = (
            'write constant("5s") for the same delay each time, or ["5s"] for one retry'
        )
        if not text[:1].isdigit():
            suggestion = _suggest_constructor(text)
        raise invalid_setting("schedule", rule, text, suggestion)
    return sequence(
        [parse_duration(f"schedule[{i}]", delay) for i, delay in enumerate(delays)]
    )


def _parse(text: str) -> ast.expr:
    try:
        with warnings.catch_warnings():
            # What these warn of is rejected below or harmless, since nothing is run.
            # Other warnings stay: all threads share the filters.
            warnings.simplefilter("ignore", SyntaxWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            return ast.parse(text, mode="eval").body
    except UnicodeEncodeError:
        rule = "text that can be encoded in UTF-8"
        raise invalid_setting("schedule", rule, text) from None
    except (SyntaxError, ValueError) as error:
        # ValueError: a null byte, before Python 3.11.4.
        raise invalid_setting(
            "schedule", "an expression", text, error.args[0]
        ) from None


def _evaluate(node: ast.expr, levels: int) -> Any:
    """Return the value of an expression of at most this many levels.

    Raises:
        RecursionError: The expression has more levels.
        ConfigError: A part of it is not allowed, or has an invalid argument.
    """
    if not levels:
        raise RecursionError
    match node:
        case ast.Constant(int() | float() | str() as value):
            return value
        case ast.Name("true" | "false" as name):
            _not_allowed(node, f"write {name.capitalize()}")
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)):
            return -value
        case ast.List(parts):
            return [_evaluate(part, levels - 1) for part in parts]
        case ast.BinOp(left, sign, right) if type(sign) in _OPERATORS:
            return _apply_operator(
                node, _evaluate(left, levels - 1), _evaluate(right, levels - 1)
            )
        case ast.Call(func):
            return _call(node, _callable(func, levels - 1), levels - 1)
    return _not_allowed(node)


def _apply_operator(node: ast.BinOp, left: Any, right: Any) -> Schedule:
    # ``*`` takes its number on either side; the schedule checks the other operand.
    swapped = isinstance(node.op, ast.Mult) and isinstance(right, Schedule)
    if not isinstance(left, Schedule) and not swapped:
        _not_allowed(node, "write the schedule before the operator")
    return _OPERATORS[type(node.op)](left, right)


def _callable(node: ast.expr, levels: int) -> Callable[..., Schedule]:
    """Return the constructor or the bound method that an expression calls."""
    match node:
        case ast.Name(name) if name in CONSTRUCTORS:
            return CONSTRUCTORS[name]
        case ast.Attribute(of, name):
            schedule = _evaluate(of, levels)
            if isinstance(schedule, Schedule) and name in _METHODS:
                method: Callable[..., Schedule] = getattr(schedule, name)
                return method
            suggestion = (
                did_you_mean(name, _METHODS) or f"they are {', '.join(_METHODS)}"
            )
            rule = "made with the methods of schedules"
            raise invalid_setting(
                "schedule", rule, f".{name}", suggestion, code="unknown-name"
            )
    return _not_allowed(node)


def _call(node: ast.Call, build: Callable[..., Schedule], levels: int) -> Schedule:
    given = [_evaluate(each, levels) for each in node.args]
    named = {str(each.arg): _evaluate(each.value, levels) for each in node.keywords}
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
            "schedule", rule, _source(node), suggestion, code="unknown-name"
        ) from None
    return build(*given, **named)


def _not_allowed(node: ast.expr, suggestion: str = "") -> NoReturn:
    source = _source(node)
    if isinstance(node, ast.Name) and not suggestion:
        suggestion = (
            _suggest_constructor(source)
            or f"the constructors are {', '.join(CONSTRUCTORS)}"
        )
    rule = "made of constructors, methods and operators of schedules"
    raise invalid_setting("schedule", rule, source, suggestion, code="unknown-name")


def _source(node: ast.expr) -> str:
    try:
        return ast.unparse(node)
    except ValueError:
        # Python parses hexadecimal integers of any length, but does not print them.
        return "an integer of thousands of digits"


def _suggest_constructor(name: str) -> str:
    return did_you_mean(name, CONSTRUCTORS).replace("?", "(...)?")
