"""Functions of other modules that the loops of a module call."""

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from retrykit.audit._flow import flow, without_await
from retrykit.audit._values import Call, Operation, Reference, Value

__all__ = ["NOT_BORROWED", "Borrowed", "FunctionNode", "called_name", "functions_in"]
__all__ += ["RaisingCalls", "always_raises", "may_contain_delays"]

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
"""The definition of a function."""


class Borrowed(NamedTuple):
    """Functions of other modules that loops need.

    Attributes:
        called: The functions that loops call, keyed by the last part of their names.
        others: All functions of the same modules, which the called ones may call.
    """

    called: Mapping[str, FunctionNode]
    others: Sequence[FunctionNode]


_DELAYS = re.compile("sleep|wait|random|uniform|delay|pause|back_?off", re.IGNORECASE)

# Most statements that contain no others.
_SIMPLE = frozenset(
    [ast.AnnAssign, ast.Assign, ast.AugAssign, ast.Expr, ast.Raise, ast.Return]
)

# The last statement of a function that always raises.
_ENDS = (ast.Raise, ast.If, ast.Try, ast.With, ast.AsyncWith, ast.While)

NOT_BORROWED: Final = Borrowed({}, ())
"""No functions of other modules."""


def functions_in(tree: ast.Module) -> list[FunctionNode]:
    """Return all functions of a module, including methods and inner functions."""
    found: list[FunctionNode] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(each)
        if type(each) in _SIMPLE:
            continue
        # Only statements contain functions that have a name.
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(each, name, ())
    return found


def may_contain_delays(function: FunctionNode) -> bool:
    """Return whether a function has a binary operator, or a name such as ``sleep``."""
    return any(
        isinstance(each, ast.BinOp)
        or (isinstance(each, ast.Name) and _DELAYS.search(each.id))
        or (isinstance(each, ast.Attribute) and _DELAYS.search(each.attr))
        for each in ast.walk(function)
    )


def always_raises(function: FunctionNode) -> bool:
    """Return whether a function always raises an error, and is not abstract."""
    last = function.body[-1]
    if not isinstance(last, _ENDS) and flow([last]) != {"raise"}:
        return False
    return flow(function.body) == {"raise"} and not any(
        isinstance(each, ast.Name) and each.id == "NotImplementedError"
        for each in ast.walk(function)
    )


class RaisingCalls(ast.NodeTransformer):
    """Inserts a ``raise`` after each call of a function that always raises.

    Args:
        own: The functions of the module.
        borrowed: Functions of other modules that its loops call.

    Attributes:
        names: The names of the functions that always raise.
    """

    def __init__(self, own: Sequence[FunctionNode], borrowed: Borrowed) -> None:
        self._others = {x for x, y in borrowed.called.items() if always_raises(y)}
        self._others -= {each.name for each in own}
        raising = {True: set[str](), False: set[str]()}
        for each in own:
            raising[always_raises(each)].add(each.name)
        self.names = raising[True] - raising[False] | self._others
        self._done: set[int] = set()

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.AST]:
        """Insert a ``raise`` after a statement that calls such a function."""
        call = without_await(node.value)
        if id(node) in self._done or not self._raises(call):
            return node
        self._done.add(id(node))
        return [node, ast.copy_location(ast.Raise(), node)]

    def _raises(self, call: ast.expr) -> bool:
        match call:
            case ast.Call(
                func=ast.Name(id=name)
                | ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name)
            ):
                return name in self.names
            case ast.Call(func=ast.Attribute(attr=name)):
                return name in self._others
        return False


def called_name(value: Value) -> str:
    """Return the full name of a function, or of a method of ``Class()``, else ""."""
    if type(value) is Reference:
        return value.name
    if type(value) is Operation and value.sign == "." and type(value.left) is Call:
        owner = value.left.function
        return f"{owner.name}.{value.right}" if type(owner) is Reference else ""
    return ""
