"""Loops that look like retries, such as workers, polls, fallbacks and prompts.

They are recognized by their control flow, by the names and texts in them, and by the
errors that they catch.
"""

import ast
import re
from collections.abc import Sequence

from retrykit.audit._fallbacks import is_enlargement, is_fallback
from retrykit.audit._flow import LEAVES, flow, inner_nodes, leaves, without_await
from retrykit.audit._handlers import (
    NOT_FAILURES,
    OF_DATA,
    Attempt,
    derived_names,
    is_log_function,
    last_name,
)
from retrykit.audit._loop_words import (
    ENDLESS,
    STOPS,
    Statement,
    counters,
    names_in,
    words_in,
)
from retrykit.audit._polls import is_poll
from retrykit.audit._turns import Turn, assigned_constants

__all__ = ["is_look_alike", "prompts_user"]

_CONFLICTS = re.compile(
    r"[Ww]atch|Conflict|Integrity|Stale|Concurren|Exists|Duplicat|Dedup|Collision"
    r"|Optimistic|Cas[A-Z]|Transaction(Failed|Abort)|Version|CompareAndSet|Precondition|Changed(Error|Exception)?$"
)
# What is told to a person who gives something else.
_TOLD = re.compile(
    r"(incorrect|please),? try again"
    r"|(wrong|invalid|incorrect) (user|password|code|login)",
    re.IGNORECASE,
)
# Functions that compute a result from what is there already.
_COMPUTES = re.compile(
    r"^_*(try_)?(decompress|decode|decrypt|deserialize|loads|parse|unpack|unpickle)(_|$)"
)
_EXPECTED = re.compile(
    r"^(parent|expected|if_(none_)?match|if_generation|etag|cas$)", re.IGNORECASE
)
_EXISTS = re.compile(
    r"already[_ ]?exists|(already|address) in use|duplicate|unique", re.IGNORECASE
)
_TAKEN_NUMBERS = frozenset(["EADDRINUSE", "EEXIST"])
# What an error tells of another writer.
_OUTDATED = re.compile(r"^(is_)?(stale|conflict)(_|$)", re.IGNORECASE)
# Errors that tell that something is not there.
_ABSENT = re.compile("NotFound|DoesNotExist|Missing|NoSuch|Unknown(Key|Name)")
_ASKS = re.compile(
    r"^(get_?pass(word|phrase)?|input|prompt|raw_input)$"
    r"|^_*(ask|confirm|prompt)_(\w+_)?(again|continue|retry)$"
)
# The names of functions and of objects that ask a person; a service may be asked, too.
_DIALOGUES = re.compile(
    r"^_*(ask|prompt|confirm|query_yes_no|read_password)(_|$)|(^|_)input$|user_input"
    r"|(^|_)editor$"
    r"|^pause$",
    re.IGNORECASE,
)
_DIALOGUE_OWNERS = re.compile(
    "prompt|questionary|click|typer|inquirer|confirm$", re.IGNORECASE
)
_CLOCKS = frozenset(["monotonic", "now", "perf_counter", "time", "utcnow"])
# Methods that return at the end of what was begun.
_LASTING = frozenset(["join", "mainloop", "run_forever", "serve_forever"])
_TASKS = frozenset(["create_task", "ensure_future", "start_soon"])
_SESSIONS = frozenset(["listen", "receive_forever", "run", "serve"])
_RECONNECTS = re.compile(
    r"^_*((auto|do|handle|run|start|try)_?)?re_?connect(_|$)", re.IGNORECASE
)
_QUEUES = re.compile("queue|inbox|mailbox", re.IGNORECASE)


def _is_worker(turn: Turn) -> bool:
    """Return whether a loop does one job after another until it is stopped."""
    if (
        _runs_indefinitely(turn.attempt)
        or _is_thread_loop(turn)
        or _passes_stop_event(turn)
    ):
        return True
    if _takes_queue_item(turn.loop):
        return True
    if turn.always_ends:
        return False
    return (
        _is_stopped_elsewhere(turn.loop)
        or _leaves_only_to_stop(turn)
        or any(
            isinstance(each, ast.Expr)
            and isinstance(each.value, ast.Yield | ast.YieldFrom)
            for each in inner_nodes(turn.success)
        )
        or bool(counters(turn.loop) & assigned_constants(inner_nodes(turn.success)))
    )


def _takes_queue_item(loop: Statement) -> bool:
    """Return whether each turn begins with the next item of a queue."""
    match loop.body[0]:
        case ast.Assign(value=value):
            call = without_await(value)
            return (
                isinstance(call, ast.Call)
                and last_name(call.func) == "get"
                and any(map(_QUEUES.search, names_in(call.func)))
            )
    return False


def _passes_stop_event(turn: Turn) -> bool:
    """Return whether an attempt passes the event that stops the loop to a call."""
    if not isinstance(turn.loop, ast.While):
        return False
    events = {x for x in names_in(turn.loop.test) if ENDLESS.search(x)}
    return any(
        isinstance(each, ast.Call) and any(names_in(x) & events for x in each.args)
        for each in inner_nodes(turn.attempt.body)
    )


def _is_thread_loop(turn: Turn) -> bool:
    """Return whether a loop in a function like ``_poll_loop`` waits for an event."""
    return turn.function.endswith("_loop") and any(
        last_name(each.node.func) == "wait" for each in turn.pauses
    )


def _is_reconnect(turn: Turn) -> bool:
    """Return whether a lost connection or stream is opened again without a limit."""
    if not isinstance(turn.loop, ast.While):
        return False
    if not _RECONNECTS.search(turn.function) and not _reads_stream(turn.attempt):
        return False
    limited = any(
        isinstance(each, ast.Compare) or names_in(each) & counters(turn.loop)
        for each in ast.walk(turn.loop.test)
    )
    handled = [x for each in turn.handlers for x in each.body]
    return not limited and all(_exits_to_stop(handled, raises=True))


def _reads_stream(attempt: Attempt) -> bool:
    """Return whether an attempt handles all items of an asynchronous stream."""
    return any(
        isinstance(each, ast.AsyncFor) and not LEAVES & flow(each.body)
        for each in inner_nodes(attempt.body)
    )


def _runs_indefinitely(attempt: Attempt) -> bool:
    """Return whether an attempt runs until it is stopped, as a server does."""
    return any(
        isinstance(each, ast.Call) and (_lasts(each) or _begins_session(each))
        for each in inner_nodes(attempt.body)
    ) or any(
        isinstance(each, ast.While)
        # Until it is stopped, as in `while self.running`.
        and isinstance(each.test, ast.Constant | ast.Attribute)
        and not {"break", "return"} & flow(each.body)
        for each in inner_nodes(attempt.body)
    )


def _lasts(call: ast.Call) -> bool:
    """Return whether a call is like ``thread.join()``, not ``join(folder, name)``."""
    return last_name(call.func) in _LASTING and all(
        isinstance(each, ast.Constant) for each in call.args
    )


def _begins_session(call: ast.Call) -> bool:
    """Return whether a call is like ``create_task(client.run())``."""
    return last_name(call.func) in _TASKS and any(
        isinstance(each, ast.Call) and last_name(each.func) in _SESSIONS
        for each in call.args
    )


def _is_compare_and_set(turn: Turn) -> bool:
    """Return whether a loop repeats updates that conflict with other writers."""
    if turn.caught and all(map(_CONFLICTS.search, turn.caught)):
        return True
    if _passes_read_version(turn) or _reads_version(turn):
        return True
    if _ends_with_conflict(turn) or any(map(_raises_unless_taken, turn.handlers)):
        return True
    # Such as `if error.code != ALREADY_EXISTS: raise`.
    return bool(turn.handlers) and all(
        any(
            isinstance(each, ast.If)
            and _tests_for_conflict(each.test, derived_names(handler))
            and any(map(leaves, (each.body, each.orelse, handler.body[-1:])))
            for each in inner_nodes(handler.body)
        )
        for handler in turn.handlers
    )


def _raises_unless_taken(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler is like ``if error.errno != EEXIST: raise``.

    Or like ``if error.errno == EEXIST: continue`` before ``raise``.
    """
    ends = leaves(handler.body[-1:])
    return any(
        isinstance(each, ast.If)
        and any(
            isinstance(x, ast.Compare)
            and names_in(x.comparators[0]) & _TAKEN_NUMBERS
            and (
                leaves(each.body)
                if isinstance(x.ops[0], ast.NotEq)
                else flow(each.body) == {"continue"} and ends
            )
            for x in ast.walk(each.test)
        )
        for each in handler.body
    )


def _tests_for_conflict(test: ast.expr, derived: set[str]) -> bool:
    """Return whether a test asks only whether something exists or has changed.

    Args:
        test: The test.
        derived: The names of the error and of what is computed from it.
    """
    words = words_in(test)
    told = {x for x in words if _EXISTS.search(x)}
    if words & derived:
        told |= {x for x in words if _OUTDATED.search(x)}
    return bool(told) and not any(" " in x for x in words - told)


def _ends_with_conflict(turn: Turn) -> bool:
    """Return whether a handler raises an error whose name mentions a conflict."""
    raised = [
        each.exc.func if isinstance(each.exc, ast.Call) else each.exc
        for handler in turn.handlers
        for each in inner_nodes(handler.body)
        if isinstance(each, ast.Raise) and each.exc is not None
    ]
    return any(_CONFLICTS.search(last_name(each)) for each in raised)


def _reads_version(turn: Turn) -> bool:
    """Return whether a handler reads an ETag, the version that another writer left."""
    return any(
        re.search("e_?tag(_|$)", name, re.IGNORECASE)
        for handler in turn.handlers
        for name in names_in(handler)
    )


def _passes_read_version(turn: Turn) -> bool:
    """Return whether an attempt passes a version that the loop has read."""
    read = {
        target.id
        for each in inner_nodes(turn.loop.body)
        if isinstance(each, ast.Assign)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    return any(
        keyword.arg and _EXPECTED.search(keyword.arg) and names_in(keyword.value) & read
        for each in inner_nodes(turn.attempt.body)
        if isinstance(each, ast.Call)
        for keyword in each.keywords
    )


def _catches_no_failure(turn: Turn) -> bool:
    """Return whether the caught errors mean an end, or missing or bad data."""
    if not turn.caught:
        return False
    if all(map(_ABSENT.search, turn.caught)) and (
        turn.pauses or not turn.always_ends or _reads_clock(turn.loop)
    ):
        return True
    if turn.caught <= NOT_FAILURES | {"KeyError"}:
        return not _is_counted_retry(turn.loop)
    return not turn.pauses and turn.caught <= OF_DATA | NOT_FAILURES


def _reads_clock(loop: Statement) -> bool:
    """Return whether a loop is like ``while time.time() < end``."""
    return isinstance(loop, ast.While) and any(
        isinstance(each, ast.Call) and last_name(each.func) in _CLOCKS
        for each in ast.walk(loop.test)
    )


def _is_counted_retry(loop: Statement) -> bool:
    """Return whether a loop is like ``for _ in range(retries)``."""
    return isinstance(loop, ast.For) and bool(
        re.search("retries|tries", " ".join(names_in(loop.iter)), re.IGNORECASE)
    )


def _is_computation(turn: Turn) -> bool:
    """Return whether a loop without sleeps only decodes or parses data."""
    calls = [
        each.func
        for each in inner_nodes(turn.attempt.body)
        if isinstance(each, ast.Call) and not is_log_function(each.func)
    ]
    return (
        not turn.pauses
        and bool(calls)
        and all(_COMPUTES.match(last_name(each)) for each in calls)
    )


def _is_prompt_loop(turn: Turn) -> bool:
    """Return whether a loop asks a person, or tells a person to try again."""
    if not turn.pauses and any(
        isinstance(each, ast.Constant)
        and isinstance(each.value, str)
        and _TOLD.search(each.value)
        for handler in turn.handlers
        for each in inner_nodes(handler.body)
    ):
        return True
    return prompts_user(turn.loop)


def prompts_user(loop: Statement) -> bool:
    """Return whether a loop asks a person, or opens an editor."""
    return any(
        isinstance(each, ast.Call)
        and (_is_prompt(each.func) or "editor" in names_in(each))
        for each in inner_nodes(loop.body)
    )


def _is_prompt(function: ast.expr) -> bool:
    name = last_name(function)
    if _ASKS.search(name):
        return True
    if not _DIALOGUES.search(name):
        return False
    match function:
        case ast.Name():
            return name != "pause"
        case ast.Attribute(value=owner):
            return any(map(_DIALOGUE_OWNERS.search, names_in(owner)))
    return False


def _is_stopped_elsewhere(loop: Statement) -> bool:
    """Return whether a loop continues until another part of the program ends it."""
    return isinstance(loop, ast.While) and bool(
        ENDLESS.search(" ".join(names_in(loop.test)))
    )


def _leaves_only_to_stop(turn: Turn) -> bool:
    """Return whether a success ends the loop only if the program stops."""
    exits = _exits_to_stop(turn.success)
    return bool(exits) and all(exits)


def _exits_to_stop(body: Sequence[ast.stmt], *, raises: bool = False) -> list[bool]:
    """Return, for each exit of a loop, whether it is in the body of a test for a stop.

    Args:
        body: The statements with the exits.
        raises: Whether a ``raise`` is an exit, too.
    """
    stopping = {
        id(x)
        for each in inner_nodes(body)
        if isinstance(each, ast.If) and any(map(STOPS.search, names_in(each.test)))
        for x in inner_nodes(each.body)
    }
    inner = (ast.Return, *([ast.Raise] if raises else []))
    return [
        id(each) in stopping
        for loops, exits in ((False, ast.Break), (True, inner))
        for each in inner_nodes(body, loops=loops)
        if isinstance(each, exits)
    ]


_LOOK_ALIKES = (
    is_fallback,
    _is_worker,
    _is_reconnect,
    is_poll,
    _is_compare_and_set,
    _catches_no_failure,
    _is_computation,
    _is_prompt_loop,
    is_enlargement,
)


def is_look_alike(turn: Turn) -> bool:
    """Return whether a loop only looks like one that retries."""
    return any(each(turn) for each in _LOOK_ALIKES)
