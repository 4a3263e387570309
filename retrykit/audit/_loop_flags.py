"""Flags that let a loop retry only once."""

import ast
import math
from collections.abc import Sequence
from copy import copy

from retrykit.audit._flow import flow, inner_nodes, leaves
from retrykit.audit._loop_words import Statement, counters, names_in, target_names
from retrykit.audit._values import UNKNOWN, Value

__all__ = ["limit_of_flags", "turns_of_flag"]


def limit_of_flags(loop: Statement, handlers: Sequence[ast.ExceptHandler]) -> Value:
    """Return the most attempts of a loop in which flags let each handler continue once.

    For example, ``if renewed: raise`` before ``renewed = True``.

    Returns:
        The most attempts; infinity if a handler can continue without a flag; UNKNOWN if
        the loop also resets a flag.
    """
    turns = [turns_of_flag(loop, each) for each in handlers]
    if math.inf in turns:
        return math.inf
    return UNKNOWN if UNKNOWN in turns else 1 + len(turns)


def turns_of_flag(loop: Statement, handler: ast.ExceptHandler) -> Value:
    """Return how often a flag lets a handler continue.

    Returns:
        1 if the loop only ever sets the flag to one value, else UNKNOWN; infinity if
        the handler can continue without a flag.
    """
    asked: set[str] = set()
    for each in inner_nodes(handler.body, loops=False):
        if isinstance(each, ast.If) and (
            leaves(each.body)
            or leaves(each.orelse)
            or leaves(handler.body[-1:])
            or "continue" in flow(each.body)
        ):
            asked |= names_in(each.test)
    flags = asked & _assigned_flags(handler.body).keys()
    if not flags:
        first = _without_counted(handler.body, counters(loop))
        return math.inf if _continues(first, loop, handler) else 1
    if _continues(_with_breaks(handler.body, flags), loop, handler):
        # In another way, which sets no flag.
        return math.inf
    everywhere = _assigned_flags(loop.body)
    return 1 if any(len(everywhere[each]) == 1 for each in flags) else UNKNOWN


def _continues(
    body: Sequence[ast.stmt], loop: Statement, handler: ast.ExceptHandler
) -> bool:
    """Return whether a loop continues after the statements of a handler."""
    outcomes = flow(body)
    if "next" not in outcomes:
        return "continue" in outcomes
    last = loop.body[-1]
    ends = leaves([last]) and handler not in ast.walk(last)
    return "continue" in outcomes or not ends


def _without_counted(body: Sequence[ast.stmt], counted: set[str]) -> list[ast.stmt]:
    """Return statements without those that run in one turn, as in ``if n == 1``."""
    found: list[ast.stmt] = []
    for each in body:
        if isinstance(each, ast.If):
            if _is_turn(each.test, counted):
                found += each.orelse
                continue
            new = copy(each)
            new.body = _without_counted(each.body, counted)
            new.orelse = _without_counted(each.orelse, counted)
            each = new  # noqa: PLW2901  a copy
        found.append(each)
    return found


def _is_turn(test: ast.expr, counted: set[str]) -> bool:
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            return any(_is_turn(each, counted) for each in values)
        case ast.Compare(
            left=ast.Name(id=name), ops=[ast.Eq()], comparators=[ast.Constant()]
        ):
            return name in counted
    return False


def _with_breaks(body: Sequence[ast.stmt], flags: set[str]) -> list[ast.stmt]:
    """Return a copy of statements with ``break`` in place of each that sets a flag."""
    found: list[ast.stmt] = []
    for each in body:
        new = each
        if isinstance(each, ast.Assign) and flags & set().union(
            *map(target_names, each.targets)
        ):
            new = ast.Break()
        elif isinstance(each, ast.If):
            new = copy(each)
            new.body = _with_breaks(each.body, flags)
            new.orelse = _with_breaks(each.orelse, flags)
        found.append(new)
    return found


def _assigned_flags(body: Sequence[ast.stmt]) -> dict[str, set[bool]]:
    """Return the names that True or False is assigned to, with the assigned values."""
    found: dict[str, set[bool]] = {}
    for each in inner_nodes(body):
        match each:
            case ast.Assign(targets=[target], value=ast.Constant(value=bool(value))):
                for name in target_names(target):
                    found.setdefault(name, set()).add(value)
    return found
