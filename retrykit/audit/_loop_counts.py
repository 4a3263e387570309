"""Numbers of iterations: what a loop iterates over, and steps towards its end."""

import ast
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from retrykit.audit._flow import inner_nodes
from retrykit.audit._loop_words import Statement, names_in, target_names
from retrykit.audit._values import (
    UNKNOWN,
    Operation,
    Scope,
    Value,
    evaluate,
    is_number,
    truth,
)

__all__ = ["attempts_of_iterator", "attempts_of_steps", "first_count"]

_STEPS: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
_MOST_TURNS = 1000


def attempts_of_iterator(node: ast.expr, scope: Scope) -> Value:
    """Return how many times a loop iterates over something."""
    match node:
        case ast.Call(func=func, args=args):
            name = (
                (names_in(func) or {""})
                if not isinstance(func, ast.Name)
                else {func.id}
            )
            if "range" in name and args:
                return _attempts_of_range([evaluate(x, scope) for x in args])
            if name & {"count", "cycle"} or ("repeat" in name and len(args) == 1):
                return math.inf
            if "chain" in name:
                parts = [attempts_of_iterator(each, scope) for each in args]
                return math.inf if math.inf in parts else UNKNOWN
            if (
                name & {"enumerate", "reversed", "iter", "list", "tqdm", "trange"}
                and args
            ):
                return attempts_of_iterator(args[0], scope)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return len(items)
    value = evaluate(node, scope)
    return len(value) if type(value) is tuple else UNKNOWN


def _attempts_of_range(values: Sequence[Value]) -> Value:
    if all(type(each) is int for each in values):
        ok = len(values) <= 3 and 0 not in values[2:]  # noqa: PLR2004  start, stop, step
        return len(range(*values)) if ok else UNKNOWN
    if len(values) == 1:
        return _largest_choice(values[0])
    start, stop, *step = values
    return UNKNOWN if step else Operation("-", stop, start)


def _largest_choice(value: Value) -> Value:
    """Return a value; for a choice such as ``3 if again else 1``, the larger number."""
    if type(value) is Operation and value.sign == "or":
        parts = [_largest_choice(value.left), _largest_choice(value.right)]
        numbers = [each for each in parts if each]
        return max(numbers) if all(map(is_number, numbers)) else value
    return value


def first_count(loop: Statement, scope: Scope) -> Value:
    """Return the first count of a ``for`` loop; UNKNOWN if it is not known."""
    match loop:
        case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[_])):
            return 0
        case ast.For(
            iter=ast.Call(func=ast.Name(id="range" | "count"), args=[first, *_])
        ):
            return evaluate(first, scope)
        case ast.For(iter=ast.Call(func=ast.Attribute(attr="count"), args=[first, *_])):
            return evaluate(first, scope)
        case ast.For(iter=ast.Call(func=func)) if "count" in names_in(func):
            return 0
    return UNKNOWN


def attempts_of_steps(
    loop: ast.While, scope: Scope, before: dict[str, ast.expr]
) -> Value:
    """Return the number of iterations until a step makes a condition false.

    For example, ``while left > 0`` with ``left -= 1``, or ``while delay < 60`` with
    ``delay *= 2``.

    Returns:
        The number; UNKNOWN if it cannot be computed, and infinity without such a step.
    """
    steps = [
        (name, _STEPS.get(type(op)), evaluate(by, scope))
        for name in names_in(loop.test)
        for each in inner_nodes(loop.body)
        for op, by in _steps_in(each, name)
    ]
    if len(steps) != 1:
        return UNKNOWN if steps else math.inf
    [(name, step, by)] = steps
    value = evaluate(before[name], scope) if name in before else UNKNOWN
    if step is None or not is_number(value) or not is_number(by):
        return UNKNOWN

    def find(node: ast.expr) -> Value:
        return evaluate(node, lambda x: value if x == name else scope(x))

    for turns in range(_MOST_TURNS):
        if truth(loop.test, find) is False:
            return turns or UNKNOWN
        value = step(value, by)
    return UNKNOWN


def _steps_in(node: ast.AST, name: str) -> Iterator[tuple[ast.operator, ast.expr]]:
    """Yield the operator and operand of ``name += 1`` or ``name = name + 1``."""
    match node:
        case ast.AugAssign(target=target, op=op, value=by) if target_names(target) == {
            name
        }:
            yield op, by
        case ast.Assign(
            targets=[ast.Name(id=to)],
            value=ast.BinOp(left=ast.Name(id=of), op=op, right=by),
        ) if to == of == name:
            yield op, by
