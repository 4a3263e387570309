"""Handwritten loops that retry."""

import ast
import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from retrykit.audit._borrowed import called_name
from retrykit.audit._delays import GROWING, NO_DELAYS, UNKNOWN_DELAYS, Delays
from retrykit.audit._flow import LEAVES, flow, inner_nodes, leaves, without_await
from retrykit.audit._handlers import (
    Attempt,
    caught_by,
    error_names,
    is_log_function,
    last_name,
    may_raise_elsewhere,
    retried_errors,
    swallows_cancellation,
    variables_caught_by,
)
from retrykit.audit._helpers import Helpers
from retrykit.audit._loop_delays import HINTS, find_delays
from retrykit.audit._loop_endings import find_ending, find_ending_of_results
from retrykit.audit._loop_flags import turns_of_flag
from retrykit.audit._loop_kinds import (
    is_failure,
    is_retry,
    is_retry_of_results,
)
from retrykit.audit._loop_limits import Limits, find_limits
from retrykit.audit._loop_words import STOPS, Statement, counters, names_in
from retrykit.audit._pauses import (
    Pause,
    calls_retrier,
    find_pauses,
    iterates_over_retrier,
    iterator_may_wait,
    may_sleep_elsewhere,
    pauses_within,
)
from retrykit.audit._plain import is_plain, mentions_retries
from retrykit.audit._polls import announces_wait
from retrykit.audit._scopes import ANY
from retrykit.audit._turns import Turn, find_turn
from retrykit.audit._values import UNKNOWN, Scope, Value, evaluate, is_number

__all__ = ["Loop", "Place", "read_loop"]


# The names of functions that limit a rate.
_SPREADS = re.compile("sleep|pause|throttle|rate_?limit", re.IGNORECASE)


class Loop(NamedTuple):
    """A loop that retries.

    Attributes:
        line: Its first line.
        end_line: Its last line.
        column: Its column, from 1.
        function: The full name of the function around it, or "".
        is_async: Whether that function is async.
        calls: The most attempts: a number, infinity without a limit, UNKNOWN, or a
            value that must still be resolved.
        elapsed: The longest time: seconds, infinity, UNKNOWN, or a value to resolve.
        delays: The delays between attempts.
        retried: The names of the errors after which it continues; None if it catches
            every error, and which ones it retries is not known.
        results: Whether it continues after results, not after errors.
        swallows: Whether it continues after a cancellation.
        ending: "raises", "hidden" or "?": what happens after the last attempt.
        blocking: In an async function, the line of a ``time.sleep``, or of a call that
            makes one; 0 if there is none.
        hint: Whether it reads ``Retry-After`` or the like.
        some_at_once: Whether it waits after some errors, and retries at once after
            others.
        usual: The most attempts if no caller gives another number; infinity if then
            nothing limits them.
        elsewhere: The functions that it calls after a failure, if its jitter is
            unknown, else in its handlers: the last part of each name, and its value.
        plain: Whether it plainly repeats what failed.
        variables: The values of variables among *retried*, to resolve.
    """

    line: int
    end_line: int
    column: int
    function: str
    is_async: bool
    calls: Value
    elapsed: Value
    delays: Delays
    retried: tuple[str, ...] | None
    results: bool
    swallows: bool
    ending: str
    blocking: int
    hint: bool
    some_at_once: bool
    usual: Value
    elsewhere: tuple[tuple[str, Value], ...]
    plain: bool
    variables: tuple[tuple[str, Value], ...]


class Place(NamedTuple):
    """The surroundings of a loop.

    Attributes:
        preceding: The statements before it, in its block.
        following: The statements that follow it, in its block and in outer blocks.
        later: The statements that follow the loops around it.
        before: The expressions that were last assigned to names before it.
        scope: Returns the value of a name.
        usual: Returns the value of a name if parameters have their defaults.
        with_defaults: Returns a value with attributes replaced by their defaults.
        function: The full name of the function around it, or "".
        is_async: Whether that function is async.
        limited: Returns whether it is in a block, or in a call, that limits its time.
        helpers: Returns the functions of its module that may sleep, or limit its
            attempts.
    """

    preceding: Sequence[ast.stmt]
    following: Sequence[ast.stmt]
    later: Sequence[ast.stmt]
    before: dict[str, ast.expr]
    scope: Scope
    usual: Scope
    with_defaults: Callable[[Value], Value]
    function: str
    is_async: bool
    limited: Callable[[], bool]
    helpers: Callable[[], Helpers]


def read_loop(loop: Statement, place: Place) -> Loop | None:
    """Return what a loop does; None if it does not retry."""
    if announces_wait(place.preceding):
        return None
    turn = find_turn(loop, place.scope, place.function, place.following, place.before)
    if turn is None:
        if not _repeats_results(loop, place):
            return None
        pauses = [*find_pauses(loop.body, place.scope)]
    elif not is_retry(turn):
        return None
    else:
        within = pauses_within(turn.attempt, turn.pauses)
        pauses = [each for each in turn.pauses if each not in within]
    handlers = [] if turn is None else turn.handlers
    around = _around_attempt(loop, turn)
    calls, elapsed = _find_limits(loop, place, handlers, around)
    if calls == 1:
        return None
    usual = _usual_calls(loop, place, (calls, elapsed), handlers, around)
    failing = around if turn else _statements(loop)
    tests = [] if turn else _tests(loop)
    tests += [] if turn is None else _waits_before(turn.attempt)
    pauses = _with_helper_pauses(pauses, place.helpers(), [*failing, *tests])
    blocking = [each.node.lineno for each in pauses if each.blocking]
    delays = _find_delays(loop, place, pauses, failing)
    if delays.jitter is False and turn is not None and _begins_with_wait(turn, pauses):
        delays = delays.replace(jitter=None)
    variables = _variables(handlers, place)
    retried = _retried(turn, variables)
    endless = usual == math.inf or calls == elapsed == math.inf
    told = (
        endless
        or delays.shape in GROWING
        or mentions_retries(loop, turn, calls, place.function)
    )
    return Loop(
        loop.lineno,
        loop.end_lineno or loop.lineno,
        loop.col_offset + 1,
        place.function,
        place.is_async,
        calls,
        elapsed,
        delays,
        retried,
        turn is None,
        turn is not None and swallows_cancellation(turn.attempt, handlers),
        _find_ending(loop, place, handlers),
        blocking[0] if blocking and place.is_async else 0,
        _reads_hint(loop),
        turn is not None and _retries_some_at_once(turn, pauses, place.helpers()),
        usual,
        tuple(_called_elsewhere(around if delays.jitter is None else handlers, place)),
        told and is_plain(loop, turn, retried, endless=endless),
        tuple((name, variables[name]) for name in retried or () if name in variables),
    )


def _repeats_results(loop: Statement, place: Place) -> bool:
    """Return whether a loop that retries no errors repeats a call for its results."""

    def sleeps() -> bool:
        own = find_pauses(loop.body, place.scope)
        return any(own) or any(place.helpers().pauses(_statements(loop)))

    return is_retry_of_results(loop, place.function, place.before, sleeps)


def _find_limits(
    loop: Statement,
    place: Place,
    handlers: list[ast.ExceptHandler],
    around: list[ast.AST],
    *,
    usual: bool = False,
) -> Limits:
    """Return the limits of a loop; if *usual*, those without arguments of a caller.

    If it has none, but another function may end it, the number of attempts is UNKNOWN.
    """
    if usual:
        calls, elapsed = find_limits(
            loop,
            place.usual,
            place.before,
            handlers,
            lambda node: place.with_defaults(evaluate(node, place.usual)),
        )
    else:
        calls, elapsed = find_limits(loop, place.scope, place.before, handlers)
    if elapsed == math.inf and place.limited():
        elapsed = UNKNOWN
    if calls == elapsed == math.inf:
        shared = [x for x in around if x not in handlers]
        shared += _counted_calls(loop)
        if _may_limit(shared, handlers, place) and not (
            any(
                _only_logs_and_counts(each, loop) and not LEAVES & flow(each.body)
                for each in handlers
            )
            and not _may_limit(shared, [], place)
        ):
            calls = UNKNOWN
    return calls, elapsed


def _counted_calls(loop: Statement) -> list[ast.AST]:
    """Return the calls to which a counter of the loop is passed."""
    counted = counters(loop)
    return [
        each
        for each in inner_nodes(loop.body)
        if isinstance(each, ast.Call)
        and any(isinstance(x, ast.Name) and x.id in counted for x in each.args)
    ]


def _may_limit(
    shared: Sequence[ast.AST], handlers: Sequence[ast.ExceptHandler], place: Place
) -> bool:
    """Return whether a function that a loop calls after a failure may end it."""
    around = [*shared, *handlers]
    return (
        may_raise_elsewhere(handlers)
        or place.helpers().may_limit(around)
        or calls_retrier(around)
    )


def _usual_calls(
    loop: Statement,
    place: Place,
    limits: Limits,
    handlers: list[ast.ExceptHandler],
    around: list[ast.AST],
) -> Value:
    """Return the most attempts if no caller gives another number.

    Without a limit of attempts, but with one of time, the number is UNKNOWN.
    """
    if is_number(limits[0]) and (limits[0] < math.inf or limits[1] == math.inf):
        return limits[0]
    calls, elapsed = _find_limits(loop, place, handlers, around, usual=True)
    if calls == math.inf != elapsed:
        return UNKNOWN
    found = place.with_defaults(calls)
    # Each caller gives a number.
    return UNKNOWN if is_number(found) and ANY <= found < math.inf else found


def _find_delays(
    loop: Statement, place: Place, pauses: list[Pause], failing: list[ast.AST]
) -> Delays:
    """Return the delays of a loop; unknown if only another function may wait."""
    helpers = place.helpers()
    delays = find_delays(loop, pauses, place.scope, place.before, helpers.find)
    if delays != NO_DELAYS:
        return delays
    waits = may_sleep_elsewhere(failing) or helpers.may_wait(
        failing, [each.node for each in pauses]
    )
    waits = waits or iterator_may_wait(loop, place.before)
    return UNKNOWN_DELAYS if waits or iterates_over_retrier(loop) else delays


def _called_elsewhere(
    around: Sequence[ast.AST], place: Place
) -> Iterator[tuple[str, Value]]:
    """Yield the functions that a failed turn calls, if their full names are known."""
    for each in inner_nodes(around):
        match each:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name) as func):
                value = evaluate(func, place.scope)
                if "." in called_name(value) and not is_log_function(func):
                    yield name, value


def _find_ending(
    loop: Statement, place: Place, handlers: list[ast.ExceptHandler]
) -> str:
    if iterates_over_retrier(loop):
        return "?"
    if not handlers:
        return find_ending_of_results(loop, place.following, place.later)
    return find_ending(loop, handlers, place.following, place.later, place.before)


def _statements(loop: Statement) -> list[ast.AST]:
    """Return the statements that are only an expression, such as calls that sleep."""
    return [x for x in inner_nodes(loop.body) if isinstance(x, ast.Expr)]


def _tests(loop: Statement) -> list[ast.AST]:
    """Return the conditions in a loop, such as calls whose results are bad."""
    return [x.test for x in inner_nodes(loop.body) if isinstance(x, ast.If)]


def _retries_some_at_once(turn: Turn, pauses: list[Pause], helpers: Helpers) -> bool:
    """Return whether a loop sleeps after some errors, but not after others.

    A handler that does something first, such as connecting again, does not count.
    """
    asleep = {id(each.node) for each in pauses}
    around = [x for x in turn.loop.body if turn.attempt not in ast.walk(x)]
    shared = [x for x in around if x not in turn.rest]
    for each in turn.handlers if asleep else ():
        path = [*shared, *turn.attempt.body, *each.body, *turn.attempt.finalbody]
        path += turn.rest if "next" in flow(each.body) else []
        if any(id(x) in asleep for x in inner_nodes(path)):
            continue
        if helpers.may_wait([x for x in path if x not in turn.attempt.body]):
            continue
        if _leaves_unless_stopped(each):
            continue
        if all(map(is_failure, caught_by(each))) and _only_logs_and_counts(
            each, turn.loop
        ):
            return True
    return False


def _leaves_unless_stopped(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler is like ``if not stopped: raise``."""
    return any(
        isinstance(each, ast.If)
        and isinstance(each.test, ast.UnaryOp)
        and any(map(STOPS.search, names_in(each.test)))
        and leaves(each.body)
        for each in handler.body
    )


def _only_logs_and_counts(handler: ast.ExceptHandler, loop: Statement) -> bool:
    """Return whether a handler calls only log functions, and sets no flag."""
    raised = {
        id(x)
        for each in inner_nodes(handler.body)
        if isinstance(each, ast.Raise)
        for x in ast.walk(each)
    }
    return turns_of_flag(loop, handler) == math.inf and all(
        is_log_function(each.func)
        for each in inner_nodes(handler.body)
        if isinstance(each, ast.Call) and id(each) not in raised
    )


def _retried(turn: Turn | None, variables: dict[str, Value]) -> tuple[str, ...] | None:
    if turn is None:
        return ()
    caught = [
        (
            each,
            [
                name
                for one in caught_by(each)
                for name in error_names(variables.get(one)) or [one]
            ],
        )
        for each in turn.handlers
    ]
    return retried_errors(caught, turn.attempt.handlers, turn.rest)


def _variables(handlers: Sequence[ast.ExceptHandler], place: Place) -> dict[str, Value]:
    """Return the values of variables that handlers catch; by default, of parameters."""
    return {
        name: place.with_defaults(evaluate(node, place.usual))
        for each in handlers
        for name, node in variables_caught_by(each).items()
    }


def _with_helper_pauses(
    pauses: list[Pause], helpers: Helpers, around: Sequence[ast.AST]
) -> list[Pause]:
    """Return the sleeps of a loop and of the functions that it calls."""
    found = [*helpers.pauses(around)]
    known = {id(each.node) for each in found}
    return [*(x for x in pauses if id(x.node) not in known), *found]


def _begins_with_wait(turn: Turn, pauses: Sequence[Pause]) -> bool:
    """Return whether an attempt begins with a call that may wait, as for a rate."""
    match turn.attempt.body[0]:
        case ast.Expr(value=value):
            call = without_await(value)
            return (
                isinstance(call, ast.Call)
                and bool(_SPREADS.search(last_name(call.func)))
                and all(x.argument is None for x in pauses if x.node is call)
            )
    return False


def _waits_before(attempt: Attempt) -> list[ast.stmt]:
    """Return the first statements of an attempt, like ``if number: wait(delay)``."""
    return [
        *takewhile(
            lambda each: (
                isinstance(each, ast.If)
                and all(isinstance(x, ast.Expr) for x in each.body)
            ),
            attempt.body,
        )
    ]


def _around_attempt(loop: Statement, turn: Turn | None) -> list[ast.AST]:
    """Return the statements that run in a failed turn, without the attempt."""
    if turn is None:
        return [*loop.body]
    others: list[ast.AST] = [x for x in loop.body if turn.attempt not in ast.walk(x)]
    return [*others, *turn.handlers, *turn.attempt.finalbody, *turn.rest]


def _reads_hint(loop: Statement) -> bool:
    for each in inner_nodes(loop.body):
        match each:
            case ast.Constant(value=str(text)) if HINTS.search(text):
                return True
            case ast.Name(id=text) | ast.Attribute(attr=text) if HINTS.search(text):
                return True
    return False
