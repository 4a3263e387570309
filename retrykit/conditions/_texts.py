"""Conditions as texts, for policies stored as data.

``OSError`` and ``module:Name`` are exception types, ``name=Busy`` is any error whose
class has that name, ``http=503``, ``http=5xx``, ``http=connections`` and
``http=unprocessed`` are HTTP failures, ``grpc=UNAVAILABLE`` is a gRPC status code, and
``not=OSError`` is every other error.
"""

from collections.abc import Callable
from typing import Any, cast

from retrykit._conditions import Condition
from retrykit._internal.error_texts import type_from_name, type_to_name
from retrykit._internal.validation import did_you_mean, invalid_setting, prefix_errors
from retrykit.conditions._http import HttpFailures
from retrykit.conditions._names import AnyOf, ErrorNames, Excluding, any_of
from retrykit.hints.grpc import StatusCodes

__all__ = ["condition_from_texts", "condition_to_texts", "result_from_texts"]
__all__ += ["result_to_texts"]


def condition_to_texts(name: str, condition: object) -> list[str]:
    """Return the texts that `condition_from_texts` reads as this condition.

    >>> condition_to_texts("on", any_of([OSError, ErrorNames(["Busy"])]))
    ['OSError', 'name=Busy']

    Raises:
        ConfigError: A part of it is neither an importable exception type nor one of
            `retrykit.conditions`.
    """
    match condition:
        case tuple(parts) | AnyOf(conditions=parts):
            return [x for each in parts for x in condition_to_texts(name, each)]
        case ErrorNames():
            return [f"name={each}" for each in condition.names]
        case StatusCodes():
            return [f"grpc={each}" for each in condition.codes]
        case HttpFailures():
            flags = [flag for flag in _FLAGS if getattr(condition, flag)]
            return [f"http={each}" for each in (*condition.statuses, *flags)]
        case Excluding():
            return [f"not={type_to_name(name, each)}" for each in condition.types]
    return [type_to_name(name, condition)]


_FLAGS = ("connections", "unprocessed")


def condition_from_texts(name: str, texts: list[Any]) -> Condition:
    """Return the condition that texts describe.

    >>> condition_from_texts("on", ["http=503", "http=connections"])
    HttpFailures([503], connections=True)

    Raises:
        ConfigError: A text describes no condition, or an exception type that is neither
            built in nor in a module that has been imported.
    """
    kinds: dict[str, list[Any]] = {}
    for text in texts:
        kind, value = "", text
        if isinstance(text, str) and "=" in text:
            kind, _, value = text.partition("=")
        if kind not in _READERS:
            rule = "the name of an exception type, or one of " + ", ".join(_FORMS)
            raise invalid_setting(
                name, rule, text, did_you_mean(kind, _READERS), code="unknown-name"
            )
        kinds.setdefault(kind, []).append(value)
    return any_of([_READERS[kind](name, values) for kind, values in kinds.items()])


def _types(name: str, values: list[Any]) -> Condition:
    return cast("Condition", tuple(type_from_name(name, each) for each in values))


def _names(name: str, values: list[str]) -> Condition:
    with prefix_errors(name):
        return ErrorNames(values)


def _codes(name: str, values: list[str]) -> Condition:
    with prefix_errors(name):
        return StatusCodes(values)


def _failures(name: str, values: list[str]) -> Condition:
    statuses = [int(x) if x.isdecimal() and x.isascii() else x for x in values]
    with prefix_errors(name):
        return HttpFailures(
            [each for each in statuses if each not in _FLAGS],
            *(flag in statuses for flag in _FLAGS),
        )


def _others(name: str, values: list[str]) -> Condition:
    return Excluding([cast("Any", type_from_name(name, each)) for each in values])


_READERS: dict[str, Callable[[str, list[Any]], Condition]] = {
    "": _types,
    "name": _names,
    "http": _failures,
    "grpc": _codes,
}
_READERS["not"] = _others
_FORMS = ["name=Name", "http=503", "http=5xx", "http=connections"]
_FORMS += ["grpc=UNAVAILABLE", "not=OSError"]


def result_to_texts(name: str, condition: object) -> list[str]:
    """Return the texts that `result_from_texts` reads as this condition on results.

    Raises:
        ConfigError: It is not `HttpFailures`.
    """
    if isinstance(condition, HttpFailures):
        return condition_to_texts(name, condition)
    rule = "left out of a policy that is written as data"
    suggestion = f"leave it out, and add it with .replace({name}=...)"
    raise invalid_setting(name, rule, condition, suggestion, code="not-expressible")


def result_from_texts(name: str, value: object) -> Condition:
    """Return the condition on results that a text, or a list of texts, describes.

    >>> result_from_texts("on_result", "http=503")
    HttpFailures([503])

    Raises:
        ConfigError: There is no text, or one does not describe an `HttpFailures`.
    """
    texts = [*value] if isinstance(value, list | tuple) else [value]
    if not texts or not all(isinstance(x, str) and x[:5] == "http=" for x in texts):
        rule = 'a text such as "http=503" or "http=5xx", or a list of them'
        suggestion = f"add another predicate with .replace({name}=...)"
        raise invalid_setting(name, rule, value, suggestion)
    return condition_from_texts(name, texts)
