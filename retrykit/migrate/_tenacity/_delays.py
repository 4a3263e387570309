"""Tenacity's delays, as the text of a schedule or a hint, and its sleep functions."""

from collections.abc import Callable
from typing import Final

import libcst as cst

from retrykit.migrate import _waits
from retrykit.migrate._expressions import (
    code,
    literal,
    names_in,
    number_text,
    parse,
    rename,
)
from retrykit.migrate._findings import Untranslatable
from retrykit.migrate._settings import Settings, Use
from retrykit.migrate._source import Arguments, Source
from retrykit.migrate._tenacity._stops import Stop
from retrykit.migrate._tenacity._strategies import brief, needed, operands, parts_of
from retrykit.migrate._waits import Wait

__all__ = ["by_hint", "hint_settings", "sleep_settings", "wait_of"]


def wait_of(
    source: Source, node: cst.BaseExpression | None, attempts: cst.BaseExpression | None
) -> Wait | None:
    """Return the delays of a strategy; None if they depend on the error.

    Args:
        source: The file.
        node: The strategy; None for no delays.
        attempts: The maximum number of attempts; None if there is none.

    Raises:
        Untranslatable: The strategy cannot be translated exactly.
    """
    if node is None or code(node) in {"None", "0"}:
        return _waits.NO_WAIT
    parts = operands(source, node, cst.Add, "wait_combine")
    if parts is not None:
        total = _waits.NO_WAIT
        for part in parts:
            total = total.plus(_part(source, part, attempts))
        return total
    name, arguments, own = parts_of(source, node)
    if name == "wait_exception" and arguments.get("predicate") is not None:
        return None
    if name in _WAITS:
        return _WAITS[name](arguments)
    if name in {"wait_random_exponential", "wait_full_jitter"}:
        return _random_exponential(arguments, attempts)
    if name == "wait_chain" and isinstance(own, cst.Call):
        return _chain(source, own, attempts)
    raise Untranslatable(f"wait={brief(own)} is code of its own")


def _fixed(arguments: Arguments) -> Wait:
    return _waits.constant(needed(arguments, "wait"))


def _random(arguments: Arguments) -> Wait:
    low, high = arguments.get("min"), arguments.get("max")
    return _waits.uniform(
        "0" if low is None else code(low), "1" if high is None else code(high)
    )


def _incrementing(arguments: Arguments) -> Wait:
    start = arguments.get("start") or parse("0")
    increment = arguments.get("increment") or parse("100")
    return _waits.incrementing(start, increment).cap(arguments.get("max"))


def _grown(arguments: Arguments, first: cst.BaseExpression | None) -> Wait:
    first = first or parse("1")
    factor = arguments.get("exp_base")
    return _waits.exponential(code(first), factor, literal(first, None))


def _exponential(arguments: Arguments) -> Wait:
    grown = _grown(arguments, arguments.get("multiplier"))
    return grown.cap(arguments.get("max")).at_least(arguments.get("min"))


def _exponential_jitter(arguments: Arguments) -> Wait:
    first = arguments.get("initial") or arguments.get("multiplier")
    jitter = arguments.get("jitter")
    grown = _grown(arguments, first)
    if literal(jitter, None) != 0:
        grown = grown.plus(_waits.uniform("0", "1" if jitter is None else code(jitter)))
    return grown.cap(arguments.get("max")).at_least(arguments.get("min"))


_WAITS: dict[str, Callable[[Arguments], Wait]] = {
    "wait_none": lambda _arguments: _waits.NO_WAIT,
    "wait_fixed": _fixed,
    "wait_random": _random,
    "wait_incrementing": _incrementing,
    "wait_exponential": _exponential,
    "wait_exponential_jitter": _exponential_jitter,
}


_LISTED: Final = 16


def _random_exponential(
    arguments: Arguments, attempts: cst.BaseExpression | None
) -> Wait:
    least = arguments.get("min")
    if literal(least, 0) == 0:
        grown = _grown(arguments, arguments.get("multiplier"))
        return grown.cap(arguments.get("max")).full_jitter()
    # Drawn between `least` and the delay: that is `least`, and up to the rest of it.
    bounds = _exponential(arguments).delays
    lowest = literal(least, None)
    if bounds is None or not _waits.is_number(lowest):
        raise Untranslatable("min of its random delays is not a number that is known")
    ranges = [bounds(n) - lowest for n in range(1, _LISTED)]
    most = literal(attempts, None)
    if type(most) is int and 1 < most <= _LISTED:
        ranges = ranges[: most - 1]
    elif ranges[-1] != ranges[-2]:
        raise Untranslatable("min of its random delays, which grow without a limit")
    while len(ranges) > 1 and ranges[-1] == ranges[-2]:
        ranges.pop()
    ranges = [round(each, 9) for each in ranges]
    spread = _waits.sequence(ranges, repeat_last=True)
    if len(ranges) == 1:
        spread = _waits.constant(parse(number_text(ranges[0])))
    base = _waits.constant(parse(number_text(lowest)))
    return base if ranges == [0] else base.plus(spread.full_jitter())


def _chain(source: Source, node: cst.Call, attempts: cst.BaseExpression | None) -> Wait:
    waits: list[Wait] = []
    for arg in node.args:
        if arg.keyword is not None or arg.star == "**":
            raise Untranslatable("the delays of wait_chain are computed")
        if arg.star:
            waits += _listed(source, arg.value, attempts)
        else:
            waits.append(_part(source, arg.value, attempts))
    if not waits:
        raise Untranslatable("wait_chain has no delays")
    known = [
        x.delays(1)
        for x in waits
        if x.delays is not None and x.delays(1) == x.delays(2) == x.delays(9)
    ]
    if len(known) < len(waits):
        return _switched(waits)
    while len(known) > 1 and known[-1] == known[-2]:
        known.pop()
    if len(known) == 1:
        return waits[0]
    return _waits.sequence(known, repeat_last=True)


def _part(
    source: Source, node: cst.BaseExpression, attempts: cst.BaseExpression | None
) -> Wait:
    wait = wait_of(source, node, attempts)
    if wait is None:
        raise Untranslatable("wait_exception is a part of other delays")
    return wait


def _switched(waits: list[Wait]) -> Wait:
    """Return a chain: one delay of each strategy, and all further ones of the last.

    Each strategy counts the retries from the beginning of the chain.
    """
    chain = waits[-1]
    for number in range(len(waits) - 1, 0, -1):
        if waits[number - 1].text != waits[number].text:
            to = f"to={chain.text}"
            chain = waits[number - 1].method("switch", f"after={number}", to)
    return chain


def _listed(
    source: Source, node: cst.BaseExpression, attempts: cst.BaseExpression | None
) -> list[Wait]:
    """Return the delays in a list: a literal, a product, a sum or a comprehension."""
    if isinstance(node, cst.List | cst.Tuple):
        if any(isinstance(each, cst.StarredElement) for each in node.elements):
            raise Untranslatable("the delays of wait_chain are computed")
        return [_part(source, each.value, attempts) for each in node.elements]
    if isinstance(node, cst.BinaryOperation):
        times = literal(node.right, None)
        if isinstance(node.operator, cst.Multiply) and type(times) is int:
            return _listed(source, node.left, attempts) * times
        if isinstance(node.operator, cst.Add):
            sides = (node.left, node.right)
            return [x for side in sides for x in _listed(source, side, attempts)]
    if isinstance(node, cst.ListComp | cst.GeneratorExp):
        values = _range_of(node.for_in)
        target = node.for_in.target
        if values is not None and isinstance(target, cst.Name):
            return _comprehended(source, node.elt, target.value, values, attempts)
    raise Untranslatable("the delays of wait_chain are computed")


def _comprehended(
    source: Source,
    node: cst.BaseExpression,
    variable: str,
    values: list[int | float],
    attempts: cst.BaseExpression | None,
) -> list[Wait]:
    if variable not in names_in(node):
        return [_part(source, node, attempts)] * len(values)
    name, arguments, _ = parts_of(source, node)
    if name != "wait_fixed":
        raise Untranslatable("the delays of wait_chain are computed")
    wait = needed(arguments, "wait")
    return [_waits.constant(rename(wait, variable, repr(x))) for x in values]


_MOST_LISTED: Final = 100


def _range_of(node: cst.CompFor) -> list[int | float] | None:
    if node.ifs or node.inner_for_in:
        return None
    values = literal(node.iter, None)
    if isinstance(values, list | tuple) and all(map(_waits.is_number, values)):
        return [*values]
    call = node.iter
    if isinstance(call, cst.Call) and code(call.func) == "range":
        bounds = [literal(arg.value, None) for arg in call.args]
        if all(type(each) is int for each in bounds):
            values = range(*bounds)
            return [*values] if len(values) <= _MOST_LISTED else None
    return None


def by_hint(hint: str) -> Settings:
    """Return the settings of a hint that gives the whole delay."""
    return {"hint": hint, "hint_cap": "None"}


def hint_settings(source: Source, node: cst.BaseExpression | None) -> Settings:
    """Return the settings of delays that a function computes from the error."""
    _, arguments, _ = parts_of(source, node or parse("None"))
    hint = code(needed(arguments, "predicate"))
    return by_hint(hint) | {"schedule": _waits.NO_WAIT.text, "hint_jitter": "0"}


def sleep_settings(
    source: Source, node: cst.BaseExpression | None, stop: Stop, use: Use
) -> Settings:
    """Return the settings that decide how to sleep."""
    if node is None:
        return {}
    name, arguments, own = parts_of(source, node)
    if name == "sleep":
        return {}
    if name == "sleep_using_event":
        event = needed(arguments, "event")
        if stop.event is None:
            return {"sleep": f"{code(event)}.wait"}
        if code(event) == code(stop.event):
            return {}
        raise Untranslatable("it sleeps by one event, and stops by another")
    text = code(own)
    if text in {"asyncio.sleep", "trio.sleep", "anyio.sleep"}:
        if not use.awaited:
            raise Untranslatable(f"sleep={text} makes a plain function asynchronous")
        return {}
    return {} if text == "time.sleep" else {"sleep": text}
