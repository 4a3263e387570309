"""Blocks of statements: the ways in which they end, and the nodes in them."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

__all__ = [
    "LEAVES",
    "child_nodes",
    "flow",
    "inner_nodes",
    "leaves",
    "node_fields",
    "walk",
    "without_await",
    "without_handlers",
]

Outcomes = frozenset[str]

_NEXT: Final = "next"
LEAVES: Final = frozenset(["break", "return", "raise"])
"""The ways to leave a loop."""

_EXITS = frozenset(["exit", "_exit", "abort", "exit_json", "fail", "skip", "quit"])
_EXITING = ("_and_exit", "fail_json", "fail_json_aws")
# Nodes whose inner nodes are left out, or that have none.
_DEFINITIONS = frozenset(
    [ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda]
)
_CLOSED = _DEFINITIONS | {ast.Name, ast.Constant}
_LOOPS = frozenset([ast.For, ast.AsyncFor, ast.While])
_HANDLERS = frozenset([ast.ExceptHandler])
_NONE = frozenset([ast.Name, ast.Constant])

# Fields without nodes, and with nodes that nobody looks for, such as operators.
_PLAIN = frozenset(
    """
    arg asname attr conversion ctx id is_async kind level module op ops simple
    type_comment
    """.split()  # noqa: SIM905  a list of words
)
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Constant: (),
    ast.Import: (),
    ast.ImportFrom: (),
}
# Nodes with lists that contain None, or strings.
_MIXED = frozenset([ast.arguments, ast.Dict, ast.Global, ast.MatchClass, ast.Nonlocal])


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
    return _inner_nodes(body, _CLOSED if loops else _CLOSED | _LOOPS)


def _inner_nodes(
    body: Sequence[ast.AST], closed: frozenset[type[ast.AST]]
) -> Iterator[ast.AST]:
    stack = [*reversed(body)]
    while stack:
        node = stack.pop()
        yield node
        if type(node) not in closed:
            stack += child_nodes(node)[::-1]


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all nodes within it, quicker than `ast.walk`.

    Operators, contexts and imported names are left out.
    """
    return _inner_nodes([node], _NONE)


def without_handlers(body: Sequence[ast.stmt]) -> list[ast.AST]:
    """Return the nodes of a block, without its handlers."""
    found = _inner_nodes(body, _CLOSED | _HANDLERS)
    return [each for each in found if type(each) is not ast.ExceptHandler]


def without_await(node: ast.expr) -> ast.expr:
    """Return what an expression awaits; any other expression itself."""
    return node.value if isinstance(node, ast.Await) else node


def child_nodes(node: ast.AST) -> list[ast.AST]:
    """Return the child nodes of a node.

    Quicker than `ast.iter_child_nodes`: operators, contexts and imported names are left
    out.
    """
    kind = type(node)
    found: list[Any] = []
    for name in node_fields(kind):
        part = getattr(node, name, None)
        if type(part) is list:
            found += part
        elif isinstance(part, ast.AST):
            found.append(part)
    if kind in _MIXED:
        return [each for each in found if isinstance(each, ast.AST)]
    return found


def node_fields(kind: type[ast.AST]) -> tuple[str, ...]:
    """Return the fields of a kind of node that may contain child nodes."""
    fields = _FIELDS.get(kind)
    if fields is None:
        fields = tuple([each for each in kind._fields if each not in _PLAIN])
        _FIELDS[kind] = fields
    return fields


def _outcomes_of(node: ast.stmt) -> Outcomes:  # noqa: C901, PLR0911  a case each
    match node:
        case ast.Return():
            return frozenset(["return"])
        case ast.Raise() | ast.Assert(test=ast.Constant(value=False | 0)):
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
            ends = name in _EXITS or name.endswith(_EXITING)
            return frozenset(["raise" if ends else _NEXT])
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
