"""Every setting can be seen: by help, inspect, Jupyter and editors."""

import inspect
import pydoc

import pytest

from retrykit import (
    Policy,
    RetryState,
    aretry,
    aretrying,
    resume,
    retry,
    retrying,
    with_policy,
)
from retrykit._core.setting_types import PolicySettings
from retrykit._core.settings import SETTINGS

LISTED = [retry, aretry, with_policy, resume, retrying, Policy, Policy.replace]
LISTED += [aretrying]


@pytest.mark.parametrize("function", LISTED, ids=lambda each: each.__qualname__)
def test_a_signature_lists_each_setting_with_its_default(function):
    parameters = inspect.signature(function).parameters
    assert SETTINGS.keys() <= parameters.keys()
    assert not {"settings", "changes"} & parameters.keys()
    for name in SETTINGS:
        assert parameters[name].default == getattr(Policy, name)
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("function", [retry, with_policy, resume, retrying, Policy])
def test_help_describes_each_setting(function):
    text = pydoc.render_doc(function, renderer=pydoc.plaintext)
    for name in SETTINGS:
        assert f"\n        {name}: " in text or f"     {name}: " in text
    assert "**changes" not in text
    assert "max_elapsed: Duration | None = 60.0" in text
    assert "on: Condition = default_condition" in text
    assert "rules: Iterable[Rule] = ()" in text
    assert "budget: Budget | None = None" in text


def test_a_signature_has_the_own_parameters_first():
    assert [*inspect.signature(retry).parameters][:2] == ["fn", "policy"]
    assert [*inspect.signature(retrying).parameters][:2] == ["policy", "state"]
    assert next(iter(inspect.signature(Policy.replace).parameters)) == "self"


def test_annotations_show_the_settings_that_type_checkers_know():
    assert {*PolicySettings.__annotations__} == {*SETTINGS}
    for each in inspect.signature(retry).parameters.values():
        assert " at 0x" not in str(each)


def test_a_state_shows_what_users_need():
    public = {name for name in dir(RetryState) if not name.startswith("_")}
    assert public == {
        "args",
        "attempt",
        "attempt_started",
        "depth",
        "describe",
        "dropped_failures",
        "elapsed",
        "elapsed_at_end",
        "epoch",
        "errors",
        "failures",
        "from_dict",
        "function",
        "hedges",
        "innermost",
        "kwargs",
        "max_attempts",
        "max_elapsed",
        "max_failures",
        "name",
        "nested_state",
        "next_delay",
        "redact",
        "remaining",
        "retry_cost",
        "retry_in",
        "rule_counts",
        "seed",
        "started_at",
        "status",
        "stop_detail",
        "stop_reason",
        "stream",
        "to_dict",
        "total_delay",
        "used_fallback",
    }
