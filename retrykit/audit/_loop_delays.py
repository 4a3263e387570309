"""The delays of a loop that retries, as its sleeps and variables show them."""

import ast
import math
import re
from collections.abc import Callable

from retrykit.audit._borrowed import FunctionNode
from retrykit.audit._delays import NO_DELAYS, UNKNOWN_DELAYS, Delays
from retrykit.audit._flow import inner_nodes
from retrykit.audit._handlers import last_name
from retrykit.audit._loop_words import Statement, names_in
from retrykit.audit._pauses import Pause
from retrykit.audit._values import (
    UNKNOWN,
    Scope,
    Value,
    evaluate,
    is_number,
)

__all__ = ["HINTS", "find_delays"]
_SAME = frozenset(["abs", "ceil", "float", "floor", "int", "max", "round"])
# What returns nothing random.
_KNOWN = _SAME | {
    "get",
    "len",
    "min",
    "monotonic",
    "perf_counter",
    "pow",
    "str",
    "time",
}
_LOOK_UP = frozenset(["get", "getattr", "getheader"])
_DEPTH = 3
"""Functions that compute delays are followed up to this depth."""
# Seconds; longer delays may be milliseconds.
_LONG = 100
_SIZES = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_RANDOM = re.compile(
    r"random|uniform|jitter|randint|randrange|(^|_)rand$|expovariate|gauss",
    re.IGNORECASE,
)
HINTS = re.compile(r"retry[-_ ]?after|x-ratelimit|ratelimit-reset", re.IGNORECASE)
"""Matches the names of Retry-After headers, and of headers about rate limits."""


def find_delays(
    loop: Statement,
    pauses: list[Pause],
    scope: Scope,
    before: dict[str, ast.expr],
    find: Callable[[ast.expr], FunctionNode | None],
) -> Delays:
    """Return the delays of a loop.

    Args:
        loop: The loop.
        pauses: Its sleeps.
        scope: Returns the value of a name.
        before: The expressions that were last assigned to names before the loop.
        find: Returns the function that an expression calls; None if it is not known.
    """
    if not pauses:
        return NO_DELAYS
    known = [each for each in pauses if each.argument is not None]
    if not known:
        return UNKNOWN_DELAYS
    readers = [_Reader(loop, scope, before, find) for _ in known]
    found = _best(
        [
            reader.read(each.argument)
            if each.within is None
            else reader.within(each.within).read(each.argument)
            for reader, each in zip(readers, known, strict=True)
        ]
    )
    if any(_RANDOM.search(last_name(each.node.func)) for each in pauses):
        found = found.replace(jitter=True)
    if all(each.seconds for each in pauses):
        return found
    return _without_unit(found)


def _without_unit(delays: Delays) -> Delays:
    """Return delays without their numbers if one is large: they may be milliseconds."""
    numbers = [delays.first, delays.growth, delays.cap]
    if not any(x is not None and _LONG <= x < math.inf for x in numbers):
        return delays
    cap = None if delays.cap is None or delays.cap < math.inf else delays.cap
    return Delays(delays.shape, None, None, cap, delays.jitter)


_TELLING = ("listed", "exponential", "linear", "constant", "unknown", "none")


def _best(found: list[Delays]) -> Delays:
    """Return the best known of several delays, marked as random if any of them is."""
    best = min(found, key=lambda each: _TELLING.index(each.shape))
    random = any(each.jitter is True for each in found)
    return best.replace(jitter=True) if random else best


def _is_lookup(node: ast.expr) -> bool:
    """Return whether an expression is like ``headers.get("Retry-After")``."""
    match node:
        case ast.Subscript(slice=key):
            keys = [key]
        case ast.Call(func=function, args=keys) if last_name(function) in _LOOK_UP:
            pass
        case _:
            return False
    return any(isinstance(x, ast.Constant) and type(x.value) is str for x in keys)


def _computes(node: ast.expr) -> bool:
    return any(isinstance(each, ast.BinOp) for each in ast.walk(node))


def _computes_anew(node: ast.expr, name: str) -> bool:
    """Return whether a variable's value is computed without its previous value."""
    return name not in names_in(node) and _computes(node)


def _compares_size_of(node: ast.expr, name: str) -> bool:
    """Return whether an expression compares a name by size, as in ``name > limit``."""
    return name in names_in(node) and any(
        isinstance(each, _SIZES) for each in ast.walk(node)
    )


class _Reader:
    def __init__(
        self,
        loop: Statement,
        scope: Scope,
        before: dict[str, ast.expr],
        find: Callable[[ast.expr], FunctionNode | None],
        depth: int = 0,
    ) -> None:
        self.loop, self.scope, self.before = loop, scope, before
        self.find, self.depth = find, depth
        self.parameters: set[str] = set()
        self.assigned: dict[str, list[ast.expr]] = {}
        self.scaled: dict[str, tuple[str, ast.expr]] = {}
        self.counted: set[str] = set()
        if not isinstance(loop, ast.While):
            self.counted |= names_in(loop.target)
        for each in inner_nodes(loop.body):
            match each:
                case ast.AugAssign(target=ast.Name(id=name) | ast.Attribute(attr=name)):
                    sign = {
                        ast.Mult: "*",
                        ast.Add: "+",
                        ast.Pow: "**",
                        ast.Sub: "-",
                    }.get(type(each.op), "?")
                    if (
                        sign in "+-"
                        and isinstance(each.value, ast.Constant)
                        and each.value.value == 1
                    ):
                        self.counted.add(name)
                    self.scaled[name] = (sign, each.value)
                case ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(attr=name)]):
                    self.assigned.setdefault(name, []).append(each.value)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self.assigned.setdefault(name, []).append(value)
                case ast.Assign(targets=[ast.Tuple(elts=names)]):
                    self.unpack(names, each.value)
        self.seen: set[str] = set()

    def unpack(self, names: list[ast.expr], value: ast.expr) -> None:
        """Note the values that are assigned to several names at once."""
        parts = value.elts if isinstance(value, ast.Tuple) else []
        for index, name in enumerate(names):
            part = parts[index] if len(parts) == len(names) else value
            if isinstance(name, ast.Name | ast.Attribute):
                self.assigned.setdefault(last_name(name), []).append(part)

    def within(self, function: FunctionNode) -> "_Reader":
        """Return a reader of expressions in a called function."""
        arguments = function.args
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        body = ast.While(ast.Constant(value=True), function.body, [])
        inner = _Reader(body, self.scope, {}, self.find, self.depth + 1)
        inner.parameters = {each.arg for each in parameters}
        own = inner.parameters | inner.assigned.keys() | inner.scaled.keys()
        inner.scope = lambda name: UNKNOWN if name in own else self.scope(name)
        return inner

    def returned(self, function: FunctionNode, node: ast.Call) -> Delays:
        """Return the delays that a function returns, but not how they begin or grow."""
        inner = self.within(function)
        results = [
            each.value
            for each in inner_nodes(function.body)
            if isinstance(each, ast.Return) and each.value is not None
        ]
        if not results or self.depth > _DEPTH:
            return UNKNOWN_DELAYS
        found = _best([inner.read(each) for each in results])
        random = self.random(node) or any(map(inner.random, function.body))
        if found.shape == "none":
            found = UNKNOWN_DELAYS
        # What is computed from arguments is not the same before each retry.
        found = found.replace(first=None, growth=None)
        return found.replace(jitter=True) if random else found

    def read(self, node: ast.expr | None) -> Delays:  # noqa: C901, PLR0911  a case each
        """Return the delays that an expression gives from attempt to attempt."""
        if node is None:
            return UNKNOWN_DELAYS
        value = evaluate(node, self.scope)
        if is_number(value):
            return NO_DELAYS if value <= 0 else Delays("constant", float(value))
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if (
                owner != "self" and HINTS.search(name)
            ):
                # What the server has told.
                return UNKNOWN_DELAYS
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return self.variable(name)
            case ast.Subscript() | ast.Call() if _is_lookup(node):
                # A setting, or what the server has told.
                return Delays("constant", None, jitter=self.random(node))
            case ast.Call():
                return self.call(node)
            case ast.BinOp():
                return self.computed(node, self.operation(node))
            case ast.IfExp(body=body, orelse=orelse):
                return self.choice(body, orelse)
            case ast.BoolOp(values=values):
                return self.choice(*values[-2:])
            case ast.Subscript(value=of):
                jitter = None if self.random(node) else False
                listed = evaluate(of, self.scope)
                if type(listed) is tuple and listed and all(map(is_number, listed)):
                    return Delays("unknown", cap=float(max(listed)), jitter=jitter)
                return Delays("unknown", cap=None, jitter=None)
            case ast.Constant():
                return UNKNOWN_DELAYS
        return UNKNOWN_DELAYS.replace(jitter=True if self.random(node) else None)

    def choice(self, one: ast.expr, other: ast.expr) -> Delays:
        """Return the delays of the better known of two expressions."""
        return _best([self.read(one), self.read(other)])

    def variable(self, name: str) -> Delays:  # noqa: PLR0911  a case each
        """Return the delays of a variable that may change from attempt to attempt."""
        if name in self.seen:
            return UNKNOWN_DELAYS
        self.seen.add(name)
        if not isinstance(self.loop, ast.While) and name in names_in(self.loop.target):
            found = self.iterated(self.loop.iter)
            random = name in self.scaled and self.random(self.scaled[name][1])
            return found.replace(jitter=True) if random else found
        first = self.initial(name)
        if name in self.scaled:
            return self.stepped(name, first)
        values = self.assigned.get(name, [])
        again = [each for each in values if name in names_in(each)]
        if len(again) < len(values) and (self.depth or not any(map(_computes, again))):
            # Such as `delay = min(delay, 60)` after `delay = 2 ** attempt`.
            found = self.changed([x for x in values if x not in again], again)
            # Such as `if delay > 60: delay = 60` after it.
            return found.replace(cap=self.test_cap(name)) if found.grows else found
        for each in again:
            return self.recurrence(name, each, first)
        if first is not None:
            return NO_DELAYS if first == 0 else Delays("constant", first)
        # A setting, or an argument: the same before each retry.
        node = self.before.get(name)
        jitter = node is not None and self.random(node)
        if name in self.parameters:
            # The caller may give another one each time.
            return Delays("unknown", cap=None, jitter=jitter)
        return Delays("constant", None, jitter=jitter)

    def stepped(self, name: str, first: float | None) -> Delays:
        """Return the delays of a variable after ``delay *= 2`` and the like."""
        sign, by = self.scaled[name]
        values = self.assigned.get(name, [])
        anew = [each for each in values if _computes_anew(each, name)]
        if anew:
            # Such as `delay += random()` after `delay = 2 ** attempt`.
            found = _best([self.read(each) for each in anew])
            return found.replace(jitter=True) if self.random(by) else found
        step = evaluate(by, self.scope)
        growth = float(step) if is_number(step) else None
        shape = {"*": "exponential", "+": "linear"}.get(sign, "unknown")
        random = self.random(by)
        if name in self.before:
            random = random or self.random(self.before[name])
        found = Delays(shape, first, growth, self.test_cap(name), random)
        for each in values:
            # Such as `delay = min(delay, 60)` after `delay *= 2`.
            cap = self.min_cap(each)
            found = found.replace(cap=cap) if cap != math.inf else found
        return found

    def changed(self, values: list[ast.expr], again: list[ast.expr]) -> Delays:
        """Return the delays of a variable that is recomputed in each turn.

        Args:
            values: Expressions that compute the variable without its previous value.
            again: Expressions that compute it from its previous value.
        """
        found = _best([self.read(each) for each in values])
        for each in again:
            cap = self.min_cap(each)
            found = found if cap == math.inf else found.replace(cap=cap)
        if any(map(self.random, again)):
            return found.replace(jitter=True)
        unknown = any(self.calls_unknown(each) for each in again)
        return found.replace(jitter=found.jitter or None) if unknown else found

    def calls_unknown(self, node: ast.expr) -> bool:
        """Return whether an expression calls functions that may be random."""
        return any(
            isinstance(each, ast.Call) and last_name(each.func) not in _KNOWN
            for each in ast.walk(node)
        )

    def iterated(self, iterator: ast.expr) -> Delays:
        """Return the delays that are the items of a loop's iterable."""
        value = evaluate(iterator, self.scope)
        if type(value) is tuple and value and all(map(is_number, value)):
            return Delays.of_list([float(each) for each in value])
        if isinstance(iterator, ast.Call):
            if "range" in names_in(iterator.func):
                start = self.first_count()
                return Delays("linear", None if start is None else float(start), 1.0)
            return UNKNOWN_DELAYS
        # A setting, or an argument: the same for every call.
        return UNKNOWN_DELAYS.replace(jitter=self.random(iterator))

    def recurrence(self, name: str, node: ast.expr, first: float | None) -> Delays:
        """Return the delays of ``delay = min(delay * 2, 60)`` and the like."""
        cap = self.min_cap(node)
        if cap == math.inf:
            cap = self.test_cap(name)
        inner = node
        growth, shape = None, "exponential"
        for each in ast.walk(inner):
            match each:
                case ast.BinOp(left=left, op=ast.Mult(), right=right):
                    for side in (left, right):
                        value = evaluate(side, self.scope)
                        growth = float(value) if is_number(value) else growth
                case ast.BinOp(op=ast.Add()):
                    shape = "linear" if growth is None else shape
        if not any(isinstance(x, ast.BinOp) for x in ast.walk(inner)):
            return (
                UNKNOWN_DELAYS if first is None else Delays("constant", first, cap=cap)
            )
        return Delays(shape, first, growth, cap, self.random(node))

    def call(self, node: ast.Call) -> Delays:
        """Return the delays of a call such as ``min(2 ** attempt, 60)``."""
        name = last_name(node.func)
        varying = [x for x in node.args if not is_number(evaluate(x, self.scope))]
        if self.is_random(node.func):
            return self.drawn(node, varying)
        function = self.find(node.func)
        if function is not None:
            return self.returned(function, node)
        if name == "pow":
            return Delays("exponential", None, None)
        if varying and name == "min":
            cap = self.min_cap(node)
            best = _best([self.read(each) for each in varying])
            capped = best.replace(cap=None if cap == math.inf else cap)
            return self.computed(varying[0], capped)
        if varying and name in _SAME:
            return self.read(varying[0])
        return UNKNOWN_DELAYS.replace(jitter=self.random(node) or None)

    def drawn(self, node: ast.Call, varying: list[ast.expr]) -> Delays:
        """Return the delays of a call that returns something random."""
        if varying:
            return self.read(varying[-1]).replace(jitter=True, low=0.0)
        values = [evaluate(each, self.scope) for each in node.args]
        high = float(values[-1]) if values else 1.0
        return Delays("constant", high, jitter=True, low=0.0)

    def operation(self, node: ast.BinOp) -> Delays:
        """Return the delays of an operation."""
        random = self.random(node)
        if isinstance(node.op, ast.Pow):
            base = evaluate(node.left, self.scope)
            growth = float(base) if is_number(base) else None
            counts = bool(names_in(node.right))
            if counts:
                cap = self.exponent_cap(node.right)
                return Delays("exponential", None, growth, cap, random)
        if isinstance(node.op, ast.LShift):
            cap = self.exponent_cap(node.right)
            return Delays("exponential", None, 2.0, cap, random)
        sides = [node.left, node.right]
        found = [
            self.read(each)
            for each in sides
            if not is_number(evaluate(each, self.scope))
        ]
        if isinstance(node.op, ast.Mult | ast.Add | ast.Div | ast.Sub | ast.FloorDiv):
            counting = any(self.grows_with_attempts(each) for each in sides)
            if counting and all(x.shape != "exponential" for x in found):
                return Delays("linear", None, None, math.inf, random)
            if found:
                best = _best(found)
                jitter = random or best.jitter
                if not jitter and any(map(self.calls_unknown, sides)):
                    jitter = None if any(x.jitter is None for x in found) else False
                return best.replace(jitter=jitter, first=None)
        return UNKNOWN_DELAYS.replace(jitter=True if random else None)

    def computed(self, node: ast.expr, delays: Delays) -> Delays:
        """Return delays with their first delay and growth, if these can be computed."""
        if delays.shape not in ("exponential", "linear") or delays.jitter is not False:
            return delays
        values = [self.value_at(node, turn) for turn in range(3)]
        if not all(map(is_number, values)):
            return delays
        first, second, third = map(float, values)
        if delays.shape == "linear":
            step = second - first
            return (
                delays.replace(first=first, growth=step)
                if third - second == step
                else delays
            )
        if first <= 0 or second / first != third / second:
            return delays
        return delays.replace(first=first, growth=second / first)

    def value_at(self, node: ast.expr, turn: int) -> Value:
        """Return the value of an expression in a turn of the loop, from 0."""
        start = self.first_count()

        def find(name: str) -> Value:
            if name in self.counted:
                return UNKNOWN if start is None else start + turn
            return self.scope(name)

        return evaluate(node, find)

    def first_count(self) -> int | None:
        """Return the first number of a ``for`` loop over a range; None if not known."""
        match self.loop:
            case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[_])):
                return 0
            case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[first, *_])):
                value = evaluate(first, self.scope)
                return value if type(value) is int else None
        return None

    def grows_with_attempts(self, node: ast.expr) -> bool:
        """Return whether an expression grows with the number of attempts."""
        if any(isinstance(each, ast.Call) for each in ast.walk(node)):
            return False
        names = names_in(node)
        return bool(names & self.counted) or (
            isinstance(node, ast.BinOp)
            and any(re.search("attempt|retr(y|ies)|tries", x) for x in names)
            and not any(re.search("delay|sleep|wait|interval|second", x) for x in names)
        )

    def initial(self, name: str) -> float | None:
        """Return the number in a variable before the loop; None if it is not known."""
        node = self.before.get(name)
        value = self.scope(name) if node is None else evaluate(node, self.scope)
        return float(value) if is_number(value) else None

    def min_cap(self, node: ast.expr) -> float | None:
        """Return the cap of ``min(..., cap)`` or ``... % cap`` in an expression.

        Returns:
            The cap; None if it is not known; infinity without one.
        """
        for each in ast.walk(node):
            match each:
                case ast.Call(func=func, args=bounds) if "min" in names_in(func):
                    pass
                case ast.BinOp(op=ast.Mod(), right=bound):
                    bounds = [bound]
                case _:
                    continue
            caps = [evaluate(x, self.scope) for x in bounds]
            numbers = [x for x in caps if is_number(x)]
            return float(min(numbers)) if numbers else None
        return math.inf

    def exponent_cap(self, node: ast.expr) -> float | None:
        """Return None if an exponent has a cap, else infinity."""
        values = [node, *(y for x in names_in(node) for y in self.assigned.get(x, ()))]
        capped = any(self.min_cap(each) != math.inf for each in values)
        return None if capped else math.inf

    def test_cap(self, name: str) -> float | None:
        """Return the cap of a variable in the loop.

        Returns:
            The cap of ``min(..., cap)``; None if it is not known, or if a test compares
            the variable, and may cap it; infinity without either.
        """
        if isinstance(self.loop, ast.While) and _compares_size_of(self.loop.test, name):
            return self.tested_cap(self.loop.test, name)
        for each in inner_nodes(self.loop.body):
            if isinstance(each, ast.If) and _compares_size_of(each.test, name):
                return None
            if isinstance(each, ast.Assign) and name in set().union(
                *map(names_in, each.targets)
            ):
                cap = self.min_cap(each.value)
                if cap != math.inf:
                    return cap
        return math.inf

    def tested_cap(self, test: ast.expr, name: str) -> float | None:
        """Return the cap of a variable that a condition sets; None if not known."""
        match test:
            case ast.Compare(
                left=ast.Name(id=of),
                ops=[ast.Lt() | ast.LtE()],
                comparators=[right],
            ) if of == name:
                cap = evaluate(right, self.scope)
                return float(cap) if is_number(cap) else None
        return None

    def is_random(self, func: ast.expr) -> bool:
        """Return whether a function, by its name, returns something random."""
        return bool(_RANDOM.search(" ".join(names_in(func))))

    def random(self, node: ast.AST) -> bool:
        """Return whether an expression, or a variable in it, is random."""
        names = names_in(node)
        if any(_RANDOM.search(each) for each in names):
            return True
        values = (y for x in names for y in self.assigned.get(x, ()))
        return any(_RANDOM.search(z) for each in values for z in names_in(each))
