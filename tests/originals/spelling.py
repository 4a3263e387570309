"""How other languages spell the parameters of presets."""

from datetime import timedelta
from typing import Any, get_args, get_type_hints

from retrykit.config._preset_names import BUILT_IN

__all__ = ["camel_case", "find_durations"]


def camel_case(name: str) -> str:
    """Return a name in camel case.

    >>> camel_case("max_retries")
    'maxRetries'
    """
    first, *rest = name.split("_")
    return first + "".join(each.capitalize() for each in rest)


def find_durations(preset: str) -> set[str]:
    """Return the parameters of a preset that are durations, which others count in ms.

    >>> sorted(find_durations("undici"))
    ['max_timeout', 'min_timeout']
    """
    hints = get_type_hints(BUILT_IN[preset])
    return {name for name, hint in hints.items() if _is_duration(hint)}


def _is_duration(hint: Any) -> bool:
    return hint is timedelta or any(map(_is_duration, get_args(hint)))
