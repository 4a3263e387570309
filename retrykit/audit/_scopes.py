"""Scopes: the names of a module, a class or a function, and their values."""

import ast
import builtins
from collections.abc import Iterator, Sequence
from typing import Final, Self

from retrykit.audit._values import (
    UNKNOWN,
    Call,
    Reference,
    Value,
    bounded,
    evaluate,
    is_number,
    refer_to,
    replace,
)

__all__ = ["ANY", "Names", "Origin"]

ANY: Final = 1_000_000
"""The usual value of a parameter without a default: a caller may give any number."""
_TASK_OF_CELERY: Final = refer_to("celery.Task")


class Origin:
    """The module whose names are read.

    Args:
        name: Its dotted name.
        package: The package at which relative imports begin.

    Attributes:
        constants: The values of names that are imported or assigned once, including
            attributes of classes, as ``Class.name``.
        usual: The defaults of the parameters that attributes are set to, keyed as
            ``Class.attribute``.
    """

    def __init__(self, name: str, package: str) -> None:
        self.name, self.package = name, package
        self.constants: dict[str, Value] = {}
        self.usual: dict[str, Value] = {}


class Names:
    """The names of a module, a class or a function.

    Args:
        origin: The module.
        outer: The scope around it, in which missing names are looked up.

    Attributes:
        prefix: In a class, its name in the module, and a dot.
        function: The full name of the function, or "".
        class_name: In a method, the name of its class in the module.
        values: The values of the names.
        assigned: The expression that was last assigned to each name, so far.
        pending: The expressions of names whose values have not been looked up.
        self_name: In a method, the name of its first parameter.
        star: The module of ``from module import *``, or "".
        usual: The defaults of its parameters.
        asked: The names whose usual values are being looked up.
    """

    def __init__(self, origin: Origin, outer: Self | None = None) -> None:
        self.origin, self.outer = origin, outer
        self.prefix = self.function = self.class_name = ""
        self.values: dict[str, Value] = {}
        self.assigned: dict[str, ast.expr] = {}
        self.pending: dict[str, ast.expr] = {}
        self.self_name = ""
        self.star = ""
        self.usual: dict[str, Value] = {}
        self.asked: set[str] = set()

    def of_class(self, node: ast.ClassDef) -> Self:
        """Return the names of a class that is defined here."""
        names = type(self)(self.origin, self)
        names.prefix = f"{self.prefix}{node.name}."
        names.bind(node.body)
        return names

    def of_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Self:
        """Return the names of a function that is defined here."""
        # The names of a class are not visible in its methods.
        seen = self if self.function or not self.prefix else self.outer
        names = type(self)(self.origin, seen)
        names.function = self.reference(node.name).name
        names.bind_parameters(node, self)
        names.bind(node.body)
        return names

    def bind_parameters(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, outer: Self
    ) -> None:
        """Bind the parameters of a function that is defined in the scope *outer*."""
        arguments = node.args
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for each in (*parameters, arguments.vararg, arguments.kwarg):
            if each is not None:
                self.values[each.arg] = _instance(each, outer)
        self._bind_defaults(arguments, outer)
        first = parameters[0].arg if parameters else ""
        in_class = bool(outer.prefix and not outer.function)
        if first and (_is_bound(node) or (first == "self" and not in_class)):
            # A Celery task, or a function that gets one.
            self.values[first] = _TASK_OF_CELERY
        elif in_class and first:
            self.self_name, self.class_name = first, outer.prefix[:-1]
            self.values[first] = refer_to(f"{self.origin.name}.{self.class_name}")
        elif outer.class_name:
            # A function in a method.
            self.self_name, self.class_name = outer.self_name, outer.class_name

    def _bind_defaults(self, arguments: ast.arguments, outer: Self) -> None:
        for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            given = _instance(each, outer)
            # Of an object that callers give, the class has the defaults.
            self.usual[each.arg] = given.function if type(given) is Call else ANY
        positional = [*arguments.posonlyargs, *arguments.args]
        last = positional[len(positional) - len(arguments.defaults) :]
        pairs = [*zip(last, arguments.defaults, strict=True)]
        pairs += [
            (each, default)
            for each, default in zip(
                arguments.kwonlyargs, arguments.kw_defaults, strict=True
            )
            if default is not None
        ]
        for each, default in pairs:
            self.usual[each.arg] = evaluate(default, outer.find_literal)

    def find_usual(self, name: str) -> Value:
        """Return the value of a name if callers give no arguments.

        A parameter has its default; one without a default is taken for a large number.
        """
        names: Names | None = self
        while names is not None:
            if names.function and name in names.assigned.keys() - names.asked:
                names.asked.add(name)
                value = evaluate(names.assigned[name], names.find_usual)
                names.asked.discard(name)
                return bounded(value)
            if name in names.usual and name != names.self_name:
                return names.usual[name]
            names = None if name in names.values else names.outer
        return self.find_literal(name)

    def with_defaults(self, value: Value) -> Value:
        """Return a value with each attribute replaced by its usual value, if known."""
        start = len(self.origin.name) + 1

        def find(reference: Reference) -> Value:
            name = reference.name[start:]
            owner, _, field = name.rpartition(".")
            found = self.origin.usual.get(owner)
            if type(found) is Reference:
                # Such as `self.settings.retries`, with the class of the settings.
                return refer_to(f"{found.name}.{field}")
            return self.origin.usual.get(name, reference)

        return replace(value, find)

    def find(self, name: str) -> Value:
        """Return the value of a name; for one that is not bound, a reference to it."""
        names: Names | None = self
        while names is not None:
            if name in names.pending:
                # Meanwhile it is unknown, as in `x = f(x)`.
                names.values[name] = UNKNOWN
                value = evaluate(names.pending.pop(name), names.find)
                names.values[name] = bounded(value)
            if name in names.values:
                return names.values[name]
            if names.star and not hasattr(builtins, name):
                return refer_to(f"{names.star}.{name}")
            names = names.outer
        return refer_to(name)

    def find_literal(self, name: str) -> Value:
        """Return the value of a name, even if it is a number or a tuple of the module.

        `find` returns a reference to such a constant.
        """
        found = self.find(name)
        own = f"{self.origin.name}."
        if type(found) is Reference and found.name.startswith(own):
            value = self.origin.constants.get(found.name.removeprefix(own))
            return value if is_number(value) or type(value) is tuple else found
        return found

    def reference(self, name: str) -> Reference:
        """Return a reference with the full name of something defined here."""
        within = self.function or self.origin.name
        return refer_to(f"{within}.{'' if self.function else self.prefix}{name}")

    def bind(self, body: Sequence[ast.stmt]) -> None:
        """Bind the names that are defined in a block and in the blocks within it."""
        assigned: dict[str, list[ast.expr | None]] = {}
        changed: set[str] = set()
        for each in _statements(body):
            if type(each) in _NAMELESS:
                continue
            match each:
                case ast.Import():
                    self._bind_import(each)
                case ast.ImportFrom():
                    self._bind_import_from(each)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    self.values[each.name] = self.reference(each.name)
                case _:
                    owner = _changed(each)
                    if isinstance(owner, ast.Name):
                        changed.add(owner.id)
                    bound = () if isinstance(each, ast.Expr) else _assigned(each)
                    for name, value in bound:
                        assigned.setdefault(name, []).append(value)
        self._bind_assigned(assigned, changed)

    def _bind_assigned(
        self, assigned: dict[str, list[ast.expr | None]], changed: set[str]
    ) -> None:
        for name in self.values.keys() & assigned.keys():
            del assigned[name]
        single: dict[str, ast.expr] = {}
        for name, values in assigned.items():
            self.values[name] = UNKNOWN
            if len(values) == 1 and values[0] is not None and name not in changed:
                single[name] = values[0]
        if self.function:
            self.pending.update(single)
        else:
            self._bind_constants(single)

    def _bind_constants(self, assigned: dict[str, ast.expr]) -> None:
        constants = self.origin.constants
        for name in assigned:
            self.values[name] = self.reference(name)
            constants[f"{self.prefix}{name}"] = UNKNOWN
        for name, value in assigned.items():
            constants[f"{self.prefix}{name}"] = bounded(evaluate(value, self.find))

    def _bind_import(self, node: ast.Import) -> None:
        for each in node.names:
            top = each.name.partition(".")[0]
            self.values[each.asname or top] = refer_to(
                each.name if each.asname else top
            )

    def _bind_import_from(self, node: ast.ImportFrom) -> None:
        origin = node.module or ""
        if node.level:
            parts = self.origin.package.split(".")
            kept = parts[: len(parts) - node.level + 1]
            origin = ".".join([*kept, *([origin] if origin else [])])
        for each in node.names:
            if each.name == "*":
                self.star = origin
                continue
            found = refer_to(f"{origin}.{each.name}" if origin else each.name)
            name = each.asname or each.name
            self.values[name] = found
            if not self.function:
                # Others may import it from here.
                self.origin.constants.setdefault(f"{self.prefix}{name}", found)

    def change(self, node: ast.stmt) -> None:
        """Make a dictionary of ``self`` UNKNOWN if a statement changes it."""
        match _changed(node):
            case ast.Attribute(value=ast.Name(id=self.self_name), attr=name):
                self.origin.constants[f"{self.class_name}.{name}"] = UNKNOWN

    def assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        """Note the value that a statement assigns to a name, or to ``self.name``."""
        if node.value is None:
            return
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for each, value in _pairs(targets, node.value):
            match each:
                case ast.Name(id=name):
                    self.assigned[name] = value
                case ast.Attribute(value=owner, attr=name):
                    self.assigned[name] = value
                    if isinstance(owner, ast.Name) and owner.id == self.self_name:
                        self._assign_attribute(name, value)

    def _assign_attribute(self, name: str, node: ast.expr) -> None:
        full = f"{self.class_name}.{name}"
        if isinstance(node, ast.Name) and node.id in self.usual:
            self.origin.usual.setdefault(full, self.usual[node.id])
        value = evaluate(node, self.find)
        known = self.origin.constants.get(full, value)
        self.origin.constants[full] = value if known == value else UNKNOWN


def _pairs(
    targets: Sequence[ast.expr], value: ast.expr
) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each target with its value, as in ``left, delay = tries, 1``."""
    for each in targets:
        match each, value:
            case ast.Tuple(elts=names), ast.Tuple(elts=parts):
                if len(names) == len(parts):
                    yield from zip(names, parts, strict=True)
            case _:
                yield each, value


def _instance(parameter: ast.arg, outer: Names) -> Value:
    """Return an instance of the class that annotates a parameter, else UNKNOWN."""
    match parameter.annotation:
        case ast.Constant(value=str(name)) if name.isidentifier():
            kind = outer.find(name)
        case ast.Name() | ast.Attribute() as annotation:
            kind = evaluate(annotation, outer.find)
        case _:
            return UNKNOWN
    if type(kind) is Reference and "." in kind.name and kind.last[:1].isupper():
        return Call(kind, (UNKNOWN,))
    return UNKNOWN


def _is_bound(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a decorator has ``bind=True``, as a bound Celery task does."""
    return any(
        keyword.arg == "bind"
        and isinstance(keyword.value, ast.Constant)
        and keyword.value.value is True
        for each in node.decorator_list
        if isinstance(each, ast.Call)
        for keyword in each.keywords
    )


# Most statements that neither bind a name nor change a dictionary.
_NAMELESS = frozenset([ast.Assert, ast.If, ast.Pass, ast.Raise, ast.Return, ast.While])
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


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a block and inner blocks, except inside definitions."""
    waiting = [*reversed(body)]
    while waiting:
        each = waiting.pop()
        yield each
        if type(each) in _COMPOUND:
            inner: list[ast.stmt] = []
            for name in ("body", "orelse", "finalbody"):
                inner += getattr(each, name, ())
            for part in (*getattr(each, "handlers", ()), *getattr(each, "cases", ())):
                inner += part.body
            waiting += reversed(inner)


def _changed(node: ast.stmt) -> ast.expr | None:
    """Return the dictionary that a statement changes; None for other statements."""
    match node:
        case ast.Assign(targets=[ast.Subscript(value=owner)]):
            return owner
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=owner, attr="pop" | "setdefault" | "update")
            )
        ):
            return owner
    return None


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the names that a statement binds, each with its expression or None."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield name, value
        case ast.Assign(targets=[ast.Tuple() as target], value=ast.Tuple() as value):
            pairs = [*_pairs([target], value)]
            yield from ((x.id, y) for x, y in pairs if isinstance(x, ast.Name))
            if not pairs:
                yield from ((x, None) for x in _stored(target))
        case ast.AnnAssign(target=ast.Name(id=name), value=value):
            if value is not None:
                yield name, value
        case ast.With(items=items) | ast.AsyncWith(items=items):
            # A client enters itself.
            for item in items:
                match item.optional_vars:
                    case ast.Name(id=name):
                        yield name, item.context_expr
        case ast.Try(handlers=handlers) | ast.TryStar(handlers=handlers):
            yield from ((each.name, None) for each in handlers if each.name)
        case _:
            yield from ((x, None) for each in _targets(node) for x in _stored(each))


def _targets(node: ast.stmt) -> list[ast.expr]:
    match node:
        case ast.Assign(targets=targets):
            return targets
        case ast.AugAssign(target=target) | ast.For(target=target):
            return [target]
        case ast.AsyncFor(target=target):
            return [target]
    return []


def _stored(target: ast.expr) -> Iterator[str]:
    """Yield the names that a target binds."""
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for each in parts:
                yield from _stored(each)
        case ast.Starred(value=value):
            yield from _stored(value)
