"""Loops that plainly repeat what failed; others may poll, or try the next of many."""

import ast
import re
from collections.abc import Sequence

from retrykit.audit._flow import flow, inner_nodes, leaves
from retrykit.audit._handlers import OF_NETWORK, derived_names, is_log_function
from retrykit.audit._loop_words import (
    EVIDENCE,
    STOPS,
    Statement,
    control_words,
    is_counted,
    names_in,
)
from retrykit.audit._statuses import (
    leaves_on_good_status,
    returns_tested_response,
    tests_throttling,
)
from retrykit.audit._turns import Turn
from retrykit.audit._values import Value, is_number

__all__ = ["is_plain", "mentions_retries"]

# Every error, or those of a network, a server or another process.
_OF_OTHERS = re.compile(
    rf"^((Base)?Exception|(IO|OS)Error)$|{OF_NETWORK.pattern}"
    r"|Client|HTTP|Http|Operational|Process|RPC|Reconnect|Remote|Rpc|SSH|Server"
)
_RETRIABLE = re.compile(
    "(^|_)(retr(i|y)able|transient|recoverable)(_|$)", re.IGNORECASE
)
_FEW = 5


def is_plain(
    loop: Statement, turn: Turn | None, retried: Sequence[str] | None, *, endless: bool
) -> bool:
    """Return whether a loop plainly repeats what failed.

    It asks whether an error can be retried; or, where it is known which errors are
    retried, it logs or keeps them, or catches every error or those of other programs.
    If it is endless, a success also leaves it at once, or sets a flag, and no test in
    a handler may give up. A silent loop may poll, or try the next of many.

    Args:
        loop: The loop.
        turn: One turn; None if the loop repeats a call for its results.
        retried: The names of the errors that it retries; None if they are not known.
        endless: Whether nothing limits the attempts, or nothing does by default.
    """
    if turn is None:
        # Without an end, it may read on, or send one page after another.
        return tests_throttling(loop) or (
            not endless and _logs(loop.body) and _tests_status(loop)
        )
    logs = any(
        _logs([*each.body, *(turn.rest if "next" in flow(each.body) else [])])
        for each in turn.handlers
    )
    if endless and not (turn.leaves or (logs and turn.sets_flag)):
        return False
    if endless and any(map(_may_give_up, turn.handlers)):
        return False
    if any(map(_asks, turn.handlers)):
        return True
    told = logs or any(map(_keeps, turn.handlers))
    told = told or any(map(_OF_OTHERS.search, turn.caught))
    return told and (endless or retried is not None)


def mentions_retries(
    loop: Statement, turn: Turn | None, calls: Value, function: str
) -> bool:
    """Return whether a loop that ends is one of retries by its words or its length.

    A name or a text in it, or its function, mentions retries; or it takes few turns; or
    it is like ``for _ in range(n)``, and catches every error. Others may poll.

    Args:
        loop: The loop.
        turn: One turn; None if the loop repeats a call for its results.
        calls: The most attempts.
        function: The full name of the function around it, or "".
    """
    if is_number(calls) and calls <= _FEW:
        return True
    if turn and turn.caught <= {"BaseException", "Exception"} and is_counted(loop):
        return True
    words = control_words(loop, texts=True)
    return bool(EVIDENCE.search(f"{function.rpartition('.')[2]} {words}"))


def _tests_status(loop: Statement) -> bool:
    """Return whether a loop ends, or returns data, after a good HTTP status."""
    return leaves_on_good_status(loop) or returns_tested_response(loop)


def _logs(body: Sequence[ast.stmt]) -> bool:
    return any(
        isinstance(each, ast.Call) and is_log_function(each.func)
        for each in inner_nodes(body)
    )


def _asks(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler asks whether an error can be retried."""
    return any(
        isinstance(each, ast.If) and any(map(_RETRIABLE.search, names_in(each.test)))
        for each in inner_nodes(handler.body)
    )


def _may_give_up(handler: ast.ExceptHandler) -> bool:
    """Return whether a test may end the loop, other than of the error or of a stop."""
    derived = derived_names(handler)
    return any(
        isinstance(each, ast.If)
        and (leaves(each.body) or leaves(each.orelse))
        and not names_in(each.test) & derived
        and not any(map(STOPS.search, names_in(each.test)))
        for each in inner_nodes(handler.body, loops=False)
    )


def _keeps(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler keeps its error for later, as in ``last = error``."""
    return any(
        isinstance(each, ast.Assign)
        and isinstance(each.value, ast.Name)
        and each.value.id == handler.name
        for each in inner_nodes(handler.body)
    )
