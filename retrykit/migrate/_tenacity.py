"""Usages of tenacity."""

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import libcst as cst

from retrykit.migrate import _waits
from retrykit.migrate._conditions import Errors, Results, condition_settings
from retrykit.migrate._expressions import (
    OURS,
    STANDARD,
    call_predicate,
    call_text,
    code,
    is_literal,
    lambda_of,
    literal,
    names_in,
    negated,
    number_text,
    parse,
    rename,
)
from retrykit.migrate._findings import Untranslatable
from retrykit.migrate._hooks import log_observer
from retrykit.migrate._settings import Settings, Use
from retrykit.migrate._source import Arguments, Source
from retrykit.migrate._waits import Wait

__all__ = ["PARAMETERS", "settings"]

PARAMETERS: Final = (
    "sleep stop wait retry before after before_sleep reraise retry_error_cls "
    "retry_error_callback name enabled"
)
"""The parameters of `retry`, `Retrying` and `AsyncRetrying`, in their order."""


def settings(arguments: Arguments, use: Use) -> Settings:
    """Return the settings of a policy for the arguments of tenacity.

    Raises:
        Untranslatable: They cannot be said exactly.
    """
    source = arguments.source
    if arguments.extra:
        raise Untranslatable("it has more arguments than tenacity knows")
    unknown = arguments.values.keys() - {*PARAMETERS.split()}
    if unknown:
        raise Untranslatable(f"tenacity has no parameter {min(unknown)}")
    for name in ("retry_error_cls", "enabled"):
        value = arguments.get(name)
        if value is not None and code(value) != "True":
            raise Untranslatable(_NOT_SAID[name])
    stop, custom_stop = _known_stop(source, arguments.get("stop"))
    ends = custom_stop is not None or stop != _Stop()
    ending = _ending(source, arguments, use, ends=ends)
    found = _retried(source, arguments.get("retry"), excludes=not ending)
    found |= _delays(source, arguments, stop, custom_stop)
    found |= _sleep(source, arguments.get("sleep"), stop, use)
    found |= ending
    found |= _hooks(source, arguments, decides=_ADAPTERS in found.get("hint", ""))
    named = arguments.get("name")
    return found if named is None else found | {"name": code(named)}


_ADAPTERS: Final = f"{OURS}.integrations.tenacity"


def _known_stop(
    source: Source, node: cst.BaseExpression | None
) -> tuple["_Stop", cst.BaseExpression | None]:
    """Return when to stop, and the strategy that no setting expresses."""
    try:
        return _stop(source, node), None
    except Untranslatable:
        # Several strategies of which one is code of its own.
        parts = _operands(source, node, cst.BitOr, "stop_any") if node else None
    if not parts:
        return _Stop(), node
    known, custom = _Stop(), []
    for part in parts:
        try:
            known = _both(known, _single_stop(source, part))
        except Untranslatable:
            custom.append(part)
    return (known, custom[0]) if len(custom) == 1 else (_Stop(), node)


def _retried(
    source: Source, node: cst.BaseExpression | None, *, excludes: bool
) -> Settings:
    """Return which failures are retried."""
    try:
        return condition_settings(*_condition(source, node), excludes=excludes)
    except Untranslatable:
        if node is None or _is_too_wide(node):
            raise
    text = code(node)
    if _is_async(source, node):
        raise Untranslatable(f"retry={_brief(node)} is a condition that is awaited")
    return {
        "on": f"{_ADAPTERS}.retry_on_error({text})",
        "on_result": f"{_ADAPTERS}.retry_on_result({text})",
    }


def _is_too_wide(node: cst.BaseExpression) -> bool:
    text = code(node)
    return any(
        each in text for each in ("BaseException", "KeyboardInterrupt", "retry_never")
    )


def _is_async(source: Source, node: cst.BaseExpression) -> bool:
    function = source.function(node)
    return function is not None and function.asynchronous is not None


def _delays(
    source: Source,
    arguments: Arguments,
    stop: "_Stop",
    custom_stop: cst.BaseExpression | None,
) -> Settings:
    """Return the delays and the limits."""
    node = arguments.get("wait")
    after = arguments.get("after")
    try:
        wait = _wait(source, node, stop.attempts)
        custom_wait = node if wait is None and custom_stop is not None else None
    except Untranslatable:
        wait, custom_wait = None, node
    if custom_stop is not None and "upcoming_sleep" in _text_of(source, custom_stop):
        custom_wait = node or parse("None")
    found = _limits(stop, custom=custom_stop is not None)
    named = {
        "stop": None if custom_stop is None else code(custom_stop),
        "after": None if after is None or code(after) == "None" else code(after),
    }
    if custom_wait is not None:
        hint = call_text(f"{_ADAPTERS}.wait", code(custom_wait), **named)
        return found | _by_hint(hint) | {"schedule": _waits.NO_WAIT.text}
    if wait is None:
        return found | _wait_settings(source, node)
    found["schedule"] = wait.text
    if "limits" not in found and _is_exact(stop, wait):
        found = _waits.limit_schedule(found)
    if custom_stop is not None:
        named.pop("stop")
        found["hint"] = call_text(f"{_ADAPTERS}.stop", code(custom_stop), **named)
    return found


def _by_hint(hint: str) -> Settings:
    return {"hint": hint, "hint_cap": "None"}


def _text_of(source: Source, node: cst.BaseExpression) -> str:
    """Return the text of a strategy, with that of its class or function."""
    called = node.func if isinstance(node, cst.Call) else node
    function = source.function(called)
    found = source.class_of(called)
    return "".join(code(each) for each in (node, function, found) if each is not None)


_NOT_SAID = {
    "retry_error_cls": "retry_error_cls: write try and raise ... from around the call",
    "enabled": "enabled: write max_attempts=1, or disable_retries() in tests",
}


def _parts(
    source: Source, node: cst.BaseExpression
) -> tuple[str, Arguments, cst.BaseExpression]:
    """Return the name of a strategy of tenacity, its arguments, and its own node.

    The name is empty if it is another object.
    """
    node = source.value(node)
    called = node.func if isinstance(node, cst.Call) else node
    found = source.library_name(called)
    if found is None or found[0] != "tenacity":
        return "", Arguments(source, None, ""), node
    name = found[1]
    call = node if isinstance(node, cst.Call) else None
    if name in _COMBINATIONS or name == "wait_chain":
        return name, Arguments(source, None, ""), node
    return name, Arguments(source, call, _STRATEGIES.get(name, "")), node


_STRATEGIES = {
    "stop_after_attempt": "max_attempt_number",
    "stop_after_delay": "max_delay",
    "stop_before_delay": "max_delay",
    "stop_when_event_set": "event",
    "wait_fixed": "wait",
    "wait_random": "min max",
    "wait_incrementing": "start increment max",
    "wait_exponential": "multiplier max exp_base min",
    "wait_random_exponential": "multiplier max exp_base min",
    "wait_full_jitter": "multiplier max exp_base min",
    "wait_exponential_jitter": "initial max exp_base jitter min multiplier",
    "wait_exception": "predicate",
    "retry_if_exception": "predicate",
    "retry_if_exception_type": "exception_types",
    "retry_if_not_exception_type": "exception_types",
    "retry_unless_exception_type": "exception_types",
    "retry_if_exception_cause_type": "exception_types",
    "retry_if_exception_message": "message match",
    "retry_if_not_exception_message": "message match",
    "retry_if_result": "predicate",
    "retry_if_not_result": "predicate",
    "sleep_using_event": "event",
    "before_log": "logger log_level",
    "after_log": "logger log_level sec_format",
    "before_sleep_log": "logger log_level exc_info sec_format",
}
"""The parameters of the strategies, in their order."""

_COMBINATIONS = {"stop_any", "stop_all", "retry_any", "retry_all", "wait_combine"}


def _operands(
    source: Source,
    node: cst.BaseExpression,
    operator: type[cst.BaseBinaryOp],
    name: str,
) -> list[cst.BaseExpression] | None:
    """Return what an operator, or the function of that name, combines; else None."""
    node = source.value(node)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, operator):
        sides = (node.left, node.right)
        parts = [_operands(source, x, operator, name) or [x] for x in sides]
        return [each for part in parts for each in part]
    if not isinstance(node, cst.Call) or source.library_name(node.func) != (
        "tenacity",
        name,
    ):
        return None
    if any(arg.star or arg.keyword for arg in node.args):
        raise Untranslatable("its strategies are computed")
    parts = [_operands(source, x.value, operator, name) or [x.value] for x in node.args]
    return [each for part in parts for each in part]


# ---- When to stop


class _Stop(NamedTuple):
    """When to stop: the texts of the limits, and the rule by which they apply."""

    attempts: cst.BaseExpression | None = None
    elapsed: cst.BaseExpression | None = None
    before: bool = False
    event: cst.BaseExpression | None = None
    joined: bool = False


def _stop(source: Source, node: cst.BaseExpression | None) -> _Stop:
    if node is None:
        return _Stop()
    parts = _operands(source, node, cst.BitOr, "stop_any")
    joined = False
    if parts is None:
        parts = _operands(source, node, cst.BitAnd, "stop_all")
        joined = parts is not None
    stop = _Stop()
    for part in parts or [node]:
        stop = _both(stop, _single_stop(source, part))
    if joined and (stop.event or stop.attempts is None or stop.elapsed is None):
        raise Untranslatable("stop_all combines more than attempts and a time")
    return stop._replace(joined=joined)


def _single_stop(source: Source, node: cst.BaseExpression) -> _Stop:
    name, arguments, own = _parts(source, node)
    if name == "stop_never":
        return _Stop()
    value = arguments.get(_STRATEGIES.get(name, ""))
    if name == "stop_after_attempt" and value is not None:
        return _Stop(attempts=value)
    if name in {"stop_after_delay", "stop_before_delay"} and value is not None:
        return _Stop(elapsed=value, before=name == "stop_before_delay")
    if name == "stop_when_event_set" and value is not None:
        return _Stop(event=value)
    raise Untranslatable(f"stop={_brief(own)} is code of its own")


def _both(first: _Stop, second: _Stop) -> _Stop:
    changes = {}
    for field in ("attempts", "elapsed", "event"):
        old, new = getattr(first, field), getattr(second, field)
        if old is not None and new is not None:
            if field != "attempts" or not (is_literal(old) and is_literal(new)):
                raise Untranslatable("it has several limits of one kind")
            new = min(old, new, key=literal)
        changes[field] = old if new is None else new
    return _Stop(**changes, before=first.before or second.before)


def _brief(node: cst.BaseExpression) -> str:
    text = " ".join(code(node).split())
    return text if len(text) <= 40 else f"{text[:37]}..."  # noqa: PLR2004


def _limits(stop: _Stop, *, custom: bool) -> Settings:
    found: Settings = {}
    attempts = literal(stop.attempts, None)
    if stop.attempts is not None:
        known = type(attempts) in {int, float}
        found["max_attempts"] = (
            str(max(1, math.ceil(attempts))) if known else code(stop.attempts)
        )
    if stop.elapsed is not None:
        if stop.joined and custom:
            raise Untranslatable("stop_all combines more than attempts and a time")
        found |= _time_limit(stop, stop.elapsed)
    elif stop.attempts is None:
        found["max_attempts"] = "None"
    if stop.event is not None:
        found["stop_event"] = code(stop.event)
    return found


def _time_limit(stop: _Stop, elapsed: cst.BaseExpression) -> Settings:
    found = {"max_elapsed": code(elapsed)}
    if not stop.before:
        found["deadline"] = '"overshoot"'
    if stop.joined:
        found["limits"] = '"all"'
    return found


def _is_exact(stop: _Stop, wait: Wait | None) -> bool:
    """Return whether a call may end at exactly its limit of time, or at once."""
    limit = literal(stop.elapsed, None)
    if not _waits.is_number(limit):
        return False
    first = wait.delays(1) if wait is not None and wait.delays is not None else 0
    beyond = limit <= 0 or (stop.before and first > limit)
    return beyond or (wait is not None and _waits.reaches(wait, limit))


# ---- How long to wait


def _wait(
    source: Source, node: cst.BaseExpression | None, attempts: cst.BaseExpression | None
) -> Wait | None:
    """Return the delays; None for those that depend on the error."""
    if node is None or code(node) in {"None", "0"}:
        return _waits.NO_WAIT
    parts = _operands(source, node, cst.Add, "wait_combine")
    if parts is not None:
        total = _waits.NO_WAIT
        for part in parts:
            total = total.plus(_part(source, part, attempts))
        return total
    name, arguments, own = _parts(source, node)
    if name == "wait_exception" and arguments.get("predicate") is not None:
        return None
    if name in _WAITS:
        return _WAITS[name](arguments)
    if name in {"wait_random_exponential", "wait_full_jitter"}:
        return _random_exponential(arguments, attempts)
    if name == "wait_chain" and isinstance(own, cst.Call):
        return _chain(source, own, attempts)
    raise Untranslatable(f"wait={_brief(own)} is code of its own")


def _fixed(arguments: Arguments) -> Wait:
    return _waits.constant(_needed(arguments, "wait"))


def _needed(arguments: Arguments, name: str) -> cst.BaseExpression:
    value = arguments.get(name)
    if value is None:
        raise Untranslatable(f"it has no {name}")
    return value


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
    wait = _wait(source, node, attempts)
    if wait is None:
        raise Untranslatable("wait_exception is a part of other delays")
    return wait


def _switched(waits: list[Wait]) -> Wait:
    """Return a chain whose numbering goes on from one strategy to the next."""
    chain = waits[-1]
    for number in range(len(waits) - 1, 0, -1):
        if waits[number - 1].text != waits[number].text:
            to = f"to={chain.text}"
            chain = waits[number - 1].method("switch", f"after={number}", to)
    return chain


def _listed(
    source: Source, node: cst.BaseExpression, attempts: cst.BaseExpression | None
) -> list[Wait]:
    """Return the delays of a list that is written out, repeated, or comprehended."""
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
    name, arguments, _ = _parts(source, node)
    if name != "wait_fixed":
        raise Untranslatable("the delays of wait_chain are computed")
    wait = _needed(arguments, "wait")
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


def _wait_settings(source: Source, node: cst.BaseExpression | None) -> Settings:
    """Return the settings of delays that a function of the error returns."""
    _, arguments, _ = _parts(source, node or parse("None"))
    hint = code(_needed(arguments, "predicate"))
    return _by_hint(hint) | {"schedule": _waits.NO_WAIT.text, "hint_jitter": "0"}


def _sleep(
    source: Source, node: cst.BaseExpression | None, stop: _Stop, use: Use
) -> Settings:
    if node is None:
        return {}
    name, arguments, own = _parts(source, node)
    if name == "sleep":
        return {}
    if name == "sleep_using_event":
        event = _needed(arguments, "event")
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


# ---- What to retry


def _condition(
    source: Source, node: cst.BaseExpression | None
) -> tuple[Errors, Results]:
    if node is None:
        return Errors.of("Exception"), Results()
    for operator, name, joined in (
        (cst.BitOr, "retry_any", False),
        (cst.BitAnd, "retry_all", True),
    ):
        parts = _operands(source, node, operator, name)
        if parts is not None:
            found = [_condition(source, part) for part in parts]
            errors, results = found[0]
            for other_errors, other_results in found[1:]:
                errors = errors.joined(other_errors, every=joined)
                results = results.joined(other_results, every=joined)
            return errors, results
    name, arguments, own = _parts(source, node)
    if name in _CONDITIONS:
        return _CONDITIONS[name](arguments)
    if name == "retry_if_exception_cause_type":
        raise Untranslatable(
            "retry_if_exception_cause_type follows the chain of causes"
        )
    raise Untranslatable(f"retry={_brief(own)} is code of its own")


def _types(arguments: Arguments) -> str:
    return code(arguments.get("exception_types") or parse("Exception"))


def _message(arguments: Arguments) -> str:
    """Return the text of a test of the message of ``error``."""
    message, pattern = arguments.get("message"), arguments.get("match")
    if message is not None:
        return f"str(error) == {code(message)}"
    if pattern is None:
        raise Untranslatable("it has neither message nor match")
    text = literal(pattern, None)
    if isinstance(text, str) and all(x.isalnum() or x in " _-:,'\"/" for x in text):
        return f"str(error).startswith({code(pattern)})"
    return f"bool({STANDARD}.re.match({code(pattern)}, str(error)))"


def _predicate(arguments: Arguments) -> cst.BaseExpression:
    return _needed(arguments, "predicate")


def _result(arguments: Arguments) -> Results:
    predicate = _predicate(arguments)
    if arguments.source.is_class(predicate):
        return Results(f"lambda result: {code(predicate)}(result)")
    return Results(code(predicate))


def _not_result(arguments: Arguments) -> Results:
    predicate = _predicate(arguments)
    parts = lambda_of(predicate)
    name = "result" if parts is None else parts[0]
    return Results(f"lambda {name}: {negated(call_predicate(predicate, name))}")


_EVERY: Final = Results("lambda result: True")

_CONDITIONS: dict[str, Callable[[Arguments], tuple[Errors, Results]]] = {
    "retry_if_exception_type": lambda x: (Errors.of(_types(x)), Results()),
    "retry_if_not_exception_type": lambda x: (Errors.but(_types(x)), Results()),
    "retry_if_exception": lambda x: (Errors.by(code(_predicate(x))), Results()),
    "retry_if_exception_message": lambda x: (
        Errors.by(f"lambda error: {_message(x)}"),
        Results(),
    ),
    "retry_if_not_exception_message": lambda x: (
        Errors.by_not(f"lambda error: {_message(x)}"),
        _EVERY,
    ),
    "retry_unless_exception_type": lambda x: (Errors.but(_types(x)), _EVERY),
    "retry_if_result": lambda x: (Errors.none(), _result(x)),
    "retry_if_not_result": lambda x: (Errors.none(), _not_result(x)),
    "retry_always": lambda _x: (Errors.of("Exception"), _EVERY),
}


# ---- How it ends, and hooks


def _ending(source: Source, arguments: Arguments, use: Use, *, ends: bool) -> Settings:
    callback, reraise = arguments.get("retry_error_callback"), arguments.get("reraise")
    if callback is not None and code(callback) != "None":
        if use.kind == "block":
            raise Untranslatable("retry_error_callback has no meaning for a block")
        return {"fallback": _fallback(source, callback)}
    again = "False" if reraise is None else code(source.value(reraise))
    if again == "True":
        return {}
    if again != "False":
        raise Untranslatable(f"reraise={_brief(reraise or parse(again))} is not known")
    return {"raises": '"retry_error"'} if ends else {}


def _fallback(source: Source, callback: cst.BaseExpression) -> str:
    function = source.function(callback)
    body = _returned(callback, function)
    if body is not None:
        name, value = body
        outcome = f"{name}.outcome.result()"
        if code(value) in {outcome, f"{name}.outcome and {outcome}"}:
            return f"{OURS}.last_result"
        constant = literal(value)
        if type(constant) in {int, float, str, bytes, bool, type(None)}:
            return code(value)
    return f"{_ADAPTERS}.retry_error_callback({code(callback)})"


def _returned(
    node: cst.BaseExpression, function: cst.FunctionDef | None
) -> tuple[str, cst.BaseExpression] | None:
    """Return the parameter of a function, and the expression that is its whole body."""
    if function is None:
        return lambda_of(node)
    every = [*function.params.posonly_params, *function.params.params]
    lines = [
        each
        for line in function.body.body
        for each in (line.body if isinstance(line, cst.SimpleStatementLine) else [line])
        if not (isinstance(each, cst.Expr) and isinstance(each.value, cst.SimpleString))
    ]
    if len(every) != 1 or len(lines) != 1 or function.asynchronous:
        return None
    [line] = lines
    if isinstance(line, cst.Return) and line.value is not None:
        return every[0].name.value, line.value
    return None


_HOOKS: Final = {
    "before": "attempt_started",
    "after": "attempt_failed",
    "before_sleep": "retry_scheduled",
}


def _hooks(source: Source, arguments: Arguments, *, decides: bool) -> Settings:
    """Return the observers.

    Args:
        source: The file.
        arguments: The arguments.
        decides: Whether a hint of tenacity's delays calls the hook `after`.
    """
    found: list[str] = []
    for name, event in _HOOKS.items():
        hook = arguments.get(name)
        if hook is None or code(hook) == "None":
            continue
        known, log, _ = _parts(source, hook)
        if known in {"before_nothing", "after_nothing", "before_sleep_nothing"}:
            continue
        plain = code(log.get("exc_info") or parse("False")) == "False"
        if known == "before_sleep_log" and name == "before_sleep" and plain:
            logger, level = _needed(log, "logger"), _needed(log, "log_level")
            found.append(log_observer(code(logger), event, code(level)))
        elif name != "after" or not decides:
            found.append(f"{_ADAPTERS}.{name}({code(hook)})")
    return {"observers": f"[{', '.join(found)}]"} if found else {}
