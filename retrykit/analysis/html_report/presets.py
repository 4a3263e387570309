"""Presets that the page shows by their own parameters.

Each parameter of such a preset is a number of the policy.
"""

from collections.abc import Mapping
from typing import Any, Final

from retrykit.analysis.html_report.hidden_settings import hidden_settings
from retrykit.config.docstrings import summary
from retrykit.config.preset_names import BUILT_IN
from retrykit.errors import ConfigError
from retrykit.policy.policy import Policy

__all__ = ["find_preset"]

# The path of each parameter in the policy. One in max_attempts counts retries.
_PARAMETERS: Final = {
    "google": {
        "initial_interval": "schedule.initial_interval",
        "randomization_factor": "schedule.randomization_factor",
        "multiplier": "schedule.multiplier",
        "max_interval": "schedule.max_interval",
        "max_elapsed_time": "max_elapsed",
    },
    "polly": {
        "median_first_retry_delay": "schedule.median_first_retry_delay",
        "retry_count": "max_attempts",
    },
    "zizq": {
        "base": "schedule.left.left.wait",
        "exponent": "schedule.left.right.exponent",
        "jitter": "schedule.right.of.step",
        "retry_limit": "max_attempts",
    },
}


def find_preset(
    name: str, policy: Policy, shown: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the preset that a policy is shown as, if any.

    Returns:
        None if no preset of this name makes the policy; else a dict of the
        ``name`` of the preset; its ``summary``; the path of each of its
        ``parameters`` in *shown*; its own ``limits``; and the result of
        `hidden_settings`.
    """
    preset = name.partition(":")[0].strip().replace("_", "-")
    paths = {key: path.split(".") for key, path in _PARAMETERS.get(preset, {}).items()}
    values = {key: _value(shown, path) for key, path in paths.items()}
    if not values or None in values.values():
        return None
    try:
        made = BUILT_IN[preset](**values)
    except ConfigError:
        return None
    if made.schedule != policy.schedule:
        return None
    description = summary(BUILT_IN[preset]).removeprefix("Return t")
    return {
        "name": preset,
        "summary": f"T{description}",
        "parameters": paths,
        "limits": {key: getattr(made, key) for key in _LIMITS},
        **hidden_settings(policy, made),
    }


_LIMITS: Final = ("max_attempts", "max_elapsed", "deadline")


def _value(shown: Any, path: list[str]) -> Any:
    """Return the number at a path, or None."""
    for part in path:
        shown = shown.get(part) if isinstance(shown, Mapping) else None
    return shown - 1 if path == ["max_attempts"] and shown else shown
