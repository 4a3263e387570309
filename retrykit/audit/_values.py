"""Values of expressions, as far as they can be read from source code.

A value is a Python literal (a number, a string, None, a tuple of values), or an
instance of a class in this module. It can be pickled, and no code was executed to get
it.
"""

import ast
import math
import operator
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

__all__ = ["UNKNOWN", "Call", "Dictionary", "Function", "Operation", "Reference"]
__all__ += ["Scope", "Value", "bounded", "evaluate", "is_number", "part_of"]
__all__ += ["refer_to", "replace", "truth"]


class _Unknown:
    """A value that exists, but cannot be read."""

    def __repr__(self) -> str:
        return "?"

    def __reduce__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()
"""A value that exists and cannot be read from the source code."""


class Reference(NamedTuple):
    """A full name, such as ``tenacity.retry``, in place of what it refers to."""

    name: str

    def __reduce__(self) -> tuple[Callable[[str], "Reference"], tuple[str]]:
        # So that a name that many modules use is one object, whichever process read it.
        return refer_to, (self.name,)

    @property
    def library(self) -> str:
        """The top package of the name."""
        return self.name.partition(".")[0]

    @property
    def last(self) -> str:
        """The last part of the name."""
        return self.name.rpartition(".")[2]


@lru_cache(maxsize=200_000)
def refer_to(name: str) -> Reference:
    """Return the reference to a name."""
    return Reference(name)


class Call(NamedTuple):
    """A call that has not been made.

    Attributes:
        function: What is called.
        positional: The positional arguments; UNKNOWN stands for one that is not known,
            or for ``*arguments``.
        named: The names and values of keyword arguments; the name of ``**dictionary``
            is empty.
    """

    function: "Value"
    positional: tuple["Value", ...] = ()
    named: tuple[tuple[str, "Value"], ...] = ()


class Operation(NamedTuple):
    """An operation whose result is not known.

    Attributes:
        sign: The operator; "." for an attribute, and "or" for either of two values.
        left: The left operand, or the object.
        right: The right operand, or the name of the attribute.
    """

    sign: str
    left: "Value"
    right: "Value"


class Dictionary(NamedTuple):
    """A dictionary; the key of ``**other`` is UNKNOWN."""

    items: tuple[tuple["Value", "Value"], ...]


class Function(NamedTuple):
    """A lambda expression, with the names and strings that are used in it."""

    names: frozenset[str]


Value = Any
"""A literal, or a value of one of the classes above."""

Scope = Callable[[str], Value]
"""Returns the value of a name."""

_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Pow: "**",
    ast.BitOr: "|",
    ast.BitAnd: "&",
}

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "**": operator.pow,
}

_MOST_BITS = 1000
"""Integers with more bits are unknown: they could not be converted to floats."""

_MOST_PARTS = 2000
"""Values with more parts are unknown: with each name, their size could double."""

_DEPTH = 40
"""Expressions nested more deeply are not read."""


def is_number(value: Value) -> bool:
    """Return whether a value is an integer or a float."""
    return type(value) in (int, float)


def evaluate(node: ast.expr | None, scope: Scope, depth: int = 0) -> Value:
    """Return the value of an expression, without executing anything.

    Args:
        node: The expression; without one, the value is None.
        scope: Returns the value of a name.
        depth: How deeply the expression is nested in another one.
    """
    if node is None:
        return None
    reader = _READERS.get(type(node))
    if reader is None or depth > _DEPTH:
        return UNKNOWN
    return reader(node, scope, depth + 1)


_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Is: operator.eq,
    ast.IsNot: operator.ne,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def truth(node: ast.expr, find: Callable[[ast.expr], Value]) -> bool | None:
    """Return whether a condition is true; None if that is not known.

    Args:
        node: The condition.
        find: Returns the value of an expression in it.
    """
    match node:
        case ast.BoolOp(op=op, values=values):
            parts = {truth(each, find) for each in values}
            ends = isinstance(op, ast.Or)
            return ends if ends in parts else None if None in parts else not ends
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            found = truth(operand, find)
            return None if found is None else not found
        case ast.Compare(left=left, ops=ops, comparators=others):
            values = [find(each) for each in (left, *others)]
            return _compare(ops, values)
    value = find(node)
    return bool(value) if _is_plain(value) else None


def _compare(ops: list[ast.cmpop], values: list[Value]) -> bool | None:
    """Return the result of a comparison; None if it is not known."""
    found: set[bool | None] = set()
    for op, left, right in zip(ops, values, values[1:], strict=False):
        compare = _COMPARED.get(type(op))
        if compare is None or not (_is_plain(left) and _is_plain(right)):
            found.add(None)
            continue
        try:
            found.add(compare(left, right))
        except TypeError:
            found.add(None)
    return False if False in found else None if None in found else True


def _is_plain(value: Value) -> bool:
    return value is None or type(value) in (bool, int, float, str)


def bounded(value: Value) -> Value:
    """Return a value, or UNKNOWN if it has too many parts."""
    waiting, count = [value], 0
    while waiting:
        each = waiting.pop()
        count += 1
        if count > _MOST_PARTS:
            return UNKNOWN
        if isinstance(each, tuple):
            # All classes of values are also tuples.
            waiting += each
    return value


def part_of(value: Value, name: str) -> Value:
    """Return the value of an object's attribute."""
    if type(value) is Reference:
        return refer_to(f"{value.name}.{name}")
    if type(value) is Call:
        # Such as a method of an object that is made where it is used.
        return Operation(".", value, name)
    return Operation(".", value, name) if type(value) is Operation else UNKNOWN


def replace(value: Value, find: Callable[[Reference], Value]) -> Value:
    """Return a value whose references are replaced by what they refer to.

    Args:
        value: Any value.
        find: Returns the value of a reference, or the reference itself.
    """
    kind = type(value)
    if kind is Reference:
        return find(value)
    if kind is Call:
        named = ((name, replace(each, find)) for name, each in value.named)
        positional = (replace(each, find) for each in value.positional)
        function = replace(value.function, find)
        return Call(function, tuple(positional), tuple(named))
    if kind is Operation:
        left, right = replace(value.left, find), replace(value.right, find)
        return (
            part_of(left, right)
            if value.sign == "."
            else _operate(value.sign, left, right)
        )
    if kind is Dictionary:
        items = ((replace(k, find), replace(v, find)) for k, v in value.items)
        return Dictionary(tuple(items))
    if kind is tuple:
        return tuple(replace(each, find) for each in value)
    return value


def _constant(node: Any, scope: Scope, depth: int) -> Value:  # noqa: ARG001  as all
    value = node.value
    if type(value) is int and value.bit_length() > _MOST_BITS:
        return UNKNOWN
    if type(value) is float and not math.isfinite(value):
        return UNKNOWN
    return UNKNOWN if value is Ellipsis else value


def _name(node: Any, scope: Scope, depth: int) -> Value:  # noqa: ARG001  as all
    return scope(node.id)


def _attribute(node: Any, scope: Scope, depth: int) -> Value:
    return part_of(evaluate(node.value, scope, depth), node.attr)


def _several(node: Any, scope: Scope, depth: int) -> Value:
    return tuple([evaluate(each, scope, depth) for each in node.elts])


def _starred(node: Any, scope: Scope, depth: int) -> Value:  # noqa: ARG001  as all
    return UNKNOWN


def _dictionary(node: Any, scope: Scope, depth: int) -> Value:
    return Dictionary(
        tuple(
            (UNKNOWN if key is None else evaluate(key, scope, depth), value)
            for key, item in zip(node.keys, node.values, strict=True)
            for value in [evaluate(item, scope, depth)]
        )
    )


_DICT = refer_to("dict")


def _call(node: Any, scope: Scope, depth: int) -> Value:
    function = evaluate(node.func, scope, depth)
    positional = tuple([evaluate(each, scope, depth) for each in node.args])
    named = tuple(
        [(each.arg or "", evaluate(each.value, scope, depth)) for each in node.keywords]
    )
    if function == _DICT and not positional:
        return Dictionary(tuple((name or UNKNOWN, value) for name, value in named))
    return Call(function, positional, named)


def _operation(node: Any, scope: Scope, depth: int) -> Value:
    left, right = (evaluate(x, scope, depth) for x in (node.left, node.right))
    return _operate(_SIGNS.get(type(node.op), ""), left, right)


def _is_large(sign: str, left: float, right: float) -> bool:
    """Return whether the result of an operation on integers has too many bits."""
    if not isinstance(left, int) or not isinstance(right, int):
        return False
    bits = left.bit_length()
    if sign == "**":
        return bits * right > _MOST_BITS
    return sign == "*" and bits + right.bit_length() > _MOST_BITS


def _operate(sign: str, left: Value, right: Value) -> Value:
    compute = _OPERATIONS.get(sign)
    if compute is None:
        return Operation(sign, left, right) if sign else UNKNOWN
    if is_number(left) and is_number(right):
        if _is_large(sign, left, right):
            return UNKNOWN
        try:
            result = compute(left, right)
        except (ArithmeticError, TypeError, ValueError):
            return UNKNOWN
        # A power may be complex.
        return result if is_number(result) and math.isfinite(result) else UNKNOWN
    if type(left) is tuple and type(right) is tuple and sign == "+":
        return left + right
    return Operation(sign, left, right)


def _unary(node: Any, scope: Scope, depth: int) -> Value:
    value = evaluate(node.operand, scope, depth)
    if isinstance(node.op, ast.USub) and is_number(value):
        return -value
    if isinstance(node.op, ast.Not) and isinstance(value, bool):
        return not value
    return UNKNOWN


def _choice(node: Any, scope: Scope, depth: int) -> Value:
    return Operation(
        "or", evaluate(node.body, scope, depth), evaluate(node.orelse, scope, depth)
    )


def _either(node: Any, scope: Scope, depth: int) -> Value:
    first, *_, last = (evaluate(each, scope, depth) for each in node.values)
    return Operation("or", first, last)


def _function(node: Any, scope: Scope, depth: int) -> Value:  # noqa: ARG001  as all
    return Function(frozenset(_words(node.body)))


def _words(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        match each:
            case ast.Name(id=word) | ast.Attribute(attr=word):
                yield word
            case ast.Constant(value=str(word)):
                yield word


def _awaited(node: Any, scope: Scope, depth: int) -> Value:
    return evaluate(node.value, scope, depth)


_READERS: dict[type[ast.expr], Callable[[Any, Scope, int], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Tuple: _several,
    ast.List: _several,
    ast.Set: _several,
    ast.Starred: _starred,
    ast.Dict: _dictionary,
    ast.Call: _call,
    ast.BinOp: _operation,
    ast.UnaryOp: _unary,
    ast.IfExp: _choice,
    ast.BoolOp: _either,
    ast.Lambda: _function,
    ast.Await: _awaited,
}
