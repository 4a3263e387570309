"""The settings of a policy that are not on the page, as lines of text.

They come after those that are, in the Python and in the TOML of the page. A
setting that is code has no such line.
"""

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

__all__ = ["unseen"]


def unseen(policy: Policy, preset: Policy | None = None) -> dict[str, Any]:
    """Return what a page writes of a policy without showing it.

    >>> found = unseen(Policy(on=ConnectionError, on_result=callable))
    >>> found["toml"]
    {'settings': ['on = "ConnectionError"'], 'left_out': ['on_result']}
    >>> found["python"]["settings"]
    ['on=ConnectionError']

    Args:
        policy: Whose settings.
        preset: The settings of the preset that it is written as; None if it
            is written by its schedule.

    Returns:
        A dict of ``python`` and ``toml``, which are dicts: ``settings``, the
        lines of what is not as by default, or in the preset; ``left_out``, the
        names of the settings that are code; and ``imports``, the lines that the
        Python begins with.
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
            told = to_expression(name, value)
            python["settings"].append(f"{name}={told.text}")
            imports += told.imports
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
