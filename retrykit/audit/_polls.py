"""Loops that poll: they wait for something to exist, or for work to be done."""

import ast
import re
from collections.abc import Sequence

from retrykit.audit._flow import flow, inner_nodes, without_await
from retrykit.audit._handlers import OF_DATA, OF_NETWORK, is_log_function, last_name
from retrykit.audit._loop_words import (
    EVIDENCE,
    Statement,
    control_words,
    counters,
    has_text,
    names_in,
    numbers_in,
    texts_in,
)
from retrykit.audit._states import (
    NOT_DONE,
    STARTS,
    tests_readiness,
    waits_for_state,
    watches_process,
)
from retrykit.audit._turns import Turn

__all__ = [
    "WAITS",
    "announces_wait",
    "is_poll",
    "receives_more",
    "sleeps_first",
]

WAITS = re.compile(
    r"(^|_)(wait|poll|polling|until|ready|healthy|watch|monitor|listen|consume|worker|forever"
    r"|serve|heartbeat|keepalive|reader|acquire|lock|find_free"
    r"|free_port)(_|$|s$|er$|ed$)",
    re.IGNORECASE,
)
"""Words in the name of a function that waits for something, or serves."""
_PROBES = re.compile(r"(^|[_-])(health|healthy|ping\d?|probe)([_-]|$)", re.IGNORECASE)
_PROBED = re.compile(r"/(health(z|_?check)?|livez|ping|probe|readyz?)(/|\b)")
_CONNECTS = re.compile(
    r"^_*(connect(_ex)?|(create|open)(_\w+)?_(connection|socket)|socket)$"
)
_CLOSES = frozenset(["abort", "close", "disconnect", "shutdown"])
# What prepares a connection, or waits until it is closed.
_PREPARES = re.compile(r"^(set\w+|wait_closed|int|str|run_until_complete)$")
_EMPTY = re.compile(r"Empty(Error|Exception)?$")
_LOCKED = re.compile(
    r"^_?(Lock|AlreadyLocked|.*Lock(Error$|Timeout|NotAcquired|Held|Unavailable))"
)
_POLLS = re.compile("(^|_)poll(s|ing)?(_|$)", re.IGNORECASE)
_WAITS_FOR = re.compile(
    r"_*((eventually|wait|poll)(_|[A-Z]|$)|(try_)?(acquire|get|take)_(\w+_)?lock$"
    r"|(check|verify)_(\w+_)?(alive|online|running|start(ed|up)?|until|up)(_|$))"
)
# The end of a name such as `check_server_ready`.
_NAMED_READY = re.compile(r"_(is_)?(ready|healthy|reachable)$")
_NOW_READY = re.compile(
    r"\b(is|are|now|became) (now )?(ready|healthy|online|available|up)\b(?! to date)",
    re.IGNORECASE,
)
_UNTIL = frozenset(["until", "until_not", "wait_until"])
_WAITERS = re.compile(r"(^|_)waiter$")
_LOCKS = frozenset(["acquire", "flock", "lock", "lockf", "try_acquire", "try_lock"])
# What asks for a lock of a file, and does not wait for it.
_AT_ONCE = frozenset(["LOCK_NB", "LK_NBLCK", "LK_NBRLCK"])
_RECEIVES = re.compile(
    r"^_*(accept|as_completed|expect(_exact|_list)?|join|poll|receive|recv(_\w+|from)?|(future_)?result|select|wait|wait_for)$"
)
# What a socket says that cannot be read or written yet.
_NOT_YET = re.compile(
    r"^(EAGAIN|EINTR|EWOULDBLOCK|SSL_ERROR_WANT_\w+)$|(^|_)(pending|would_?block)(_|$)"
)
_ERROR_NUMBERS = re.compile("^(E[A-Z]{3,}|SSL_ERROR_\\w+)$")
_SENDS = re.compile(
    r"(^|_)(send|sendall|sendto|write|publish|submit|request|transmit|put)(_|$)",
    re.IGNORECASE,
)
# What goes to a page if it gets one.
_BROWSERS = re.compile("browser|driver|page|tab", re.IGNORECASE)
_RECEIVED = re.compile(r"^_*(receive|recv)(_\w+)?$")
# What is told before a loop that polls.
_ANNOUNCED = re.compile(
    r"\bawaiting\b|\bwait(ing)? (for|on|until)\b(?!.*\b(answer|reply|response)\b)"
    r"|\bin (a )?loop until\b",
    re.IGNORECASE | re.DOTALL,
)
_QUEUES = frozenset(["Empty", "Full", "QueueEmpty", "QueueFull"])
_TIMEOUTS = re.compile(
    r"^(Queue)?(Empty|Full)$|^BlockingIOError$|timed?_?out", re.IGNORECASE
)
_OPENS = re.compile(r"^(open|read_(text|bytes)|(load|read)_(\w+_)?file)$")
_READS = frozenset(["read", "readline"])
_PIPES = frozenset(["stderr", "stdin", "stdout"])
# What has started a server.
_STARTED = re.compile(
    r"^(Popen|create_subprocess_\w+|serve_forever)$"
    r"|^(launch|run|spawn|start)_(\w+_)?(browser|daemon|process|server|service)$"
)
# The names of what asks a server, and of where it is.
_ADDRESSES = re.compile(
    "address|api|client|connect|host|http|port|request|session|socket|url",
    re.IGNORECASE,
)
# What is caught until a server answers.
_REFUSED = re.compile(rf"{OF_NETWORK.pattern}|^(OS|IO)?(Error|Exception)$|^error$")


def _reports_ready(turn: Turn) -> bool:
    """Return whether a string in a success says that something is ready now."""
    texts = {x for each in turn.success for x in texts_in(each)}
    return any(map(_NOW_READY.search, texts))


def _reports_not_ready(turn: Turn) -> bool:
    """Return whether a string of the loop, or at its end, says "not ready yet"."""
    handled = [x for each in turn.handlers for x in each.body]
    return has_text([*turn.end, *turn.attempt.body, *handled], NOT_DONE)


def _waits_until(turn: Turn) -> bool:
    """Return whether an attempt waits, as in ``Wait(driver, 10).until(found)``."""
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and (
            each.func.attr in _UNTIL
            or (
                each.func.attr == "wait"
                and any(map(_WAITERS.search, names_in(each.func.value)))
            )
        )
        for each in inner_nodes(turn.attempt.body)
    )


def _takes_lock(turn: Turn) -> bool:
    """Return whether an attempt tries to get a lock that something else may hold."""
    if turn.caught and all(map(_LOCKED.search, turn.caught)):
        return True
    if any(
        isinstance(each, ast.Call) and any(names_in(x) & _AT_ONCE for x in each.args)
        for each in inner_nodes(turn.attempt.body)
    ):
        return True
    match turn.attempt.body[0]:
        case ast.Expr(value=value) | ast.Assign(value=value):
            call = without_await(value)
            return isinstance(call, ast.Call) and last_name(call.func) in _LOCKS
    return False


def _waits_again(turn: Turn) -> bool:
    """Return whether an attempt only waits, and the time that it waits is over."""
    timed = bool(turn.caught) and all(map(_TIMEOUTS.search, turn.caught))
    match turn.attempt.body:
        case [
            ast.Expr(value=value) | ast.Assign(value=value) | ast.Return(value=value)
        ] if timed:
            call = value and without_await(value)
            name = last_name(call.func) if isinstance(call, ast.Call) else ""
            # `asyncio.wait_for(fetch(), 9)` waits for another call.
            return bool(_WAITS_FOR.match(name)) and name != "wait_for"
    return False


def _checks_health(turn: Turn) -> bool:
    """Return whether an attempt begins with a health check, or asks such an address."""
    if has_text(turn.attempt.body, _PROBED):
        return True
    match turn.attempt.body[0]:
        case ast.Expr(value=asked) | ast.If(test=asked):
            return any(
                isinstance(each, ast.Call)
                and any(map(_PROBES.search, {last_name(each.func)} | texts_in(each)))
                for each in inner_nodes([asked])
            )
    return False


def _opens_only(turn: Turn) -> bool:
    """Return whether an attempt only opens a connection and closes it again."""
    body = [*turn.attempt.body, *turn.attempt.orelse, *turn.attempt.finalbody]
    called = {
        last_name(each.func)
        for each in inner_nodes(body)
        if isinstance(each, ast.Call) and not is_log_function(each.func)
    }
    closes = called & _CLOSES or any(
        isinstance(each, ast.With | ast.AsyncWith) for each in body
    )
    used = {x for x in called - _CLOSES if not _PREPARES.search(x)}
    return bool(closes and used) and all(map(_CONNECTS.search, used))


def _pings(turn: Turn) -> bool:
    """Return whether a loop in a function like ``ping`` returns only constants."""
    return bool(_PROBES.search(turn.function)) and all(
        each.value is None or isinstance(each.value, ast.Constant)
        for each in inner_nodes(turn.loop.body)
        if isinstance(each, ast.Return)
    )


def _waits_for_process(turn: Turn) -> bool:
    """Return whether an attempt waits a limited time for a process to end."""
    called = {
        last_name(each.func)
        for each in inner_nodes(turn.loop.body)
        if isinstance(each, ast.Call)
    }
    return (
        turn.caught == {"TimeoutExpired"}
        and bool(called & {"communicate", "wait"})
        and not called & STARTS
    )


def _starts_server(turn: Turn) -> bool:
    """Return whether a process has been started that is asked once it listens."""
    asked = {x for each in turn.attempt.body for x in names_in(each)}
    return (
        all(map(_REFUSED.search, turn.caught))
        and any(map(_ADDRESSES.search, asked))
        and any(any(map(_STARTED.search, names_in(x))) for x in turn.before.values())
    )


def _finds_empty(turn: Turn) -> bool:
    """Return whether a handler raises an error with a name such as ``Empty``."""
    return any(
        isinstance(each, ast.Raise) and any(map(_EMPTY.search, names_in(each.exc)))
        for handler in turn.handlers
        for each in inner_nodes(handler.body)
    )


def _receives(turn: Turn) -> bool:
    """Return whether an attempt waits until something has been, or can be, sent."""
    if turn.caught and turn.caught <= _QUEUES:
        return True
    timed = turn.caught and all(map(_TIMEOUTS.search, turn.caught))
    blocked = bool(turn.handlers) and all(map(_would_block, turn.handlers))
    receives = any(
        isinstance(each, ast.Call)
        and (
            _RECEIVES.search(last_name(each.func))
            or _gets_with_timeout(each)
            or (blocked and last_name(each.func) in _READS)
        )
        for each in inner_nodes(turn.attempt.body)
    )
    # What follows a success is not sent again.
    then = [*turn.attempt.body[1:], *(turn.rest if _continue(turn) else [])]
    after = {id(x) for x in inner_nodes(then)}
    calls = [x for x in inner_nodes(turn.loop.body) if isinstance(x, ast.Call)]
    if any(
        _SENDS.search(last_name(each.func)) for each in calls if id(each) not in after
    ):
        # With an answer, it is a request that is sent again.
        return blocked and not receives
    return bool(timed or blocked) and receives


def _continue(turn: Turn) -> bool:
    """Return whether no handler goes on to what follows the attempt in the loop."""
    return all("next" not in flow(each.body) for each in turn.handlers)


def _would_block(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler continues if there is nothing to receive yet."""
    return any(
        isinstance(each, ast.If)
        and (
            _says_not_yet(names_in(each.test))
            or ("errno" in names_in(each.test) and 11 in numbers_in(each.test))  # noqa: PLR2004
        )
        for each in inner_nodes(handler.body)
    )


def _says_not_yet(names: set[str]) -> bool:
    """Return whether all error numbers among names tell of a socket to wait for."""
    numbers = {each for each in names if _ERROR_NUMBERS.search(each)}
    return any(map(_NOT_YET.search, names)) and all(map(_NOT_YET.search, numbers))


def _gets_with_timeout(call: ast.Call) -> bool:
    """Return whether a call is like ``queue.get(timeout=1)``, not an HTTP request."""
    if last_name(call.func).strip("_") != "get":
        return False
    limits = [x for x in call.args if any(map(_TIMEOUTS.search, names_in(x)))]
    named = any(each.arg in {"block", "timeout"} for each in call.keywords)
    return bool(limits) or (named and not call.args)


def sleeps_first(loop: Statement) -> bool:
    """Return whether each turn, including the first one, begins with a sleep."""
    nodes = [*inner_nodes(loop.body)]
    changed = {
        each.id
        for each in [*nodes, *([] if isinstance(loop, ast.While) else [loop.target])]
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    if sum(map(_is_sleep, nodes)) > 1:
        return False
    begins = [each for each in loop.body if not isinstance(each, ast.AugAssign)]
    if begins and isinstance(begins[0], ast.Try):
        begins = begins[0].body
    if not begins or not isinstance(begins[0], ast.Expr):
        return False
    call = without_await(begins[0].value)
    # One that changes may be 0 at first.
    return _is_sleep(call) and not names_in(call) & changed


def _is_sleep(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) == "sleep"


def _reads_file(turn: Turn) -> bool:
    """Return whether a file or a pipe is read until another program has written it."""
    if turn.caught != {"IOError"} and not turn.caught <= OF_DATA | {"OSError"}:
        return False
    return any(
        isinstance(each, ast.Call)
        and (
            _OPENS.search(last_name(each.func))
            or (last_name(each.func) in _READS and names_in(each.func) & _PIPES)
        )
        for each in inner_nodes(turn.attempt.body)
    )


def receives_more(loop: Statement) -> bool:
    """Return whether each turn receives the next data, and nothing is sent again."""
    calls = [x for x in inner_nodes(loop.body) if isinstance(x, ast.Call)]
    if any(_SENDS.search(last_name(each.func)) for each in calls):
        return False
    for each in inner_nodes(loop.body):
        match each:
            case ast.Assign(value=value) | ast.AugAssign(value=value):
                call = without_await(value)
                if isinstance(call, ast.Call) and _RECEIVED.match(last_name(call.func)):
                    return True
    return False


def _receives_more(turn: Turn) -> bool:
    """Return whether an attempt only receives data, and adds them to earlier ones."""
    match turn.attempt.body:
        case [ast.AugAssign(op=ast.Add())]:
            return receives_more(turn.loop)
    return False


def _opens_until_there(turn: Turn) -> bool:
    """Return whether a loop is like ``while not file: file = open(path)``."""
    match turn.loop, turn.attempt.body:
        case (
            ast.While(test=ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name))),
            [ast.Assign(targets=[ast.Name(id=opened)], value=ast.Call(func=function))],
        ):
            return name == opened and last_name(function) == "open"
    return False


def _looks_for_item(turn: Turn) -> bool:
    """Return whether an attempt takes the first of some items, which may be none."""
    match turn.attempt.body[0]:
        case ast.Assign(value=ast.Call(func=ast.Name(id="next"), args=[items])):
            return isinstance(items, ast.GeneratorExp) or (
                isinstance(items, ast.Call) and last_name(items.func) == "filter"
            )
    return False


def _discards_answer(turn: Turn) -> bool:
    """Return whether an attempt asks for something, and does not look at the answer.

    Or tests only whether there is one.
    """
    match turn.attempt.body[0]:
        case ast.Expr(value=value) | ast.If(test=value):
            call = without_await(value)
            match call:
                case ast.Call(
                    func=ast.Attribute(value=owner, attr="get" | "head" | "options"),
                    args=[] | [_],
                ):
                    return not any(map(_BROWSERS.search, names_in(owner)))
    return False


def _asserts_number(turn: Turn) -> bool:
    """Return whether an attempt asserts how many there are of something."""
    told = EVIDENCE.search(control_words(turn.loop, texts=False))
    return not told and any(
        isinstance(each, ast.Assert)
        and isinstance(each.test, ast.Compare)
        and "len" in names_in(each.test)
        for each in turn.attempt.body
    )


def announces_wait(preceding: Sequence[ast.stmt]) -> bool:
    """Return whether the last call before a loop says that it waits for something.

    Args:
        preceding: The statements before the loop, in its block.
    """
    for each in reversed(preceding):
        match each:
            case ast.Assign(value=ast.Constant()):
                continue
            case ast.Expr(value=ast.Call() as call) if _is_sleep(call):
                continue
            case ast.Expr(value=ast.Call() as call):
                return has_text([call], _ANNOUNCED)
        break
    return False


_CERTAIN = (
    waits_for_state,
    _reads_file,
    _receives_more,
    _opens_until_there,
    _looks_for_item,
    _discards_answer,
    _asserts_number,
    _takes_lock,
    _checks_health,
    _opens_only,
    _pings,
    _receives,
    _waits_for_process,
    _starts_server,
    _finds_empty,
    _waits_until,
    _waits_again,
    _reports_ready,
    _reports_not_ready,
)


def is_poll(turn: Turn) -> bool:
    """Return whether a loop waits for something that is not ready yet."""
    waits = _WAITS_FOR.match(turn.function) or _NAMED_READY.search(turn.function)
    if waits and not EVIDENCE.search(turn.function):
        return True
    if tests_readiness(turn.loop) or watches_process(turn.loop):
        return True
    if any(each(turn) for each in _CERTAIN):
        return True
    control = control_words(turn.loop, texts=False)
    if EVIDENCE.search(f"{turn.function} {control}"):
        return False
    named = counters(turn.loop)
    if not EVIDENCE.search(control_words(turn.loop, texts=True)):
        # A random pause is one of a retry.
        named |= {last_name(each.argument) for each in turn.pauses if each.argument}
    polls = any(map(_POLLS.search, named))
    return polls or bool(WAITS.search(turn.function)) or sleeps_first(turn.loop)
