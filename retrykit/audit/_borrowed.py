"""Functions of other modules that the loops of a module call."""

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from retrykit.audit._values import Call, Operation, Reference, Value

__all__ = ["NOT_BORROWED", "Borrowed", "FunctionNode", "called_name", "functions_in"]
__all__ += ["may_contain_delays"]

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

NOT_BORROWED: Final = Borrowed({}, ())
"""No functions of other modules."""


def functions_in(tree: ast.Module) -> list[FunctionNode]:
    """Return all functions of a module, including methods and inner functions."""
    return [
        each
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def may_contain_delays(function: FunctionNode) -> bool:
    """Return whether a function has a binary operator, or a name such as ``sleep``."""
    return any(
        isinstance(each, ast.BinOp)
        or (isinstance(each, ast.Name) and _DELAYS.search(each.id))
        or (isinstance(each, ast.Attribute) and _DELAYS.search(each.attr))
        for each in ast.walk(function)
    )


def called_name(value: Value) -> str:
    """Return the full name of a function, or of a method of ``Class()``, else ""."""
    if type(value) is Reference:
        return value.name
    if type(value) is Operation and value.sign == "." and type(value.left) is Call:
        owner = value.left.function
        return f"{owner.name}.{value.right}" if type(owner) is Reference else ""
    return ""
