"""Facts of a module of source code: names, functions, calls and loops."""

import ast
import builtins
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, cast

from retrykit.audit._libraries import LIBRARIES, METHODS
from retrykit.audit._loops import Loop, Place, read_loop
from retrykit.audit._values import (
    UNKNOWN,
    Call,
    Operation,
    Reference,
    Scope,
    Value,
    bounded,
    evaluate,
    is_number,
)

__all__ = ["Called", "Candidate", "Definition", "Module", "read_module"]

# The names of calls of libraries that retry, and of clients that do.
_NAMES = frozenset(
    name
    for readers in (LIBRARIES, METHODS)
    for each in readers.values()
    for name in each
)
# Libraries of which every name may be that of a client.
_WHOLE = frozenset(library for library, names in LIBRARIES.items() if "*" in names)
_RETRIES = re.compile("retr(y|ies)|backoff|attempts|tries", re.IGNORECASE)
_THROTTLED = frozenset([429, 503])
_LONG = 60
_WORDS = re.compile("[Rr]etry.[Aa]fter|[Ii]dempot")
_TIME_LIMITS = re.compile("timeout|fail_after|fail_at|move_on", re.IGNORECASE)


class Called(NamedTuple):
    """A call within a function.

    Attributes:
        function: What is called.
        line: The line in which it stands.
        end_line: Its last line.
        timeout: Its ``timeout=``; None without one.
        named: The names of its keyword arguments.
        first: The texts in its first argument.
        passed: The functions that it is given, if its name is about retries; True
            stands for a lambda expression.
    """

    function: Value
    line: int
    end_line: int
    timeout: Value
    named: frozenset[str]
    first: str
    passed: tuple[Value, ...]


class Candidate(NamedTuple):
    """A call that may be that of a library of retries.

    Attributes:
        call: The call.
        line: Its first line.
        end_line: Its last line.
        column: Its column, from 1.
        function: The full name of the function in which it stands, or "".
        iterated: Whether it is what a ``for`` loop iterates over.
    """

    call: Call
    line: int
    end_line: int
    column: int
    function: str
    iterated: bool


class Block(NamedTuple):
    """A loop such as ``for attempt in retrying: with attempt: ...``.

    Attributes:
        value: What it iterates over.
        function: The full name of the function in which it stands.
        line: Its first line.
        end_line: Its last line.
    """

    value: Value
    function: str
    line: int
    end_line: int


class Definition(NamedTuple):
    """A function.

    Attributes:
        name: Its full name.
        line: The line of its ``def``.
        end_line: Its last line.
        is_async: Whether it is a coroutine function.
        decorators: The values of its decorators, with line, last line and column.
        calls: The calls in its body.
        result: The value that it returns, if there is one return statement.
        throttled: The lines in which a status is compared with 429 or 503.
        words: What it says of Retry-After and of idempotency.
    """

    name: str
    line: int
    end_line: int
    is_async: bool
    decorators: tuple[tuple[Value, int, int, int], ...]
    calls: tuple[Called, ...]
    result: Value
    throttled: tuple[int, ...]
    words: frozenset[str]


class Module(NamedTuple):
    """The facts of a module that an audit needs.

    Attributes:
        path: The path of its file.
        name: Its dotted name.
        constants: The values of names that are assigned once: of the module, and of
            its classes as ``Class.name``.
        bases: The base classes of each class.
        definitions: Its functions.
        candidates: Calls that may be those of a library of retries.
        loops: Loops that repeat what failed.
        blocks: Loops over the attempts of a library.
    """

    path: str
    name: str
    constants: dict[str, Value]
    bases: dict[str, tuple[Value, ...]]
    definitions: tuple[Definition, ...]
    candidates: tuple[Candidate, ...]
    loops: tuple[Loop, ...]
    blocks: tuple[Block, ...]


def _go_on() -> None:
    """Read a module without a limit of time."""


def read_module(
    tree: ast.Module,
    path: str,
    name: str,
    package: str,
    check: Callable[[], None] = _go_on,
) -> Module:
    """Return the facts of a module.

    Args:
        tree: Its syntax tree.
        path: The path of its file.
        name: Its dotted name.
        package: The package that relative imports begin at.
        check: Called before each statement; an error that it raises ends the reading.
    """
    reader = _Reader(path, name, package, check)
    reader.module(tree)
    return Module(
        path,
        name,
        reader.constants,
        reader.bases,
        tuple(reader.definitions),
        tuple(reader.candidates),
        tuple(reader.loops),
        tuple(reader.blocks),
    )


class _Names:
    """The names of a module, a class or a function."""

    def __init__(self, outer: "_Names | None", prefix: str) -> None:
        self.outer, self.prefix = outer, prefix
        self.values: dict[str, Value] = {}
        self.pending: dict[str, ast.expr] = {}
        self.assigned: dict[str, ast.expr] = {}
        # Of a function, the calls in it.
        self.calls: list[Called] = []
        self.throttled: list[int] = []
        self.words: set[str] = set()
        self.results: list[Value] = []
        self.function = ""
        self.is_async = False
        self.limited = 0
        # What `from ... import *` stands for.
        self.star = ""
        self.self_name = ""
        self.class_name = ""

    def find(self, name: str) -> Value:
        """Return the value of a name; of a builtin, a reference to it."""
        names: _Names | None = self
        while names is not None:
            if name in names.pending:
                # Meanwhile it is unknown, as in `x = f(x)`.
                names.values[name] = UNKNOWN
                value = evaluate(names.pending.pop(name), names.find)
                names.values[name] = bounded(value)
            if name in names.values:
                return names.values[name]
            if names.star and not hasattr(builtins, name):
                return Reference(f"{names.star}.{name}")
            names = names.outer
        return Reference(name)


class _Reader:
    """Collects the facts of a module, in one pass over its tree."""

    def __init__(
        self, path: str, name: str, package: str, check: Callable[[], None]
    ) -> None:
        self.check = check
        self.path, self.name, self.package = path, name, package
        self.constants: dict[str, Value] = {}
        self.bases: dict[str, tuple[Value, ...]] = {}
        self.definitions: list[Definition] = []
        self.candidates: list[Candidate] = []
        self.loops: list[Loop] = []
        self.blocks: list[Block] = []

    def module(self, tree: ast.Module) -> None:
        """Read a module."""
        names = _Names(None, "")
        self.bind_all(tree.body, names)
        self.block(tree.body, names)

    def bind_all(self, body: list[ast.stmt], names: _Names) -> None:  # noqa: C901, PLR0912  a case each
        """Bind the names that are defined in a block and in the blocks within it."""
        assigned: dict[str, list[ast.expr | None]] = {}
        for each in _statements(body):
            match each:
                case ast.Import() | ast.ImportFrom():
                    self.bind_imports(each, names)
                case (
                    ast.FunctionDef(name=name)
                    | ast.AsyncFunctionDef(name=name)
                    | ast.ClassDef(name=name)
                ):
                    names.values[name] = self.reference(names, name)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    assigned.setdefault(name, []).append(value)
                case ast.AnnAssign(target=ast.Name(id=name), value=value):
                    if value is not None:
                        assigned.setdefault(name, []).append(value)
                case ast.With(items=items) | ast.AsyncWith(items=items):
                    # A client enters itself.
                    for item in items:
                        match item.optional_vars:
                            case ast.Name(id=name):
                                value = item.context_expr
                                assigned.setdefault(name, []).append(value)
                case _:
                    for name in _targets(each):
                        assigned.setdefault(name, []).append(None)
        for name, values in assigned.items():
            if name in names.values:
                continue
            first = values[0]
            if len(values) > 1 or first is None:
                names.values[name] = UNKNOWN
            elif names.function:
                names.pending[name] = first
            else:
                full = f"{names.prefix}{name}"
                names.values[name] = Reference(f"{self.name}.{full}")
                self.constants[full] = UNKNOWN
        if not names.function:
            for name, values in assigned.items():
                full = f"{names.prefix}{name}"
                if full in self.constants and values[0] is not None:
                    self.constants[full] = bounded(evaluate(values[0], names.find))

    def bind_imports(self, node: ast.Import | ast.ImportFrom, names: _Names) -> None:
        """Bind the names that a statement imports."""
        if isinstance(node, ast.Import):
            for each in node.names:
                top = each.name.partition(".")[0]
                names.values[each.asname or top] = Reference(
                    each.name if each.asname else top
                )
            return
        origin = node.module or ""
        if node.level:
            parts = self.package.split(".")
            kept = parts[: len(parts) - node.level + 1]
            origin = ".".join([*kept, *([origin] if origin else [])])
        for each in node.names:
            if each.name == "*":
                names.star = origin
                continue
            full = f"{origin}.{each.name}" if origin else each.name
            names.values[each.asname or each.name] = Reference(full)
            if not names.function:
                # Others may import it from here.
                own = f"{names.prefix}{each.asname or each.name}"
                self.constants.setdefault(own, Reference(full))

    def reference(self, names: _Names, name: str) -> Reference:
        """Return the full name of what is defined in a scope."""
        prefix = (
            f"{names.function}." if names.function else f"{self.name}.{names.prefix}"
        )
        return Reference(f"{prefix}{name}")

    def literals(self, names: _Names) -> Scope:
        """Return a scope that knows the numbers of this module."""
        own = f"{self.name}."

        def find(name: str) -> Value:
            found = names.find(name)
            if type(found) is Reference and found.name.startswith(own):
                value = self.constants.get(found.name.removeprefix(own))
                return value if is_number(value) or type(value) is tuple else found
            return found

        return find

    def block(self, body: Sequence[ast.stmt], names: _Names) -> None:
        """Read the statements of a block."""
        for index, each in enumerate(body):
            if isinstance(each, ast.While | ast.For | ast.AsyncFor):
                place = Place(
                    body[index + 1 :],
                    names.assigned,
                    self.literals(names),
                    names.function,
                    is_async=names.is_async,
                    limited=names.limited > 0,
                )
                loop = read_loop(each, place)
                if loop is not None:
                    self.loops.append(loop)
                elif (
                    names.function
                    and not isinstance(each, ast.While)
                    and _enters_attempts(each)
                ):
                    self.blocks.append(
                        Block(
                            evaluate(each.iter, names.find),
                            names.function,
                            each.lineno,
                            each.end_lineno or each.lineno,
                        )
                    )
            self.statement(each, names)

    def statement(self, node: ast.stmt, names: _Names) -> None:  # noqa: C901  a case each
        """Read a statement, and those within it."""
        self.check()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.define(node, names)
            return
        if isinstance(node, ast.ClassDef):
            self.define_class(node, names)
            return
        if isinstance(node, ast.Assign | ast.AnnAssign):
            self.attribute(node, names)
            self.assign(node, names)
        elif isinstance(node, ast.Return):
            names.results.append(evaluate(node.value, names.find))
        elif isinstance(node, ast.Expr):
            self.expression(node.value, names, None)
            return
        limits = isinstance(node, ast.With | ast.AsyncWith) and _limits_time(node)
        names.limited += limits
        iterated = getattr(node, "iter", None)
        for name in node._fields:
            child = getattr(node, name, None)
            if type(child) is list:
                if child and isinstance(child[0], ast.stmt):
                    self.block(child, names)
                    continue
                for each in child:
                    if isinstance(each, ast.ExceptHandler | ast.match_case):
                        self.block(each.body, names)
                    elif isinstance(each, ast.AST):
                        self.expression(each, names, iterated)
            elif isinstance(child, ast.AST) and type(child) not in _LEAVES:
                self.expression(child, names, iterated)
        names.limited -= limits

    def assign(self, node: ast.Assign | ast.AnnAssign, names: _Names) -> None:
        """Note what a name is, for a loop that follows."""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for each in targets:
            match each:
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    if node.value is not None:
                        names.assigned[name] = node.value

    def attribute(self, node: ast.Assign | ast.AnnAssign, names: _Names) -> None:
        """Read an assignment to an attribute of ``self``."""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for each in targets:
            match each:
                case ast.Attribute(value=ast.Name(id=owner), attr=name):
                    if owner == names.self_name and names.class_name:
                        full = f"{names.class_name}.{name}"
                        value = evaluate(node.value, names.find)
                        known = self.constants.get(full, value)
                        self.constants[full] = value if known == value else UNKNOWN

    def define(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, outer: _Names
    ) -> None:
        """Read a function."""
        names = _Names(outer if outer.function or not outer.prefix else outer.outer, "")
        names.function = self.reference(outer, node.name).name
        names.is_async = isinstance(node, ast.AsyncFunctionDef)
        arguments = node.args
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for each in (*parameters, arguments.vararg, arguments.kwarg):
            if each is not None:
                names.values[each.arg] = _instance(each, outer)
        if outer.prefix and not outer.function and parameters:
            names.self_name = parameters[0].arg
            names.class_name = outer.prefix[:-1]
            names.values[names.self_name] = Reference(
                f"{self.name}.{outer.prefix[:-1]}"
            )
        elif parameters and parameters[0].arg == "self" and node.decorator_list:
            # A task of Celery that is bound.
            names.values["self"] = Reference("celery.Task")
        elif outer.class_name:
            # A function in a method.
            names.self_name, names.class_name = outer.self_name, outer.class_name
        decorators = []
        for decorator in node.decorator_list:
            value = evaluate(decorator, outer.find)
            end = decorator.end_lineno or decorator.lineno
            place = (decorator.lineno, end, decorator.col_offset + 1)
            decorators.append((value, *place))
            self.expression(decorator, outer, None)
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self.expression(default, outer, None)
        self.bind_all(node.body, names)
        self.block(node.body, names)
        results = [each for each in names.results if each is not None]
        self.definitions.append(
            Definition(
                names.function,
                node.lineno,
                node.end_lineno or node.lineno,
                names.is_async,
                tuple(decorators),
                tuple(names.calls),
                results[0] if len(results) == 1 else UNKNOWN,
                tuple(names.throttled),
                frozenset(names.words),
            )
        )
        if outer.function:
            # What a function calls within a function of its own, it mostly calls.
            outer.calls += names.calls
            outer.throttled += names.throttled
            outer.words |= names.words

    def define_class(self, node: ast.ClassDef, outer: _Names) -> None:
        """Read a class."""
        full = f"{outer.prefix}{node.name}"
        self.bases[full] = tuple(evaluate(each, outer.find) for each in node.bases)
        names = _Names(outer, f"{full}.")
        for each in node.decorator_list:
            self.expression(each, outer, None)
        self.bind_all(node.body, names)
        self.block(node.body, names)

    def expression(
        self, node: ast.AST, names: _Names, iterated: ast.expr | None
    ) -> None:
        """Read the calls in an expression."""
        for each in _notable(node):
            if type(each) is ast.Constant:
                text = each.value
                if type(text) is str and len(text) < _LONG:
                    names.words.update(_WORDS.findall(text))
            elif type(each) is ast.Compare:
                if _THROTTLED.intersection(_numbers(each)):
                    names.throttled.append(each.lineno)
            elif type(each) is ast.Attribute and "etry_a" in each.attr:
                names.words.add(each.attr)
            if type(each) is not ast.Call:
                continue
            function = evaluate(each.func, names.find)
            self.called(each, function, names)
            if _may_retry(each, function):
                call = evaluate(each, names.find)
                if type(call) is Call:
                    self.candidates.append(
                        Candidate(
                            call,
                            each.lineno,
                            each.end_lineno or each.lineno,
                            each.col_offset + 1,
                            names.function,
                            each is iterated,
                        )
                    )

    def called(self, node: ast.Call, function: Value, names: _Names) -> None:
        """Note a call in a function."""
        if not names.function or function is UNKNOWN:
            return
        timeout: Value = None
        for each in node.keywords:
            if each.arg == "timeout":
                timeout = evaluate(each.value, names.find)
        named = frozenset(each.arg or "" for each in node.keywords)
        names.calls.append(
            Called(
                function,
                node.lineno,
                node.end_lineno or node.lineno,
                timeout,
                named,
                _text(node.args[0]) if node.args else "",
                tuple(_passed(node, names)) if _is_about_retries(function) else (),
            )
        )


_LEAVES = frozenset([ast.Name, ast.Load, ast.Store])
_NOTABLE = frozenset([ast.Attribute, ast.Call, ast.Compare, ast.Constant])


def _notable(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of an expression that tell something; quicker than `ast.walk`."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        kind = type(each)
        if kind in _LEAVES:
            continue
        if kind in _NOTABLE:
            yield each
            if kind is ast.Attribute:
                waiting.append(cast(ast.Attribute, each).value)
                continue
            if kind is ast.Constant:
                continue
        for name in each._fields:
            part = getattr(each, name, None)
            if type(part) is list:
                waiting += [x for x in part if isinstance(x, ast.AST)]
            elif isinstance(part, ast.AST):
                waiting.append(part)


def _is_about_retries(function: Value) -> bool:
    if type(function) is Reference:
        return bool(_RETRIES.search(function.last))
    # A decorator that is called with the function, or an object that retries.
    return type(function) is Call or type(function) is Operation


def _passed(node: ast.Call, names: _Names) -> Iterator[Value]:
    """Yield the functions that a call is given."""
    for each in (*node.args, *(each.value for each in node.keywords)):
        if isinstance(each, ast.Lambda):
            yield True
        elif isinstance(each, ast.Name | ast.Attribute | ast.Call):
            value = evaluate(each, names.find)
            if type(value) is Call and value.function == Reference("functools.partial"):
                yield from value.positional[:1]
            elif type(value) is Reference and "." in value.name:
                yield value


def _text(node: ast.expr) -> str:
    """Return a text, or the literal parts of one."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    texts = (each.value for each in parts if isinstance(each, ast.Constant))
    return "".join(each for each in texts if isinstance(each, str))


def _numbers(node: ast.AST) -> Iterator[int]:
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and type(each.value) is int:
            yield each.value


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


def _instance(parameter: ast.arg, outer: _Names) -> Value:
    """Return an instance of the class that a parameter is said to be of."""
    if not isinstance(parameter.annotation, ast.Name | ast.Attribute):
        return UNKNOWN
    kind = evaluate(parameter.annotation, outer.find)
    if type(kind) is Reference and "." in kind.name and kind.last[:1].isupper():
        return Call(kind, (UNKNOWN,))
    return UNKNOWN


def _may_retry(node: ast.Call, function: Value) -> bool:
    if type(function) is Reference:
        last = function.last
        if last in _NAMES or function.library in _WHOLE or _RETRIES.search(last):
            return True
    elif type(function) is Operation and (
        function.right in _NAMES or _RETRIES.search(str(function.right))
    ):
        return True
    return any(each.arg and _RETRIES.search(each.arg) for each in node.keywords)


def _limits_time(node: ast.With | ast.AsyncWith) -> bool:
    """Return whether a block limits the time of what is in it."""
    for item in node.items:
        for each in ast.walk(item.context_expr):
            match each:
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    if _TIME_LIMITS.search(name):
                        return True
    return False


_COMPOUND = frozenset(
    [
        ast.AsyncFor,
        ast.AsyncWith,
        ast.For,
        ast.If,
        ast.Match,
        ast.Try,
        ast.TryStar,
        ast.While,
        ast.With,
    ]
)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a block and of the blocks in it, not of definitions."""
    waiting = body[::-1]
    while waiting:
        each = waiting.pop()
        yield each
        if type(each) in _COMPOUND:
            inner: list[ast.stmt] = []
            for name in ("body", "orelse", "finalbody"):
                inner += getattr(each, name, ())
            for part in (*getattr(each, "handlers", ()), *getattr(each, "cases", ())):
                inner += part.body
            waiting += inner[::-1]


def _targets(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement binds."""
    match node:
        case ast.Assign(targets=targets):
            found: list[ast.AST] = [*targets]
        case ast.AugAssign(target=target) | ast.For(target=target):
            found = [target]
        case ast.AsyncFor(target=target):
            found = [target]
        case ast.Try(handlers=handlers) | ast.TryStar(handlers=handlers):
            yield from (each.name for each in handlers if each.name)
            return
        case _:
            return
    for each in found:
        for part in ast.walk(each):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield part.id
