"""Handlers in loops: the errors that they catch, retry or let through."""

import ast
import re
from collections.abc import Sequence
from itertools import chain
from typing import Final

from retrykit.audit._arguments import CANCELLATIONS
from retrykit.audit._flow import flow, inner_nodes, leaves
from retrykit.audit._loop_words import (
    CLOCK_WORDS,
    COUNT_WORDS,
    ENDLESS,
    names_in,
    target_names,
)
from retrykit.audit._values import Reference, Value

__all__ = [
    "LOGS",
    "NOT_FAILURES",
    "OF_DATA",
    "OF_NETWORK",
    "Attempt",
    "caught_by",
    "derived_names",
    "error_names",
    "last_name",
    "may_raise_elsewhere",
    "retried_errors",
    "retried_from",
    "variables_caught_by",
]
__all__ += ["is_log_function", "swallows_cancellation"]

Attempt = ast.Try | ast.TryStar
"""The statement whose body is tried."""

LOGS = re.compile(
    r"log|print|debug|info|warn|error|exception|echo|write|format|str$", re.IGNORECASE
)
"""Matches the names of functions that only log, print or format."""

NOT_FAILURES: Final = frozenset(
    """
    AttributeError BlockingIOError EOFError ElementClickInterceptedException
    ElementNotInteractableException ElementNotVisibleException Empty Full
    GeneratorExit ImportError Incomplete IndexError InterruptedError KeyboardInterrupt
    LookupError ModuleNotFoundError NameError NoSuchElementException QueueEmpty
    QueueFull Skip SSLWantReadError SSLWantWriteError StopAsyncIteration StopIteration
    SyntaxError UnicodeDecodeError UnicodeError WouldBlock
    """.split()  # noqa: SIM905  a list of words
)
"""Errors that do not mean a failed call, but, for example, the end of the data."""
OF_DATA: Final = frozenset(
    """
    FileExistsError FileNotFoundError JSONDecodeError KeyError NotImplementedError
    ParseError ParserError TypeError UnpicklingError ValidationError ValueError
    """.split()  # noqa: SIM905  a list of words
)
"""Errors that the same data causes at each attempt."""
OF_NETWORK = re.compile(
    r"Connect|Timeout|TimedOut|Unavailable|Disconnect|URLError|Throttl"
    r"|(Network|Transport|Request)(Error|Exception)"
)
"""Matches the names of errors of a network or a server."""

# Functions that tell of what is an error.
_OF_ERRORS = frozenset(["critical", "error", "exception", "print", "warn", "warning"])
_LOG_METHODS = re.compile(
    r"(^|_)(critical|debug|echo|error|exception|log|print|report|trace"
    r"|warn(ing)?)(_|$)"
    r"|^_*info(_|$)|^(format|repr|str|write|writelines)$",
    re.IGNORECASE,
)
# Such as `future.set_exception(error)`.
_ACTS = re.compile("_*(process|raise|set)_", re.IGNORECASE)
_LOGGERS = re.compile(r"log(ger|ging)?$", re.IGNORECASE)
_TELLS = re.compile(r"log|print|warn|debug|info", re.IGNORECASE)
_EVERYTHING = frozenset(["Exception", "BaseException"])
# The name of a class, other than that of a constant.
_CLASS = re.compile("_*[A-Z][A-Z0-9]*[a-z]")
_LIMIT_WORDS = re.compile(
    r"deadline|timeout|attempt|retries|tries|start_time|elapsed", re.IGNORECASE
)
_DELAYS = re.compile(
    r"sleep|delay|backoff|wait|jitter|interval|min|max|pow", re.IGNORECASE
)
# Such as `_retry_error_helper`, which tells nothing.
_RETRIES = re.compile("_*retry_", re.IGNORECASE)
_DECIDES = re.compile(
    r"handle|check|should|raise|_can_|retr(y|ies)|process", re.IGNORECASE
)


def caught_by(handler: ast.ExceptHandler) -> list[str]:
    """Return the names of the errors that a handler catches, without their modules."""
    match handler.type:
        case None:
            return ["BaseException"]
        case ast.Tuple(elts=items):
            return [last_name(each) for each in items]
        case ast.Call(func=function):
            return [last_name(function)]
        case other:
            return [last_name(other)]


def variables_caught_by(handler: ast.ExceptHandler) -> dict[str, ast.expr]:
    """Return what a handler catches and does not name like a class, by last names."""
    match handler.type:
        case None | ast.Call():
            return {}
        case ast.Tuple(elts=items):
            found = items
        case other:
            found = [other]
    named = {last_name(each): each for each in found}
    return {name: each for name, each in named.items() if not _CLASS.match(name)}


def error_names(value: Value) -> tuple[str, ...] | None:
    """Return the names of errors, without their modules; None for any other value."""
    if type(value) is Reference:
        return (value.last,) if _CLASS.match(value.last) else None
    if type(value) is not tuple:
        return None
    parts = [error_names(each) for each in value]
    return None if None in parts else tuple(chain.from_iterable(filter(None, parts)))


def last_name(node: ast.expr) -> str:
    """Return the last part of a dotted name, or "?"."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return "?"


def is_log_function(function: ast.expr) -> bool:
    """Return whether names suggest that a function only logs, prints or formats."""
    name = last_name(function)
    if _LOG_METHODS.search(name) and not _ACTS.match(name):
        return True
    owner = function.value if isinstance(function, ast.Attribute) else None
    return owner is not None and bool(_LOGGERS.search(last_name(owner)))


def swallows_cancellation(
    attempt: Attempt, handlers: Sequence[ast.ExceptHandler]
) -> bool:
    """Return whether a cancellation or Ctrl-C is retried."""
    return any(_swallows(attempt, each) for each in handlers)


def _swallows(attempt: Attempt, handler: ast.ExceptHandler) -> bool:
    caught = {*caught_by(handler)} & CANCELLATIONS
    # One that catches nothing else of them expects that what it calls exits.
    if caught <= {"SystemExit"} or _filters_errors(handler):
        return False
    before = attempt.handlers[: attempt.handlers.index(handler)]
    passed = {x for each in before if leaves(each.body) for x in caught_by(each)}
    return not (
        passed & CANCELLATIONS if "BaseException" in caught else caught <= passed
    )


def retried_errors(
    caught: Sequence[tuple[ast.ExceptHandler, Sequence[str]]],
    before: Sequence[ast.ExceptHandler],
    rest: Sequence[ast.stmt],
) -> tuple[str, ...] | None:
    """Return the names of the errors that are retried; None if they are not known.

    Args:
        caught: The handlers after which the loop continues, and what they catch.
        before: All handlers of the attempt.
        rest: The statements that follow the attempt in the loop.
    """
    broad = [each for each, names in caught if not _EVERYTHING.isdisjoint(names)]
    earlier = before[: before.index(broad[0])] if broad else []
    if _raises_some(earlier) or any(map(_filters_errors, earlier)):
        return None
    if any(
        _filters_errors(each, rest) or _passes_error_on(each) or _tests_state(each)
        for each in broad
    ):
        return None
    return tuple(dict.fromkeys(name for _, names in caught for name in names))


def retried_from(
    handler: ast.ExceptHandler, attempt: Attempt
) -> tuple[str, ...] | None:
    """Return the names of the errors after which a call in a handler retries.

    Returns:
        The names; None if they are not known.
    """
    caught = caught_by(handler)
    before = attempt.handlers[: attempt.handlers.index(handler)]
    if _EVERYTHING & {*caught} and (_raises_some(before) or _tests_error(handler)):
        return None
    return tuple(caught)


def _tests_error(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler tests the error, or something computed from it."""
    nodes = [*inner_nodes(handler.body)]
    derived = derived_names(handler)
    return any(
        isinstance(each, ast.If) and names_in(each.test) & derived for each in nodes
    )


def derived_names(
    handler: ast.ExceptHandler, rest: Sequence[ast.stmt] = ()
) -> set[str]:
    """Return the names of a handler's error and of what is computed from it.

    Args:
        handler: The handler.
        rest: Statements that follow it.
    """
    derived = {handler.name or "exc_info", "exc_info"}
    for each in inner_nodes([*handler.body, *rest]):
        if isinstance(each, ast.Assign) and names_in(each.value) & derived:
            derived |= {x for target in each.targets for x in names_in(target)}
    return derived


def _raises_some(handlers: Sequence[ast.ExceptHandler]) -> bool:
    """Return whether a handler ends the loop with an error, not only a cancellation.

    An error that is neither raised nor told may be a success: for example, what is to
    be deleted is not there.
    """
    return any(
        ("raise" in flow(each.body) or _tells_error(each))
        and leaves(each.body)
        and {*caught_by(each)} - CANCELLATIONS
        for each in handlers
    )


def _tells_error(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler logs, passes on or returns what tells of its error."""
    for each in inner_nodes(handler.body):
        match each:
            case ast.Call(func=function) if is_log_function(function):
                if last_name(function) in _OF_ERRORS:
                    return True
            case ast.Call():
                if handler.name in {y for x in _arguments(each) for y in names_in(x)}:
                    return True
    return any(
        isinstance(each, ast.Return) and isinstance(each.value, ast.Call)
        for each in handler.body
    )


def _filters_errors(handler: ast.ExceptHandler, rest: Sequence[ast.stmt] = ()) -> bool:
    """Return whether a test of the error decides how the loop goes on."""
    nodes = [*inner_nodes([*handler.body, *rest])]
    derived = derived_names(handler, rest)
    for each in nodes:
        if isinstance(each, ast.If) and names_in(each.test) & derived:
            if (flow(each.body) | flow(each.orelse)) - {"next"}:
                return True
            # Such as `retry = True`, which another test looks at.
            derived |= {
                x.id
                for node in inner_nodes([*each.body, *each.orelse])
                if isinstance(node, ast.Assign)
                for x in node.targets
                if isinstance(x, ast.Name)
            }
        elif isinstance(each, ast.Match) and names_in(each.subject) & derived:
            return True
    return False


def _tests_state(handler: ast.ExceptHandler) -> bool:
    """Return whether a state set elsewhere decides whether a handler ends the loop.

    For example, ``if not session.begun: continue`` before ``raise``. A counter is not
    such a state.
    """
    if not leaves(handler.body[-1:]):
        return False
    nodes = [*inner_nodes(handler.body)]
    own = {
        x
        for each in nodes
        if isinstance(each, ast.Assign | ast.AugAssign)
        for target in getattr(each, "targets", [getattr(each, "target", None)])
        for x in target_names(target)
        if not isinstance(getattr(each, "value", None), ast.Call)
    }
    tests = [
        each.test
        for each in nodes
        if isinstance(each, ast.If) and "continue" in flow(each.body)
    ]
    return bool(tests) and not any(
        isinstance(each, ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.Eq)
        or (isinstance(each, ast.Name | ast.Attribute) and _is_count(each, own))
        for test in tests
        for each in ast.walk(test)
    )


def _is_count(node: ast.Name | ast.Attribute, own: set[str]) -> bool:
    name = last_name(node)
    words = (COUNT_WORDS, CLOCK_WORDS, ENDLESS)
    return name in own or any(each.search(name) for each in words)


def _passes_error_on(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler calls a function that, by its name, judges the error."""
    for each in inner_nodes(handler.body):
        if isinstance(each, ast.Call) and handler.name:
            name = " ".join(names_in(each.func))
            used = {x for given in _arguments(each) for x in names_in(given)}
            decides = _DECIDES.search(name) and not _TELLS.search(name)
            if "reraise" in name or (handler.name in used and decides):
                return True
    return False


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def may_raise_elsewhere(handlers: Sequence[ast.ExceptHandler]) -> bool:
    """Return whether handlers make a call that, by the names in it, may raise."""
    return any(
        isinstance(each, ast.Call) and _may_raise(each, handler.name or "")
        for handler in handlers
        for each in inner_nodes(handler.body)
    )


def _may_raise(call: ast.Call, error: str) -> bool:
    name = " ".join(names_in(call.func))
    if "reraise" in name:
        return True
    last = last_name(call.func)
    if LOGS.search(name) and not (_RETRIES.match(last) or _ACTS.match(last)):
        return False
    used = {name for each in _arguments(call) for name in names_in(each)}
    limited = bool(_LIMIT_WORDS.search(" ".join(used)))
    if error in used:
        return limited or bool(_DECIDES.search(name))
    return limited and not _DELAYS.search(name)
