"""Translation of stamina's arguments to policy settings."""

from typing import Final

import libcst as cst

from retrykit.migrate import _waits
from retrykit.migrate._conditions import Errors, Results, condition_settings
from retrykit.migrate._expressions import code, literal, parse
from retrykit.migrate._findings import Untranslatable
from retrykit.migrate._settings import Settings, Use
from retrykit.migrate._source import Arguments, Source

__all__ = ["OF_CALLERS", "PARAMETERS", "caller_settings", "condition_text", "settings"]

PARAMETERS: Final = (
    "on attempts timeout wait_initial wait_max wait_jitter wait_exp_base"
)
"""The parameters of `retry` and `retry_context`, in their order."""

OF_CALLERS: Final = PARAMETERS.removeprefix("on ")
"""The parameters of `RetryingCaller` and `AsyncRetryingCaller`, in their order."""


def settings(arguments: Arguments, _use: Use) -> Settings:
    """Return the settings of a policy for the arguments of stamina.

    Raises:
        Untranslatable: The arguments cannot be translated exactly.
    """
    if arguments.extra or arguments.values.keys() - {*PARAMETERS.split()}:
        raise Untranslatable("it has more arguments than stamina knows")
    on = arguments.get("on")
    if on is None:
        raise Untranslatable("it has no on")
    found = {"on": condition_text(arguments.source, on)}
    return found | _other_settings(arguments)


def condition_text(source: Source, node: cst.BaseExpression) -> str:
    """Return the text of the condition on errors that are retried.

    Raises:
        Untranslatable: The condition may be a function that returns a delay, or it
            includes errors that retrykit never retries.
    """
    return condition_settings(_condition(source, node), Results())["on"]


def caller_settings(arguments: Arguments, _use: Use) -> Settings:
    """Return the settings of a policy for the arguments of a `RetryingCaller`.

    Raises:
        Untranslatable: The arguments cannot be translated exactly.
    """
    if arguments.extra or arguments.values.keys() - {*OF_CALLERS.split()}:
        raise Untranslatable("it has more arguments than stamina knows")
    return _other_settings(arguments)


def _other_settings(arguments: Arguments) -> Settings:
    found: Settings = {}
    attempts = arguments.get("attempts") or parse("10")
    timeout = arguments.get("timeout") or parse("45")
    limited = code(timeout) != "None"
    if literal(attempts, 1) == 0:
        raise Untranslatable("0 attempts mean no retry: write max_attempts=1")
    if code(attempts) != "None" or not limited:
        found["max_attempts"] = code(attempts)
    wait = _wait(arguments)
    found["schedule"] = wait.text
    if limited:
        found |= {"max_elapsed": code(timeout), "deadline": '"overshoot"'}
        seconds = literal(timeout, None)
        if _waits.is_number(seconds) and (
            seconds <= 0 or _waits.reaches(wait, seconds)
        ):
            found = _waits.limit_schedule(found)
    return found


def _wait(arguments: Arguments) -> _waits.Wait:
    initial = arguments.get("wait_initial") or parse("0.1")
    jitter = arguments.get("wait_jitter") or parse("1")
    base = arguments.get("wait_exp_base")
    wait = _waits.exponential(code(initial), base, literal(initial, None))
    if literal(jitter, None) != 0:
        wait = wait.plus(_waits.uniform("0", code(jitter)))
    return wait.cap(arguments.get("wait_max") or parse("5"))


def _condition(source: Source, node: cst.BaseExpression) -> Errors:
    value = source.value(node)
    if isinstance(value, cst.Tuple):
        return Errors.of(code(node))
    function = source.function(value)
    if function is not None:
        returns = function.returns
        if returns is None or code(returns.annotation) != "bool":
            raise Untranslatable(f"on={code(node)} may return a delay")
        return Errors.by(code(node))
    if isinstance(value, cst.Lambda):
        if not _is_bool(value.body):
            raise Untranslatable("on is a function that may return a delay")
        return Errors.by(code(node))
    last = code(value).rpartition(".")[2]
    if source.is_class(value) or last[:1].isupper():
        return Errors.of(code(node))
    raise Untranslatable(f"on={code(node)} may be a function that returns a delay")


def _is_bool(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.BooleanOperation):
        return _is_bool(node.left) and _is_bool(node.right)
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.operator, cst.Not)
    if isinstance(node, cst.Call):
        return code(node.func) in {"isinstance", "issubclass", "bool", "any", "all"}
    return isinstance(node, cst.Comparison) or code(node) in {"True", "False"}
