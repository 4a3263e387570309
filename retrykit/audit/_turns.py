"""One turn of a loop: what it tries, and the errors after which it continues."""

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from retrykit.audit._flow import flow, inner_nodes, leaves, without_handlers
from retrykit.audit._handlers import Attempt, caught_by
from retrykit.audit._loop_words import STOPS, Statement, names_in
from retrykit.audit._pauses import Pause, find_pauses
from retrykit.audit._values import Scope

__all__ = ["Turn", "assigned_constants", "find_turn"]


class Turn(NamedTuple):
    """One turn of a loop.

    Attributes:
        loop: The loop.
        attempt: The ``try`` statement.
        rest: The statements that follow the attempt in the loop.
        handlers: The handlers after which the loop continues.
        pauses: The sleeps in the loop.
        function: The name of the function around it, without its module.
        following: The statements that follow the loop.
        before: The expressions that were last assigned to names before the loop.
    """

    loop: Statement
    attempt: Attempt
    rest: list[ast.stmt]
    handlers: list[ast.ExceptHandler]
    pauses: list[Pause]
    function: str
    following: Sequence[ast.stmt]
    before: Mapping[str, ast.expr]

    @property
    def success(self) -> list[ast.stmt]:
        """The statements that run if the attempt succeeds."""
        return [*self.attempt.body, *self.attempt.orelse, *self.rest]

    @property
    def leaves(self) -> bool:
        """True if each success leaves the loop at once."""
        return not {"next", "continue"} & flow(self.success)

    @property
    def always_ends(self) -> bool:
        """True if each success ends the loop, at once or by its condition."""
        return self.leaves or self.sets_flag or _sets_result(self.loop, self.attempt)

    @property
    def sets_flag(self) -> bool:
        """True if a success assigns a constant that may end the loop."""
        return _sets_flag(self.loop, self.attempt)

    @property
    def end(self) -> list[ast.stmt]:
        """The statements that raise or log an error after the last attempt."""
        told: list[ast.stmt] = []
        for each in self.following:
            if isinstance(each, ast.If) and not each.orelse and leaves(each.body):
                # Such as `if not done: raise`.
                told += each.body
            elif isinstance(each, ast.Expr | ast.Raise):
                told.append(each)
            else:
                break
        # What raises nothing may follow a success.
        raises = any(isinstance(each, ast.Raise) for each in told)
        return [*self.loop.orelse, *(told if raises else [])]

    @property
    def caught(self) -> set[str]:
        """The names of the errors after which the loop continues."""
        return {name for each in self.handlers for name in caught_by(each)}


def find_turn(
    loop: Statement,
    scope: Scope,
    function: str,
    following: Sequence[ast.stmt],
    before: Mapping[str, ast.expr],
) -> Turn | None:
    """Return a turn of a loop that continues after an error; None for other loops."""
    for attempt, rest in _attempts(loop.body, []):
        if flow(attempt.body) == {"raise"}:
            # It cannot succeed.
            continue
        if _only_gives_default(loop, attempt, rest):
            continue
        after = flow(rest)
        handlers = [
            each
            for each in attempt.handlers
            if _continues(each, after) and not _makes_false(loop, each.body)
        ]
        if handlers:
            name = function.rpartition(".")[2]
            later = _find_later(rest) if _falls_through(handlers) else None
            found = later or (attempt, rest, handlers)
            pauses = [*find_pauses(loop.body, scope)]
            return Turn(loop, *found, pauses, name, following, before)
    return None


def _only_gives_default(
    loop: Statement, attempt: Attempt, rest: Sequence[ast.stmt]
) -> bool:
    """Return whether a failed attempt only leaves a constant in a variable.

    And the variable decides neither how the turn ends nor whether another one follows.
    """
    found = _assigned_results(attempt.body)
    names: set[str] = set()
    for each in attempt.handlers:
        match each.body:
            case [ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant())] if (
                name in found
            ):
                names.add(name)
            case _:
                return False
    tests = [loop.test] if isinstance(loop, ast.While) else []
    tests += [
        each.test
        for each in inner_nodes(rest)
        if isinstance(each, ast.If) and (flow(each.body) | flow(each.orelse)) - {"next"}
    ]
    returned = [x for x in inner_nodes(rest) if isinstance(x, ast.Return)]
    return not any(names_in(each) & names for each in [*tests, *returned])


def _find_later(
    body: Sequence[ast.stmt],
) -> tuple[Attempt, list[ast.stmt], list[ast.ExceptHandler]] | None:
    """Return a later attempt whose success ends the loop, such as one after a clean-up.

    Returns:
        The ``try``, the statements that follow it in the loop, and its handlers after
        which the loop continues; None without such an attempt.
    """
    for attempt, rest in _attempts(body, []):
        after = flow(rest)
        handlers = [each for each in attempt.handlers if _continues(each, after)]
        success = flow([*attempt.body, *attempt.orelse, *rest])
        if handlers and not {"next", "continue"} & success:
            return attempt, rest, handlers
    return None


def _falls_through(handlers: Sequence[ast.ExceptHandler]) -> bool:
    """Return whether the same turn continues after each error."""
    return not any("continue" in flow(each.body) for each in handlers)


def _continues(handler: ast.ExceptHandler, after: frozenset[str]) -> bool:
    outcomes = flow(handler.body)
    return "continue" in outcomes or (
        "next" in outcomes and bool({"next", "continue"} & after)
    )


def _makes_false(loop: Statement, body: Sequence[ast.stmt]) -> bool:
    """Return whether statements make the condition of a ``while`` loop false."""
    tests = [loop.test] if isinstance(loop, ast.While) else []
    if tests and isinstance(tests[0], ast.BoolOp) and isinstance(tests[0].op, ast.And):
        tests = tests[0].values
    ends: set[tuple[str, bool | None]] = set()
    for test in tests:
        match test:
            case ast.Name(id=name):
                ends.add((name, False))
            case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)):
                ends.add((name, True))
            case ast.Compare(
                left=ast.Name(id=name),
                ops=[ast.IsNot()],
                comparators=[ast.Constant(value=None)],
            ):
                ends.add((name, None))
    given = {
        (target.id, each.value.value)
        for each in body
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    return bool(ends & given)


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


def _sets_flag(loop: Statement, attempt: Attempt) -> bool:
    """Return whether a success sets a flag in the condition of a ``while`` loop."""
    if not isinstance(loop, ast.While):
        return False
    # A counter that begins again ends nothing.
    failing = {
        each.target.id
        for each in inner_nodes(loop.body)
        if isinstance(each, ast.AugAssign)
        and isinstance(each.op, ast.Add)
        and isinstance(each.target, ast.Name)
    }
    for handler in attempt.handlers:
        failing |= assigned_constants(inner_nodes(handler.body))
    success = [*attempt.body, *attempt.orelse]
    # What stops only in some cases is no success.
    stops = {
        name
        for each in inner_nodes(success)
        if isinstance(each, ast.If)
        for name in assigned_constants(inner_nodes(each.body))
        if STOPS.search(name)
    }
    assigned = assigned_constants(without_handlers(success))
    return bool(names_in(loop.test) & (assigned - failing - stops))


def _sets_result(loop: Statement, attempt: Attempt) -> bool:
    """Return whether a success assigns a result that a ``while`` loop waits for."""
    return isinstance(loop, ast.While) and bool(
        names_in(loop.test) & _assigned_results([*attempt.body, *attempt.orelse])
    )


def assigned_constants(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that one of the nodes assigns a constant to."""
    found = set()
    for each in nodes:
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant):
            for target in each.targets:
                found |= (
                    {target.id}
                    if isinstance(target, ast.Name)
                    else names_in(target) - {"self"}
                )
    return found


def _assigned_results(body: Sequence[ast.stmt]) -> set[str]:
    """Return the names that something other than a constant is assigned to."""
    found = set()
    for each in body:
        if isinstance(each, ast.Assign) and not isinstance(each.value, ast.Constant):
            for target in each.targets:
                if isinstance(target, ast.Name):
                    found.add(target.id)
    return found
