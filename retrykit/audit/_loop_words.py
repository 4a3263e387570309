"""Names and strings that control a loop, and words that suggest retries."""

import ast
import re
from collections.abc import Sequence

from retrykit.audit._flow import inner_nodes, walk

__all__ = [
    "CLOCK_WORDS",
    "COUNT_WORDS",
    "ENDLESS",
    "EVIDENCE",
    "STOPS",
    "Statement",
    "control_words",
    "counters",
    "has_text",
    "is_counted",
    "names_in",
    "numbers_in",
    "target_names",
    "texts_in",
    "words_in",
]

Statement = ast.For | ast.AsyncFor | ast.While
"""A loop."""

COUNT_WORDS = re.compile(
    r"retr(y|ies)|attempt|tries|\btry\b|_try|failures|errors?_count|num_err|n_err"
    r"|fails|backoff|count|remaining|left$|max_",
    re.IGNORECASE,
)
"""Words about a number of attempts or failures."""
EVIDENCE = re.compile(
    r"retr(y|ies|ying)|attempt|\btries\b|_tries|tries_|_try\b|back_?off",
    re.IGNORECASE,
)
"""Words about retries."""
CLOCK_WORDS = re.compile(
    r"deadline|elapsed|expir|timer|timeout|time_?out|time_left|start_time"
    r"|(?<!re)started|end_?time|cur(rent)?_?time|max_wait|max_time|time_limit|stop_at",
    re.IGNORECASE,
)
"""Words about a time limit."""
ENDLESS = re.compile(
    r"run|stop|clos|shut|exit|quit|alive|active|connected|done|terminat|cancel|interrupt"
    r"|enabled|(?<!s)kill",
    re.IGNORECASE,
)
"""Words in the condition of a loop that another part of the program ends."""
STOPS = re.compile(
    r"(^|_)(abort(ed)?|interrupted|clos(ed|ing)|stop(ped|ping)?|shut(ting)?_?down|should_run|running|quit|exit(ing)?)(_|$)",
    re.IGNORECASE,
)
"""Names that tell whether a program, or a part of it, stops."""


def names_in(node: ast.AST | None) -> set[str]:
    """Return the names and attributes in an expression."""
    found = set()
    for each in [] if node is None else walk(node):
        if isinstance(each, ast.Name):
            found.add(each.id)
        elif isinstance(each, ast.Attribute):
            found.add(each.attr)
    return found


def counters(loop: ast.stmt, *, inner: bool = True) -> set[str]:
    """Return the names that a loop counts up or down.

    Args:
        loop: The loop.
        inner: Whether to include the names that inner loops count.
    """
    found = set()
    for each in inner_nodes(getattr(loop, "body", []), loops=inner):
        match each:
            case ast.AugAssign(op=ast.Add() | ast.Sub(), target=target):
                found |= target_names(target)
            case ast.Assign(
                targets=[target],
                value=ast.BinOp(op=ast.Add() | ast.Sub()) as value,
            ) if target_names(target) & names_in(value):
                found |= target_names(target)
    return found


def texts_in(node: ast.AST) -> set[str]:
    """Return the strings in an expression or a statement."""
    return {
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }


def has_text(body: Sequence[ast.AST], pattern: re.Pattern[str]) -> bool:
    """Return whether a pattern matches a string or an f-string in a block."""
    return any(
        pattern.search(ast.unparse(each))
        for each in inner_nodes(body)
        if isinstance(each, ast.JoinedStr)
        or (isinstance(each, ast.Constant) and isinstance(each.value, str))
    )


def numbers_in(node: ast.AST) -> set[object]:
    """Return the constants in an expression."""
    return {x.value for x in ast.walk(node) if isinstance(x, ast.Constant)}


def words_in(node: ast.expr) -> set[str]:
    """Return all names and strings in an expression."""
    return names_in(node) | texts_in(node)


def control_words(loop: Statement, *, texts: bool) -> str:
    """Return the names that control a loop, joined by spaces.

    Args:
        loop: The loop.
        texts: Whether to add the strings in its body.
    """
    # One that begins again in each turn counts nothing.
    begun = {
        name
        for each in loop.body
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)
        for name in names_in(each.targets[0])
    }
    names = counters(loop) - begun
    if isinstance(loop, ast.While):
        names |= names_in(loop.test)
    else:
        names |= names_in(loop.target) | names_in(loop.iter)
    for each in inner_nodes(loop.body):
        if texts and isinstance(each, ast.Constant) and isinstance(each.value, str):
            names.add(each.value[:200])
        elif isinstance(each, ast.If):
            names |= names_in(each.test) - begun
    return " ".join(names)


def is_counted(loop: Statement) -> bool:
    """Return whether a loop counts its turns, or runs over a literal list or tuple."""
    if isinstance(loop, ast.While):
        return False
    return bool(names_in(loop.iter) & {"range", "count", "repeat"}) or isinstance(
        loop.iter, ast.Tuple | ast.List
    )


def target_names(node: ast.expr) -> set[str]:
    """Return a set of the last name in an assignment's target; empty without a name."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return {name}
        case ast.Subscript(value=value):
            return target_names(value)
    return set()
