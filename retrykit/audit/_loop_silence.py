"""Silent endings: blocks and values that tell nothing of the last error."""

import ast
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import NoneType

from retrykit.audit._flow import flow, inner_nodes, leaves
from retrykit.audit._handlers import is_log_function, last_name
from retrykit.audit._loop_words import Statement, names_in, target_names

__all__ = [
    "assigned",
    "calls_anything",
    "ends_silently",
    "falls_silent",
    "is_class",
    "is_empty_or_constant",
    "only_logs",
]

_READ = (
    ast.Attribute,
    ast.BoolOp,
    ast.Compare,
    ast.Name,
    ast.Tuple,
    ast.UnaryOp,
)
_ERRORS = re.compile("error|exception", re.IGNORECASE)
_CLEANS = re.compile("_*(clean|clear|close|disconnect|release|reset|stop|unlink)")


def falls_silent(
    loop: Statement,
    handlers: Sequence[ast.ExceptHandler],
    after: Sequence[ast.stmt],
    before: Mapping[str, ast.expr],
) -> bool:
    """Return whether what follows the last failure of a loop tells nothing of it.

    Args:
        loop: The loop.
        handlers: The handlers after which it continues.
        after: The statements that follow it, with those in its ``else``.
        before: The expressions that were last assigned to names before it.
    """
    if loop.orelse and all(map(_is_quiet, loop.orelse)):
        return True
    changed = assigned(loop.body)
    telling = (changed - _empty_names(handlers, before)) | {"self"}
    telling |= _bad_results(loop)
    if isinstance(loop, ast.While):
        # Such as `while not found`, which continues after results as well.
        telling |= names_in(loop.test)
    return ends_silently(after, changed, telling)


def ends_silently(
    body: Sequence[ast.stmt],
    changed: Collection[str] = (),
    telling: Collection[str] | None = None,
) -> bool:
    """Return whether a block only logs or cleans up, and returns nothing that tells.

    Args:
        body: The block.
        changed: The variables that tell of a failure, if an ``if`` tests them.
        telling: The variables that may hold a result; None if any may.
    """
    for each in body:
        match each:
            case ast.Return(value=value):
                return _tells_nothing(value, telling)
            case ast.If(test=test, body=inner) if (
                names_in(test) & {*changed}
                and "next" not in flow(inner)
                and all(_is_quiet(x, telling) for x in inner)
            ):
                return True
        if not _is_quiet(each, telling):
            return False
    return True


def _is_quiet(node: ast.stmt, telling: Collection[str] | None = None) -> bool:
    """Return whether a statement only logs, cleans up, or gives nothing that tells."""
    match node:
        case ast.Assign(value=value) | ast.AugAssign(value=value):
            text = isinstance(value, ast.JoinedStr) or _is_text(value)
            return text or not calls_anything(value)
        case ast.Return(value=value):
            return _tells_nothing(value, telling)
        case ast.Expr(value=ast.Call(func=func) | ast.Await(value=ast.Call(func=func))):
            return is_log_function(func) or bool(_CLEANS.match(last_name(func)))
        case ast.If(body=body, orelse=orelse):
            return all(_is_quiet(each, telling) for each in [*body, *orelse])
    return isinstance(node, ast.Pass | ast.Continue | ast.Break)


def only_logs(body: Iterable[ast.stmt]) -> bool:
    """Return whether a block only logs or prints."""
    return all(map(_logs, body))


def _logs(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=function)):
            return is_log_function(function)
        case ast.If(body=body, orelse=orelse):
            return only_logs([*body, *orelse])
    return False


def _tells_nothing(node: ast.expr | None, telling: Collection[str] | None) -> bool:
    """Return whether a returned value is a constant, or read without a call."""
    if is_empty_or_constant(node):
        return True
    if telling is None or not isinstance(node, _READ) or calls_anything(node):
        return False
    names = names_in(node)
    own = isinstance(node, ast.Attribute) and names - {"self"}
    return not ((own or names) & {*telling} or any(map(_ERRORS.search, names)))


def is_empty_or_constant(node: ast.expr | None) -> bool:
    """Return whether a value is empty, NaN, None or another constant."""
    match node:
        case ast.UnaryOp(operand=node):
            return is_empty_or_constant(node)
        case ast.Call(func=func, args=args, keywords=named):
            # Such as `float("nan")` or `Failure(code=1)`.
            values = [*args, *(each.value for each in named)]
            made = last_name(func) == "float" or is_class(func)
            return made and all(map(is_empty_or_constant, values))
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return all(map(is_empty_or_constant, items))
        case ast.Dict(keys=keys):
            return not keys
        case ast.Name(id=name) | ast.Attribute(attr=name):
            # A constant, such as `Answers.FAILED`.
            return name.isupper()
    return isinstance(node, ast.Constant | NoneType)


def calls_anything(node: ast.AST) -> bool:
    """Return whether an expression has a call, or a dictionary, which may tell more."""
    return any(isinstance(x, ast.Call | ast.Await | ast.Dict) for x in ast.walk(node))


def is_class(node: ast.expr | None) -> bool:
    """Return whether an expression names a class, without calling it."""
    name = "" if node is None else last_name(node)
    return name[:1].isupper() and not name.isupper()


def _is_text(node: ast.AST) -> bool:
    """Return whether an expression is like ``str(error)`` or ``"..." % error``."""
    match node:
        case ast.Call(func=ast.Name(id="str" | "repr") | ast.Attribute(attr="format")):
            return True
        case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod()):
            return True
    return False


def _empty_names(
    handlers: Sequence[ast.ExceptHandler], before: Mapping[str, ast.expr]
) -> set[str]:
    """Return the variables that are empty or constant after a failure."""
    found = {x for x, y in before.items() if is_empty_or_constant(y)}
    for handler in handlers:
        found -= assigned(handler.body)
        for each in inner_nodes(handler.body):
            if isinstance(each, ast.Assign):
                names = set().union(*map(target_names, each.targets))
                constant = is_empty_or_constant(each.value)
                found = found | names if constant else found - names
    return found


def _bad_results(loop: Statement) -> set[str]:
    """Return the variables in which a loop keeps results after which it continues."""
    return {
        name
        for each in inner_nodes(loop.body)
        if isinstance(each, ast.If)
        for body in (each.body, each.orelse)
        if not leaves(body)
        for node in body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)
        if not is_empty_or_constant(node.value)
        for target in node.targets
        for name in target_names(target)
    }


def assigned(body: Sequence[ast.AST]) -> set[str]:
    """Return the variables that a block assigns to."""
    return {
        each.id
        for each in inner_nodes(body)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
