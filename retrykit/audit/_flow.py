"""Blocks of statements: the ways in which they end, and the nodes in them."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

__all__ = ["LEAVES", "child_nodes", "flow", "inner_nodes", "leaves", "without_handlers"]

Outcomes = frozenset[str]

_NEXT: Final = "next"
LEAVES: Final = frozenset(["break", "return", "raise"])
"""The ways to leave a loop."""

_EXITS = frozenset(["exit", "_exit", "abort", "fail", "skip", "quit"])
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


# Fields without nodes, and the context of a name, which nobody asks for.
_PLAIN = frozenset(["arg", "attr", "ctx", "id", "kind", "level", "type_comment"])
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {ast.Constant: ()}


def flow(body: Iterable[ast.stmt]) -> Outcomes:
    """Return how a block may end.

    Returns:
        Some of "next" (what follows the block runs), "continue" and "break" of the loop
        around it, "return" and "raise". Of called functions, only those with names such
        as ``exit`` and ``abort`` count as raising an error.
    """
    found: set[str] = set()
    for each in body:
        outcomes = _outcomes_of(each)
        found |= outcomes - {_NEXT}
        if _NEXT not in outcomes:
            return frozenset(found)
    return frozenset(found | {_NEXT})


def leaves(body: Iterable[ast.stmt]) -> bool:
    """Return whether a block always leaves the loop around it."""
    return flow(body) <= LEAVES


def inner_nodes(body: Sequence[ast.AST], *, loops: bool = True) -> Iterator[ast.AST]:
    """Yield all nodes of a block, without the contents of its functions and classes.

    Args:
        body: Statements or expressions.
        loops: Whether to include the nodes within loops.
    """
    stack = [*reversed(body)]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, _DEFINITIONS) or (not loops and isinstance(node, _LOOPS)):
            continue
        stack += reversed(child_nodes(node))


def without_handlers(body: Sequence[ast.stmt]) -> list[ast.AST]:
    """Return the nodes of a block, without its handlers."""
    handled = {
        id(x)
        for each in inner_nodes(body)
        if isinstance(each, ast.ExceptHandler)
        for x in ast.walk(each)
    }
    return [each for each in inner_nodes(body) if id(each) not in handled]


def child_nodes(node: ast.AST) -> list[ast.AST]:
    """Return the child nodes except contexts; quicker than `ast.iter_child_nodes`."""
    kind = type(node)
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(x for x in kind._fields if x not in _PLAIN)
    found: list[ast.AST] = []
    for name in _FIELDS[kind]:
        part = getattr(node, name, None)
        if type(part) is list:
            found += [each for each in part if isinstance(each, ast.AST)]
        elif isinstance(part, ast.AST):
            found.append(part)
    return found


def _outcomes_of(node: ast.stmt) -> Outcomes:  # noqa: C901, PLR0911  a case each
    match node:
        case ast.Return():
            return frozenset(["return"])
        case ast.Raise():
            return frozenset(["raise"])
        case ast.Break():
            return frozenset(["break"])
        case ast.Continue():
            return frozenset(["continue"])
        case ast.If(body=body, orelse=orelse):
            return flow(body) | flow(orelse)
        case ast.With(body=body) | ast.AsyncWith(body=body):
            return flow(body)
        case ast.Try() | ast.TryStar():
            return _outcomes_of_try(node)
        case ast.For() | ast.AsyncFor() | ast.While():
            return _outcomes_of_loop(node)
        case ast.Match(cases=cases):
            found = [flow(each.body) for each in cases]
            return frozenset().union(*found, [_NEXT])
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name))
        ):
            return frozenset(["raise" if name in _EXITS else _NEXT])
    return frozenset([_NEXT])


def _outcomes_of_try(node: ast.Try | ast.TryStar) -> Outcomes:
    found = flow([*node.body, *node.orelse])
    for each in node.handlers:
        found |= flow(each.body)
    last = flow(node.finalbody)
    if _NEXT not in last:
        return last
    return found | (last - {_NEXT})


def _outcomes_of_loop(node: ast.For | ast.AsyncFor | ast.While) -> Outcomes:
    inner = flow(node.body)
    endless = isinstance(node, ast.While) and _is_true(node.test)
    after = flow(node.orelse)
    found = inner & {"return", "raise"}
    if "break" in inner or not endless:
        found |= after | {_NEXT}
    return found


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and bool(node.value)
