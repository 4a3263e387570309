"""Retriers of AWS Step Functions, in the Amazon States Language.

Source: "Error Handling in Step Functions", its documentation, and "Amazon States
Language", specification, 2026.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from retrykit._conditions import Condition
from retrykit._core.policy import Policy
from retrykit._core.rules import Rule
from retrykit._internal.validation import invalid_setting
from retrykit.conditions import Excluding
from retrykit.config._foreign._conditions import conditions_named
from retrykit.config._foreign._format import Format
from retrykit.config._foreign._section import Section
from retrykit.config._foreign._values import choice, number, texts, whole
from retrykit.presets import step_functions

__all__ = ["FORMAT"]


def _find(root: Section) -> Iterator[tuple[str, Section]]:
    """Yield the states that have retriers, with their names."""
    for key, state in (("", root), *root.tables()):
        if _are_retriers(state.data.get("Retry")):
            yield key, state


def _are_retriers(value: Any) -> bool:
    listed = value if isinstance(value, list) else []
    return any(isinstance(each, Mapping) and "ErrorEquals" in each for each in listed)


def _read(state: Section) -> Policy:
    """Return the policy of a state; of several retriers, each becomes a rule."""
    retriers = state.sections("Retry")
    settings = [_read_retrier(each) for each in retriers]
    for each in retriers[:-1]:
        if "States.ALL" in each.data["ErrorEquals"]:
            with each.located("ErrorEquals"):
                rule = "States.ALL in the last retrier alone"
                raise invalid_setting(
                    "ErrorEquals",
                    rule,
                    each.data["ErrorEquals"],
                    code="not-expressible",
                )
    for key in ("TimeoutSeconds", "HeartbeatSeconds"):
        if key in state:
            state.note(key, "limits an attempt; the policy has no attempt_timeout")
    if len(settings) == 1:
        return Policy(**settings[0])
    rules = [Rule(**each) for each in settings]
    # An error that no retrier names ends the state. Each retrier counts for itself.
    return Policy(rules=rules, on=(), max_attempts=None, max_elapsed=None)


def _read_retrier(retrier: Section) -> dict[str, Any]:
    names = retrier.require("ErrorEquals", texts)
    if len(names) > 1 and "States.ALL" in names:
        with retrier.located("ErrorEquals"):
            raise invalid_setting(
                "ErrorEquals", "States.ALL alone", names, code="not-expressible"
            )
    settings: dict[str, Any] = {
        "interval_seconds": retrier.get("IntervalSeconds", whole(1, 99_999_999)),
        "max_attempts": retrier.get("MaxAttempts", whole(0, 99_999_999)),
        "backoff_rate": retrier.get("BackoffRate", number(1)),
        "max_delay_seconds": retrier.get("MaxDelaySeconds", whole(1, 31_622_400)),
        "jitter_strategy": retrier.get("JitterStrategy", choice("FULL", "NONE")),
    }
    on = conditions_named(retrier, "ErrorEquals", names, _RESERVED)
    retrier.ignore("Comment")
    retrier.finish()
    with retrier.located():
        given = {key: value for key, value in settings.items() if value is not None}
        policy = step_functions(**given)
    limit = policy.max_attempts
    return {"on": on, "schedule": policy.schedule, "max_attempts": limit}


_RESERVED: dict[str, Condition] = {
    "States.ALL": Exception,
    "States.TaskFailed": Excluding([TimeoutError]),
    "States.Timeout": TimeoutError,
}

FORMAT: Final = Format("states of AWS Step Functions", _find, _read)
"""States of a state machine, with their retriers."""
