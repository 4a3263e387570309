"""Presets by name, with parameters, such as ``zizq:retry_limit=10``."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, final, get_args, get_type_hints

from retrykit import presets
from retrykit._conditions import Condition
from retrykit._core.policy import Policy
from retrykit._internal.error_texts import type_from_name
from retrykit._internal.validation import did_you_mean, invalid_setting, safe_repr
from retrykit.errors import ConfigError

__all__ = ["BUILT_IN", "LISTED", "parse_number", "parse_preset", "preset_key"]


@final
class _BuiltIn(Mapping[str, Callable[..., Policy]]):
    """The presets, each of which is imported when it is read."""

    def __getitem__(self, key: str) -> Callable[..., Policy]:
        if key not in _NAMES:
            raise KeyError(key)
        found: Callable[..., Policy] = getattr(presets, _NAMES[key])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


_NAMES: Final = {name.replace("_", "-"): name for name in presets.__all__}

LISTED: Final = "the command retrykit presets lists them"
"""Where to find the names of presets, for messages."""

BUILT_IN: Final = _BuiltIn()
"""The function of each preset, keyed by its name with hyphens."""


def preset_key(text: str) -> str:
    """Return the name of a preset, without parameters and with hyphens.

    It has the form of a key in `BUILT_IN`, but there may be no such preset.

    >>> preset_key("tenacity_default"), preset_key("zizq:retry_limit=10")
    ('tenacity-default', 'zizq')
    """
    return text.partition(":")[0].strip().replace("_", "-")


def parse_preset(text: str) -> Policy:
    """Return the preset that a string names.

    >>> parse_preset("zizq:retry_limit=10,jitter=5s").max_attempts
    11
    >>> parse_preset("tenacity_default") == presets.tenacity_default()
    True
    >>> parse_preset("zizk")
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: preset must be the name of one, got 'zizk'; \
did you mean zizq?  [unknown-name]

    Args:
        text: A name in `BUILT_IN`, with hyphens or underscores, and optional
            parameters after a colon. A duration has a unit; an error is the name of
            one exception type, as in `Policy.from_dict`.
    """
    key = preset_key(text)
    name, colon, arguments = text.partition(":")
    if key not in BUILT_IN:
        suggestion = did_you_mean(key, BUILT_IN) or LISTED
        raise invalid_setting(
            "preset", "the name of one", name, suggestion, code="unknown-name"
        )
    values: dict[str, object] = {}
    for argument in arguments.split(",") if colon else ():
        parameter, equals, value = (each.strip() for each in argument.partition("="))
        if not equals or parameter in values:
            rule = f"{key}, or {key}:parameter=value,... with each parameter once"
            raise invalid_setting("preset", rule, text)
        values[parameter] = _parse_value(key, parameter, value)
    return BUILT_IN[key](**values)


def _parse_value(preset: str, name: str, text: str) -> object:
    """Return the value of a parameter.

    A number that is not valid stays a string, which the preset rejects.
    """
    known = get_type_hints(BUILT_IN[preset])
    del known["return"]
    if name not in known:
        listed = f"the parameters are {', '.join(known)}" if known else "it has none"
        suggestion = did_you_mean(name, known) or listed
        shown = safe_repr(name).strip("'")
        msg = f"{shown} is not a parameter of {preset}, got {safe_repr(text)}"
        msg += f"; {suggestion}"
        raise ConfigError(msg, "unknown-name")
    kind = known[name]
    if kind == Condition | None:
        return type_from_name(name, text)
    kinds = {kind, *get_args(kind)}
    # A duration may be a text; another number may also be a word, or None.
    numbers = [] if str in kinds else [each for each in (int, float) if each in kinds]
    return parse_number(numbers[0], text) if numbers else text


def parse_number(kind: type[float], text: str) -> object:
    """Return a string as a number, or the string itself if it is not one.

    >>> parse_number(int, "3"), parse_number(float, "2.5"), parse_number(int, "ten")
    (3, 2.5, 'ten')
    """
    try:
        return kind(text)
    except ValueError:
        return text
