"""Names that users import from the wrong place, or know from other libraries."""

import importlib

import pytest

import retrykit
from retrykit._internal.foreign_names import HOMES
from tests._support import required

MESSAGES = {
    "exponential": "write from retrykit.schedules import exponential",
    "retry_after": "write from retrykit.hints import retry_after",
    "virtual_time": "write from retrykit.testing import virtual_time",
    "RetryTransport": "write from retrykit.integrations.httpx import RetryTransport",
    "Retrying": "write Policy(...).call(fn)",
    "on_exception": "write @retry",
    "retry_context": "write for attempt in retrying(...)",
    "CircuitBreaker": "write from retrykit.limits import CircuitBreaker",
    "circuit_breaker": "write admission=[CircuitBreaker(...)] in the policy",
    "hedging": "write hedge=Hedge(...) in the policy",
    "HttpFailures": "write from retrykit.conditions import HttpFailures",
    "stop_after_attempt": (
        "write max_attempts=..., max_elapsed=... or both in the policy"
    ),
    "wait_fixed": "write schedule=... in the policy, with retrykit.schedules",
    "retry_if_result": "write on=... for errors, on_result=... for results",
    "polcy": "did you mean Policy?",
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_name_that_the_package_does_not_have_is_explained(name):
    with pytest.raises(ImportError) as imported:
        exec(f"from retrykit import {name}")  # noqa: S102  to import the name
    with pytest.raises(AttributeError) as read:
        getattr(retrykit, name)
    assert not hasattr(retrykit, name)
    assert str(imported.value) == (
        f"cannot import name {name!r} from 'retrykit'; {MESSAGES[name]}"
    )
    assert str(read.value) == (
        f"module 'retrykit' has no attribute {name!r}; {MESSAGES[name]}"
    )


def test_the_packages_of_schedules_and_others_explain_names_too():
    with pytest.raises(ImportError, match="write from retrykit import Policy"):
        from retrykit.schedules import Policy  # noqa: F401
    with pytest.raises(ImportError, match="did you mean exponential"):
        from retrykit.schedules import exponental  # noqa: F401


@pytest.mark.parametrize("name", ["whatever", "__wrapped__", "_private"])
def test_a_name_that_nothing_resembles_has_no_suggestion(name):
    with pytest.raises(AttributeError) as caught:
        getattr(retrykit, name)
    assert str(caught.value) == f"module 'retrykit' has no attribute {name!r}"
    with pytest.raises(ImportError, match=f"^cannot import name '{name}' from"):
        exec(f"from retrykit import {name}")  # noqa: S102  to import the name


@pytest.mark.parametrize("name", ["events", "errors", "durable", "config"])
def test_a_module_that_resembles_a_name_is_imported(name):
    found = {}
    exec(f"from retrykit import {name}", found)  # noqa: S102  to import the name
    assert found[name].__name__ == f"retrykit.{name}"


def test_a_module_that_is_not_imported_is_explained(monkeypatch):
    importlib.import_module("retrykit.durable")
    # As before the import.
    monkeypatch.delattr(retrykit, "durable")
    with pytest.raises(AttributeError, match=r"; write import retrykit\.durable$"):
        _ = retrykit.durable


def test_every_home_has_its_names():
    for home, names in HOMES.items():
        file = f"{home.replace('.', '/')}.py"
        if required.missing(file) or required.missing(f"{home.replace('.', '/')}/a"):
            continue
        module = importlib.import_module(home)
        assert {*names.split()} <= {*module.__all__}, home


def test_every_public_name_has_a_home():
    listed = {name for names in HOMES.values() for name in names.split()}
    for home in ("retrykit", "retrykit.schedules", "retrykit.presets"):
        module = importlib.import_module(home)
        functions = {x for x in module.__all__ if callable(getattr(module, x))}
        assert functions <= listed, home
