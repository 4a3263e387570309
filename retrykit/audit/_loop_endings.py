"""The fate of the last error of a loop that retries."""

import ast
import re
from collections.abc import Iterable, Sequence
from functools import partial
from types import NoneType

from retrykit.audit._flow import flow, inner_nodes
from retrykit.audit._handlers import LOGS
from retrykit.audit._loop_limits import (
    CLOCK_WORDS,
    COUNT_WORDS,
    Statement,
    counters,
    names_in,
)

__all__ = ["find_ending"]


def find_ending(
    loop: Statement,
    handlers: Sequence[ast.ExceptHandler],
    following: Sequence[ast.stmt],
) -> str:
    """Return what happens to the last error: "raises", "hidden" or "?"."""
    named = {each.name for each in handlers if each.name}
    kept = _copies_of(named, loop)
    after = [*loop.orelse, *following]
    if any(_ends_with_error(each, named | kept, loop) for each in handlers):
        return "raises"
    raised = _raised(loop, handlers, after, kept)
    if "raises" in raised or any(map(partial(_returns, kept), after)):
        return "raises"
    if "?" in raised or _uses([x for x in after if not _only_logs([x])], kept):
        return "?"
    if raised:
        return "hidden"
    return _of_silence(loop, handlers, after)


def _raised(
    loop: Statement,
    handlers: Sequence[ast.ExceptHandler],
    after: Sequence[ast.stmt],
    kept: set[str],
) -> set[str]:
    """Return what the ``raise`` statements do that are in no handler."""
    # What an attempt raises is caught, or is another failure.
    attempts = [
        each
        for each in inner_nodes(loop.body)
        if isinstance(each, ast.Try | ast.TryStar)
        and any(x in handlers for x in each.handlers)
    ]
    inside = {
        id(x)
        for each in [*handlers, *(y for each in attempts for y in each.body)]
        for x in ast.walk(each)
    }
    return {
        _of_raise(each, kept)
        for each in [*inner_nodes(loop.body, loops=False), *inner_nodes(after)]
        if isinstance(each, ast.Raise) and id(each) not in inside
    }


def _of_silence(
    loop: Statement,
    handlers: Sequence[ast.ExceptHandler],
    after: Sequence[ast.stmt],
) -> str:
    """Return what a loop that raises nothing does with the last error."""
    if any({"return", "break"} & flow(each.body) for each in handlers):
        # Perhaps after the last attempt, and with something that tells.
        return "?" if _returns_something(handlers) else "hidden"
    if isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant):
        return "?"
    if not loop.orelse and _only_logs(after):
        return "hidden"
    if loop.orelse and _only_logs(
        x for x in loop.orelse if not isinstance(x, ast.Continue | ast.Pass)
    ):
        return "hidden"
    last = after[-1] if _only_logs(after[:-1]) else after[0]
    silent = isinstance(last, ast.Return) and _tells_nothing(last.value)
    return "hidden" if silent else "?"


def _tells_nothing(node: ast.expr | None) -> bool:
    """Return whether a value is None, a constant, empty, or not a number."""
    match node:
        case ast.UnaryOp(operand=node):
            return _tells_nothing(node)
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant()]):
            return True
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return all(map(_tells_nothing, items))
        case ast.Dict(keys=keys):
            return not keys
    return isinstance(node, ast.Constant | NoneType)


def _returns(names: set[str], node: ast.stmt) -> bool:
    return isinstance(node, ast.Return) and bool(names_in(node.value) & names)


def _ends_with_error(
    handler: ast.ExceptHandler, errors: set[str], loop: Statement
) -> bool:
    """Return whether a handler may raise, not only for errors of some kinds."""
    derived = {handler.name} if handler.name else set()
    for each in inner_nodes(handler.body):
        if isinstance(each, ast.Assign) and names_in(each.value) & derived:
            derived |= {x for target in each.targets for x in names_in(target)}
    counted = counters(loop)
    if not isinstance(loop, ast.While):
        counted |= names_in(loop.target)
    filtered = {
        id(node)
        for each in inner_nodes(handler.body, loops=False)
        if isinstance(each, ast.If)
        and _asks_which(names_in(each.test), derived, counted)
        for node in inner_nodes([*each.body, *each.orelse], loops=False)
        if not _is_last(each, counted)
    }
    for each in inner_nodes(handler.body, loops=False):
        if isinstance(each, ast.Raise) and id(each) not in filtered:
            return True
        if isinstance(each, ast.Return) and names_in(each.value) & errors:
            return True
        if isinstance(each, ast.Call) and re.search(
            "raise", " ".join(names_in(each.func))
        ):
            return True
    return False


def _asks_which(names: set[str], derived: set[str], counted: set[str]) -> bool:
    """Return whether a test is about the error alone, not about the attempt."""
    return bool(names & derived) and not any(
        each in counted or COUNT_WORDS.search(each) or CLOCK_WORDS.search(each)
        for each in names - derived
    )


def _is_last(node: ast.If, counted: set[str]) -> bool:
    """Return whether another test in a block is about the attempt."""
    return any(
        each in counted or COUNT_WORDS.search(each) or CLOCK_WORDS.search(each)
        for inner in inner_nodes([*node.body, *node.orelse], loops=False)
        if isinstance(inner, ast.If)
        for each in names_in(inner.test)
    )


def _of_raise(node: ast.Raise, kept: set[str]) -> str:
    """Return what a ``raise`` after the loop does with the last error."""
    if node.exc is None or names_in(node.cause) & kept:
        return "raises"
    if isinstance(node.exc, ast.Name | ast.Attribute | ast.Subscript):
        return "raises" if names_in(node.exc) & kept else "?"
    return "?" if names_in(node.exc) & kept else "hidden"


def _uses(body: Sequence[ast.stmt], names: set[str]) -> bool:
    return bool(names) and any(names_in(each) & names for each in body)


def _only_logs(body: Iterable[ast.stmt]) -> bool:
    return all(
        isinstance(each, ast.Expr)
        and isinstance(each.value, ast.Call)
        and any(LOGS.search(x) for x in names_in(each.value.func))
        for each in body
    )


def _returns_something(handlers: Sequence[ast.ExceptHandler]) -> bool:
    return any(
        isinstance(each, ast.Return) and not _tells_nothing(each.value)
        for handler in handlers
        for each in inner_nodes(handler.body)
    )


def _copies_of(names: set[str], loop: Statement) -> set[str]:
    """Return the variables in which errors are kept."""
    found = set()
    for each in inner_nodes(loop.body):
        match each:
            case ast.Assign(targets=[target], value=value) if names_in(value) & names:
                found |= names_in(target) - {"self"}
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=args
            ):
                if any(names_in(x) & names for x in args):
                    found.add(name)
    return found
