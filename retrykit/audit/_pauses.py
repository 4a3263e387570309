"""Sleeps between the attempts of a loop, and calls that may sleep."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from retrykit.audit._borrowed import FunctionNode
from retrykit.audit._flow import inner_nodes
from retrykit.audit._handlers import is_log_function, last_name
from retrykit.audit._loop_words import Statement, names_in
from retrykit.audit._values import Reference, Scope, evaluate

__all__ = [
    "Pause",
    "calls_retrier",
    "find_pauses",
    "iterates_over_retrier",
    "iterator_may_wait",
    "may_sleep_elsewhere",
    "pauses_among",
    "pauses_within",
    "suggests_sleep",
]

_SLEEPS = frozenset(["sleep", "async_sleep", "asleep", "_sleep", "sleep_ms"])
_PAUSE_WORDS = re.compile(
    r"sleep|backoff|back_off|delay|pause|wait_before|wait_for_retry|cool", re.IGNORECASE
)
# The names of objects that count attempts, and of methods that only read.
_RETRIES = re.compile("retr(y|ies|ier|ying)|back_?off|attempts?(_|$)", re.IGNORECASE)
_DELAY_NAMES = re.compile(
    r"(^|_)(back_?off|delay|pause|sleep|interval)(_|$)", re.IGNORECASE
)
_READS = re.compile(
    r"^(get|is_|has_|append|add|items|keys|values|pop|set|reset|format)"
)
_WAITING = re.compile(
    rf"{_PAUSE_WORDS.pattern}|wait|throttle|rate_?limit|^_*when_", re.IGNORECASE
)
# Functions that return what never sleeps: numbers, collections and their parts.
_PLAIN_ITERATORS: Final = frozenset(
    """
    arange chain count cycle dict enumerate filter getattr islice items keys list map
    product range repeat reversed set sorted split splitlines tuple values xrange zip
    """.split()  # noqa: SIM905  a list of words
)
# The libraries whose functions sleep for seconds.
_OF_SECONDS = frozenset(
    ["anyio", "asyncio", "curio", "eventlet", "gevent", "time", "tornado", "trio"]
)


class Pause(NamedTuple):
    """A sleep in a loop.

    Attributes:
        node: The call.
        argument: The duration; None if no argument gives it.
        blocking: Whether it calls ``time.sleep``, or a function that does.
        seconds: Whether the argument is in seconds, as far as is known.
        within: The function in which the argument stands; None for the loop itself.
    """

    node: ast.Call
    argument: ast.expr | None
    blocking: bool
    seconds: bool = True
    within: FunctionNode | None = None


def find_pauses(body: list[ast.stmt], scope: Scope) -> Iterator[Pause]:
    """Yield the calls in a block that sleep, or that seem to by their names."""
    return pauses_among(inner_nodes(body), scope)


def pauses_among(nodes: Iterable[ast.AST], scope: Scope) -> Iterator[Pause]:
    """Yield those of the nodes that are calls that sleep, or that seem to."""
    for each in nodes:
        if not isinstance(each, ast.Call):
            continue
        function = evaluate(each.func, scope)
        name = function.name if type(function) is Reference else ""
        match each.func:
            case ast.Name(id=last) | ast.Attribute(attr=last):
                pass
            case _:
                continue
        first = each.args[0] if each.args else None
        for keyword in each.keywords:
            if keyword.arg in ("timeout", "delay", "seconds", "secs"):
                first = first or keyword.value
        if last in _SLEEPS or name.endswith(".sleep"):
            if len(each.args) > 1 and last == "sleep":
                # A function of its own; those of modules take the seconds alone.
                yield Pause(each, None, blocking=False)
                continue
            own = isinstance(each.func, ast.Attribute)
            known = type(function) is Reference and function.library in _OF_SECONDS
            seconds = known or not (own or last == "sleep_ms")
            yield Pause(each, first, blocking=name == "time.sleep", seconds=seconds)
        elif last == "wait" and _suggests_event(each.func) and first is not None:
            yield Pause(each, first, blocking=False)
        elif _PAUSE_WORDS.search(last) and not _suggests_value(last):
            # Such as `asyncSleep(self.retry_delay)`.
            told = last.lower().endswith("sleep") and len(each.args) == 1
            delay = first if told and _suggests_delay(first) else None
            yield Pause(each, delay, blocking=False, seconds=False)


def suggests_sleep(name: str) -> bool:
    """Return whether the name of a function suggests that it waits."""
    return bool(_WAITING.search(name)) and not _suggests_value(name)


def _suggests_event(node: ast.expr) -> bool:
    words = " ".join(names_in(node))
    return bool(
        re.search(
            r"stop|event|shutdown|exit|cancel|closed|quit|abort|halt",
            words,
            re.IGNORECASE,
        )
    )


def _suggests_delay(node: ast.expr | None) -> bool:
    """Return whether the name of an argument suggests a delay, not a count."""
    return any(map(_DELAY_NAMES.search, names_in(node)))


def _suggests_value(name: str) -> bool:
    return bool(
        re.match(
            r"_*(get|calc|compute|next|make|create|set|reset|is|has|should|parse)", name
        )
    )


def iterates_over_retrier(loop: Statement) -> bool:
    """Return whether a loop iterates over a retry object, which counts its attempts.

    For example, ``for attempt in Attempts(3)`` with ``attempt.error = error``: the
    object may sleep, and raise the last error.
    """
    if isinstance(loop, ast.While):
        return False
    if isinstance(loop.iter, ast.Call):
        name = last_name(loop.iter.func)
        if _RETRIES.search(name) or _DELAY_NAMES.search(name):
            return True
    return isinstance(loop.target, ast.Name) and any(
        isinstance(each, ast.Attribute)
        and isinstance(each.value, ast.Name)
        and each.value.id == loop.target.id
        for each in inner_nodes(loop.body)
    )


def iterator_may_wait(loop: Statement, before: Mapping[str, ast.expr]) -> bool:
    """Return whether a loop's iterator, or its condition, may sleep between attempts.

    Args:
        loop: The loop.
        before: The expressions that were last assigned to names before the loop.
    """
    if isinstance(loop, ast.While):
        # Such as `while proceed()`.
        return isinstance(loop.test, ast.Call) and isinstance(loop.test.func, ast.Name)
    iterator = loop.iter
    if isinstance(iterator, ast.Name):
        iterator = before.get(iterator.id, iterator)
    if isinstance(iterator, ast.Call):
        return last_name(iterator.func) not in _PLAIN_ITERATORS
    return bool(_DELAY_NAMES.search(last_name(iterator)))


def may_sleep_elsewhere(around: Sequence[ast.AST]) -> bool:
    """Return whether a block passes a delay to a call, or calls a retry object."""
    return any(
        isinstance(each, ast.Call) and (_is_retrier_call(each) or _passes_delay(each))
        for each in inner_nodes(around)
    )


def calls_retrier(around: Sequence[ast.AST]) -> bool:
    """Return whether a block calls a retry object, which may count attempts."""
    return any(
        isinstance(each, ast.Call) and _is_retrier_call(each)
        for each in inner_nodes(around)
    )


def _passes_delay(call: ast.Call) -> bool:
    """Return whether a call is like ``disconnect(device, backoff)``."""
    names = [each.id for each in call.args if isinstance(each, ast.Name)]
    for keyword in call.keywords:
        names += [keyword.arg or "", *names_in(keyword.value)]
    return not is_log_function(call.func) and any(map(_DELAY_NAMES.search, names))


def pauses_within(attempt: ast.Try | ast.TryStar, pauses: list[Pause]) -> list[Pause]:
    """Return an attempt's constant sleeps that follow its call, not a failure.

    Sleeps in its loops are among them.
    """
    # One that is computed is a delay, as in `seconds = draw()` before `sleep(seconds)`.
    plain = [each for each in pauses if _is_constant(each.argument)]
    sleeps = {id(each.node): each for each in plain}
    inside = {
        id(x)
        for each in inner_nodes(attempt.body)
        if isinstance(each, Statement)
        for x in ast.walk(each)
    }
    found = [each for each in pauses if id(each.node) in inside]
    calls = False
    for each in attempt.body:
        inner = [
            x
            for x in ast.walk(each)
            if isinstance(x, ast.Call) and not is_log_function(x.func)
        ]
        slept = [sleeps[id(x)] for x in inner if id(x) in sleeps]
        if isinstance(each, ast.Expr) and slept:
            found += slept if calls else []
        elif isinstance(each, ast.With | ast.AsyncWith) and slept:
            match each.body[-1]:
                case ast.Expr(value=ast.Call() as last) if id(last) in sleeps:
                    found.append(sleeps[id(last)])
        elif inner:
            calls = True
    return found


def _is_constant(node: ast.expr | None) -> bool:
    """Return whether an expression is a number, or the name of a constant."""
    return isinstance(node, ast.Constant) or (
        isinstance(node, ast.Name) and node.id.isupper()
    )


def _is_retrier_call(call: ast.Call) -> bool:
    """Return whether a call uses a retry object: one of its methods, or ``next()``."""
    match call:
        case ast.Call(func=ast.Name(id="next"), args=[ast.Name(id=name), *_]):
            # One of delays ends as well.
            return bool(_RETRIES.search(name) or _WAITING.search(name))
        case ast.Call(
            func=ast.Attribute(
                value=ast.Name(id=name) | ast.Attribute(attr=name), attr=method
            )
        ):
            return bool(_RETRIES.search(name)) and not _READS.search(method)
    return False
