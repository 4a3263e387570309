"""Kinds of loops: those that repeat what failed, and those that repeat bad results."""

import ast
import re
from collections.abc import Callable, Mapping

from retrykit.audit._fallbacks import uses_free_place
from retrykit.audit._flow import flow, inner_nodes, leaves
from retrykit.audit._handlers import last_name
from retrykit.audit._look_alikes import (
    NOT_FAILURES,
    OF_DATA,
    STATES,
    WAITS,
    asks_for_throttling,
    asks_person,
    asks_whether_ready,
    control_words,
    looks_alike,
    words_in,
)
from retrykit.audit._loop_limits import EVIDENCE, Statement, counters, names_in
from retrykit.audit._turns import Turn

__all__ = ["is_failure", "is_retry", "is_retry_of_results"]

_NETWORK = re.compile(
    r"Connect|Timeout|TimedOut|Unavailable|Disconnect|URLError|Throttl"
    r"|(Network|Transport|Request)(Error|Exception)"
)
# An attempt that took its time, or one that is repeated with a new token.
_SOON_OVER = re.compile(
    "auth|credential|expired|interrupt|timeout|token", re.IGNORECASE
)
# What is asked for the state of something, or for the time until it changes.
_RETRIES = re.compile("retr(y|ies)", re.IGNORECASE)
_HTTP_STATUS = re.compile(r"^(ok|status_?code|http_?status)$", re.IGNORECASE)
_ANSWERS = re.compile(r"^(ok|is_success|status_?code|status)$", re.IGNORECASE)
_STATUS_NAMES = re.compile(r"(^|_)(status|state|phase)$", re.IGNORECASE)
_FAILED = re.compile("fail|error|retr|busy|unavail|limit", re.IGNORECASE)
_EXISTENCE = re.compile(r"exists?$|^is_?(file|dir)$", re.IGNORECASE)
_CHECKS = re.compile(r"_*(check|is|has|exists|verify|discover)(_|$)", re.IGNORECASE)


def is_retry(turn: Turn) -> bool:
    """Return whether a loop repeats what failed, until it succeeds."""
    ends = turn.always_ends or {"break", "return"} & flow(turn.success)
    if not ends or looks_alike(turn):
        return False
    # What a loop logs says something only if each success ends it.
    if EVIDENCE.search(control_words(turn.loop, texts=turn.always_ends)):
        return True
    if turn.pauses and asks_for_throttling(turn.loop):
        return True
    return turn.always_ends and bool(
        turn.pauses or _is_counted(turn.loop) or _fails_on_network(turn)
    )


def _fails_on_network(turn: Turn) -> bool:
    """Return whether the loop goes on only after errors of a connection."""
    return bool(turn.caught) and all(map(_NETWORK.search, turn.caught))


def is_failure(name: str) -> bool:
    """Return whether an error is that of a server that fails at once."""
    known = name in NOT_FAILURES | OF_DATA
    return not known and not _SOON_OVER.search(name)


def is_retry_of_results(
    loop: Statement,
    function: str,
    before: Mapping[str, ast.expr],
    sleeps: Callable[[], bool],
) -> bool:
    """Return whether a loop without ``try`` repeats what had the wrong result.

    Args:
        loop: The loop.
        function: The full name of the function around it.
        before: What names were assigned to last, before the loop.
        sleeps: Returns whether it sleeps.
    """
    outcomes = flow(loop.body)
    again = _asks_again(loop, before)
    ends = again or {"break", "return"} & outcomes
    if not ends or not {"next", "continue"} & outcomes:
        return False
    words = counters(loop, inner=False)
    words |= (
        names_in(loop.test) if isinstance(loop, ast.While) else names_in(loop.target)
    )
    name = function.rpartition(".")[2]
    words = {each for each in words if not re.search("back_?off", each)}
    if any(each(loop) for each in (_looks_at_state, asks_whether_ready, asks_person)):
        return False
    if uses_free_place(loop, set(), loop.body):
        return False
    if _CHECKS.match(name) and not EVIDENCE.search(name):
        return False
    told = (
        EVIDENCE.search(" ".join(words))
        or asks_for_throttling(loop)
        or _returns_good_answer(loop)
    )
    if not told or WAITS.search(name):
        return False
    asks = again or _asks_for_status(loop) or _iterates_over_retries(loop)
    return asks or (sleeps() and not _begins_with_sleep(loop))


def _is_sleep(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) == "sleep"


def _returns_good_answer(loop: Statement) -> bool:
    """Return whether a loop returns a response, or a part of one, by its status."""
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


def _iterates_over_retries(loop: Statement) -> bool:
    """Return whether a loop is one such as ``for retry in range(max_retries)``."""
    return isinstance(loop, ast.For) and any(
        map(_RETRIES.search, names_in(loop.target) | names_in(loop.iter))
    )


def _begins_with_sleep(loop: Statement) -> bool:
    """Return whether each turn, the first one too, sleeps only before it asks."""
    if sum(map(_is_sleep, inner_nodes(loop.body))) > 1:
        return False
    match loop.body[0]:
        case (
            ast.Expr(value=ast.Await(value=ast.Call(func=function)))
            | ast.Expr(value=ast.Call(func=function))
        ):
            return last_name(function) == "sleep"
    return False


def _asks_for_status(loop: Statement) -> bool:
    """Return whether a loop is left after a good status of a response."""
    return any(
        isinstance(each, ast.If)
        and any(map(_HTTP_STATUS.search, names_in(each.test)))
        and leaves(each.body)
        and not leaves(each.orelse)
        for each in inner_nodes(loop.body)
    )


def _asks_again(loop: Statement, before: Mapping[str, ast.expr]) -> bool:
    """Return whether a loop goes on after a bad result of a call that it repeats."""
    if not isinstance(loop, ast.While):
        return False
    calls = {name: ast.dump(before[name]) for name in names_in(loop.test) & {*before}}
    return any(
        isinstance(each.value, ast.Call) and ast.dump(each.value) == calls.get(name)
        for each in inner_nodes(loop.body)
        if isinstance(each, ast.Assign)
        for name in names_in(each.targets[0])
    )


def _looks_at_state(loop: Statement) -> bool:
    """Return whether what a loop does depends on the state of something else."""
    tests = [x.test for x in inner_nodes(loop.body) if isinstance(x, ast.If)]
    if isinstance(loop, ast.While):
        tests.append(loop.test)
        if "len" in names_in(loop.test):
            # Until there are as many as are expected.
            return True
    # A machine whose turns are steps from state to state.
    machine = any(isinstance(each, ast.Match) for each in loop.body)
    return machine or any(
        any(map(STATES.search, words_in(each) - _flags_in(each)))
        or any(map(_EXISTENCE.search, names_in(each)))
        or any(map(_compares_state, ast.walk(each)))
        for each in tests
    )


def _flags_in(test: ast.expr) -> set[str]:
    """Return the names of results that are true after a success."""
    return names_in(test) & {"succeeded", "success"}


def _compares_state(node: ast.AST) -> bool:
    """Return whether a state is compared with a word that tells of no failure."""
    match node:
        case ast.Compare(left=left, comparators=[ast.Constant(value=str(word))]):
            states = any(map(_STATUS_NAMES.search, names_in(left)))
            return states and not word.isdigit() and not _FAILED.search(word)
    return False


def _is_counted(loop: Statement) -> bool:
    """Return whether a loop is one over a number of turns."""
    if isinstance(loop, ast.While):
        return False
    return bool(names_in(loop.iter) & {"range", "count", "repeat"}) or isinstance(
        loop.iter, ast.Tuple | ast.List
    )
