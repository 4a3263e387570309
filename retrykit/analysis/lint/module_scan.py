"""What is written in a module: its names, and what has a policy under them.

What a module imports from another is not written in it, and what its
functions make when they are called is not known.
"""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, final

from retrykit._internal.frozen import Frozen
from retrykit.execution.wrapping import WrappedCallable, find_wrapped
from retrykit.policy.policy import Policy

__all__ = ["PolicyReference", "held", "held_by", "lines"]

_Names = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_APART = (
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)


@final
class PolicyReference(Frozen):
    """What has a policy, under its name.

    Attributes:
        name: The name in the module, with dots.
        value: The `Policy`, or what is known of a decorated callable.
    """

    __slots__ = ("name", "value")
    name: str
    value: Policy | WrappedCallable

    @property
    def policy(self) -> Policy:
        """The policy."""
        return self.value if isinstance(self.value, Policy) else self.value.policy


def lines(module: ModuleType) -> dict[str, int] | None:
    """Return the line of each name that a module, and each class in it, gives.

    Returns:
        The names with dots; None where the module has no source.
    """
    with suppress(OSError, SyntaxError, ValueError, RecursionError):
        source = Path(str(getattr(module, "__file__", ""))).read_bytes()
        return dict(_lines(ast.parse(source), ""))
    return None


def held(
    module: ModuleType, written: Mapping[str, int] | None
) -> Iterator[PolicyReference]:
    """Give what is written in a module and has a policy, in its order.

    Args:
        module: The module.
        written: What `lines` said of it.
    """
    for name, value in _all(module, vars(module), ""):
        if written is None or name in written:
            for own in held_by(name, value):
                if _is_own(own, module, sure=written is not None):
                    yield own


def held_by(name: str, value: Any) -> Iterator[PolicyReference]:
    """Give what a value is, or holds, that has a policy.

    Args:
        name: The name of the value.
        value: Anything; it is not called.
    """
    kind = type(value)
    if issubclass(kind, property):
        parts = {"": value.fget, ".setter": value.fset, ".deleter": value.fdel}
    elif issubclass(kind, list | tuple):
        parts = {f"[{place}]": each for place, each in enumerate(value)}
    elif issubclass(kind, dict):
        parts = {f"[{key!r}]": each for key, each in list(value.items())}
    else:
        parts = {"": value}
    for part, each in parts.items():
        known = _known(each)
        if known is not None:
            yield PolicyReference(f"{name}{part}", known)


def _known(value: Any) -> Policy | WrappedCallable | None:
    if type(value) is Policy:
        return value
    # What stands for something else may fail when it is asked anything.
    with suppress(Exception):
        return find_wrapped(value)
    return None


def _all(
    module: ModuleType, values: Mapping[str, Any], prefix: str
) -> Iterator[tuple[str, Any]]:
    """Give what has a name in a module and in the classes written in it."""
    for name, value in list(values.items()):
        inner = issubclass(type(value), type) and value.__module__ == module.__name__
        if inner and value.__qualname__ == f"{prefix}{name}":
            yield from _all(module, vars(value), f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _is_own(own: PolicyReference, module: ModuleType, *, sure: bool) -> bool:
    """Return whether a module holds what another has not held before.

    Args:
        own: What it holds.
        module: The module.
        sure: Whether the name is known to be given in it.
    """
    if isinstance(own.value, Policy):
        return sure
    fn = own.value.fn
    home = str(getattr(fn, "__module__", ""))
    if home == module.__name__ or not sure:
        return home == module.__name__
    place: Any = sys.modules.get(home)
    for part in str(getattr(fn, "__qualname__", "")).split("."):
        place = inspect.getattr_static(place, part, None)
    return all(each.value is not own.value for each in held_by("", place))


def _lines(tree: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _Names):
            yield f"{prefix}{node.name}", node.lineno
            if isinstance(node, ast.ClassDef):
                yield from _lines(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield f"{prefix}{node.id}", node.lineno
        elif not isinstance(node, _APART):
            yield from _lines(node, prefix)
