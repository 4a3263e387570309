"""Functions that loops call to sleep, to limit attempts, or to compute a delay."""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from retrykit.audit._borrowed import (
    NOT_BORROWED,
    Borrowed,
    FunctionNode,
)
from retrykit.audit._flow import inner_nodes
from retrykit.audit._handlers import is_log_function, last_name
from retrykit.audit._loop_limits import has_limit_test
from retrykit.audit._pauses import (
    Pause,
    find_pauses,
    pauses_among,
    suggests_sleep,
)
from retrykit.audit._values import Reference, Scope, evaluate

__all__ = ["Helpers"]

_ROUNDS = 3
"""Functions that call one another are followed up to this depth."""

# Methods of plain values, and of what is closed, told or read at once.
_HARMLESS: Final = frozenset(
    """
    add append cancel capitalize clear close copy count decode difference discard
    disconnect encode endswith exc_info extend find format format_exc get get_event_loop
    get_running_loop getheader getheaders group groups increment index insert
    intersection is_closed is_closing is_set isdigit items join json keys lower lstrip
    match monotonic monotonic_ns now partition perf_counter pop popitem popleft
    print_exc put_nowait record release remove replace reset rfind rollback rpartition
    rsplit rstrip search set setdefault sort split splitlines startswith strip sub time
    time_ns total_seconds union update upper utcnow values
    """.split()  # noqa: SIM905  a list of words
)
# Modules of which only a function named sleep waits.
_QUICK: Final = frozenset(
    """
    copy datetime errno functools itertools json logging math operator os random re
    sys textwrap time traceback typing urllib uuid warnings
    """.split()  # noqa: SIM905  a list of words
)
# The verbs of functions that do something small, or something instead of a delay.
_SMALL = re.compile(
    r"_*(build|calc|calculate|can|clear|close|compute|create|delete|from|get|has|import"
    r"|invoke|is|make|notify|parse|record|refresh|remove|replace|report|reset|resolve"
    r"|seek|send|set|should|to|update)(_|$|[A-Z])"
)
_ASKS = re.compile("(^|_)(can|has|is|should)_")
_RETRIES = re.compile("retr(y|ies)|attempt|back_?off", re.IGNORECASE)


class Helpers:
    """The functions and methods of a module, keyed by name.

    Args:
        own: The functions of the module.
        scope: Returns the value of a name of the module.
        borrowed: Functions of other modules that its loops call.

    Attributes:
        limiting: The names of functions that compare a number of attempts, or a time,
            with a limit.
    """

    def __init__(
        self,
        own: Sequence[FunctionNode],
        scope: Scope,
        borrowed: Borrowed = NOT_BORROWED,
    ) -> None:
        self._functions = _by_name(own)
        self._borrowed = borrowed.called.keys() - self._functions.keys()
        called = {each: [borrowed.called[each]] for each in self._borrowed}
        self._functions = _by_name(borrowed.others) | called | self._functions
        self._scope = scope
        nodes = {
            name: [x for each in several for x in inner_nodes(each.body)]
            for name, several in self._functions.items()
        }
        self._waiting = self._find_waiting(nodes)
        self.limiting = frozenset(filter(lambda x: has_limit_test(nodes[x]), nodes))

    def _find_waiting(self, nodes: dict[str, list[ast.AST]]) -> frozenset[str]:
        """Return the names of functions that sleep, or that call functions that do."""
        found = {name for name in nodes if any(pauses_among(nodes[name], _name))}
        if not found:
            return frozenset()
        called = {
            name: {each for each, _ in self._calls_among(nodes[name])} for name in nodes
        }
        for _ in range(_ROUNDS):
            found |= {name for name in called if called[name] & found}
        return frozenset(found)

    def _known_calls(self, body: Sequence[ast.AST]) -> Iterator[tuple[str, ast.Call]]:
        return self._calls_among(inner_nodes(body))

    def _calls_among(self, nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.Call]]:
        """Yield the name and the call of each called function that may be known."""
        for each in nodes:
            match each:
                case ast.Call(
                    func=ast.Name(id=name)
                    | ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name)
                ):
                    yield name, each
                case ast.Call(func=ast.Attribute(attr=name)) if name in self._borrowed:
                    yield name, each

    def may_limit(self, body: Sequence[ast.AST]) -> bool:
        """Return whether a block calls a function that may limit the attempts."""
        return any(name in self.limiting for name, _ in self._known_calls(body))

    def find(self, function: ast.expr) -> FunctionNode | None:
        """Return the known function that an expression refers to; None if unclear."""
        for name, _ in self._known_calls([ast.Call(function, [], [])]):
            found = self._functions.get(name, ())
            return found[0] if len(found) == 1 else None
        return None

    def pauses(self, body: Sequence[ast.AST]) -> Iterator[Pause]:
        """Yield the sleeps in the known functions that a block calls."""
        for name, call in self._known_calls(body):
            if name not in self._waiting:
                continue
            function = self.find(call.func)
            inner = [] if function is None else [*_pauses_in(function)]
            if function is None or not inner:
                yield Pause(call, None, blocking=False)
            else:
                yield from (_pause_of_caller(each, call, function) for each in inner)

    def may_wait(self, body: Sequence[ast.AST], known: Iterable[ast.AST] = ()) -> bool:
        """Return whether a block calls something that may wait, as far as is known.

        Args:
            body: The block; calls in its ``raise`` statements are left out.
            known: Other calls to leave out, since what they do is known.
        """
        quick = {id(each) for each in known}
        quick |= {
            id(x)
            for each in inner_nodes(body)
            if isinstance(each, ast.Raise)
            for x in ast.walk(each)
        }
        return any(
            isinstance(each, ast.Call)
            and id(each) not in quick
            and not self._is_quick(each.func)
            for each in inner_nodes(body)
        )

    def _is_quick(self, function: ast.expr) -> bool:
        """Return whether a function presumably does not wait."""
        name = last_name(function)
        if suggests_sleep(name):
            return False
        if name in self._functions:
            return name not in self._waiting
        if is_log_function(function) or _suggests_no_wait(name):
            return True
        if isinstance(function, ast.Name):
            return hasattr(builtins, name)
        value = evaluate(function, self._scope)
        known = type(value) is Reference and value.library in _QUICK
        return known or name in _HARMLESS


def _by_name(functions: Sequence[FunctionNode]) -> dict[str, list[FunctionNode]]:
    found: dict[str, list[FunctionNode]] = {}
    for each in functions:
        found.setdefault(each.name, []).append(each)
    return found


def _suggests_no_wait(name: str) -> bool:
    """Return whether a name suggests a class, a question or a small step: no wait."""
    if name[:1].isupper() or _ASKS.search(name):
        return True
    return bool(_SMALL.match(name)) and not _RETRIES.search(name)


def _pauses_in(function: FunctionNode) -> Iterator[Pause]:
    return find_pauses(function.body, _name)


def _name(name: str) -> Reference:
    return Reference(name)


def _pause_of_caller(pause: Pause, call: ast.Call, function: FunctionNode) -> Pause:
    """Return a sleep in a function, as its caller sees it."""
    blocking = pause.blocking and isinstance(function, ast.FunctionDef)
    outside = inner_nodes(function.body, loops=False)
    if all(each is not pause.node for each in outside):
        # The function waits for something else, or retries by itself.
        return Pause(call, None, blocking)
    match pause.argument:
        case ast.Name(id=name) if name in _unchanged_parameters(function):
            return Pause(
                call, _argument_for(call, function, name), blocking, pause.seconds
            )
    return Pause(call, pause.argument, blocking, pause.seconds, function)


def _argument_for(call: ast.Call, function: FunctionNode, name: str) -> ast.expr | None:
    """Return the argument of a call for a parameter; None if that is not known."""
    parameters = _parameters(function)
    if isinstance(call.func, ast.Attribute):
        parameters = parameters[1:]
    named = {each.arg: each.value for each in call.keywords}
    return dict(zip(parameters, call.args, strict=False)).get(name, named.get(name))


def _unchanged_parameters(function: FunctionNode) -> set[str]:
    """Return the parameters that a function does not assign to."""
    assigned = {
        each.id
        for each in inner_nodes(function.body)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    return {*_parameters(function)} - assigned


def _parameters(function: FunctionNode) -> list[str]:
    return [x.arg for x in (*function.args.posonlyargs, *function.args.args)]
