"""States of something else that a loop tests: a process, a job, a file or a flag."""

import ast
import re

from retrykit.audit._flow import inner_nodes, leaves
from retrykit.audit._handlers import last_name
from retrykit.audit._loop_words import (
    Statement,
    has_text,
    names_in,
    numbers_in,
    texts_in,
    words_in,
)
from retrykit.audit._turns import Turn

__all__ = [
    "NOT_DONE",
    "STARTS",
    "depends_on_state",
    "tests_readiness",
    "waits_for_state",
    "watches_process",
]

NOT_DONE = re.compile(
    r"\b(not yet|still not) (ready|up|finished|done)\b"
    r"|\bnot (reachable|ready|running|started|up|(at|in|on) \w+) yet\b"
    r"|\b(server|service) (is )?not (ready|up)\b|\bstill waiting\b"
    r"|\bdid(n't| not) (start|boot|come up|become|appear|finish)\b"
    r"|\bnever (started|booted|came up|became|appeared|finished)\b"
    r"|\bnot \(?yet\)? accepting\b"
    r"|\bpolled\b|\btimed out (when |while )?waiting (for|until)\b"
    r"|\bwaiting\b.*\bfor\b.* to (finish|complete|start|boot|appear|exist)\b"
    r"|\bwaiting\b.*\buntil\b|^f?['\"](\\r|\W)*awaiting\b|\bauthorization[_ ]?pending",
    re.IGNORECASE | re.DOTALL,
)
"""Matches texts which say that something is not ready, or has not come to be."""
STARTS = frozenset(["Popen", "create_subprocess_exec", "create_subprocess_shell"])
"""The names of functions that start a process."""

_ENDED = re.compile("^(poll|returncode|is_alive|exitcode)$")
# States of work in progress elsewhere.
_STATES = re.compile(
    r"^(is_)?(running|pending|queued|in_?progress|processing|succeeded|success|completed|finished"
    r"|complete|ready|healthy|available|creating|downloading|deleting|deleted)$",
    re.IGNORECASE,
)
_IN_PROGRESS = re.compile("^is_(running|pending|queued|in_?progress|processing)$")
_READY = re.compile(
    r"(^|_)(ready|healthy|is_up|available|reachable|listening)(_|$)", re.IGNORECASE
)
# A flag that is true as long as something is not ready.
_AWAITS = re.compile("^(is_)?a?waiting(_|$)", re.IGNORECASE)
_STATUS_NAMES = re.compile(r"(^|_)(status|state|phase)$", re.IGNORECASE)
_EXPECTED = re.compile("(^|_)(desired|expected|target|wanted)(_|$)", re.IGNORECASE)
_ALL_STATES = re.compile(r"(^|_)states$", re.IGNORECASE)
_STATE_NUMBERS = re.compile(r"(^|_)(state|phase)(_?(code|id|number))?$", re.IGNORECASE)
_OF_JOBS = re.compile("(BUILD|JOB|RUN|TASK)_")
_FAILED = re.compile("fail|error|retr|busy|unavail|limit", re.IGNORECASE)
_EXISTENCE = re.compile(
    r"exists?$|^is_?(file|dir)$|(^|_)(alive|dead|gone)$", re.IGNORECASE
)
# What a list of results contains, once there are some.
_LISTED = re.compile("^(entries|hits|items|records|results|rows)$")


def tests_readiness(loop: Statement) -> bool:
    """Return whether a loop continues while something is not ready."""
    if not isinstance(loop, ast.While):
        return False
    match loop.test:
        case ast.Name(id=name) | ast.Attribute(attr=name) if _AWAITS.search(name):
            return True
    return any(
        isinstance(each, ast.UnaryOp)
        and isinstance(each.op, ast.Not)
        and any(map(_READY.search, names_in(each.operand)))
        for each in ast.walk(loop.test)
    )


def watches_process(loop: Statement) -> bool:
    """Return whether a loop is left if a process that it has not started has ended."""
    nodes = [*inner_nodes(loop.body)]
    calls = {last_name(each.func) for each in nodes if isinstance(each, ast.Call)}
    tests = [
        each.test
        for each in nodes
        if (isinstance(each, ast.If) and (leaves(each.body) or leaves(each.orelse)))
        # Other than `assert result.returncode == 0`.
        or (isinstance(each, ast.Assert) and not numbers_in(each.test) & {0})
    ]
    if isinstance(loop, ast.While) and "is_alive" in names_in(loop.test):
        return True
    return not calls & STARTS and any(
        any(map(_ENDED.search, names_in(each))) for each in tests
    )


def waits_for_state(turn: Turn) -> bool:
    """Return whether a loop continues until work elsewhere has another state."""
    if isinstance(turn.loop, ast.While) and any(
        map(_is_progress_test, ast.walk(turn.loop.test))
    ):
        return True
    if turn.pauses and any(map(_compares_with_expected, inner_nodes(turn.success))):
        return True
    if turn.always_ends or not turn.pauses:
        return False
    return any(
        isinstance(each, ast.If) and any(map(_STATES.search, words_in(each.test)))
        for each in inner_nodes(turn.success)
    )


def _compares_with_expected(node: ast.AST) -> bool:
    """Return whether a statement is like ``if status == expected: return True``."""
    match node:
        case ast.If(
            test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]), body=body
        ) if leaves(body):
            states = any(map(_STATUS_NAMES.search, names_in(left)))
            return states and any(map(_EXPECTED.search, names_in(right)))
    return False


def depends_on_state(loop: Statement) -> bool:
    """Return whether what a loop does depends on the state of something else."""
    tests = [x.test for x in inner_nodes(loop.body) if isinstance(x, ast.If)]
    if isinstance(loop, ast.While):
        tests.append(loop.test)
        if "len" in names_in(loop.test):
            # Until there are as many as are expected.
            return True
    # A state machine, which makes one step in each turn.
    machine = any(isinstance(each, ast.Match) for each in loop.body)
    return (
        machine
        or watches_process(loop)
        or has_text(loop.body, NOT_DONE)
        or any(
            any(map(_STATES.search, words_in(each) - _flags_in(each)))
            or any(map(_EXISTENCE.search, names_in(each)))
            or any(map(_LISTED.search, texts_in(each)))
            or any(_is_state_test(x) or _is_progress_test(x) for x in ast.walk(each))
            for each in tests
        )
    )


def _flags_in(test: ast.expr) -> set[str]:
    """Return which of the names ``success`` and ``succeeded`` a test contains."""
    return names_in(test) & {"succeeded", "success"}


def _is_progress_test(node: ast.AST) -> bool:
    """Return whether a node asks if work is in progress, by its state or its name."""
    match node:
        case ast.Name(id=name):
            return bool(_IN_PROGRESS.search(name))
        case ast.Compare(
            left=left, ops=[ast.Lt() | ast.LtE()], comparators=[ast.Attribute()]
        ):
            # Such as `while self.status < States.DONE`.
            return any(map(_STATUS_NAMES.search, names_in(left)))
        case ast.Compare(
            left=left,
            comparators=[ast.Constant(value=str(word)) | ast.Attribute(attr=word)],
        ):
            states = any(map(_STATUS_NAMES.search, names_in(left)))
            return states and bool(_STATES.search(word))
    return False


def _is_state_test(node: ast.AST) -> bool:
    """Return whether a state is compared with a state other than a failure."""
    match node:
        case ast.Compare(left=left, comparators=[ast.Constant(value=int())]):
            return any(map(_STATE_NUMBERS.search, names_in(left)))
        case ast.Compare(left=left, comparators=[right]) if any(
            _ALL_STATES.search(last_name(each)) for each in (left, right)
        ):
            # Such as `states == expected`, or `State.OLD in states`.
            return True
        case ast.Compare(
            left=ast.Subscript(slice=key), comparators=[ast.Name(id=word)]
        ):
            # Such as `answer["status"] == JOB_STATUS_SUCCESS`.
            states = any(map(_STATUS_NAMES.search, texts_in(key)))
            return states and bool(_OF_JOBS.match(word))
        case ast.Compare(left=left, comparators=[ast.Constant(value=str(word))]):
            states = any(map(_STATUS_NAMES.search, names_in(left)))
            return states and not word.isdigit() and not _FAILED.search(word)
    return False
