"""Kinds of loops: those that retry, and those that look alike.

An error lets a loop that retries begin again, and a success ends it. Workers, polls,
paginations, fallbacks to another server and compare-and-set loops look alike, and are
told apart: by where control goes, what each turn uses, and what is caught.
"""

import ast
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from retrykit.audit._flow import flow, inner_nodes, leaves
from retrykit.audit._handlers import LOGS, Attempt, caught_by, last_name
from retrykit.audit._loop_delays import Pause
from retrykit.audit._loop_limits import ENDLESS, Statement, counters, names_in

__all__ = ["Turn", "ends_from_outside", "find_turn", "is_retry"]
__all__ += ["is_retry_of_results"]

_EVIDENCE = re.compile(
    r"retr(y|ies|ying)|attempt|\btries\b|_tries|tries_|back_?off", re.IGNORECASE
)
# In the name of a function.
_WAITS = re.compile(
    r"(^|_)(wait|poll|until|ready|healthy|watch|monitor|listen|consume|worker|forever"
    r"|serve|heartbeat|keepalive|reader|acquire|lock|find_free"
    r"|free_port)(_|$|s$|er$|ed$)",
    re.IGNORECASE,
)
_CONFLICTS = re.compile(
    r"Watch|Conflict|Integrity|Stale|Concurren|Exists|Duplicat|Dedup|Collision"
    r"|Optimistic|Cas[A-Z]|Transaction(Failed|Abort)|Version|CompareAndSet|Precondition"
)
# What is told by the state of work that goes on elsewhere.
_STATES = re.compile(
    r"^(running|pending|queued|in_?progress|processing|succeeded|success|completed|finished"
    r"|available|creating|downloading|deleting)$",
    re.IGNORECASE,
)
_PROBES = re.compile(r"(^|_)(health|healthy|ping|probe)(_|$)", re.IGNORECASE)
_LOCKED = re.compile(r"^_?(Lock|.*Lock(Timeout|NotAcquired|Held|Unavailable))")
# What is told to a person who gives something else.
_TOLD = re.compile(
    r"please,? try again|(wrong|invalid|incorrect) (user|password|code|login)",
    re.IGNORECASE,
)
_WAITS_FOR = re.compile(r"_*(wait|poll)(_|[A-Z])")
_EXPECTED = re.compile(
    r"^(parent|expected|if_(none_)?match|if_generation|etag|cas$)", re.IGNORECASE
)
_EXISTS = re.compile(r"already_?exists", re.IGNORECASE)
_NOT_FAILURES: Final = frozenset(
    """
    AttributeError BlockingIOError EOFError Empty Full GeneratorExit ImportError
    Incomplete IndexError InterruptedError KeyboardInterrupt LookupError
    ModuleNotFoundError NameError NoSuchElementException Skip SSLWantReadError
    SSLWantWriteError StopAsyncIteration StopIteration SyntaxError UnicodeDecodeError
    UnicodeError WouldBlock
    """.split()  # noqa: SIM905  a list of words
)
_OF_DATA: Final = frozenset(
    """
    FileExistsError FileNotFoundError JSONDecodeError KeyError NotImplementedError
    ParseError ParserError TypeError UnpicklingError ValidationError ValueError
    """.split()  # noqa: SIM905  a list of words
)
_ASKS = frozenset(["getpass", "input", "prompt", "raw_input"])


class Turn(NamedTuple):
    """One turn of a loop.

    Attributes:
        loop: The loop.
        attempt: What is tried.
        rest: What follows in the loop.
        handlers: The handlers after which the loop goes on.
        pauses: The sleeps in the loop.
        function: The name of the function around it, without its module.
    """

    loop: Statement
    attempt: Attempt
    rest: list[ast.stmt]
    handlers: list[ast.ExceptHandler]
    pauses: list[Pause]
    function: str

    @property
    def success(self) -> list[ast.stmt]:
        """The statements that run if the attempt succeeds."""
        return [*self.attempt.body, *self.attempt.orelse, *self.rest]

    @property
    def always_ends(self) -> bool:
        """True if each success ends the loop."""
        ends = not {"next", "continue"} & flow(self.success)
        return ends or _sets_flag(self.loop, self.attempt)

    @property
    def caught(self) -> set[str]:
        """The names of the errors after which the loop goes on."""
        return {name for each in self.handlers for name in caught_by(each)}


def find_turn(loop: Statement, pauses: list[Pause], function: str) -> Turn | None:
    """Return a turn of a loop that goes on after an error; None if there is none."""
    for attempt, rest in _attempts(loop.body, []):
        after = flow(rest)
        handlers = [each for each in attempt.handlers if _goes_on(each, after)]
        if handlers:
            name = function.rpartition(".")[2]
            later = _find_later(rest) if _falls_through(handlers) else None
            return Turn(loop, *(later or (attempt, rest, handlers)), pauses, name)
    return None


def _find_later(
    body: Sequence[ast.stmt],
) -> tuple[Attempt, list[ast.stmt], list[ast.ExceptHandler]] | None:
    """Return what is tried after something that may fail, as a clean-up may."""
    for attempt, rest in _attempts(body, []):
        after = flow(rest)
        handlers = [each for each in attempt.handlers if _goes_on(each, after)]
        success = flow([*attempt.body, *attempt.orelse, *rest])
        if handlers and not {"next", "continue"} & success:
            return attempt, rest, handlers
    return None


def _falls_through(handlers: Sequence[ast.ExceptHandler]) -> bool:
    """Return whether after each error the same turn goes on."""
    return not any("continue" in flow(each.body) for each in handlers)


def _goes_on(handler: ast.ExceptHandler, after: frozenset[str]) -> bool:
    outcomes = flow(handler.body)
    return "continue" in outcomes or (
        "next" in outcomes and bool({"next", "continue"} & after)
    )


def _attempts(
    body: Sequence[ast.stmt], rest: list[ast.stmt]
) -> list[tuple[Attempt, list[ast.stmt]]]:
    """Return the ``try`` statements of a loop, with what follows each in the loop."""
    found: list[tuple[Attempt, list[ast.stmt]]] = []
    for index, each in enumerate(body):
        following = [*body[index + 1 :], *rest]
        match each:
            case ast.Try() | ast.TryStar():
                if each.handlers:
                    found.append((each, following))
                found += _attempts(each.body, [*each.orelse, *following])
            case ast.If(body=inner, orelse=orelse):
                found += _attempts(inner, following)
                found += _attempts(orelse, following)
            case ast.With(body=inner) | ast.AsyncWith(body=inner):
                found += _attempts(inner, following)
    return found


def is_retry(turn: Turn) -> bool:
    """Return whether a loop repeats what failed, until it succeeds."""
    ends = turn.always_ends or {"break", "return"} & flow(turn.success)
    if not ends or any(each(turn) for each in _LOOK_ALIKES):
        return False
    # What a loop logs says something only if each success ends it.
    if _EVIDENCE.search(_control_words(turn.loop, texts=turn.always_ends)):
        return True
    return turn.always_ends and bool(turn.pauses or _is_counted(turn.loop))


def _is_fallback(turn: Turn) -> bool:
    """Return whether each turn uses another item, such as the next server."""
    loop = turn.loop
    if isinstance(loop, ast.While):
        return False
    if "as_completed" in names_in(loop.iter):
        return True
    items = names_in(loop.target) - {"_", "__"}
    if _EVIDENCE.search(" ".join(items)):
        return False
    for each in inner_nodes(loop.body, loops=False):
        if isinstance(each, ast.Assign) and names_in(each.value) & items:
            # Such as `port = first + i`.
            items |= {x.id for x in each.targets if isinstance(x, ast.Name)}
    parts = [*turn.attempt.body, *turn.attempt.orelse]
    return any(
        names_in(each) & items
        for each in inner_nodes(parts)
        if (isinstance(each, ast.Call) and not _logs(each))
        or isinstance(each, ast.Subscript)
    )


def _is_worker(turn: Turn) -> bool:
    """Return whether a success is followed by the next piece of work."""
    if _serves(turn.attempt):
        return True
    if turn.always_ends:
        return False
    return (
        ends_from_outside(turn.loop)
        or any(
            isinstance(each, ast.Expr)
            and isinstance(each.value, ast.Yield | ast.YieldFrom)
            for each in inner_nodes(turn.success)
        )
        or bool(counters(turn.loop) & _assigned_constants(turn.success))
    )


def _serves(attempt: Attempt) -> bool:
    """Return whether an attempt uses a connection until it ends."""
    return any(
        isinstance(each, ast.While)
        and isinstance(each.test, ast.Constant)
        and not {"break", "return"} & flow(each.body)
        for each in inner_nodes(attempt.body)
    )


def _is_poll(turn: Turn) -> bool:
    """Return whether a function waits for something that is not there yet."""
    if _WAITS_FOR.match(turn.function):
        return True
    if _asks_for_state(turn) or _reads_file(turn):
        return True
    if turn.caught and all(map(_LOCKED.search, turn.caught)):
        return True
    if any(
        isinstance(each, ast.Call) and _PROBES.search(last_name(each.func))
        for statement in turn.attempt.body[:1]
        if isinstance(statement, ast.Expr)
        for each in inner_nodes([statement])
    ):
        return True
    words = f"{turn.function} {_control_words(turn.loop, texts=False)}"
    return bool(_WAITS.search(turn.function)) and not _EVIDENCE.search(words)


def _asks_for_state(turn: Turn) -> bool:
    """Return whether a success goes on until some work has another state."""
    if turn.always_ends or not turn.pauses:
        return False
    return any(
        isinstance(each, ast.If) and any(map(_STATES.search, _words(each.test)))
        for each in inner_nodes(turn.success)
    )


def _words(node: ast.expr) -> set[str]:
    texts = {
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }
    return names_in(node) | texts


def _reads_file(turn: Turn) -> bool:
    """Return whether a file is read until another program has written it."""
    return turn.caught <= _OF_DATA | {"OSError"} and any(
        isinstance(each, ast.Call) and last_name(each.func) == "open"
        for each in inner_nodes(turn.attempt.body)
    )


def _is_compare_and_set(turn: Turn) -> bool:
    """Return whether only a conflict with another writer is repeated."""
    if turn.caught and all(map(_CONFLICTS.search, turn.caught)):
        return True
    if _expects_what_it_read(turn):
        return True
    # Such as `if error.code != ALREADY_EXISTS: raise`.
    return bool(turn.handlers) and all(
        any(
            isinstance(each, ast.If)
            and any(map(_EXISTS.search, _words(each.test)))
            and (leaves(each.body) or leaves(each.orelse))
            for each in inner_nodes(handler.body)
        )
        for handler in turn.handlers
    )


def _expects_what_it_read(turn: Turn) -> bool:
    """Return whether an attempt names the version that the same turn has read."""
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


def _is_no_failure(turn: Turn) -> bool:
    """Return whether what is caught is an end, or data that another turn reads."""
    if not turn.caught:
        return False
    if turn.caught <= _NOT_FAILURES or turn.caught == {"KeyError"} & turn.caught:
        return not _is_counted_retry(turn.loop)
    return not turn.pauses and turn.caught <= _OF_DATA | _NOT_FAILURES


def _is_counted_retry(loop: Statement) -> bool:
    """Return whether a loop is one over a number of retries."""
    return isinstance(loop, ast.For) and bool(
        re.search("retries|tries", " ".join(names_in(loop.iter)), re.IGNORECASE)
    )


def _is_question(turn: Turn) -> bool:
    """Return whether an attempt asks a person."""
    if not turn.pauses and any(
        isinstance(each, ast.Constant)
        and isinstance(each.value, str)
        and _TOLD.search(each.value)
        for handler in turn.handlers
        for each in inner_nodes(handler.body)
    ):
        return True
    return any(
        isinstance(each, ast.Call) and last_name(each.func) in _ASKS
        for each in inner_nodes(turn.loop.body)
    )


def _is_enlargement(turn: Turn) -> bool:
    """Return whether the next attempt gets something else, such as a larger buffer."""
    if turn.pauses:
        return False
    changed: set[str] = set()
    for each in (x for handler in turn.handlers for x in inner_nodes(handler.body)):
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if name in names_in(value):
                    changed.add(name)
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))]):
                changed.add(name)
            case ast.AugAssign(target=ast.Name(id=name)):
                changed.add(name)
    changed = {each for each in changed if not _EVIDENCE.search(each)}
    return any(
        names_in(given) & changed
        for each in inner_nodes(turn.attempt.body)
        if isinstance(each, ast.Call)
        for given in [*each.args, *(keyword.value for keyword in each.keywords)]
    )


_LOOK_ALIKES = (
    _is_fallback,
    _is_worker,
    _is_poll,
    _is_compare_and_set,
    _is_no_failure,
    _is_question,
    _is_enlargement,
)


def _logs(call: ast.Call) -> bool:
    return any(LOGS.search(each) for each in names_in(call.func))


def is_retry_of_results(loop: Statement, function: str) -> bool:
    """Return whether a loop without ``try`` repeats what had the wrong result."""
    outcomes = flow(loop.body)
    if not {"break", "return"} & outcomes or not {"next", "continue"} & outcomes:
        return False
    words = counters(loop)
    words |= (
        names_in(loop.test) if isinstance(loop, ast.While) else names_in(loop.target)
    )
    name = function.rpartition(".")[2]
    words = {each for each in words if not re.search("back_?off", each)}
    if any(
        isinstance(each, ast.If) and any(map(_STATES.search, _words(each.test)))
        for each in inner_nodes(loop.body)
    ):
        return False
    return bool(_EVIDENCE.search(" ".join(words))) and not _WAITS.search(name)


def _control_words(loop: Statement, *, texts: bool) -> str:
    """Return the names by which a loop is controlled, and its texts."""
    names = counters(loop)
    if isinstance(loop, ast.While):
        names |= names_in(loop.test)
    else:
        names |= names_in(loop.target) | names_in(loop.iter)
    for each in inner_nodes(loop.body):
        if texts and isinstance(each, ast.Constant) and isinstance(each.value, str):
            names.add(each.value[:200])
        elif isinstance(each, ast.If):
            names |= names_in(each.test)
    return " ".join(names)


def _is_counted(loop: Statement) -> bool:
    """Return whether a loop is one over a number of turns."""
    if isinstance(loop, ast.While):
        return False
    return bool(names_in(loop.iter) & {"range", "count", "repeat"}) or isinstance(
        loop.iter, ast.Tuple | ast.List
    )


def _sets_flag(loop: Statement, attempt: Attempt) -> bool:
    """Return whether a success makes the condition of the loop false."""
    if not isinstance(loop, ast.While):
        return False
    watched = names_in(loop.test)
    # A counter that begins again ends nothing.
    failing = {
        each.target.id
        for each in inner_nodes(loop.body)
        if isinstance(each, ast.AugAssign)
        and isinstance(each.op, ast.Add)
        and isinstance(each.target, ast.Name)
    }
    for handler in attempt.handlers:
        failing |= _assigned_constants(handler.body)
    return bool(
        watched & (_assigned_constants([*attempt.body, *attempt.orelse]) - failing)
    ) or bool(watched & _assigned_results([*attempt.body, *attempt.orelse]))


def _assigned_constants(body: Sequence[ast.stmt]) -> set[str]:
    found = set()
    for each in inner_nodes(body):
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant):
            for target in each.targets:
                found |= (
                    {target.id}
                    if isinstance(target, ast.Name)
                    else names_in(target) - {"self"}
                )
    return found


def _assigned_results(body: Sequence[ast.stmt]) -> set[str]:
    """Return the names that get what a call returns."""
    found = set()
    for each in body:
        if isinstance(each, ast.Assign) and not isinstance(each.value, ast.Constant):
            for target in each.targets:
                if isinstance(target, ast.Name):
                    found.add(target.id)
    return found


def ends_from_outside(loop: Statement) -> bool:
    """Return whether a loop goes on until another part of the program ends it."""
    return isinstance(loop, ast.While) and bool(
        ENDLESS.search(" ".join(names_in(loop.test)))
    )
