"""Translation of backoff's decorators to policy settings."""

import re
from typing import Final

import libcst as cst

from retrykit.migrate import _waits
from retrykit.migrate._conditions import Errors, Results, condition_settings
from retrykit.migrate._expressions import (
    OURS,
    STANDARD,
    call_text,
    code,
    is_literal,
    lambda_of,
    literal,
    parse,
)
from retrykit.migrate._findings import Untranslatable
from retrykit.migrate._hooks import log_observer
from retrykit.migrate._settings import Settings, Use, ordered
from retrykit.migrate._source import Arguments, Source
from retrykit.migrate._waits import Wait

__all__ = ["OF_EXCEPTIONS", "OF_RESULTS", "exception_settings", "result_settings"]

OF_EXCEPTIONS: Final = "wait_gen exception"
"""The positional parameters of `on_exception`."""

OF_RESULTS: Final = "wait_gen predicate"
"""The positional parameters of `on_predicate`."""

_OWN: Final = {
    *("wait_gen", "exception", "predicate", "max_tries", "max_time", "jitter"),
    *("giveup", "on_success", "on_backoff", "on_giveup", "raise_on_giveup"),
    *("logger", "backoff_log_level", "giveup_log_level"),
}


def exception_settings(arguments: Arguments, use: Use) -> Settings:
    """Return the settings of a policy for the arguments of `on_exception`.

    Raises:
        Untranslatable: The arguments cannot be translated exactly.
    """
    exception = arguments.get("exception")
    if exception is None:
        raise Untranslatable("it has no exception")
    found = condition_settings(Errors.of(code(exception)), Results())
    giveup = arguments.get("giveup")
    if giveup is not None:
        found["give_up_on"] = _giveup(arguments, code(giveup), code(exception))
    common, finite = _common(arguments, use)
    found |= common
    raises = arguments.get("raise_on_giveup")
    if raises is not None and code(raises) != "True":
        if code(raises) != "False":
            raise Untranslatable("raise_on_giveup is not known")
        if finite:
            raise Untranslatable(
                "with raise_on_giveup=False, backoff raises the error after all where "
                "the delays end"
            )
        found["fallback"] = "None"
    return _at_run_time(found)


def _giveup(arguments: Arguments, function: str, exception: str) -> str:
    """Return the text of the condition on errors that end a call.

    backoff calls ``giveup`` only with errors of the type *exception*. An adapter that
    does the same is needed only if giving up does more than raise the error.
    """
    seen = any(code(arguments.get(x) or parse("None")) != "None" for x in _SEES_THE_END)
    if not seen or exception == "Exception":
        return function
    return call_text(f"{_ADAPTERS}.giveup", function, exception)


_SEES_THE_END: Final = ("on_giveup", "raise_on_giveup", "logger")


def result_settings(arguments: Arguments, use: Use) -> Settings:
    """Return the settings of a policy for the arguments of `on_predicate`.

    Raises:
        Untranslatable: The arguments cannot be translated exactly.
    """
    predicate = arguments.get("predicate")
    if predicate is None or code(predicate) == "operator.not_":
        function = "lambda result: not result"
    elif arguments.source.is_class(predicate):
        function = f"lambda result: {code(predicate)}(result)"
    else:
        function = code(predicate)
    handlers = _handlers(arguments, "on_success")
    if handlers:
        function = call_text(f"{_ADAPTERS}.predicate", function, *handlers)
    found = condition_settings(Errors.none(), Results(function))
    found |= _common(arguments, use)[0]
    if found.get("max_attempts") != "None":
        found["fallback"] = f"{OURS}.last_result"
    return _at_run_time(found)


def _common(arguments: Arguments, use: Use) -> tuple[Settings, bool]:
    """Return the settings for shared parameters, and whether the delays may end."""
    if arguments.extra:
        raise Untranslatable("it has more arguments than backoff knows")
    options = {
        name: value for name, value in arguments.values.items() if name not in _OWN
    }
    found, finite = _delays(arguments, options)
    most = arguments.get("max_tries")
    if most is not None and code(most) != "None":
        known = literal(most, None)
        if known is not None and (type(known) is not int or known < 1):
            raise Untranslatable("max_tries below 1 is never reached")
        found["max_attempts"] = _value(arguments.source, most, "max_tries")
    else:
        found["max_attempts"] = "None"
    listed = _observers(
        arguments, of_results=use.kind == "function" and _judges(arguments)
    )
    if listed:
        found["observers"] = f"[{', '.join(listed)}]"
    return found, finite


def _judges(arguments: Arguments) -> bool:
    return "exception" not in arguments.values


def _value(source: Source, node: cst.BaseExpression, name: str) -> str:
    """Return the text of a value, or a call marked with `_CALLED` if it is a function.

    Raises:
        Untranslatable: The value is a function with parameters, or it is not known
            whether it is a function.
    """
    if is_literal(node) or not isinstance(node, cst.Lambda | cst.Name | cst.Attribute):
        return code(node)
    if isinstance(node, cst.Lambda):
        if [*node.params.params] or node.params.star_kwarg:
            raise Untranslatable(f"{name} is a function with parameters")
        return f"{_CALLED}({code(node.body)})"
    function = source.function(node)
    if function is not None:
        if _needs_arguments(function.params):
            raise Untranslatable(f"{name} is a function with parameters")
        return f"{_CALLED}({code(node)}())"
    last = code(node).rpartition(".")[2]
    if source.is_imported(node) and not last.isupper():
        raise Untranslatable(f"{name}={code(node)} may be a function")
    if isinstance(node, cst.Attribute):
        # A subclass may have a value in place of a method.
        is_method = any(not _is_property(each) for each in source.functions(last))
        if is_method or last.startswith(("get_", "_get")):
            raise Untranslatable(f"{name}={code(node)} may be a function")
    return code(node)


def _needs_arguments(parameters: cst.Parameters) -> bool:
    every = [*parameters.posonly_params, *parameters.params, *parameters.kwonly_params]
    return any(each.default is None for each in every)


def _is_property(function: cst.FunctionDef) -> bool:
    return any(
        code(each.decorator).endswith("property") for each in function.decorators
    )


_CALLED: Final = "__at_each_call__"


def _at_run_time(found: Settings) -> Settings:
    """Return the settings unchanged, unless a text has a call marked with `_CALLED`.

    Then return a ``policy`` that is made from the settings at each retried call.
    """
    if not any(_CALLED in text for text in found.values()):
        return found
    texts = {
        name: re.sub(rf"{_CALLED}\((.*)\)$", r"\1", text, flags=re.DOTALL)
        if text.startswith(_CALLED)
        else text.replace(_CALLED, "")
        for name, text in ordered(found).items()
    }
    return {"policy": f"lambda: {call_text(f'{OURS}.Policy', **texts)}"}


# ---- Delays

_ADAPTERS: Final = f"{OURS}.integrations.backoff"


def _delays(
    arguments: Arguments, options: dict[str, cst.BaseExpression]
) -> tuple[Settings, bool]:
    """Return the settings of the delays, and whether the delays may end."""
    source = arguments.source
    generator = arguments.get("wait_gen")
    if generator is None:
        raise Untranslatable("it has no wait_gen")
    jitter = _jitter(source, arguments.get("jitter"))
    time = arguments.get("max_time")
    limit = (
        None
        if time is None or code(time) == "None"
        else _value(source, time, "max_time")
    )
    found = source.library_name(generator)
    name = found[1] if found is not None and found[0] == "backoff" else ""
    if name == "runtime" and not jitter and limit is None and "value" in options:
        hint = code(options["value"])
        return {**_by_hint(hint), "hint_jitter": "0"}, False
    if name not in {"expo", "fibo", "constant"}:
        named = {option: code(value) for option, value in options.items()}
        text = call_text(
            f"{_ADAPTERS}.wait_gen",
            code(generator),
            jitter=_JITTERS.get(jitter, jitter) or None,
            max_time=limit,
            **named,
        )
        return _by_hint(text), True
    wait, finite = _known_delays(source, name, options, jitter)
    text = wait.text
    own = jitter if jitter and jitter not in _JITTERS else None
    if own or limit:
        text = call_text(f"{_ADAPTERS}.wait", text, jitter=own, max_time=limit)
    return {"schedule": text}, finite


def _by_hint(hint: str) -> Settings:
    return {"schedule": _waits.NO_WAIT.text, "hint": hint, "hint_cap": "None"}


_JITTERS: Final = {
    "full_jitter": f"lambda delay: {STANDARD}.random.uniform(0, delay)",
    "random_jitter": f"lambda delay: delay + {STANDARD}.random.random()",
}


def _known_delays(
    source: Source, name: str, options: dict[str, cst.BaseExpression], jitter: str
) -> tuple[Wait, bool]:
    unknown = options.keys() - {*_PARAMETERS[name].split()}
    if unknown:
        raise Untranslatable(f"{name} has no parameter {min(unknown)}")
    for option, value in options.items():
        if isinstance(value, cst.Lambda) or source.function(value) is not None:
            raise Untranslatable(f"{option} is a function")
    wait, finite = _generated(source, name, options)
    if jitter == "full_jitter":
        wait = wait.full_jitter()
    elif jitter == "random_jitter":
        wait = wait.plus(_waits.uniform("0", "1"))
    return wait, finite


_PARAMETERS = {
    "expo": "base factor max_value",
    "fibo": "max_value",
    "constant": "interval",
}


def _generated(
    source: Source, name: str, options: dict[str, cst.BaseExpression]
) -> tuple[Wait, bool]:
    limit = options.get("max_value")
    if limit is not None and code(limit) == "None":
        limit = None
    if name == "expo":
        first = options.get("factor") or parse("1")
        base = options.get("base")
        return _waits.exponential(code(first), base, literal(first, None)).cap(
            limit
        ), False
    if name == "fibo":
        return Wait(f"{OURS}.schedules.fibonacci()").cap(limit), False
    interval = options.get("interval") or parse("1")
    value = literal(interval, None)
    if isinstance(value, list | tuple):
        if not value or not all(map(_waits.is_number, value)):
            raise Untranslatable("its delays are not numbers")
        return _waits.sequence([*value], repeat_last=False), True
    if not _waits.is_number(value) and isinstance(
        source.value(interval), cst.List | cst.Tuple
    ):
        return _waits.sequence(code(interval), repeat_last=False), True
    return _waits.constant(interval), False


def _jitter(source: Source, node: cst.BaseExpression | None) -> str:
    """Return the name of backoff's jitter, or a function's text; empty if none."""
    if node is None:
        return "full_jitter"
    if code(node) == "None":
        return ""
    found = source.library_name(node)
    if found in {("backoff", "full_jitter"), ("backoff", "random_jitter")}:
        return found[1]
    parts = lambda_of(node)
    if parts is not None and code(parts[1]) == parts[0]:
        return ""
    return code(node)


# ---- Hooks


def _observers(arguments: Arguments, *, of_results: bool) -> list[str]:
    found = _log(arguments)
    for name in ("on_backoff", "on_success", "on_giveup"):
        handlers = _handlers(arguments, name)
        if handlers and not (of_results and name == "on_success"):
            found.append(call_text(f"{_ADAPTERS}.{name}", *handlers))
    return found


def _handlers(arguments: Arguments, name: str) -> list[str]:
    """Return the texts of an event's handlers."""
    node = arguments.get(name)
    if node is None or code(node) == "None":
        return []
    if isinstance(node, cst.List | cst.Tuple):
        return [code(each) for each in _bare(node)]
    if isinstance(arguments.source.value(node), cst.List | cst.Tuple):
        return [f"*{code(node)}"]
    return [code(node)]


def _bare(node: cst.List | cst.Tuple) -> list[cst.BaseElement]:
    none = cst.MaybeSentinel.DEFAULT
    return [each.with_changes(comma=none) for each in node.elements]


def _log(arguments: Arguments) -> list[str]:
    """Return a list with an observer that logs.

    The list is empty if the logger is None, or neither a logger nor a level is given.
    """
    source = arguments.source
    logger = arguments.get("logger")
    levels = [arguments.get(x) for x in ("backoff_log_level", "giveup_log_level")]
    if logger is None and levels == [None, None]:
        return []
    if logger is not None and code(logger) == "None":
        return []
    backing, giving = (
        f"{STANDARD}.logging.{default}" if level is None else code(level)
        for level, default in zip(levels, ("INFO", "ERROR"), strict=True)
    )
    if logger is None:
        text = f'{STANDARD}.logging.getLogger("backoff")'
    elif isinstance(literal(logger, None), str) or code(logger) == "__name__":
        text = f"{STANDARD}.logging.getLogger({code(logger)})"
    elif "log" in code(logger).lower() or "log" in code(source.value(logger)).lower():
        text = code(logger)
    else:
        raise Untranslatable(f"logger={code(logger)} may be a name")
    return [log_observer(text, "retry_scheduled", backing, gave_up=giving)]
