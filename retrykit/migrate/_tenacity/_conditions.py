"""Tenacity's conditions on errors and results, as settings."""

from collections.abc import Callable
from typing import Final

import libcst as cst

from retrykit.migrate._conditions import Errors, Results, condition_settings
from retrykit.migrate._expressions import (
    STANDARD,
    call_predicate,
    code,
    lambda_of,
    literal,
    negated,
    parse,
)
from retrykit.migrate._findings import Untranslatable
from retrykit.migrate._settings import Settings
from retrykit.migrate._source import Arguments, Source
from retrykit.migrate._tenacity._strategies import (
    ADAPTERS,
    brief,
    needed,
    operands,
    parts_of,
)

__all__ = ["retry_settings"]


def retry_settings(
    source: Source, node: cst.BaseExpression | None, *, excludes: bool
) -> Settings:
    """Return the settings that decide which failures are retried.

    Args:
        source: The file.
        node: The condition; None for tenacity's default, which includes every error.
        excludes: Whether `give_up_on` may exclude errors.

    Raises:
        Untranslatable: The condition cannot be translated exactly.
    """
    try:
        return condition_settings(*_condition(source, node), excludes=excludes)
    except Untranslatable:
        if node is None or _is_too_wide(node):
            raise
    text = code(node)
    if _is_async(source, node):
        raise Untranslatable(f"retry={brief(node)} is a condition that is awaited")
    return {
        "on": f"{ADAPTERS}.retry_on_error({text})",
        "on_result": f"{ADAPTERS}.retry_on_result({text})",
    }


def _is_too_wide(node: cst.BaseExpression) -> bool:
    text = code(node)
    return any(
        each in text for each in ("BaseException", "KeyboardInterrupt", "retry_never")
    )


def _is_async(source: Source, node: cst.BaseExpression) -> bool:
    function = source.function(node)
    return function is not None and function.asynchronous is not None


def _condition(
    source: Source, node: cst.BaseExpression | None
) -> tuple[Errors, Results]:
    if node is None:
        return Errors.of("Exception"), Results()
    for operator, name, joined in (
        (cst.BitOr, "retry_any", False),
        (cst.BitAnd, "retry_all", True),
    ):
        parts = operands(source, node, operator, name)
        if parts is not None:
            found = [_condition(source, part) for part in parts]
            errors, results = found[0]
            for other_errors, other_results in found[1:]:
                errors = errors.joined(other_errors, every=joined)
                results = results.joined(other_results, every=joined)
            return errors, results
    name, arguments, own = parts_of(source, node)
    if name in _CONDITIONS:
        return _CONDITIONS[name](arguments)
    if name == "retry_if_exception_cause_type":
        raise Untranslatable(
            "retry_if_exception_cause_type follows the chain of causes"
        )
    raise Untranslatable(f"retry={brief(own)} is code of its own")


def _types(arguments: Arguments) -> str:
    return code(arguments.get("exception_types") or parse("Exception"))


def _message(arguments: Arguments) -> str:
    """Return the text of a test of the message in ``error``."""
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
    return needed(arguments, "predicate")


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
