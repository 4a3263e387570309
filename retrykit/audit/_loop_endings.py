"""The last error, or bad result, of a loop that retries: raised, hidden or unknown."""

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from retrykit.audit._flow import flow, inner_nodes, leaves, without_await
from retrykit.audit._handlers import Attempt, is_log_function, last_name
from retrykit.audit._loop_silence import (
    assigned,
    calls_anything,
    ends_silently,
    falls_silent,
    is_class,
    is_empty_or_constant,
    only_logs,
)
from retrykit.audit._loop_words import (
    CLOCK_WORDS,
    COUNT_WORDS,
    Statement,
    counters,
    names_in,
)
from retrykit.audit._pauses import suggests_sleep

__all__ = ["find_ending", "find_ending_of_results"]


_HANDLES = re.compile("handle|raise|check", re.IGNORECASE)
# The names of methods that keep an error for those who wait.
_KEEPS = re.compile(
    "_*(abort|add|append|fail|finali[sz]e|finish|put|record|store)(_|$)"
    r"|_*set_(\w+_)?(error|exception|failed|status)(_|$)|_*(notify|reply)(_|$)"
)
# What returns the error that is handled.
_CURRENT = frozenset(["exc_info"])
_OUTPUTS = re.compile("(out|output|stderr|stdout)(_|$)")
_STATUS = re.compile(r"^(ok|status|status_?code)$", re.IGNORECASE)


def find_ending(
    loop: Statement,
    handlers: Sequence[ast.ExceptHandler],
    following: Sequence[ast.stmt],
    later: Sequence[ast.stmt],
    before: Mapping[str, ast.expr],
) -> str:
    """Return what happens to the last error: "raises", "hidden" or "?".

    Args:
        loop: The loop.
        handlers: The handlers after which it continues.
        following: The statements that follow it.
        later: The statements that follow the loops around it.
        before: The expressions that were last assigned to names before it.
    """
    named = {each.name for each in handlers if each.name} | _CURRENT
    kept = _copies_of(named, loop) | _outputs_in(handlers)
    after = [*loop.orelse, *following]
    if any(_ends_with_error(each, named | kept, loop) for each in handlers):
        return "raises"
    if any(_ends_without_cause(each, named | kept) for each in handlers):
        return "hidden"
    raised = _endings_of_raises(loop, handlers, after, kept)
    raised |= {
        _ending_of_raise(each, kept)
        for each in inner_nodes(later)
        if isinstance(each, ast.Raise) and names_in(each) & kept
    }
    if "raises" in raised or any(map(partial(_returns, kept), after)):
        return "raises"
    again = _calls_once_more(handlers, loop, after)
    told: list[ast.AST] = [
        x for x in after if not only_logs([x]) and not isinstance(x, ast.Raise)
    ]
    # Such as `while timer.goes_on()` with a timer that has got the error.
    told += [loop.test] if isinstance(loop, ast.While) else []
    if again or "?" in raised or _uses(told, kept):
        return "?"
    if raised:
        return "hidden"
    return _ending_of_silence(loop, handlers, after, before)


def _calls_once_more(
    handlers: Sequence[ast.ExceptHandler],
    loop: Statement,
    after: Sequence[ast.stmt],
) -> bool:
    """Return whether a call in an attempt also follows the loop.

    Calls in a ``try`` statement after the loop do not count.
    """
    tried = {
        ast.dump(call)
        for each in _attempts_of(loop, handlers)
        for call in _calls_in(each.body)
    }
    outside = [each for each in after if not isinstance(each, ast.Try | ast.TryStar)]
    return any(ast.dump(each) in tried for each in _calls_in(outside))


def _attempts_of(
    loop: Statement, handlers: Sequence[ast.ExceptHandler]
) -> list[Attempt]:
    """Return a loop's ``try`` statements that have any of the handlers."""
    return [
        each
        for each in inner_nodes(loop.body)
        if isinstance(each, ast.Try | ast.TryStar)
        and any(x in handlers for x in each.handlers)
    ]


def _calls_in(body: Sequence[ast.stmt]) -> list[ast.Call]:
    """Return the calls that have a name in their arguments, except calls that log."""
    return [
        each
        for each in inner_nodes(body)
        if isinstance(each, ast.Call)
        and not is_log_function(each.func)
        and any(map(names_in, [*each.args, *(x.value for x in each.keywords)]))
    ]


def find_ending_of_results(
    loop: Statement, following: Sequence[ast.stmt], later: Sequence[ast.stmt]
) -> str:
    """Return what happens to the last result, if it is bad: "hidden" or "?".

    Args:
        loop: The loop.
        following: The statements that follow it.
        later: The statements that follow the loops around it.
    """
    after = [*loop.orelse, *following]
    endless = isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant)
    nodes = [*inner_nodes(loop.body)]
    results = {
        name
        for each in nodes
        if isinstance(each, ast.Assign)
        for target in each.targets
        for name in names_in(target)
    }
    if endless or any(isinstance(each, ast.Raise) for each in nodes):
        return "?"
    counted = (
        isinstance(loop, ast.For)
        and _returns_result(nodes, results)
        and not any(map(_may_raise, nodes))
    )
    if not counted and (not any(map(_tests_status, nodes)) or not after):
        return "?"
    told = [each for each in after if not only_logs([each])]
    if _uses([*told, *later], results) or (
        not counted and any(_returns(results, each) for each in nodes)
    ):
        return "?"
    return "hidden" if ends_silently(after) else "?"


def _may_raise(node: ast.AST) -> bool:
    """Return whether a statement is a call that may raise, judging by its name."""
    if not isinstance(node, ast.Expr):
        return False
    call = without_await(node.value)
    if not isinstance(call, ast.Call):
        return False
    name = last_name(call.func)
    return bool(_HANDLES.search(name)) or not (
        is_log_function(call.func) or suggests_sleep(name)
    )


def _returns_result(nodes: Sequence[ast.AST], results: set[str]) -> bool:
    """Return whether results are returned, and only in the body of an ``if``."""
    tested = {
        id(x)
        for each in nodes
        if isinstance(each, ast.If)
        for x in each.body
        if _returns(results, x)
    }
    returned = [id(each) for each in nodes if isinstance(each, ast.Return)]
    return bool(tested) and tested.issuperset(returned)


def _tests_status(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and any(
        isinstance(each, ast.Attribute) and _STATUS.search(each.attr)
        for each in ast.walk(node.test)
    )


def _endings_of_raises(
    loop: Statement,
    handlers: Sequence[ast.ExceptHandler],
    after: Sequence[ast.stmt],
    kept: set[str],
) -> set[str]:
    """Return what ``raise`` statements outside attempts do with the last error."""
    # What an attempt raises is caught, and another handler raises other errors.
    inside = {
        id(x)
        for attempt in _attempts_of(loop, handlers)
        for each in [*attempt.body, *attempt.handlers]
        for x in ast.walk(each)
    }
    # What a handler after the loop raises is about another attempt.
    inside |= {
        id(x)
        for each in inner_nodes(after)
        if isinstance(each, ast.ExceptHandler)
        for x in ast.walk(each)
    }
    if not any("next" in flow(each.body) for each in handlers):
        # What follows an attempt is about its result.
        inside |= {
            id(x)
            for each in _attempts_of(loop, handlers)
            for x in inner_nodes(loop.body)
            if isinstance(x, ast.Raise) and x.lineno > (each.end_lineno or 0)
        }
    ends = {id(each) for each in after}
    # Python forgets the name of an error after its handler.
    gone = {each.name for each in handlers} - kept
    return {
        "?"
        if is_class(each.exc) and id(each) not in ends
        else _ending_of_raise(each, kept, gone)
        for each in [*inner_nodes(loop.body, loops=False), *inner_nodes(after)]
        if isinstance(each, ast.Raise) and id(each) not in inside
    }


def _ending_of_silence(
    loop: Statement,
    handlers: Sequence[ast.ExceptHandler],
    after: Sequence[ast.stmt],
    before: Mapping[str, ast.expr],
) -> str:
    """Return what a loop that raises nothing does with the last error."""
    if _passes_counter(loop, handlers) or any(map(_stores_error, handlers)):
        # The last attempt may raise another error, or another part has the last one.
        return "?"
    if any({"return", "break"} & flow(each.body) for each in handlers):
        # Perhaps after the last attempt, and with a value that shows the error.
        return "?" if _returns_something(handlers) else "hidden"
    if isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant):
        return "?"
    silent = falls_silent(loop, handlers, after, before)
    return "hidden" if silent else "?"


def _stores_error(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler passes its error to a method like ``fail``.

    Or whether it keeps the error in a dictionary, an attribute or a list of an object,
    which others may look at; yields it; or asks a function about it.
    """
    if not handler.name:
        return False
    for each in inner_nodes(handler.body):
        match each:
            case ast.Assign(
                targets=[ast.Subscript() | ast.Attribute()], value=value
            ) if handler.name in names_in(value):
                return True
            case ast.Call(func=function) if _keeps(function):
                given = [*each.args, *(x.value for x in each.keywords)]
                if handler.name in {y for x in given for y in names_in(x)}:
                    return True
            case ast.Yield(value=value) if handler.name in names_in(value):
                return True
            case ast.If(test=test):
                calls = [x for x in ast.walk(test) if isinstance(x, ast.Call)]
                own = (x for x in calls if isinstance(x.func, ast.Attribute))
                if any(handler.name in names_in(x) for call in own for x in call.args):
                    return True
    return False


def _keeps(function: ast.expr) -> bool:
    """Return whether a function, by its name, keeps its arguments for others.

    One that adds to a local list does not.
    """
    match function:
        case ast.Attribute(value=ast.Name(), attr="add" | "append" | "put"):
            return False
    return bool(_KEEPS.match(last_name(function)))


def _passes_counter(loop: Statement, handlers: Sequence[ast.ExceptHandler]) -> bool:
    """Return whether a call in an attempt is passed a counter of the loop."""
    counted = counters(loop)
    return any(
        isinstance(x, ast.Name) and x.id in counted
        for attempt in _attempts_of(loop, handlers)
        for call in _calls_in(attempt.body)
        for x in call.args
    )


def _returns(names: set[str], node: ast.AST) -> bool:
    return isinstance(node, ast.Return) and bool(names_in(node.value) & names)


def _ends_with_error(
    handler: ast.ExceptHandler, errors: set[str], loop: Statement
) -> bool:
    """Return whether a handler may raise or return each error that it catches."""
    filtered = _nodes_of_some_errors(handler, loop)
    for each in inner_nodes(handler.body, loops=False):
        raises = isinstance(each, ast.Raise) and not _hides(each, errors)
        if raises and id(each) not in filtered:
            return True
        if isinstance(each, ast.Return) and names_in(each.value) & errors:
            return True
        if isinstance(each, ast.Call) and re.search(
            "raise", " ".join(names_in(each.func))
        ):
            return True
    return False


def _ends_without_cause(handler: ast.ExceptHandler, errors: set[str]) -> bool:
    """Return whether a handler raises another error, and hides its own."""
    return any(
        isinstance(each, ast.Raise) and _hides(each, errors)
        for each in inner_nodes(handler.body, loops=False)
    )


def _hides(node: ast.Raise, errors: set[str]) -> bool:
    """Return whether a ``raise`` is like ``raise ApiError(text) from None``."""
    removed = isinstance(node.cause, ast.Constant) and node.cause.value is None
    return removed and _ending_of_raise(node, errors) == "hidden"


def _nodes_of_some_errors(handler: ast.ExceptHandler, loop: Statement) -> set[int]:
    """Return the nodes of a handler that run whatever the attempt, or never.

    That is decided by a test of the error, or by one that is the same each time.
    """
    counted = counters(loop)
    if not isinstance(loop, ast.While):
        counted |= names_in(loop.target)
    derived = {handler.name} if handler.name else set()
    for each in inner_nodes(handler.body):
        if isinstance(each, ast.Assign):
            used = names_in(each.value)
            if used & derived and not _is_of_attempts(used - derived, counted):
                derived |= {x for target in each.targets for x in names_in(target)}
    changed = counted | assigned(loop.body)
    found: set[int] = set()
    for each in inner_nodes(handler.body, loops=False):
        if not isinstance(each, ast.If) or leaves([each]):
            continue
        asked = names_in(each.test)
        settled = not calls_anything(each.test) and not asked & changed
        if not (settled or asked & derived) or _is_of_attempts(
            asked - derived, counted
        ):
            continue
        within: list[ast.AST] = [*each.body, *each.orelse]
        if settled and flow(each.body) == {"continue"}:
            # What follows runs only if the test is false each time.
            within += [x for x in handler.body if x.lineno > each.lineno]
        told = _has_attempt_test(each, changed - derived if settled else counted)
        # A caller of what `self.raises` decides may want a result instead.
        if not told and not any("raise" in x for x in asked):
            found |= {id(x) for x in inner_nodes(within, loops=False)}
    return found


def _is_of_attempts(names: set[str], counted: set[str]) -> bool:
    """Return whether a name in a test is about the attempt or the time."""
    return any(
        each in counted or COUNT_WORDS.search(each) or CLOCK_WORDS.search(each)
        for each in names
    )


def _has_attempt_test(node: ast.If, counted: set[str]) -> bool:
    """Return whether an ``if`` contains another that tests the attempt or the time."""
    return any(
        _is_of_attempts(names_in(inner.test), counted)
        for inner in inner_nodes([*node.body, *node.orelse], loops=False)
        if isinstance(inner, ast.If)
    )


def _ending_of_raise(
    node: ast.Raise, kept: set[str], gone: Collection[str | None] = ()
) -> str:
    """Return what a ``raise`` does with the last error."""
    if node.exc is None or names_in(node.cause) & kept:
        return "raises"
    if isinstance(node.exc, ast.Name | ast.Attribute | ast.Subscript):
        if names_in(node.exc) & kept:
            return "raises"
        # A class, such as `raise TimeoutError`.
        hides = is_class(node.exc) or (
            isinstance(node.exc, ast.Name) and node.exc.id in gone
        )
        return "hidden" if hides else "?"
    return "?" if names_in(node.exc) & kept else "hidden"


def _outputs_in(handlers: Sequence[ast.ExceptHandler]) -> set[str]:
    """Return the variables in which handlers keep the output of a program."""
    return {
        name
        for handler in handlers
        for each in inner_nodes(handler.body)
        if isinstance(each, ast.Assign)
        for target in each.targets
        for name in names_in(target)
        if _OUTPUTS.match(name)
    }


def _uses(body: Sequence[ast.AST], names: set[str]) -> bool:
    return bool(names) and any(names_in(each) & names for each in body)


def _returns_something(handlers: Sequence[ast.ExceptHandler]) -> bool:
    return any(
        isinstance(each, ast.Return) and not is_empty_or_constant(each.value)
        for handler in handlers
        for each in inner_nodes(handler.body)
    )


def _copies_of(names: set[str], loop: Statement) -> set[str]:
    """Return the variables in which a loop keeps errors."""
    found: set[str] = set()
    for each in inner_nodes(loop.body):
        match each:
            case ast.Assign(targets=[target], value=value) if names_in(value) & (
                names | found
            ):
                found |= names_in(target) - {"self"}
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name)) as function, args=args
            ) if name != "self" and not is_log_function(function):
                # Such as `errors.append(error)`.
                if any(names_in(x) & names for x in args):
                    found.add(name)
    return found
