"""Built-in hints as strings, for policies stored as data."""

from collections.abc import Callable

from retrykit._internal.late_modules import inspect
from retrykit._internal.validation import did_you_mean, invalid_setting, user_facing
from retrykit.hints._base import FirstOf, Hint, SerializableHint, first_of
from retrykit.hints._error_attribute import attribute
from retrykit.hints._rate_limit_header import rate_limit
from retrykit.hints._rate_limit_reset import reset_at
from retrykit.hints._retry_after_header import milliseconds, retry_after
from retrykit.hints.grpc import grpc_pushback

__all__ = ["hint_to_text", "parse_hint"]

_BUILDERS: dict[str, Callable[..., Hint]] = {
    "retry_after": retry_after,
    "milliseconds": milliseconds,
    "grpc_pushback": grpc_pushback,
    "attribute": attribute,
    "reset_at": reset_at,
    "rate_limit": rate_limit,
}
_SIGNATURES = {kind: inspect.signature(build) for kind, build in _BUILDERS.items()}


@user_facing
def parse_hint(text: object) -> Hint:
    """Return the hint described by a string.

    >>> parse_hint("retry_after")
    retry_after()
    >>> parse_hint("milliseconds:retry-after-ms, retry_after")
    first_of(milliseconds('retry-after-ms'), retry_after())

    Args:
        text: ``retry_after``, ``milliseconds:HEADER``, ``grpc_pushback``,
            ``attribute:PATH``, ``attribute:PATH:ms``, ``reset_at``,
            ``reset_at:HEADER`` or ``rate_limit``, or several of these separated by
            commas; the first answer counts.

    Raises:
        ConfigError: The hint is unknown, or its arguments are invalid.
    """
    if not isinstance(text, str):
        raise invalid_setting("hint", _RULE, text, _known_forms(), code="unknown-name")
    return first_of(*(_parse_part(part.strip()) for part in text.split(",")))


def hint_to_text(hint: object) -> str:
    """Return the string that `parse_hint` reads as this hint.

    >>> hint_to_text(attribute("response.wait", unit="ms"))
    'attribute:response.wait:ms'

    Raises:
        ConfigError: The hint, or a part of it, is not a built-in one.
    """
    if isinstance(hint, FirstOf):
        return ", ".join(map(hint_to_text, hint.hints))
    if not isinstance(hint, SerializableHint):
        rule = "one of retrykit.hints in a policy that is written as data"
        suggestion = "leave it out, and add it with .replace(hint=...)"
        raise invalid_setting("hint", rule, hint, suggestion, code="not-expressible")
    return hint.text


_RULE = "a string that names a built-in hint"


def _parse_part(text: str) -> Hint:
    kind, *arguments = text.split(":")
    if kind not in _BUILDERS:
        suggestion = did_you_mean(kind, _BUILDERS) or _known_forms()
        raise invalid_setting("hint", _RULE, text, suggestion, code="unknown-name")
    build = _BUILDERS[kind]
    try:
        _SIGNATURES[kind].bind(*arguments)
    except TypeError:
        raise invalid_setting(
            "hint", _RULE, text, f"write {_form(kind)}", code="unknown-name"
        ) from None
    return build(*arguments)


def _known_forms() -> str:
    return f"write {', '.join(map(_form, _BUILDERS))}"


def _form(kind: str) -> str:
    """Return the form of a hint's string, with its required arguments."""
    parameters = _SIGNATURES[kind].parameters.values()
    required = (each.name.upper() for each in parameters if each.default is each.empty)
    return ":".join([kind, *required])
