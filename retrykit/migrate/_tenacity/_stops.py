"""Tenacity's limits: attempts, time, events and custom code."""

import math
from typing import NamedTuple

import libcst as cst

from retrykit.migrate import _waits
from retrykit.migrate._expressions import code, is_literal, literal, parse
from retrykit.migrate._findings import Untranslatable
from retrykit.migrate._settings import Settings
from retrykit.migrate._source import Source
from retrykit.migrate._tenacity._strategies import STRATEGIES, brief, operands, parts_of
from retrykit.migrate._waits import Wait

__all__ = ["Stop", "is_exact", "known_stop", "limit_settings"]


class Stop(NamedTuple):
    """The limits of a call, as the expressions in the program.

    Attributes:
        attempts: The maximum number of attempts; None if there is none.
        elapsed: The time limit; None if there is none.
        before: Whether a call stops before a delay that would exceed the time limit.
        event: The event that ends a call; None if there is none.
        joined: Whether a call stops only once both limits are reached.
    """

    attempts: cst.BaseExpression | None = None
    elapsed: cst.BaseExpression | None = None
    before: bool = False
    event: cst.BaseExpression | None = None
    joined: bool = False


def known_stop(
    source: Source, node: cst.BaseExpression | None
) -> tuple["Stop", cst.BaseExpression | None]:
    """Return the limits, and the strategy that no setting expresses, or None."""
    try:
        return _stop(source, node), None
    except Untranslatable:
        # Several strategies, one of which is custom code.
        parts = operands(source, node, cst.BitOr, "stop_any") if node else None
    if not parts:
        return Stop(), node
    known, custom = Stop(), []
    for part in parts:
        try:
            known = _both(known, _single_stop(source, part))
        except Untranslatable:
            custom.append(part)
    return (known, custom[0]) if len(custom) == 1 else (Stop(), node)


def _stop(source: Source, node: cst.BaseExpression | None) -> Stop:
    if node is None:
        return Stop()
    parts = operands(source, node, cst.BitOr, "stop_any")
    joined = False
    if parts is None:
        parts = operands(source, node, cst.BitAnd, "stop_all")
        joined = parts is not None
    stop = Stop()
    for part in parts or [node]:
        stop = _both(stop, _single_stop(source, part))
    if joined and (stop.event or stop.attempts is None or stop.elapsed is None):
        raise Untranslatable("stop_all combines more than attempts and a time")
    return stop._replace(joined=joined)


def _single_stop(source: Source, node: cst.BaseExpression) -> Stop:
    name, arguments, own = parts_of(source, node)
    if name == "stop_never":
        return Stop()
    value = arguments.get(STRATEGIES.get(name, ""))
    if name == "stop_after_attempt" and value is not None:
        return Stop(attempts=value)
    if name in {"stop_after_delay", "stop_before_delay"} and value is not None:
        return Stop(elapsed=value, before=name == "stop_before_delay")
    if name == "stop_when_event_set" and value is not None:
        return Stop(event=value)
    raise Untranslatable(f"stop={brief(own)} is code of its own")


def _both(first: Stop, second: Stop) -> Stop:
    changes = {}
    for field in ("attempts", "elapsed", "event"):
        old, new = getattr(first, field), getattr(second, field)
        if old is not None and new is not None:
            if field != "attempts" or not (is_literal(old) and is_literal(new)):
                raise Untranslatable("it has several limits of one kind")
            new = min(old, new, key=literal)
        changes[field] = old if new is None else new
    return Stop(**changes, before=first.before or second.before)


def limit_settings(stop: Stop, *, custom: bool) -> Settings:
    """Return the settings of the limits, and of the event that ends a call.

    Args:
        stop: The limits.
        custom: Whether a strategy that no setting expresses may also end a call.

    Raises:
        Untranslatable: The limits cannot be combined with such a strategy.
    """
    found: Settings = {}
    if stop.attempts is not None:
        found["max_attempts"] = _attempts_text(stop.attempts)
    if stop.elapsed is not None:
        if stop.joined and custom:
            raise Untranslatable("stop_all combines more than attempts and a time")
        found |= _time_limit(stop, stop.elapsed)
    elif stop.attempts is None:
        found["max_attempts"] = "None"
    if stop.event is not None:
        found["stop_event"] = code(stop.event)
    return found


def _attempts_text(node: cst.BaseExpression) -> str:
    """Return the text of a limit on attempts; tenacity always makes at least one."""
    attempts = literal(node, None)
    if type(attempts) in {int, float}:
        return str(max(1, math.ceil(attempts)))
    if isinstance(node, cst.Call) and code(node.func) == "max":
        low = [each for each in node.args if literal(each.value, None) == 0]
        return code(node.with_deep_changes(low[0], value=parse("1")) if low else node)
    return code(node)


def _time_limit(stop: Stop, elapsed: cst.BaseExpression) -> Settings:
    found = {"max_elapsed": code(elapsed)}
    if not stop.before:
        found["deadline"] = '"overshoot"'
    if stop.joined:
        found["limits"] = '"all"'
    return found


def is_exact(stop: Stop, wait: Wait | None) -> bool:
    """Return whether a call may end exactly at its time limit, or before any retry."""
    limit = literal(stop.elapsed, None)
    if not _waits.is_number(limit):
        return False
    first = wait.delays(1) if wait is not None and wait.delays is not None else 0
    beyond = limit <= 0 or (stop.before and first > limit)
    return beyond or (wait is not None and _waits.reaches(wait, limit))
