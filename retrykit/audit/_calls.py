"""Calls in expressions, and other signs of retries: statuses and words."""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from retrykit.audit._flow import child_nodes
from retrykit.audit._handlers import Attempt, retried_from
from retrykit.audit._libraries import LIBRARIES, METHODS
from retrykit.audit._module import Called, Candidate
from retrykit.audit._scopes import Names
from retrykit.audit._values import (
    UNKNOWN,
    Call,
    Operation,
    Reference,
    Value,
    evaluate,
)

__all__ = ["Found"]

# The names of calls of libraries that retry, and of clients that do.
_NAMES = frozenset(
    name
    for readers in (LIBRARIES, METHODS)
    for each in readers.values()
    for name in each
)
# Libraries whose every name may be a client's.
_WHOLE = frozenset(library for library, names in LIBRARIES.items() if "*" in names)
_RETRIES = re.compile("retr(y|ies)|backoff|attempts|tries", re.IGNORECASE)
_THROTTLED = (429, 503)
# What is called with an address.
_REQUESTS = frozenset(["delete", "patch", "post", "put", "request"])
_LONG = 60
_WORDS = re.compile("[Rr]etry.[Aa]fter|[Ii]dempot")
_PARTIAL = Reference("functools.partial")


class Found:
    """Calls and words in the expressions of a function, a class or a module.

    Args:
        names: The names that are known there.
        candidates: The list to which possible calls to retry libraries are added.

    Attributes:
        calls: In a function, the calls of known functions; empty elsewhere.
        throttled: The lines in which a status is compared with 429 or 503.
        words: The words that mention Retry-After or idempotency.
        handler: The handler that contains the next expression, with its ``try``; None
            outside handlers.
    """

    def __init__(self, names: Names, candidates: list[Candidate]) -> None:
        self.names, self._candidates = names, candidates
        self.calls: list[Called] = []
        self.throttled: list[int] = []
        self.words: set[str] = set()
        self.handler: tuple[ast.ExceptHandler, Attempt] | None = None

    def read(self, nodes: Iterable[Any], iterated: ast.expr | None = None) -> None:
        """Read some expressions.

        Args:
            nodes: The expressions.
            iterated: If they are in the head of a ``for`` loop, what the loop iterates
                over; else None.
        """
        waiting = [*nodes][::-1]
        while waiting:
            each = waiting.pop()
            kind = type(each)
            if kind is ast.Name:
                continue
            if kind is ast.Constant:
                text = each.value
                if type(text) is str and len(text) < _LONG:
                    self.words.update(_WORDS.findall(text))
            elif kind is ast.Attribute:
                if "etry_a" in each.attr:
                    self.words.add(each.attr)
                waiting.append(each.value)
            else:
                if kind is ast.Call:
                    self._read_call(each, iterated)
                elif kind is ast.Compare and _is_throttled(each):
                    self.throttled.append(each.lineno)
                waiting += child_nodes(each)

    def _read_call(self, node: ast.Call, iterated: ast.expr | None) -> None:
        function = evaluate(node.func, self.names.find)
        if self.names.function and function is not UNKNOWN:
            self.calls.append(_called(node, function, self.names))
        if not _may_retry(node, function):
            return
        call = evaluate(node, self.names.find)
        if type(call) is Call:
            self._candidates.append(
                Candidate(
                    call,
                    node.lineno,
                    node.end_lineno or node.lineno,
                    node.col_offset + 1,
                    self.names.function,
                    node is iterated,
                    self._caught(),
                )
            )

    def _caught(self) -> tuple[str, ...] | None:
        if self.handler is None:
            return None
        return retried_from(*self.handler)


def _called(node: ast.Call, function: Value, names: Names) -> Called:
    timeout: Value = None
    last = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
    for each in node.keywords:
        if each.arg == "timeout":
            timeout = evaluate(each.value, names.find)
    return Called(
        function,
        node.lineno,
        node.end_lineno or node.lineno,
        timeout,
        tuple([each.arg or "" for each in node.keywords]),
        _text(node.args[0]) if node.args and last in _REQUESTS else "",
        tuple(_passed_functions(node, names)) if _is_about_retries(function) else (),
    )


@lru_cache(maxsize=10_000)
def _names_retries(name: str) -> bool:
    return _RETRIES.search(name) is not None


def _is_about_retries(function: Value) -> bool:
    if type(function) is Reference:
        return _names_retries(function.last)
    # A decorator that is called with the function, or an object that retries.
    return type(function) is Call or type(function) is Operation


def _may_retry(node: ast.Call, function: Value) -> bool:
    if type(function) is Reference:
        last = function.last
        if last in _NAMES or function.library in _WHOLE or _names_retries(last):
            return True
    elif type(function) is Operation and (
        function.right in _NAMES or _names_retries(str(function.right))
    ):
        return True
    return any(each.arg and _names_retries(each.arg) for each in node.keywords)


def _passed_functions(node: ast.Call, names: Names) -> Iterator[Value]:
    """Yield the arguments of a call that may be functions, and True for each lambda."""
    for each in (*node.args, *(each.value for each in node.keywords)):
        if isinstance(each, ast.Lambda):
            yield True
        elif isinstance(each, (ast.Name, ast.Attribute, ast.Call)):
            value = evaluate(each, names.find)
            if type(value) is Call and value.function == _PARTIAL:
                yield from value.positional[:1]
            elif type(value) is Reference and "." in value.name:
                yield value


def _text(node: ast.expr) -> str:
    """Return a string, or the literal parts of an f-string; "" for other nodes."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    texts = (each.value for each in parts if isinstance(each, ast.Constant))
    return "".join(each for each in texts if isinstance(each, str))


def _is_throttled(node: ast.Compare) -> bool:
    """Return whether a comparison is with 429 or 503, alone or among other codes."""
    for each in (node.left, *node.comparators):
        for part in getattr(each, "elts", [each]):
            if isinstance(part, ast.Constant) and part.value in _THROTTLED:
                return True
    return False
