"""Loops that look like retries: workers, polls, fallbacks and compare-and-set loops.

They are told apart by where control goes, what each turn uses, and what is caught.
"""

import ast
import re
from typing import Final

from retrykit.audit._fallbacks import is_enlargement, is_fallback
from retrykit.audit._flow import flow, inner_nodes, leaves
from retrykit.audit._handlers import Attempt, last_name
from retrykit.audit._loop_limits import ENDLESS, EVIDENCE, Statement, counters, names_in
from retrykit.audit._turns import Turn, assigned_constants

__all__ = [
    "NOT_FAILURES",
    "OF_DATA",
    "STATES",
    "WAITS",
    "asks_for_throttling",
    "asks_person",
    "asks_whether_ready",
    "control_words",
    "looks_alike",
    "words_in",
]

WAITS = re.compile(
    r"(^|_)(wait|poll|polling|until|ready|healthy|watch|monitor|listen|consume|worker|forever"
    r"|serve|heartbeat|keepalive|reader|acquire|lock|find_free"
    r"|free_port)(_|$|s$|er$|ed$)",
    re.IGNORECASE,
)
"""Words in the name of a function that waits for something, or serves."""
_CONFLICTS = re.compile(
    r"Watch|Conflict|Integrity|Stale|Concurren|Exists|Duplicat|Dedup|Collision"
    r"|Optimistic|Cas[A-Z]|Transaction(Failed|Abort)|Version|CompareAndSet|Precondition"
)
STATES = re.compile(
    r"^(is_)?(running|pending|queued|in_?progress|processing|succeeded|success|completed|finished"
    r"|available|creating|downloading|deleting)$",
    re.IGNORECASE,
)
"""States of work that goes on elsewhere."""
_PROBES = re.compile(r"(^|[_-])(health|healthy|ping|probe)([_-]|$)", re.IGNORECASE)
_LOCKED = re.compile(r"^_?(Lock|.*Lock(Error$|Timeout|NotAcquired|Held|Unavailable))")
# What is told to a person who gives something else.
_TOLD = re.compile(
    r"please,? try again|(wrong|invalid|incorrect) (user|password|code|login)",
    re.IGNORECASE,
)
_WAITS_FOR = re.compile(r"_*(wait|poll)(_|[A-Z]|$)")
_EXPECTED = re.compile(
    r"^(parent|expected|if_(none_)?match|if_generation|etag|cas$)", re.IGNORECASE
)
_EXISTS = re.compile(r"already_?exists", re.IGNORECASE)
NOT_FAILURES: Final = frozenset(
    """
    AttributeError BlockingIOError EOFError Empty Full GeneratorExit ImportError
    Incomplete IndexError InterruptedError KeyboardInterrupt LookupError
    ModuleNotFoundError NameError NoSuchElementException Skip SSLWantReadError
    SSLWantWriteError StopAsyncIteration StopIteration SyntaxError UnicodeDecodeError
    UnicodeError WouldBlock
    """.split()  # noqa: SIM905  a list of words
)
"""Errors that tell of an end, or of nothing there yet: no failure of a call."""
OF_DATA: Final = frozenset(
    """
    FileExistsError FileNotFoundError JSONDecodeError KeyError NotImplementedError
    ParseError ParserError TypeError UnpicklingError ValidationError ValueError
    """.split()  # noqa: SIM905  a list of words
)
"""Errors that the same data raises at each attempt."""
_ASKS = frozenset(["getpass", "input", "prompt", "raw_input"])
# The names of functions and of objects that ask a person; a service may be asked, too.
_DIALOGUES = re.compile(
    r"^_*(ask|prompt|confirm|query_yes_no|read_password)(_|$)|user_input",
    re.IGNORECASE,
)
_DIALOGUE_OWNERS = re.compile(
    "prompt|questionary|click|typer|inquirer|confirm$", re.IGNORECASE
)
_READY = re.compile(
    r"(^|_)(ready|healthy|is_up|available|reachable|listening)(_|$)", re.IGNORECASE
)
_NOW_READY = re.compile(
    r"\b(is|are|now|became) (now )?(ready|healthy|online|available|up)\b(?! to date)",
    re.IGNORECASE,
)
_THROTTLES = re.compile(
    r"retry[-_]?after|too_?many_?requests|^(is_)?throttled$|rate_?limited|(?<!\d)429",
    re.IGNORECASE,
)
_LOCKS = frozenset(["acquire", "flock", "lock", "lockf", "try_acquire", "try_lock"])
_RECEIVES = re.compile(
    r"^_*(accept|join|poll|receive|recv|recv_into|recvfrom|result|select|wait|wait_for)$"
)
_NOT_YET = frozenset(["EAGAIN", "EINTR", "EWOULDBLOCK"])
_SENDS = re.compile(
    r"(^|_)(send|sendall|sendto|write|publish|submit|request|transmit|put)(_|$)",
    re.IGNORECASE,
)
_TIMEOUTS = re.compile(r"^Empty$|^Full$|^BlockingIOError$|timed?_?out", re.IGNORECASE)
# Methods that return at the end of what was begun.
_LASTING = frozenset(["join", "mainloop", "run_forever", "serve_forever"])
_QUEUES = re.compile("queue|inbox|mailbox", re.IGNORECASE)
_ENDED = re.compile("^(poll|returncode|is_alive|exitcode)$")


def _is_worker(turn: Turn) -> bool:
    """Return whether a success is followed by the next piece of work."""
    if _serves(turn.attempt) or _is_thread(turn) or _runs_until_stopped(turn):
        return True
    if _takes_work(turn.loop):
        return True
    if turn.always_ends:
        return False
    return (
        _ends_from_outside(turn.loop)
        or any(
            isinstance(each, ast.Expr)
            and isinstance(each.value, ast.Yield | ast.YieldFrom)
            for each in inner_nodes(turn.success)
        )
        or bool(counters(turn.loop) & assigned_constants(turn.success))
    )


def _takes_work(loop: Statement) -> bool:
    """Return whether each turn begins with the next item of a queue."""
    match loop.body[0]:
        case ast.Assign(value=value):
            call = value.value if isinstance(value, ast.Await) else value
            return (
                isinstance(call, ast.Call)
                and last_name(call.func) == "get"
                and any(map(_QUEUES.search, names_in(call.func)))
            )
    return False


def _runs_until_stopped(turn: Turn) -> bool:
    """Return whether an attempt gets the event that stops the loop."""
    if not isinstance(turn.loop, ast.While):
        return False
    events = {
        each.id
        for each in ast.walk(turn.loop.test)
        if isinstance(each, ast.Name) and ENDLESS.search(each.id)
    }
    return any(
        isinstance(each, ast.Call) and any(names_in(x) & events for x in each.args)
        for each in inner_nodes(turn.attempt.body)
    )


def _is_thread(turn: Turn) -> bool:
    """Return whether a loop is that of a thread, which sleeps until it is stopped."""
    return turn.function.endswith("_loop") and any(
        last_name(each.node.func) == "wait" for each in turn.pauses
    )


def _serves(attempt: Attempt) -> bool:
    """Return whether an attempt uses a connection until it ends."""
    return any(
        isinstance(each, ast.Call)
        and last_name(each.func) in _LASTING
        # Other than `os.path.join(folder, name)` and `",".join(names)`.
        and all(isinstance(x, ast.Constant) for x in each.args)
        for each in inner_nodes(attempt.body)
    ) or any(
        isinstance(each, ast.While)
        and isinstance(each.test, ast.Constant)
        and not {"break", "return"} & flow(each.body)
        for each in inner_nodes(attempt.body)
    )


def _is_poll(turn: Turn) -> bool:
    """Return whether a function waits for something that is not there yet."""
    if _WAITS_FOR.match(turn.function) and not EVIDENCE.search(turn.function):
        return True
    if _asks_for_state(turn) or _reads_file(turn) or _takes_lock(turn):
        return True
    if _probes(turn) or _receives(turn) or _tells_ready(turn):
        return True
    if asks_whether_ready(turn.loop):
        return True
    control = control_words(turn.loop, texts=False)
    if EVIDENCE.search(f"{turn.function} {control}"):
        return False
    counted = counters(turn.loop)
    polls = any(re.match("_*polls?(_|$)", each) for each in counted)
    return polls or bool(WAITS.search(turn.function)) or _asks_process(turn)


def _tells_ready(turn: Turn) -> bool:
    """Return whether a success logs that something is ready now."""
    texts = {x for each in turn.success for x in _texts(each)}
    return any(map(_NOW_READY.search, texts))


def _takes_lock(turn: Turn) -> bool:
    """Return whether an attempt is one to get a lock that another one has."""
    if turn.caught and all(map(_LOCKED.search, turn.caught)):
        return True
    match turn.attempt.body[0]:
        case ast.Expr(value=value) | ast.Assign(value=value):
            call = value.value if isinstance(value, ast.Await) else value
            return isinstance(call, ast.Call) and last_name(call.func) in _LOCKS
    return False


def _probes(turn: Turn) -> bool:
    """Return whether an attempt only asks for the health of something."""
    match turn.attempt.body[0]:
        case ast.Expr() as first:
            return any(
                isinstance(each, ast.Call)
                and any(map(_PROBES.search, {last_name(each.func)} | _texts(each)))
                for each in inner_nodes([first])
            )
    return False


def _receives(turn: Turn) -> bool:
    """Return whether an attempt waits, for some time, for what another part sends."""
    timed = turn.caught and all(map(_TIMEOUTS.search, turn.caught))
    if not (timed or (turn.handlers and all(map(_would_block, turn.handlers)))):
        return False
    calls = [x for x in inner_nodes(turn.loop.body) if isinstance(x, ast.Call)]
    if any(_SENDS.search(last_name(each.func)) for each in calls):
        # A request that is sent again.
        return False
    return any(
        isinstance(each, ast.Call)
        and (_RECEIVES.search(last_name(each.func)) or _gets_within(each))
        for each in inner_nodes(turn.attempt.body)
    )


def _would_block(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler goes on if there is nothing to receive yet."""
    return any(
        isinstance(each, ast.If)
        and (
            names_in(each.test) & _NOT_YET
            or ("errno" in names_in(each.test) and 11 in _numbers(each.test))  # noqa: PLR2004
        )
        for each in inner_nodes(handler.body)
    )


def _numbers(node: ast.AST) -> set[object]:
    return {x.value for x in ast.walk(node) if isinstance(x, ast.Constant)}


def _gets_within(call: ast.Call) -> bool:
    """Return whether a call is like ``queue.get(timeout=1)``, and no HTTP request."""
    if last_name(call.func).strip("_") != "get":
        return False
    limits = [x for x in call.args if any(map(_TIMEOUTS.search, names_in(x)))]
    named = any(each.arg == "timeout" for each in call.keywords)
    return bool(limits) or (named and not call.args)


def asks_whether_ready(loop: Statement) -> bool:
    """Return whether a loop goes on while something is not ready."""
    if not isinstance(loop, ast.While):
        return False
    return any(
        isinstance(each, ast.UnaryOp)
        and isinstance(each.op, ast.Not)
        and any(map(_READY.search, names_in(each.operand)))
        for each in ast.walk(loop.test)
    )


def _asks_process(turn: Turn) -> bool:
    """Return whether a handler gives up if a process that starts has ended."""
    return any(
        isinstance(each, ast.If)
        and (leaves(each.body) or leaves(each.orelse))
        and any(map(_ENDED.search, names_in(each.test)))
        for handler in turn.handlers
        for each in inner_nodes(handler.body)
    )


def _texts(node: ast.AST) -> set[str]:
    return {
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }


def _asks_for_state(turn: Turn) -> bool:
    """Return whether a success goes on until some work has another state."""
    if turn.always_ends or not turn.pauses:
        return False
    return any(
        isinstance(each, ast.If) and any(map(STATES.search, words_in(each.test)))
        for each in inner_nodes(turn.success)
    )


def words_in(node: ast.expr) -> set[str]:
    """Return the words of all names and strings in an expression."""
    return names_in(node) | _texts(node)


def _reads_file(turn: Turn) -> bool:
    """Return whether a file is read until another program has written it."""
    return turn.caught <= OF_DATA | {"OSError"} and any(
        isinstance(each, ast.Call) and last_name(each.func) == "open"
        for each in inner_nodes(turn.attempt.body)
    )


def _is_compare_and_set(turn: Turn) -> bool:
    """Return whether only a conflict with another writer is repeated."""
    if turn.caught and all(map(_CONFLICTS.search, turn.caught)):
        return True
    if _expects_what_it_read(turn) or _asks_for_version(turn):
        return True
    if _ends_with_conflict(turn):
        return True
    # Such as `if error.code != ALREADY_EXISTS: raise`.
    return bool(turn.handlers) and all(
        any(
            isinstance(each, ast.If)
            and any(map(_EXISTS.search, words_in(each.test)))
            and (leaves(each.body) or leaves(each.orelse))
            for each in inner_nodes(handler.body)
        )
        for handler in turn.handlers
    )


def _ends_with_conflict(turn: Turn) -> bool:
    """Return whether the error at the end is a conflict with another writer."""
    raised = [
        each.exc.func if isinstance(each.exc, ast.Call) else each.exc
        for handler in turn.handlers
        for each in inner_nodes(handler.body)
        if isinstance(each, ast.Raise) and each.exc is not None
    ]
    return any(_CONFLICTS.search(last_name(each)) for each in raised)


def _asks_for_version(turn: Turn) -> bool:
    """Return whether a handler reads the version that another writer has left."""
    return any(
        re.search("e_?tag(_|$)", name, re.IGNORECASE)
        for handler in turn.handlers
        for name in names_in(handler)
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
    if turn.caught <= NOT_FAILURES or turn.caught == {"KeyError"} & turn.caught:
        return not _is_counted_retry(turn.loop)
    return not turn.pauses and turn.caught <= OF_DATA | NOT_FAILURES


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
    return asks_person(turn.loop)


def asks_person(loop: Statement) -> bool:
    """Return whether a loop asks a person."""
    return any(
        isinstance(each, ast.Call) and _is_dialogue(each.func)
        for each in inner_nodes(loop.body)
    )


def _is_dialogue(function: ast.expr) -> bool:
    name = last_name(function)
    if name in _ASKS:
        return True
    if not _DIALOGUES.search(name):
        return False
    match function:
        case ast.Name():
            return True
        case ast.Attribute(value=owner):
            return any(map(_DIALOGUE_OWNERS.search, names_in(owner)))
    return False


def control_words(loop: Statement, *, texts: bool) -> str:
    """Return the names by which a loop is controlled, and its texts."""
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


def asks_for_throttling(loop: Statement) -> bool:
    """Return whether a loop asks whether the server wants fewer requests."""
    tests = [x.test for x in inner_nodes(loop.body) if isinstance(x, ast.If)]
    if isinstance(loop, ast.While):
        tests.append(loop.test)
    return any(
        any(map(_THROTTLES.search, words_in(each)))
        or not {429, 503}.isdisjoint(_numbers(each))
        for each in tests
    )


def _ends_from_outside(loop: Statement) -> bool:
    """Return whether a loop goes on until another part of the program ends it."""
    return isinstance(loop, ast.While) and bool(
        ENDLESS.search(" ".join(names_in(loop.test)))
    )


_LOOK_ALIKES = (
    is_fallback,
    _is_worker,
    _is_poll,
    _is_compare_and_set,
    _is_no_failure,
    _is_question,
    is_enlargement,
)


def looks_alike(turn: Turn) -> bool:
    """Return whether a loop only looks like one that retries."""
    return any(each(turn) for each in _LOOK_ALIKES)
