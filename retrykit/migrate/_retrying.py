"""Translation of retrying's arguments, whose durations are milliseconds."""

from typing import Final

import libcst as cst

from retrykit.migrate import _waits
from retrykit.migrate._conditions import Errors, Results, condition_settings
from retrykit.migrate._expressions import (
    code,
    divided,
    ignores_argument,
    literal,
    number_text,
    operand,
    parse,
)
from retrykit.migrate._findings import Untranslatable
from retrykit.migrate._settings import Settings, Use
from retrykit.migrate._source import Arguments, Source
from retrykit.migrate._waits import Wait

__all__ = ["PARAMETERS", "settings"]

PARAMETERS: Final = (
    "stop wait stop_max_attempt_number stop_max_delay wait_fixed wait_random_min "
    "wait_random_max wait_incrementing_start wait_incrementing_increment "
    "wait_incrementing_max wait_exponential_multiplier wait_exponential_max "
    "retry_on_exception retry_on_result wrap_exception stop_func wait_func "
    "wait_jitter_max before_attempts after_attempts logger"
)
"""The parameters of `retry` and `Retrying`, in their order."""

_MILLISECONDS: Final = 1000


def settings(arguments: Arguments, use: Use) -> Settings:
    """Return the settings of a policy for the arguments of retrying.

    Raises:
        Untranslatable: The arguments cannot be translated exactly.
    """
    if arguments.extra or arguments.values.keys() - {*PARAMETERS.split()}:
        raise Untranslatable("it has more arguments than retrying knows")
    if use.awaited and use.kind == "function":
        raise Untranslatable("retrying does not await a coroutine, so retries nothing")
    for name in ("stop", "wait", "stop_func", "wait_func", "logger"):
        value = arguments.get(name)
        if value is not None and code(value) != "None":
            raise Untranslatable(f"{name}={code(value)} is code of its own")
    source = arguments.source
    on, result = arguments.get("retry_on_exception"), arguments.get("retry_on_result")
    errors = Errors.of("Exception") if on is None else _condition(source, on)
    results = Results() if result is None else Results(code(result))
    found = condition_settings(errors, results)
    wait = _wait(arguments)
    found["schedule"] = wait.text
    found |= _limits(arguments)
    limit = literal(arguments.get("stop_max_delay"), None)
    if _waits.is_number(limit) and (
        limit <= 0 or _waits.reaches(wait, limit / _MILLISECONDS)
    ):
        found = _waits.limit_schedule(found)
    wraps = arguments.get("wrap_exception")
    if wraps is not None and code(wraps) != "False":
        if code(wraps) != "True" or on is not None:
            raise Untranslatable(
                "wrap_exception also wraps the errors that are not retried"
            )
        found["raises"] = '"retry_error"'
    return found | _hooks(arguments, errors)


def _condition(source: Source, node: cst.BaseExpression) -> Errors:
    if isinstance(source.value(node), cst.Tuple):
        return Errors.of(code(node))
    function = source.function(node)
    if function is not None or isinstance(node, cst.Lambda):
        return Errors.by(code(node))
    last = code(node).rpartition(".")[2]
    if source.is_class(node) or last[:1].isupper():
        raise Untranslatable(
            f"retrying calls {code(node)} as a function, so retries every error"
        )
    return Errors.by(code(node))


def _limits(arguments: Arguments) -> Settings:
    found: Settings = {}
    most = arguments.get("stop_max_attempt_number")
    time = arguments.get("stop_max_delay")
    if most is not None and code(most) != "None":
        known = literal(most, None)
        found["max_attempts"] = str(max(1, known)) if type(known) is int else code(most)
    if time is not None and code(time) != "None":
        found |= {"max_elapsed": divided(time, _MILLISECONDS)}
        found |= {"deadline": '"overshoot"'}
    elif "max_attempts" not in found:
        found["max_attempts"] = "None"
    return found


def _wait(arguments: Arguments) -> Wait:
    parts: list[Wait] = []
    fixed = arguments.get("wait_fixed")
    if fixed is not None:
        parts.append(_waits.constant(parse(divided(fixed, _MILLISECONDS))))
    least, most = arguments.get("wait_random_min"), arguments.get("wait_random_max")
    if least is not None or most is not None:
        low = divided(least or parse("0"), _MILLISECONDS)
        parts.append(_waits.uniform(low, divided(most or parse("1000"), _MILLISECONDS)))
    start = arguments.get("wait_incrementing_start")
    increment = arguments.get("wait_incrementing_increment")
    if start is not None or increment is not None:
        grown = _waits.incrementing(
            start or parse("0"), increment or parse("100"), unit=_MILLISECONDS
        )
        parts.append(grown.cap(_seconds(arguments.get("wait_incrementing_max"))))
    factor = arguments.get("wait_exponential_multiplier")
    limit = arguments.get("wait_exponential_max")
    if factor is not None or limit is not None:
        parts.append(_exponential(factor or parse("1")).cap(_seconds(limit)))
    wait = parts[0] if parts else _waits.NO_WAIT
    for other in parts[1:]:
        first, second = (f"({x.text})" if x.is_sum else x.text for x in (wait, other))
        wait = Wait(f"{first} & {second}", is_sum=True)
    jitter = arguments.get("wait_jitter_max")
    if jitter is not None and literal(jitter, None) != 0:
        spread = _waits.uniform("0", divided(jitter, _MILLISECONDS))
        base = Wait(f"({wait.text})") if " & " in wait.text else wait
        wait = base.plus(spread)
    return wait


def _seconds(node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    return None if node is None else parse(divided(node, _MILLISECONDS))


def _exponential(factor: cst.BaseExpression) -> Wait:
    """Return delays that begin at twice the factor, which is in milliseconds."""
    value = literal(factor, None)
    if _waits.is_number(value):
        first = value * 2 / _MILLISECONDS
        return _waits.exponential(number_text(first), None, first)
    return _waits.exponential(f"{operand(factor)} / {_MILLISECONDS // 2}", None, None)


def _hooks(arguments: Arguments, errors: Errors) -> Settings:
    functions: dict[str, str] = {}
    for name, event in (
        ("before_attempts", "attempt_started"),
        ("after_attempts", "attempt_failed"),
    ):
        hook = arguments.get(name)
        if hook is None or code(hook) == "None":
            continue
        if name == "after_attempts" and not errors.is_every:
            raise Untranslatable(
                "after_attempts is not called for an error that is not retried, and "
                "the event attempt_failed is"
            )
        function = arguments.source.function(hook)
        if ignores_argument(function or hook):
            functions[event] = code(hook)
        else:
            text = operand(hook)
            functions[event] = f"lambda event: {text}(event.state.attempt)"
    if not functions:
        return {}
    table = ", ".join(f'"{event}": {text}' for event, text in functions.items())
    return {"observers": f"{{{table}}}"}
