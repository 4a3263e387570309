"""Limits of a loop that retries: its counters and clocks."""

import ast
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy

from retrykit.audit._flow import LEAVES, flow, inner_nodes, leaves
from retrykit.audit._handlers import last_name
from retrykit.audit._loop_counts import (
    attempts_of_iterator,
    attempts_of_steps,
    first_count,
)
from retrykit.audit._loop_flags import limit_of_flags
from retrykit.audit._loop_words import (
    CLOCK_WORDS,
    COUNT_WORDS,
    ENDLESS,
    Statement,
    counters,
    names_in,
    target_names,
)
from retrykit.audit._values import (
    UNKNOWN,
    Operation,
    Reference,
    Scope,
    Value,
    evaluate,
    is_number,
    truth,
)

__all__ = ["Limits", "find_limits", "has_limit_test"]

Limits = tuple[Value, Value]
"""The most attempts and the most seconds.

Each is a number, infinity, UNKNOWN, or a value that must still be resolved.
"""

NO_LIMITS: Limits = (math.inf, math.inf)

_CLOCKS = re.compile(r"^(time|monotonic|perf_counter|now|utcnow|time_ns|monotonic_ns)$")
# The name of an error, such as `StatusCode.DEADLINE_EXCEEDED`.
_STATUSES = re.compile(r"^[A-Z_]*EXCEEDED$|Error$|Exception$")

# Functions that tell errors or values apart.
_TOLD_APART = frozenset(
    """
    any all code get getattr hasattr is_set isEnabledFor isinstance issubclass len lower
    repr search match startswith endswith str type upper
    """.split()  # noqa: SIM905  a list of words
)
_LEAST = frozenset(["max", "min"])
_LIMITS_TIME = re.compile(
    f"{CLOCK_WORDS.pattern}|timed_out|is_over|time_limit", re.IGNORECASE
)
_LEFT = re.compile(r"^(left_?over|remaining_time|time_(left|remaining))$")
# The names of functions and variables that tell whether to try again.
_ASKS = re.compile(
    r"(should_|can_|may_)?(retry|give_?up|exhaust)|attempts|retries|tries"
)


def _unknown(node: ast.expr) -> Value:  # noqa: ARG001  as all
    return UNKNOWN


def find_limits(
    loop: Statement,
    scope: Scope,
    before: dict[str, ast.expr],
    handlers: Sequence[ast.ExceptHandler] = (),
    usual: Callable[[ast.expr], Value] = _unknown,
) -> Limits:
    """Return the limits of a loop whose attempts all fail.

    Args:
        loop: The loop.
        scope: Returns the value of a name.
        before: The expressions that were last assigned to names before the loop.
        handlers: The handlers after which the loop continues. If one of them continues
            without a limit, the loop has none.
        usual: Returns the value of an expression if callers give no arguments. Tests
            that are then false limit nothing.
    """
    found = _limits_of_loop(loop, scope, before, usual)
    if found == NO_LIMITS and (_ends_by_helper(handlers) or _ends_by_items(handlers)):
        return UNKNOWN, math.inf
    if handlers and found[0] in (UNKNOWN, math.inf):
        found = _least(found[0], limit_of_flags(loop, handlers)), found[1]
    if len(handlers) > 1 and found != NO_LIMITS:
        for each in handlers:
            if flow(each.body) & LEAVES:
                # Perhaps only the first time.
                continue
            others = {id(x) for x in handlers if x is not each}
            way: Statement = copy(loop)
            way.body = _with_raising_handlers(loop.body, others)
            if _limits_of_loop(way, scope, before, usual) == NO_LIMITS:
                return NO_LIMITS
    return found


def _ends_by_helper(handlers: Sequence[ast.ExceptHandler]) -> bool:
    """Return whether a function that does not get the error decides if the loop ends.

    For example, ``if not self.replace_source(): raise``; or ``delay = next(delays)``
    before ``if delay is None: raise``.
    """
    return any(
        isinstance(each, ast.If)
        and (leaves(each.body) or leaves(each.orelse))
        and any(
            _decides(call, handler.name or "")
            for node in [each.test, *_tested_for_none(each.test, handler)]
            for call in ast.walk(node)
        )
        for handler in handlers
        for each in inner_nodes(handler.body, loops=False)
    )


def _tested_for_none(test: ast.expr, handler: ast.ExceptHandler) -> list[ast.expr]:
    """Return what a handler assigns to a name that is then compared with None."""
    match test:
        case ast.Compare(
            left=ast.Name(id=name),
            ops=[ast.Is() | ast.IsNot()],
            comparators=[ast.Constant(value=None)],
        ):
            return [
                each.value
                for each in inner_nodes(handler.body, loops=False)
                if isinstance(each, ast.Assign)
                and name in target_names(each.targets[0])
            ]
    return []


def _ends_by_items(handlers: Sequence[ast.ExceptHandler]) -> bool:
    """Return whether a loop in a handler ends the outer one once it has no more items.

    For example, ``for delay in delays: ...; break``, and ``raise`` in its ``else``.
    """
    return any(
        isinstance(each, ast.For) and leaves(each.orelse)
        for handler in handlers
        for each in inner_nodes(handler.body)
    )


def _decides(node: ast.AST, error: str) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = names_in(node.func)
    if name & _TOLD_APART or any(map(ENDLESS.search, name)):
        return False
    return error not in names_in(node)


def has_limit_test(nodes: Iterable[ast.AST]) -> bool:
    """Return whether some of the nodes compare attempts, or a time, with a limit."""
    return any(
        isinstance(each, ast.Compare)
        and _compares_size(each)
        and any(_is_time_word(x) or COUNT_WORDS.search(x) for x in names_in(each))
        for each in nodes
    )


def _with_raising_handlers(
    body: Sequence[ast.stmt], handlers: set[int]
) -> list[ast.stmt]:
    """Return statements in which some handlers do nothing except ``raise``."""
    found: list[ast.stmt] = []
    for each in body:
        new = each
        if isinstance(each, ast.If | ast.With | ast.AsyncWith | ast.Try | ast.TryStar):
            new = copy(each)
            new.body = _with_raising_handlers(each.body, handlers)
        if isinstance(new, ast.Try | ast.TryStar):
            new.handlers = [
                ast.ExceptHandler(x.type, x.name, [ast.Raise()])
                if id(x) in handlers
                else x
                for x in new.handlers
            ]
        found.append(new)
    return found


def _limits_of_loop(
    loop: Statement,
    scope: Scope,
    before: dict[str, ast.expr],
    usual: Callable[[ast.expr], Value],
) -> Limits:
    counted = counters(loop)
    changed = _assigned_names(loop)

    def settled(node: ast.expr) -> Value:
        varies = changed is None or names_in(node) & (changed | counted)
        return UNKNOWN if varies else usual(node)

    turning: set[str] = set()
    calls, elapsed = NO_LIMITS
    if not isinstance(loop, ast.While):
        calls = attempts_of_iterator(loop.iter, scope)
        # `_turns_until` reads what is compared with its counter.
        turning = names_in(loop.target)
    elif not truth(loop.test, settled):
        calls, elapsed = _limits_of_condition(loop, scope, before)
    first = first_count(loop, scope)
    within = _computed_words(loop.body)
    grown = _growing_delays(loop)
    for test in _leaving_tests(loop):
        if truth(test, settled) is False:
            continue
        found = _limits_of_test(test, counted, changed, scope, turning)
        if _compares_time_left(test, within):
            found = found[0], UNKNOWN
        if names_in(test) & grown:
            found = math.inf, UNKNOWN
        calls, elapsed = _least(calls, found[0]), _least(elapsed, found[1])
        calls = _least(calls, _attempts_of_truth_test(test, loop, scope, before))
        if not isinstance(loop, ast.While):
            turns = _turns_until(test, names_in(loop.target), first, scope)
            calls = _least(calls, turns)
    if elapsed == math.inf and any(map(_takes_time_left, inner_nodes(loop.body))):
        # Whoever measures the time ends the loop, too.
        elapsed = UNKNOWN
    return calls, elapsed


def _takes_time_left(node: ast.AST) -> bool:
    """Return whether a statement is like ``delay = leftover``."""
    return isinstance(node, ast.Assign) and any(map(_LEFT.search, names_in(node.value)))


def _limits_of_condition(
    loop: ast.While, scope: Scope, before: dict[str, ast.expr]
) -> Limits:
    """Return the limits that the condition of a ``while`` loop states."""
    counted = counters(loop)
    changed = _assigned_names(loop)
    calls, elapsed = _limits_of_test(loop.test, counted, changed, scope, None)
    firsts = [evaluate(before[x], scope) for x in counted & before.keys()]
    if is_number(calls) and len(firsts) == 1 and is_number(firsts[0]):
        # Such as `attempt = 1` before `while attempt <= 3`.
        calls = max(calls - firsts[0], 1) if calls > firsts[0] else UNKNOWN
    if calls is UNKNOWN or calls == math.inf:
        calls = _least(calls, attempts_of_steps(loop, scope, before))
    stays = isinstance(loop.test, ast.Compare) and _is_constant_test(loop.test, changed)
    if calls == elapsed and not stays and _asked_names(loop.test) - _flags(loop):
        # It is not known what else ends the loop.
        calls = UNKNOWN
    return calls, elapsed


def _computed_words(body: Sequence[ast.stmt]) -> dict[str, set[str]]:
    """Return the names that a loop computes, with the names in their expressions."""
    found: dict[str, set[str]] = {}
    for each in inner_nodes(body):
        match each:
            case ast.Assign(
                targets=[target], value=ast.BinOp() | ast.Call(func=ast.Name()) as value
            ) if isinstance(value, ast.BinOp) or target_names(value.func) & _LEAST:
                for name in target_names(target):
                    found.setdefault(name, set()).update(names_in(value))
    return found


def _growing_delays(loop: Statement) -> set[str]:
    """Return the names that grow by what a loop has slept, or by ``delay *= 2``."""
    slept = {
        name
        for each in inner_nodes(loop.body)
        if isinstance(each, ast.Call) and last_name(each.func) == "sleep"
        for argument in each.args
        for name in names_in(argument)
    }
    return {
        name
        for each in inner_nodes(loop.body)
        if isinstance(each, ast.AugAssign)
        for name in target_names(each.target)
        if (isinstance(each.op, ast.Mult) and name in slept)
        or (isinstance(each.op, ast.Add) and names_in(each.value) & slept)
    }


def _compares_time_left(test: ast.expr, within: dict[str, set[str]]) -> bool:
    """Return whether a test is about a name set to ``min(delay, end - time())``."""
    return any(
        isinstance(each, ast.Compare)
        and _compares_size(each)
        and any(
            _is_time_word(x) for name in names_in(each) for x in within.get(name, ())
        )
        for each in ast.walk(test)
    )


def _attempts_of_truth_test(
    test: ast.expr, loop: Statement, scope: Scope, before: dict[str, ast.expr]
) -> Value:
    """Return the attempts that ``if attempt: raise`` or ``if left == 0: raise`` allows.

    For other tests, the number is infinity.
    """
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        calls: Value = math.inf
        for each in test.values:
            calls = _least(calls, _attempts_of_truth_test(each, loop, scope, before))
        return calls
    node, counts_up = test, False
    match test:
        case ast.UnaryOp():
            node = test.operand
        case ast.Compare(
            ops=[ast.Gt() | ast.Eq() | ast.LtE() as op],
            comparators=[ast.Constant(value=0)],
        ):
            # Such as `if attempt > 0: raise`.
            node, counts_up = test.left, isinstance(op, ast.Gt)
    if not isinstance(node, ast.Name) or node.id not in before:
        return math.inf
    first = evaluate(before[node.id], scope)
    steps = [
        each
        for each in inner_nodes(loop.body)
        if isinstance(each, ast.AugAssign) and target_names(each.target) == {node.id}
    ]
    match steps:
        case [ast.AugAssign(op=ast.Add())] if first == 0:
            return 2
        case [ast.AugAssign(op=ast.Sub(), value=ast.Constant(value=1))]:
            if is_number(first) and first > 0 and not counts_up:
                return math.ceil(first) + (steps[0].lineno > test.lineno)
    return math.inf


def _asked_names(test: ast.expr) -> set[str]:
    """Return the names in a condition; of a dotted name, only the last part."""
    owners = {id(x.value) for x in ast.walk(test) if isinstance(x, ast.Attribute)}
    return {
        x.id if isinstance(x, ast.Name) else x.attr
        for x in ast.walk(test)
        if isinstance(x, ast.Name | ast.Attribute) and id(x) not in owners
    }


def _flags(loop: ast.While) -> set[str]:
    """Return names that a loop assigns, or that other code may set."""
    names = names_in(loop.test)
    found = {"self", *(each for each in names if ENDLESS.search(each))}
    # Of an event that stops the program.
    found |= {"is_set"} if len(found) > 1 else set()
    for each in inner_nodes(loop.body):
        if isinstance(each, ast.Assign):
            for target in each.targets:
                found |= target_names(target)
    return found


def _turns_until(
    test: ast.expr, counted: set[str], first: Value, scope: Scope
) -> Value:
    """Return how many iterations a test of a ``for`` loop's counter allows."""
    turns: Value = math.inf
    for each in ast.walk(test):
        match each:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                pass
            case _:
                continue
        if not _compares_size(each) or not (names_in(left) | names_in(right)) & counted:
            continue
        # Whether the turn with the value is not the last yet.
        later = isinstance(op, ast.Gt | ast.LtE)
        if names_in(right) & counted:
            left, right, later = right, left, isinstance(op, ast.Lt | ast.GtE)
        value = evaluate(right, scope)
        if isinstance(left, ast.BinOp):
            # Such as `attempt + 1 == 3`.
            more = evaluate(left.right, scope)
            plus = isinstance(left.op, ast.Add) and is_number(more)
            value = value - more if plus and is_number(value) else UNKNOWN
        if not is_number(value) or not is_number(first):
            turns = _least(turns, UNKNOWN)
        elif value > first:
            turns = _least(turns, math.ceil(value - first) + 1 + later)
    return turns


def _least(one: Value, other: Value) -> Value:
    if one == math.inf:
        return other
    if other == math.inf:
        return one
    if is_number(one) and is_number(other):
        return min(one, other)
    if is_number(one) or other is UNKNOWN:
        return one
    return other


def _leaving_tests(loop: Statement) -> Iterator[ast.expr]:
    """Yield the tests in a loop that decide whether it is left."""
    assigned: dict[str, ast.expr] = {}
    for each in inner_nodes(loop.body, loops=False):
        if isinstance(each, ast.Assert):
            yield each.test
        match each:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Compare() | ast.BoolOp() as value
            ):
                # Such as `is_last = attempt >= 5`.
                assigned[name] = value
        if not isinstance(each, ast.If):
            continue
        here = flow(each.body)
        other = flow(each.orelse)
        # After a `continue`, what follows may leave.
        if here <= LEAVES or other <= LEAVES or "continue" in here:
            yield each.test
            for name in names_in(each.test) & assigned.keys():
                yield assigned[name]
    if isinstance(loop, ast.While):
        # Such as `while again:` with `again = attempt < 5`.
        for name in names_in(loop.test) & assigned.keys():
            yield assigned[name]


def _limits_of_test(
    test: ast.expr,
    counted: set[str],
    changed: set[str] | None,
    scope: Scope,
    turning: set[str] | None,
) -> Limits:
    """Return the limits that a condition states.

    Args:
        test: The condition.
        counted: The names that the loop counts.
        changed: The names that the loop assigns to; None if they are not known.
        scope: Returns the value of a name.
        turning: The names that change in each iteration, which are left out; None for
            the condition of the loop itself.
    """
    calls: Value = math.inf
    elapsed: Value = math.inf
    for each in ast.walk(test):
        if not isinstance(each, ast.Compare) or not _compares_size(each):
            continue
        operands = [each.left, *each.comparators]
        words = [names_in(x) for x in operands]
        every = set().union(*words)
        if any(map(_is_time_word, every)):
            elapsed = _least(elapsed, UNKNOWN)
        elif every & (turning or set()) or _is_constant_test(each, changed):
            continue
        elif every & counted or any(map(COUNT_WORDS.search, every)):
            bound = _bound_of(each, operands, words, counted, scope)
            calls = _least(calls, bound)
    if isinstance(test, ast.Compare):
        return calls, elapsed
    words_of_limits = _limits_of_words(
        names_in(test), counted, inner=turning is not None
    )
    return _least(calls, words_of_limits[0]), _least(elapsed, words_of_limits[1])


def _limits_of_words(names: set[str], counted: set[str], *, inner: bool) -> Limits:
    """Return the limits that names suggest, as ``left`` does in ``while left:``."""
    calls = any(
        word in counted
        or (inner and not _LIMITS_TIME.search(word) and _ASKS.search(word))
        for word in names
    )
    elapsed = any(word not in counted and _LIMITS_TIME.search(word) for word in names)
    return UNKNOWN if calls else math.inf, UNKNOWN if elapsed else math.inf


def _is_time_word(word: str) -> bool:
    """Return whether a name is about a clock or a time limit."""
    if _STATUSES.search(word):
        return False
    return bool(_CLOCKS.search(word) or CLOCK_WORDS.search(word))


def _assigned_names(loop: Statement) -> set[str] | None:
    """Return the names that a loop assigns to; None if a call may assign others."""
    found = set() if isinstance(loop, ast.While) else names_in(loop.target)
    for each in inner_nodes(loop.body):
        match each:
            case (
                ast.Name(id=name, ctx=ast.Store() | ast.Del())
                | ast.Attribute(attr=name, ctx=ast.Store())
            ):
                found.add(name)
            case ast.Expr(value=ast.Call(func=ast.Name(), args=[], keywords=[])):
                # Perhaps a function within this one, with `nonlocal`.
                return None
    return found


def _is_constant_test(node: ast.Compare, changed: set[str] | None) -> bool:
    """Return whether a comparison has the same result in each turn."""
    if changed is None:
        return False
    # What a counter that never counts is compared with may be an attribute.
    kinds = ast.Name | ast.Constant
    wide = kinds | ast.Attribute if isinstance(node.left, ast.Name) else kinds
    return all(isinstance(x, wide) for x in node.comparators) and (
        isinstance(node.left, kinds) and not names_in(node) & changed
    )


def _compares_size(node: ast.Compare) -> bool:
    return all(
        isinstance(each, ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.Eq | ast.NotEq)
        for each in node.ops
    )


def _bound_of(
    node: ast.Compare,
    operands: list[ast.expr],
    words: list[set[str]],
    counted: set[str],
    scope: Scope,
) -> Value:
    """Return the number of attempts that a comparison allows, or UNKNOWN."""
    for operand, names in zip(operands, words, strict=True):
        if names & counted:
            continue
        value = evaluate(operand, scope)
        if value == 1 and operand is not node.left and isinstance(node.ops[0], ast.GtE):
            # It depends on whether the counter is changed before or after.
            return 2
        if is_number(value) and value > 1:
            strict = isinstance(node.ops[0], ast.LtE | ast.Gt)
            return math.ceil(value) + strict
        if type(value) is Reference and "." in value.name:
            # It may come from another module, or from a class's parameter.
            strict = isinstance(node.ops[0], ast.LtE | ast.Gt)
            return Operation("+", value, 1) if strict else value
    return UNKNOWN
