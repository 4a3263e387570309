"""Loops that are written by hand and repeat what failed."""

import ast
import math
from collections.abc import Sequence
from typing import NamedTuple

from retrykit.audit._delays import Delays
from retrykit.audit._flow import inner_nodes
from retrykit.audit._handlers import (
    caught_by,
    may_raise_elsewhere,
    retried_errors,
    swallows_cancellation,
)
from retrykit.audit._loop_delays import HINTS, find_delays, find_pauses
from retrykit.audit._loop_endings import find_ending
from retrykit.audit._loop_kinds import (
    find_turn,
    is_retry,
    is_retry_of_results,
)
from retrykit.audit._loop_limits import Statement, find_limits
from retrykit.audit._values import Scope, Value

__all__ = ["Loop", "Place", "read_loop"]


class Loop(NamedTuple):
    """A loop that retries.

    Attributes:
        line: The line of its statement.
        end_line: Its last line.
        column: Its column, from 1.
        function: The full name of the function around it, or "".
        is_async: Whether that is a coroutine function.
        calls: The most attempts: a number, infinity without a limit, or a value that
            is to be found.
        elapsed: The most seconds, likewise.
        delays: The delays between attempts.
        retried: The names of the errors after which it goes on; None if it catches
            every error and asks which it is.
        results: Whether it goes on after results, not after errors.
        swallows: Whether it goes on after a cancellation.
        ending: "raises", "hidden" or "?": what happens after the last attempt.
        blocking: The line of a ``time.sleep`` in it, or 0.
        hint: Whether it reads ``Retry-After``.
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


class Place(NamedTuple):
    """The surroundings of a loop.

    Attributes:
        following: The statements that follow it in its block.
        before: What the names of its function were assigned to last, before it.
        scope: Returns the value of a name.
        function: The full name of the function around it, or "".
        is_async: Whether that is a coroutine function.
        limited: Whether it is within a block that limits its time.
    """

    following: Sequence[ast.stmt]
    before: dict[str, ast.expr]
    scope: Scope
    function: str
    is_async: bool
    limited: bool


def read_loop(loop: Statement, place: Place) -> Loop | None:
    """Return what a loop does, or None if it does not retry."""
    scope = place.scope
    pauses = list(find_pauses(loop.body, scope))
    turn = find_turn(loop, pauses, place.function)
    handlers = [] if turn is None else turn.handlers
    if turn is not None:
        if not is_retry(turn):
            return None
    elif not pauses or not is_retry_of_results(loop, place.function):
        return None
    calls, elapsed = find_limits(loop, scope, place.before, handlers)
    if place.limited:
        elapsed = None if elapsed == math.inf else elapsed
    if calls == elapsed and may_raise_elsewhere(handlers):
        calls = None
    caught = [name for each in handlers for name in caught_by(each)]
    blocking = [each.node.lineno for each in pauses if each.blocking]
    return Loop(
        loop.lineno,
        loop.end_lineno or loop.lineno,
        loop.col_offset + 1,
        place.function,
        place.is_async,
        calls,
        elapsed,
        find_delays(loop, pauses, scope, place.before),
        retried_errors(caught, handlers, [] if turn is None else turn.rest),
        turn is None,
        turn is not None and swallows_cancellation(turn.attempt, handlers),
        find_ending(loop, handlers, place.following) if handlers else "?",
        blocking[0] if blocking and place.is_async else 0,
        _reads_hint(loop),
    )


def _reads_hint(loop: Statement) -> bool:
    for each in inner_nodes(loop.body):
        match each:
            case ast.Constant(value=str(text)) if HINTS.search(text):
                return True
            case ast.Name(id=text) | ast.Attribute(attr=text) if HINTS.search(text):
                return True
    return False
