"""Tenacity's errors, callbacks and hooks, as settings."""

from typing import Final

import libcst as cst

from retrykit.migrate._expressions import OURS, code, lambda_of, literal, parse
from retrykit.migrate._findings import Untranslatable
from retrykit.migrate._hooks import log_observer
from retrykit.migrate._settings import Settings, Use
from retrykit.migrate._source import Arguments, Source
from retrykit.migrate._tenacity._strategies import ADAPTERS, needed, parts_of

__all__ = ["ending_settings", "hook_settings"]


def ending_settings(
    source: Source, arguments: Arguments, use: Use, *, ends: bool
) -> Settings:
    """Return the settings that decide what a call raises or returns in the end.

    Args:
        source: The file.
        arguments: The arguments.
        use: The code that is retried.
        ends: Whether a strategy stops the retries.

    Raises:
        Untranslatable: The arguments cannot be translated exactly.
    """
    callback, reraise = arguments.get("retry_error_callback"), arguments.get("reraise")
    if callback is not None and code(callback) != "None":
        if use.kind == "block":
            raise Untranslatable("retry_error_callback has no meaning for a block")
        return {"fallback": _fallback(source, callback)}
    again = "False" if reraise is None else code(source.value(reraise))
    kind = arguments.get("retry_error_cls")
    if kind is not None and ends:
        return {"fallback": _error_class(kind, use, again)}
    if again == "True" or not ends:
        return {}
    if reraise is None or again == "False":
        return {"raises": '"retry_error"'}
    return {"raises": f'"last" if {code(reraise)} else "retry_error"'}


def _error_class(kind: cst.BaseExpression, use: Use, again: str) -> str:
    """Return the text of a fallback that raises an error of the given class."""
    if use.kind == "block":
        raise Untranslatable("retry_error_cls: write try and raise ... from around it")
    if again != "False":
        raise Untranslatable("retry_error_cls has its own say with reraise")
    return f"{ADAPTERS}.retry_error_cls({code(kind)})"


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
    return f"{ADAPTERS}.retry_error_callback({code(callback)})"


def _returned(
    node: cst.BaseExpression, function: cst.FunctionDef | None
) -> tuple[str, cst.BaseExpression] | None:
    """Return the parameter of a function, and the expression that it returns.

    None if it has more parameters, or does anything else.
    """
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


def hook_settings(source: Source, arguments: Arguments, *, decides: bool) -> Settings:
    """Return the observers that replace hooks, as settings.

    Args:
        source: The file.
        arguments: The arguments.
        decides: Whether the hint is an adapter, which calls the hook `after` itself.
    """
    found: list[str] = []
    for name, event in _HOOKS.items():
        hook = arguments.get(name)
        if hook is None or code(hook) == "None":
            continue
        known, log, _ = parts_of(source, hook)
        if known in {"before_nothing", "after_nothing", "before_sleep_nothing"}:
            continue
        plain = code(log.get("exc_info") or parse("False")) == "False"
        if known == "before_sleep_log" and name == "before_sleep" and plain:
            logger, level = needed(log, "logger"), needed(log, "log_level")
            found.append(log_observer(code(logger), event, code(level)))
        elif name != "after" or not decides:
            found.append(f"{ADAPTERS}.{name}({code(hook)})")
    return {"observers": f"[{', '.join(found)}]"} if found else {}
