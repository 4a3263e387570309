"""Data of a policy for the page: its settings, and its preset if it has one."""

import inspect
from collections.abc import Mapping
from typing import Any, Final

from retrykit._core.policy import Policy
from retrykit._core.serialization import setting_to_data
from retrykit._core.settings import SETTINGS
from retrykit._core.timeouts import timeout_seconds
from retrykit._internal.frozen import fields_of
from retrykit._internal.validation import check_instance
from retrykit.analysis.html_report._simulation_data import simulation_data
from retrykit.analysis.preview._caveats import caveats, has_other_delays
from retrykit.analysis.preview._stages import (
    has_stages,
    inner_stages,
    outer_stages,
)
from retrykit.config._preset_names import BUILT_IN, preset_key
from retrykit.config.rendering import (
    import_block,
    to_expression,
    toml_key,
    toml_value,
)
from retrykit.errors import ConfigError
from retrykit.schedules._base import Schedule

__all__ = ["hidden_settings", "policy_data", "schedule_data"]


def policy_data(name: str, value: object) -> dict[str, Any]:
    """Return a policy as data for the script of the page.

    Raises:
        ConfigError: *value* is not a policy, or its schedule is the user's own code.
    """
    policy = check_instance(f"policies[{name!r}]", value, Policy)
    setting_to_data("schedule", policy.schedule)  # raises for user code
    settings = {
        "schedule": schedule_data(policy.schedule),
        "max_attempts": policy.max_attempts,
        "max_elapsed": policy.max_elapsed,
    }
    return {
        "name": name,
        "key": toml_key(name),
        **settings,
        "deadline": policy.deadline,
        "limits": policy.limits,
        "attempt_timeout": timeout_seconds(policy.attempt_timeout),
        "has_other_delays": has_other_delays(policy),
        "caveats": list(caveats(policy)),
        "stages": _stages(policy),
        **hidden_settings(policy),
        "simulation": simulation_data(policy),
        "preset": _find_preset(name, policy, settings),
    }


def _stages(policy: Policy) -> dict[str, list[str]] | None:
    """Return the stages outside `max_elapsed`, and those inside the retries.

    The script adds what is between them, which a reader of the page may change. None if
    the policy has neither limits in `admission` nor a hedge.
    """
    if not has_stages(policy):
        return None
    return {"outer": outer_stages(policy), "inner": inner_stages(policy)}


def schedule_data(schedule: Schedule) -> dict[str, Any]:
    """Return a schedule as nested dicts of its kind and its parts."""
    return {"kind": schedule.kind} | {
        name: schedule_data(part) if isinstance(part, Schedule) else part
        for name, part in fields_of(schedule).items()
    }


def hidden_settings(policy: Policy, preset: Policy | None = None) -> dict[str, Any]:
    """Return the settings that have no field on the page, as lines of source text.

    >>> hidden = hidden_settings(Policy(on=ConnectionError, on_result=callable))
    >>> hidden["toml"]
    {'settings': ['on = "ConnectionError"'], 'omitted': ['on_result']}
    >>> hidden["python"]["settings"]
    ['on=ConnectionError']

    Returns:
        A dict of ``python`` and ``toml``, each a dict: ``settings``, the lines of the
        settings that differ from the default or the preset; ``omitted``, the names of
        the settings that are code; and, for Python, ``imports``, the import lines,
        except the schedule's.
    """
    python: dict[str, Any] = {"settings": [], "omitted": []}
    toml: dict[str, Any] = {"settings": [], "omitted": []}
    imports = [f"from retrykit import {'presets' if preset else 'Policy'}"]
    base = preset or Policy()
    for name in SETTINGS:
        value = getattr(policy, name)
        if name in _SHOWN or value == getattr(base, name):
            continue
        try:
            expression = to_expression(name, value)
            python["settings"].append(f"{name}={expression.text}")
            imports += expression.imports
        except ConfigError:
            python["omitted"].append(name)
        try:
            data = setting_to_data(name, value)
            toml["settings"].append(f"{name} = {toml_value(data)}")
        except ConfigError:
            toml["omitted"].append(name)
    return {"python": python | {"imports": import_block(imports)}, "toml": toml}


_SHOWN: Final = {"schedule", "max_attempts", "max_elapsed", "deadline"}


# The path of each parameter in the policy; one in max_attempts counts the retries.
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


def _find_preset(
    name: str, policy: Policy, settings: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the preset whose parameters the page shows, if any.

    Returns:
        None if no preset of this name makes the schedule. Otherwise a dict of the
        ``name`` of the preset; its ``summary``; the path of each of its ``parameters``
        in *settings*; its own ``limits``; and the result of `hidden_settings`.
    """
    preset = preset_key(name)
    paths = {key: path.split(".") for key, path in _PARAMETERS.get(preset, {}).items()}
    values = {key: _value_at(settings, path) for key, path in paths.items()}
    if not values or None in values.values():
        return None
    try:
        preset_policy = BUILT_IN[preset](**values)
    except ConfigError:
        return None
    if preset_policy.schedule != policy.schedule:
        return None
    summary = inspect.getdoc(BUILT_IN[preset]) or ""
    description = summary.partition("\n")[0].removeprefix("Return t")
    return {
        "name": preset,
        "summary": f"T{description}",
        "parameters": paths,
        "limits": {key: getattr(preset_policy, key) for key in _LIMITS},
        **hidden_settings(policy, preset_policy),
    }


_LIMITS: Final = ("max_attempts", "max_elapsed", "deadline")


def _value_at(settings: Any, path: list[str]) -> Any:
    """Return the parameter at a path; None if there is none.

    At ``max_attempts``, it is the number of retries.
    """
    value = settings
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value - 1 if path == ["max_attempts"] and value else value
