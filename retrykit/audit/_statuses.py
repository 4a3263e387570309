"""HTTP statuses that a loop tests: whether a request is throttled, or has succeeded."""

import ast
import re

from retrykit.audit._flow import inner_nodes, leaves
from retrykit.audit._loop_words import Statement, names_in, numbers_in, words_in

__all__ = ["leaves_on_good_status", "returns_tested_response", "tests_throttling"]

# Tests whether a server throttles requests, or for how long.
_THROTTLES = re.compile(
    r"retry[-_]?after|too_?many_?requests|^(is_)?throttled$|rate_?limited|(?<!\d)429",
    re.IGNORECASE,
)
_HTTP_STATUS = re.compile(r"^(ok|status_?code|http_?status)$", re.IGNORECASE)
_ANSWERS = re.compile(r"^(ok|is_success|status_?code|status)$", re.IGNORECASE)


def tests_throttling(loop: Statement) -> bool:
    """Return whether a loop tests whether the server wants fewer requests."""
    tests = [x.test for x in inner_nodes(loop.body) if isinstance(x, ast.If)]
    if isinstance(loop, ast.While) and not _ends_if_equal(loop.test):
        tests.append(loop.test)
    return any(
        any(map(_THROTTLES.search, words_in(each)))
        or not {429, 503}.isdisjoint(numbers_in(each))
        for each in tests
    )


def _ends_if_equal(test: ast.expr) -> bool:
    """Return whether a condition is like ``status != 429``."""
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotEq)


def leaves_on_good_status(loop: Statement) -> bool:
    """Return whether a test of a response's status leaves the loop."""
    return any(
        isinstance(each, ast.If)
        and any(map(_HTTP_STATUS.search, names_in(each.test)))
        and leaves(each.body)
        and not leaves(each.orelse)
        for each in inner_nodes(loop.body)
    )


def returns_tested_response(loop: Statement) -> bool:
    """Return whether a loop tests a response's status, and returns its data."""
    asked: set[str] = set()
    returned: set[str] = set()
    for each in inner_nodes(loop.body):
        if isinstance(each, ast.Return):
            returned |= names_in(each.value)
        elif isinstance(each, ast.If):
            asked |= {
                x.value.id
                for x in ast.walk(each.test)
                if isinstance(x, ast.Attribute)
                and isinstance(x.value, ast.Name)
                and _ANSWERS.search(x.attr)
            }
    return bool(asked & returned)
