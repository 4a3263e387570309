"""Expressions of a program: their values, where they are known, and their texts.

A text refers to names of retrykit or of the standard library by tokens, such as
``__retrykit__.schedules.constant``; `retrykit.migrate._imports` replaces the tokens
with names of the file.
"""

import ast
import operator
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final

import libcst as cst
from libcst import matchers

from retrykit.migrate._findings import Untranslatable

__all__ = ["OURS", "STANDARD", "UNKNOWN", "call_predicate", "call_text"]
__all__ += ["check_depth", "code"]
__all__ += ["divided", "ignores_argument", "is_literal", "lambda_of", "literal"]
__all__ += ["names_in", "negated", "number_text", "operand", "parse", "rename", "shown"]

OURS: Final = "__retrykit__"
"""The token of the package retrykit in a text."""

STANDARD: Final = "__standard__"
"""The token of the standard library in a text."""

_OUR_TOKENS: Final = re.compile(rf"{OURS}\.((?:\w+\.)*\w+)")
_MODULES: Final = re.compile(r"(?:\w+\.)+")

_MODULE: Final = cst.Module([])


def code(node: cst.CSTNode) -> str:
    """Return the source text of a node, without blanks at its ends."""
    return _MODULE.code_for_node(node).strip()


def parse(text: str) -> cst.BaseExpression:
    """Parse an expression, whose text may have several lines."""
    if "\n" not in text:
        return cst.parse_expression(text)
    node = cst.parse_expression(f"(\n{text}\n)")
    return node.with_changes(lpar=node.lpar[1:], rpar=node.rpar[:-1])


def shown(text: str, names: Mapping[str, str] | None = None) -> str:
    """Return a text as it will be in the file, with names in place of tokens.

    >>> shown("__retrykit__.schedules.constant(1)")
    'constant(1)'
    >>> shown("__retrykit__.retry", {"retry": "retrykit_retry"})
    'retrykit_retry'

    Args:
        text: The text.
        names: The file's names for names of retrykit; any other name of retrykit is
            shown without its module.
    """

    def name(found: re.Match[str]) -> str:
        full = found[1]
        return (names or {}).get(full) or _MODULES.sub("", full)

    return _OUR_TOKENS.sub(name, text).replace(f"{STANDARD}.", "")


_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}

_DEEPEST: Final = 300


def check_depth(text: str) -> None:
    """Raise an error if LibCST cannot read a program.

    Raises:
        SyntaxError: The program is not Python.
        RecursionError: The program is too deeply nested; LibCST would end the process.
    """
    try:
        with warnings.catch_warnings():
            # Warnings about escapes in texts, which stay as they are.
            warnings.simplefilter("ignore")
            level: list[ast.AST] = [ast.parse(text)]
    except ValueError as error:
        raise SyntaxError(str(error)) from error
    except MemoryError as error:
        raise RecursionError from error
    for _ in range(_DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    raise RecursionError


UNKNOWN: Final = object()
"""Stands for a value that is known only at run time."""


def literal(node: cst.BaseExpression | None, default: Any = UNKNOWN) -> Any:
    """Return the value of a literal, or of arithmetic on numbers; else *default*.

    >>> literal(parse("2 * 60")), literal(parse("limit"), None)
    (120, None)
    """
    if node is None:
        return default
    try:
        return _evaluate(ast.parse(code(node), mode="eval").body)
    except (ValueError, SyntaxError, ArithmeticError, TypeError, MemoryError):
        return default


def _evaluate(node: ast.expr) -> Any:
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _evaluate(node.left), _evaluate(node.right)
        if {type(left), type(right)} <= {int, float}:
            return _OPERATORS[type(node.op)](left, right)
    return ast.literal_eval(node)


def is_literal(node: cst.BaseExpression | None) -> bool:
    """Return whether the value of an expression is known."""
    return node is not None and literal(node) is not UNKNOWN


def number_text(value: float) -> str:
    """Return a number as source text, whole numbers without a fraction.

    >>> number_text(2.0), number_text(0.25)
    ('2', '0.25')
    """
    return repr(int(value)) if value == int(value) else repr(value)


_ATOMS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.Float)


def operand(node: cst.BaseExpression) -> str:
    """Return the text of an expression as the operand of an operator."""
    text = code(node)
    return text if isinstance(node, _ATOMS) or node.lpar else f"({text})"


def divided(node: cst.BaseExpression, by: int) -> str:
    """Return the text of a quotient, computed if the number is known.

    >>> divided(parse("1500"), 1000), divided(parse("settings.WAIT"), 1000)
    ('1.5', 'settings.WAIT / 1000')
    """
    value = literal(node)
    if type(value) in {int, float}:
        return number_text(value / by)
    return f"{operand(node)} / {by}"


def call_text(function: str, *positional: str, **named: str | None) -> str:
    """Return the text of a call; named arguments that are None are left out.

    >>> call_text("exponential", "1", factor="3", first=None)
    'exponential(1, factor=3)'
    """
    parts = [*positional]
    parts += [f"{name}={value}" for name, value in named.items() if value is not None]
    return f"{function}({', '.join(parts)})"


# ---- Functions of one argument


def lambda_of(node: cst.BaseExpression) -> tuple[str, cst.BaseExpression] | None:
    """Return the parameter and the body of a lambda with one parameter; else None."""
    if not isinstance(node, cst.Lambda):
        return None
    parameters = node.params
    every = [*parameters.posonly_params, *parameters.params]
    others = parameters.kwonly_params or parameters.star_kwarg
    starred = isinstance(parameters.star_arg, cst.Param)
    if len(every) != 1 or others or starred or every[0].default is not None:
        return None
    return every[0].name.value, node.body


def names_in(node: cst.CSTNode) -> set[str]:
    """Return all names in a node, including attributes and parameters."""
    found = matchers.findall(node, matchers.Name())
    return {each.value for each in found if isinstance(each, cst.Name)}


def rename(node: cst.BaseExpression, old: str, new: str) -> cst.BaseExpression:
    """Return an expression with a variable replaced by the text *new*.

    Raises:
        Untranslatable: An inner function has a parameter with the old or new name.
    """

    class Renaming(cst.CSTTransformer):
        def __init__(self) -> None:
            super().__init__()
            self.kept: list[cst.Name] = []

        def visit_Attribute(self, node: cst.Attribute) -> None:
            self.kept.append(node.attr)

        def visit_Arg(self, node: cst.Arg) -> None:
            self.kept += [node.keyword] if node.keyword else []

        def visit_Param(self, node: cst.Param) -> None:
            if node.name.value in {old, new}:
                raise Untranslatable("a function in it shadows a name")

        def leave_Name(
            self, original_node: cst.Name, updated_node: cst.Name
        ) -> cst.BaseExpression:
            kept = any(each is original_node for each in self.kept)
            return updated_node if kept or original_node.value != old else parse(new)

    renamed = node.visit(Renaming())
    if not isinstance(renamed, cst.BaseExpression):
        raise TypeError(type(renamed))
    return renamed


def call_predicate(function: cst.BaseExpression, argument: str) -> str:
    """Return the text of a call with one argument; for a lambda, its body.

    >>> call_predicate(parse("lambda x: x > 2"), "error")
    'error > 2'
    >>> call_predicate(parse("is_busy"), "error")
    'is_busy(error)'
    """
    parts = lambda_of(function)
    if parts is None:
        return f"{operand(function)}({argument})"
    name, body = parts
    return code(body if name == argument else rename(body, name, argument))


def negated(text: str) -> str:
    """Return the text of the negation of an expression.

    >>> negated("f(x)"), negated("x > 2 or y")
    ('not f(x)', 'not (x > 2 or y)')
    """
    node = parse(text)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        return code(node.expression)
    simple = isinstance(node, (*_ATOMS, cst.Comparison)) or bool(node.lpar)
    return f"not {text}" if simple else f"not ({text})"


def ignores_argument(node: cst.BaseExpression | cst.FunctionDef | None) -> bool:
    """Return whether a node is a function that ignores its only argument."""
    if isinstance(node, cst.FunctionDef):
        every = [*node.params.posonly_params, *node.params.params]
        return len(every) == 1 and every[0].name.value not in names_in(node.body)
    parts = None if node is None else lambda_of(node)
    return parts is not None and parts[0] not in names_in(parts[1])
