"""Presets that a page shows by their own parameters.

They are those of which each parameter is a number of the policy.
"""

from collections.abc import Mapping
from typing import Any, Final

from retrykit.analysis.html_report.hidden_settings import unseen
from retrykit.config.docstrings import summary
from retrykit.config.preset_names import BUILT_IN
from retrykit.errors import ConfigError
from retrykit.policy.policy import Policy

__all__ = ["preset_of"]

# Where the policy has each parameter. One in max_attempts counts retries.
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


def preset_of(
    name: str, policy: Policy, shown: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the preset that a policy is shown and written as, if it is one.

    Args:
        name: What the policy is called: the name of a preset, with or without
            parameters, as `parse_preset` reads it.
        policy: The policy. It may have other settings, but for its schedule.
        shown: Its schedule and limits, as plain data.

    Returns:
        None where the policy cannot be made by a preset of this name; else a
        dict of the ``name`` of the preset; its ``summary``; the path of each of
        its ``parameters`` in *shown*; its own ``limits``; and what `unseen`
        returns.
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
    told = summary(BUILT_IN[preset]).removeprefix("Return t")
    return {
        "name": preset,
        "summary": f"T{told}",
        "parameters": paths,
        "limits": {key: getattr(made, key) for key in _LIMITS},
        **unseen(policy, made),
    }


_LIMITS: Final = ("max_attempts", "max_elapsed", "deadline")


def _value(shown: Any, path: list[str]) -> Any:
    """Return the number at a path; None if there is none."""
    for part in path:
        shown = shown.get(part) if isinstance(shown, Mapping) else None
    return shown - 1 if path == ["max_attempts"] and shown else shown
