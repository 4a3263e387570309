"""Kinds of loops: some repeat what failed, others repeat calls with bad results."""

import ast
import re
from collections.abc import Callable, Mapping

from retrykit.audit._fallbacks import picks_free_port_or_name
from retrykit.audit._flow import flow, inner_nodes, without_handlers
from retrykit.audit._handlers import (
    NOT_FAILURES,
    OF_DATA,
    OF_NETWORK,
    is_log_function,
    last_name,
)
from retrykit.audit._look_alikes import is_look_alike, prompts_user
from retrykit.audit._loop_words import (
    COUNT_WORDS,
    EVIDENCE,
    Statement,
    control_words,
    counters,
    is_counted,
    names_in,
    numbers_in,
    target_names,
)
from retrykit.audit._pauses import suggests_sleep
from retrykit.audit._polls import WAITS, receives_more, sleeps_first
from retrykit.audit._states import depends_on_state, tests_readiness
from retrykit.audit._statuses import (
    leaves_on_good_status,
    returns_tested_response,
    tests_throttling,
)
from retrykit.audit._turns import Turn

__all__ = ["is_failure", "is_retry", "is_retry_of_results"]

# An attempt that took its time, or one that is repeated with a new token.
_SOON_OVER = re.compile(
    "auth|credential|expired|interrupt|timeout|token", re.IGNORECASE
)
# Functions that return the next piece of data.
_NEXT = re.compile(r"(^|_)next(_|$)|^read_?line$|^pop(left)?$")
# Names in loops that poll, or that follow redirects.
_OTHERS = re.compile(r"(^|_)poll(s|ing)?(_|$)|redirect", re.IGNORECASE)
# The codes of redirects.
_MOVED = frozenset([301, 302, 307, 308])
_RETRIES = re.compile("retr(y(?!able)|ies)", re.IGNORECASE)
# The number of a turn, other than `retry_code`.
_TURNS = re.compile("_*(attempt|retry|try)(_?(count|i|idx|index|n|no|num|number))?$")
_ACCEPTED = 202
_LOOKS_UP = re.compile("^(has|contains|(is_)?(in_use|taken|used))$")
_CHECKS = re.compile(r"_*(check|is|has|exists|verify|discover)(_|$)", re.IGNORECASE)
# Names that say how good a result is.
_GRADES = re.compile(
    r"(^|_)(accuracy|confidence|quality|score|similarity)(_|$)", re.IGNORECASE
)


def is_retry(turn: Turn) -> bool:
    """Return whether a loop repeats what failed, until it succeeds."""
    ends = turn.always_ends or {"break", "return"} & flow(turn.success)
    if not ends or is_look_alike(turn):
        return False
    # What a loop logs says something only if each success ends it.
    if EVIDENCE.search(control_words(turn.loop, texts=turn.always_ends)):
        return True
    if turn.pauses and tests_throttling(turn.loop):
        return True
    return turn.always_ends and bool(
        turn.pauses or is_counted(turn.loop) or _fails_on_network(turn)
    )


def _fails_on_network(turn: Turn) -> bool:
    """Return whether the loop continues only after network errors."""
    return bool(turn.caught) and all(map(OF_NETWORK.search, turn.caught))


def is_failure(name: str) -> bool:
    """Return whether an error's name suggests a call that failed at once."""
    known = name in NOT_FAILURES | OF_DATA
    return not known and not _SOON_OVER.search(name)


def is_retry_of_results(
    loop: Statement,
    function: str,
    before: Mapping[str, ast.expr],
    sleeps: Callable[[], bool],
) -> bool:
    """Return whether a loop repeats a call for its bad result, not for an error.

    Args:
        loop: The loop.
        function: The full name of the function around it.
        before: The expressions that were last assigned to names before the loop.
        sleeps: Returns whether the loop sleeps.
    """
    outcomes = flow(loop.body)
    again = _repeats_call(loop, before)
    ends = again or ({"break", "return"} & outcomes and _leaves_after_result(loop))
    if not ends or not {"next", "continue"} & outcomes:
        return False
    words = counters(loop, inner=False)
    words |= (
        names_in(loop.test) if isinstance(loop, ast.While) else names_in(loop.target)
    )
    name = function.rpartition(".")[2]
    words = {each for each in words if not re.search("back_?off", each)}
    if WAITS.search(name) or (_CHECKS.match(name) and not EVIDENCE.search(name)):
        return False
    told = (
        EVIDENCE.search(" ".join(words))
        or tests_throttling(loop)
        or returns_tested_response(loop)
    )
    if not told:
        return False
    kinds = (depends_on_state, receives_more, tests_readiness, prompts_user)
    if any(each(loop) for each in kinds):
        return False
    if picks_free_port_or_name(loop, set(), loop.body) or _is_other_kind(loop):
        return False
    asks = again or leaves_on_good_status(loop) or _iterates_over_retries(loop)
    waits = not sleeps_first(loop) and not _searches_items(loop)
    return asks or (waits and sleeps())


def _leaves_after_result(loop: Statement) -> bool:
    """Return whether a loop is left after a result, not only after an error."""
    return any(
        isinstance(each, ast.Break | ast.Return) for each in without_handlers(loop.body)
    )


def _searches_items(loop: Statement) -> bool:
    """Return whether each turn checks several things, until one of them is found."""
    return any(
        isinstance(each, ast.For | ast.AsyncFor) and "return" in flow(each.body)
        for each in loop.body
    )


def _tests_quality(loop: Statement) -> bool:
    """Return whether a loop continues until a result is good enough, or fits."""
    differences = {
        name
        for each in inner_nodes(loop.body)
        if isinstance(each, ast.Assign) and _is_difference(each.value)
        for name in names_in(each.targets[0])
    }
    return any(
        isinstance(each, ast.Compare)
        and (
            names_in(each.left) & differences
            or (
                isinstance(each.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
                and any(map(_GRADES.search, names_in(each)))
            )
        )
        for node in inner_nodes(loop.body)
        if isinstance(node, ast.If)
        for each in ast.walk(node.test)
    )


def _is_difference(node: ast.expr) -> bool:
    """Return whether an expression is like ``len(found) - expected``."""
    return isinstance(node, ast.BinOp | ast.Call) and any(
        isinstance(each, ast.BinOp)
        and isinstance(each.op, ast.Sub)
        and "len" in names_in(each)
        for each in ast.walk(node)
    )


def _is_other_kind(loop: Statement) -> bool:
    """Return whether a loop polls, follows redirects, visits items or rates results."""
    return (
        _counts_polls_or_redirects(loop)
        or _tests_acceptance(loop)
        or _visits_items(loop)
        or _asks_for_others(loop)
        or _tests_quality(loop)
    )


def _tests_acceptance(loop: Statement) -> bool:
    """Return whether a status is compared with 202: the work has only begun."""
    return any(
        isinstance(each, ast.If) and _ACCEPTED in numbers_in(each.test)
        for each in inner_nodes(loop.body)
    )


def _counts_polls_or_redirects(loop: Statement) -> bool:
    """Return whether a loop counts polls or redirects, or keeps their answers."""
    names = names_in(loop.test if isinstance(loop, ast.While) else loop.iter)
    for each in inner_nodes(loop.body):
        if isinstance(each, ast.If):
            if numbers_in(each.test) & _MOVED:
                return True
            if names_in(each.test) & counters(loop):
                names |= names_in(each.test)
    stored = {
        each.id
        for each in inner_nodes(loop.body)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    return any(map(_OTHERS.search, names | stored))


def _visits_items(loop: Statement) -> bool:
    """Return whether a loop does something with each item of a collection."""
    match loop:
        case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[_, _, step])):
            # Places in data, other than a number that is counted down.
            return not isinstance(step, ast.UnaryOp)
        case ast.For(
            iter=ast.Name()
            | ast.Attribute()
            | ast.Tuple()
            | ast.List()
            | ast.Call(func=ast.Attribute(attr="items" | "keys" | "values"))
        ):
            items = {x for x in names_in(loop.target) if not _TURNS.match(x)}
            for each in inner_nodes(loop.body):
                if isinstance(each, ast.Assign) and names_in(each.value) & items:
                    # Such as `url = base + path`.
                    items |= {x for y in each.targets for x in target_names(y)}
            return any(
                isinstance(each, ast.Call)
                and names_in(each) & items
                and last_name(each.func) != "sleep"
                and not is_log_function(each.func)
                for each in inner_nodes(loop.body)
            )
    return False


def _asks_for_others(loop: Statement) -> bool:
    """Return whether a loop steps to other arguments, such as those of another day."""
    stepped = {
        name
        for each in inner_nodes(loop.body)
        for name in _stepped_by(each)
        if not EVIDENCE.search(name) and not COUNT_WORDS.search(name)
    }
    for each in inner_nodes(loop.body):
        if isinstance(each, ast.Assign) and names_in(each.value) & stepped:
            stepped |= {x for y in each.targets for x in target_names(y)}
    return any(
        isinstance(each, ast.Call)
        and any(names_in(x) & stepped for x in each.args)
        and not is_log_function(each.func)
        and not suggests_sleep(last_name(each.func))
        for each in inner_nodes(loop.body)
    )


def _stepped_by(node: ast.AST) -> set[str]:
    """Return the name that a statement changes from its value before."""
    match node:
        case ast.AugAssign(target=target):
            return target_names(target)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            # Such as `size = min(size * 2, 9000)`.
            steps = [x for x in ast.walk(value) if isinstance(x, ast.BinOp)]
            used = (y for x in steps for y in ast.walk(x) if isinstance(y, ast.Name))
            return {name} & {each.id for each in used}
    return set()


def _iterates_over_retries(loop: Statement) -> bool:
    """Return whether a loop is like ``for retry in range(max_retries)``."""
    return isinstance(loop, ast.For) and any(
        map(_RETRIES.search, names_in(loop.target) | names_in(loop.iter))
    )


def _repeats_call(loop: Statement, before: Mapping[str, ast.expr]) -> bool:
    """Return whether a ``while`` loop repeats a call as long as its result is bad."""
    if not isinstance(loop, ast.While):
        return False
    asked = names_in(loop.test) - _looked_up(loop.test)
    calls = {name: ast.dump(before[name]) for name in asked & {*before}}
    changed = {
        each.id
        for each in inner_nodes(loop.body)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    return any(
        isinstance(each.value, ast.Call)
        and ast.dump(each.value) == calls.get(name)
        and not names_in(each.value) & changed
        and not any(map(_NEXT.search, names_in(each.value)))
        for each in inner_nodes(loop.body)
        if isinstance(each, ast.Assign)
        for name in names_in(each.targets[0])
    )


def _looked_up(test: ast.expr) -> set[str]:
    """Return the names that are looked up, as in ``name in all`` or ``has(name)``."""
    found: set[str] = set()
    for each in ast.walk(test):
        match each:
            case ast.Compare(left=name, ops=[ast.In()]):
                found |= names_in(name)
            case ast.Call(func=function, args=[name]) if _LOOKS_UP.search(
                last_name(function)
            ):
                found |= names_in(name)
    return found
