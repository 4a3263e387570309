"""Reader that collects the facts about a module from its syntax tree."""

import ast
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import cast

from retrykit.audit._borrowed import (
    NOT_BORROWED,
    Borrowed,
    FunctionNode,
    RaisingCalls,
    functions_in,
)
from retrykit.audit._calls import Found
from retrykit.audit._flow import node_fields, walk
from retrykit.audit._handlers import Attempt, last_name
from retrykit.audit._helpers import Helpers
from retrykit.audit._loop_words import names_in
from retrykit.audit._loops import Loop, Place, read_loop
from retrykit.audit._module import Block, Candidate, Definition, Module
from retrykit.audit._scopes import Names, Origin
from retrykit.audit._values import UNKNOWN, Value, evaluate

__all__ = ["read_module"]

_TIME_LIMITS = re.compile("timeout|fail_after|fail_at|move_on", re.IGNORECASE)
# Functions that raise an error when a time is over.
_CLOCKS = frozenset(["Timeout", "alarm", "setitimer"])


def _check_nothing() -> None:
    """Check nothing, so that the reading has no time limit."""


def read_module(  # noqa: PLR0913  the module, and what is known of it
    tree: ast.Module,
    path: str,
    name: str,
    package: str,
    check: Callable[[], None] = _check_nothing,
    *,
    borrowed: Borrowed = NOT_BORROWED,
    loops: bool = True,
) -> Module:
    """Return the facts about a module.

    Args:
        tree: Its syntax tree.
        path: The path of its file.
        name: Its dotted name.
        package: The package that relative imports start from.
        check: Called before each statement; an error that it raises ends the reading.
        borrowed: Functions of other modules that its loops call.
        loops: Whether to look for loops that retry.
    """
    origin = Origin(name, package)
    reader = _Reader(tree, check, borrowed, reads_loops=loops)
    names = Names(origin)
    names.bind(tree.body)
    reader.visit_module(names)
    return Module(
        path,
        name,
        origin.constants,
        reader.bases,
        tuple(reader.definitions),
        tuple(reader.candidates),
        tuple(reader.loops),
        tuple(reader.blocks),
    )


class _Body(Found):
    """The body of a module, a class or a function, with its calls and results."""

    def __init__(
        self, names: Names, candidates: list[Candidate], *, is_async: bool = False
    ) -> None:
        super().__init__(names, candidates)
        self.is_async = is_async
        self.results: list[Value] = []
        # How many blocks around what is read limit its time.
        self.limits = 0
        # The blocks around what is read: the index of what follows, and the `finally`.
        self.around: list[tuple[Sequence[ast.stmt], int, Sequence[ast.stmt]]] = []
        # What follows the loops around what is read.
        self.later: list[ast.stmt] = []

    def following(self, rest: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return the rest of a block with what follows the blocks around it."""
        found = [*rest]
        for statements, index, ends in reversed(self.around):
            found += [*ends, *statements[index:]]
        return found

    def include(self, inner: Found) -> None:
        """Add the facts about a function that is defined in this body."""
        # What it calls is mostly called here.
        self.calls += inner.calls
        self.throttled += inner.throttled
        self.words |= inner.words


# Statements whose blocks are left for what follows them.
_BRANCHES = (ast.If, ast.Match, ast.With, ast.AsyncWith, ast.Try, ast.TryStar)
# The nodes in the lists of a statement that are no expressions.
_BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case)


class _Reader:
    """Collects the facts about a module."""

    def __init__(
        self,
        tree: ast.Module,
        check: Callable[[], None],
        borrowed: Borrowed,
        *,
        reads_loops: bool,
    ) -> None:
        self.tree, self.check, self.borrowed = tree, check, borrowed
        self.reads_loops = reads_loops
        self.bases: dict[str, tuple[Value, ...]] = {}
        self.definitions: list[Definition] = []
        self.candidates: list[Candidate] = []
        self.loops: list[Loop] = []
        self.blocks: list[Block] = []

    def visit_module(self, names: Names) -> None:
        """Read the module."""
        self.names = names
        self.visit_block(self.tree.body, _Body(names, self.candidates))

    @cached_property
    def functions(self) -> list[FunctionNode]:
        """All functions of the module."""
        return functions_in(self.tree)

    @cached_property
    def helpers(self) -> Helpers:
        """The functions that loops of the module call to sleep or to limit attempts."""
        return Helpers(self.functions, self.names.find_literal, self.borrowed)

    @cached_property
    def limited(self) -> frozenset[str]:
        """The functions whose calls are limited, as in ``wait_for(load(), 9)``."""
        return frozenset(
            last_name(argument.func)
            for each in walk(self.tree)
            if isinstance(each, ast.Call) and last_name(each.func) == "wait_for"
            for argument in each.args[:1]
            if isinstance(argument, ast.Call)
        )

    def _is_limited(self, function: str) -> bool:
        return function.rpartition(".")[2] in self.limited

    @cached_property
    def raising(self) -> RaisingCalls:
        """Completes loops in which functions are called that always raise."""
        return RaisingCalls(self.functions, self.borrowed)

    def visit_block(self, statements: Sequence[ast.stmt], body: _Body) -> None:
        """Read the statements of a block."""
        for index, each in enumerate(statements):
            self.check()
            match each:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self.visit_function(each, body)
                case ast.ClassDef():
                    self.visit_class(each, body)
                case ast.While() | ast.For() | ast.AsyncFor() if self.reads_loops:
                    if self.raising.names:
                        self.raising.visit(each)
                    following = body.following(statements[index + 1 :])
                    self.visit_loop(each, statements[:index], following, body)
                    outer = body.around, body.later
                    body.around, body.later = [], [*following, *body.later]
                    self.visit_statement(each, body)
                    body.around, body.later = outer
                case _ if isinstance(each, _BRANCHES):
                    ends = getattr(each, "finalbody", ())
                    body.around.append((statements, index + 1, ends))
                    self.visit_statement(each, body)
                    body.around.pop()
                case _:
                    self.visit_statement(each, body)

    def visit_loop(
        self,
        node: ast.While | ast.For | ast.AsyncFor,
        preceding: Sequence[ast.stmt],
        following: Sequence[ast.stmt],
        body: _Body,
    ) -> None:
        """Note a loop that retries, or that iterates over the attempts of a library."""
        names = body.names
        place = Place(
            preceding,
            following,
            body.later,
            names.assigned,
            names.find_literal,
            names.find_usual,
            names.with_defaults,
            names.function,
            is_async=body.is_async,
            limited=lambda: body.limits > 0 or self._is_limited(names.function),
            helpers=lambda: self.helpers,
        )
        loop = read_loop(node, place)
        if loop is not None:
            self.loops.append(loop)
        elif (
            names.function
            and not isinstance(node, ast.While)
            and _enters_attempts(node)
        ):
            value = evaluate(node.iter, names.find)
            end = node.end_lineno or node.lineno
            self.blocks.append(Block(value, names.function, node.lineno, end))

    def visit_statement(self, node: ast.stmt, body: _Body) -> None:
        """Read a statement other than a definition, and the statements within it."""
        limits = False
        match node:
            case ast.Expr(value=value):
                body.names.change(node)
                # Such as `signal.alarm(9)`, which limits the rest of the function.
                body.limits += _starts_clock(value)
            case ast.Assign() | ast.AnnAssign():
                body.names.assign(node)
                body.names.change(node)
            case ast.Return(value=ast.expr() as value):
                body.results.append(evaluate(value, body.names.find))
            case ast.With() | ast.AsyncWith():
                limits = _limits_time(node)
        body.limits += limits
        parts: list[ast.AST] = []
        blocks: list[list[ast.AST]] = []
        for name in node_fields(type(node)):
            part = getattr(node, name, None)
            if isinstance(part, ast.AST):
                parts.append(part)
            elif type(part) is list and part and isinstance(part[0], ast.AST):
                if isinstance(part[0], _BLOCKS):
                    blocks.append(part)
                else:
                    parts += part
        body.read(parts, node.iter if isinstance(node, ast.For) else None)
        for block in blocks:
            self.visit_inner(block, node, body)
        body.limits -= limits

    def visit_inner(
        self, block: Sequence[ast.AST], node: ast.stmt, body: _Body
    ) -> None:
        """Read a block of a statement, or its handlers or cases."""
        match block[0]:
            case ast.ExceptHandler():
                outer = body.handler
                for each in cast("Sequence[ast.ExceptHandler]", block):
                    body.handler = each, cast("Attempt", node)
                    self.visit_block(each.body, body)
                body.handler = outer
            case ast.match_case():
                for case in cast("Sequence[ast.match_case]", block):
                    self.visit_block(case.body, body)
            case _:
                self.visit_block(cast("Sequence[ast.stmt]", block), body)

    def visit_function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, outer: _Body
    ) -> None:
        """Read a function."""
        decorators = []
        for decorator in node.decorator_list:
            value = evaluate(decorator, outer.names.find)
            end = decorator.end_lineno or decorator.lineno
            place = (decorator.lineno, end, decorator.col_offset + 1)
            decorators.append((value, *place))
        outer.read(node.decorator_list)
        defaults = (*node.args.defaults, *node.args.kw_defaults)
        outer.read([each for each in defaults if each is not None])
        names = outer.names.of_function(node)
        is_async = isinstance(node, ast.AsyncFunctionDef)
        body = _Body(names, self.candidates, is_async=is_async)
        body.limits += any(map(_names_time_limit, node.decorator_list))
        self.visit_block(node.body, body)
        results = [each for each in body.results if each is not None]
        self.definitions.append(
            Definition(
                names.function,
                node.lineno,
                node.end_lineno or node.lineno,
                is_async,
                tuple(decorators),
                tuple(body.calls),
                results[0] if len(results) == 1 else UNKNOWN,
                tuple(body.throttled),
                tuple(sorted(body.words)),
            )
        )
        if outer.names.function:
            outer.include(body)

    def visit_class(self, node: ast.ClassDef, outer: _Body) -> None:
        """Read a class."""
        full = f"{outer.names.prefix}{node.name}"
        self.bases[full] = tuple(evaluate(x, outer.names.find) for x in node.bases)
        outer.read(node.decorator_list)
        self.visit_block(node.body, _Body(outer.names.of_class(node), self.candidates))


def _enters_attempts(node: ast.stmt) -> bool:
    """Return whether a loop is ``for attempt in ...: with attempt: ...``."""
    match node:
        case (
            ast.For(target=ast.Name(id=name), body=body)
            | ast.AsyncFor(target=ast.Name(id=name), body=body)
        ):
            for each in body:
                match each:
                    case (
                        ast.With(
                            items=[ast.withitem(context_expr=ast.Name(id=entered))]
                        )
                        | ast.AsyncWith(
                            items=[ast.withitem(context_expr=ast.Name(id=entered))]
                        )
                    ):
                        if entered == name:
                            return True
    return False


def _limits_time(node: ast.With | ast.AsyncWith) -> bool:
    """Return whether a name in a ``with`` statement suggests a time limit."""
    return any(_names_time_limit(each.context_expr) for each in node.items)


def _names_time_limit(node: ast.expr) -> bool:
    return any(map(_TIME_LIMITS.search, names_in(node)))


def _starts_clock(node: ast.expr) -> bool:
    """Return whether an expression is a call that interrupts the program later."""
    return isinstance(node, ast.Call) and last_name(node.func) in _CLOCKS
