"""Settings that the page does not show, as lines of its Python and TOML."""

from typing import Any, Final

from retrykit.config.rendering import (
    compact_value,
    import_block,
    non_default_settings,
    to_expression,
    toml_value,
)
from retrykit.errors import ConfigError
from retrykit.policy.policy import Policy

__all__ = ["hidden_settings"]


def hidden_settings(policy: Policy, preset: Policy | None = None) -> dict[str, Any]:
    """Return the lines of the settings that the page does not show.

    >>> found = hidden_settings(Policy(on=ConnectionError, on_result=callable))
    >>> found["toml"]
    {'settings': ['on = "ConnectionError"'], 'left_out': ['on_result']}
    >>> found["python"]["settings"]
    ['on=ConnectionError']

    Returns:
        A dict of ``python`` and ``toml``, each a dict: ``settings``, the lines
        of the settings that differ from the default or the preset;
        ``left_out``, the names of the settings that are code; and, for Python,
        ``imports``, the import lines.
    """
    python: dict[str, Any] = {"settings": [], "left_out": []}
    toml: dict[str, Any] = {"settings": [], "left_out": []}
    if preset is None:
        schedule = to_expression("schedule", policy.schedule)
        imports = ["from retrykit import Policy", *schedule.imports]
    else:
        imports = ["from retrykit import presets"]
    for name, value in non_default_settings(policy, preset).items():
        if name in _SHOWN:
            continue
        try:
            expression = to_expression(name, value)
            python["settings"].append(f"{name}={expression.text}")
            imports += expression.imports
        except ConfigError:
            python["left_out"].append(name)
        try:
            toml["settings"].append(
                f"{name} = {toml_value(compact_value(name, value))}"
            )
        except ConfigError:
            toml["left_out"].append(name)
    return {"python": python | {"imports": import_block(imports)}, "toml": toml}


_SHOWN: Final = {"schedule", "max_attempts", "max_elapsed", "deadline"}
