"""The built-in dialects: each is one function, of policies and of settings."""

import inspect
import pickle
import typing

import pytest

from retrykit import Policy, presets
from retrykit.policy.settings import Settings
from retrykit.presets import systems


@pytest.mark.parametrize("name", presets.__all__)
def test_a_dialect_is_the_same_as_a_policy_and_as_settings(name):
    policy, settings = getattr(presets, name)(), getattr(systems, name)()
    assert (type(policy), type(settings)) == (Policy, Settings)
    made = Policy(**{each: getattr(settings, each) for each in SETTINGS})
    # Each has a budget of its own.
    assert made.replace(budget=policy.budget) == policy
    assert repr(policy) == repr(settings).replace("Settings(", "Policy(", 1)


SETTINGS = inspect.get_annotations(Settings)


@pytest.mark.parametrize("name", presets.__all__)
def test_a_dialect_reads_as_a_function_that_returns_a_policy(name):
    dialect, inner = getattr(presets, name), getattr(systems, name)
    signature = inspect.signature(dialect)
    assert signature.return_annotation is Policy
    assert signature.parameters == inspect.signature(inner).parameters
    assert typing.get_type_hints(dialect)["return"] is Policy
    assert typing.get_type_hints(inner)["return"] is Settings
    assert (dialect.__module__, dialect.__qualname__) == ("retrykit.presets", name)
    assert dialect.__doc__ == inner.__doc__


@pytest.mark.parametrize("name", presets.__all__)
def test_a_dialect_is_pickled_by_its_name(name):
    dialect = getattr(presets, name)
    again = pickle.loads(pickle.dumps(dialect))  # noqa: S301  written here
    assert again is dialect
    again = pickle.loads(pickle.dumps(dialect()))  # noqa: S301  and here
    assert repr(again) == repr(dialect())
    assert again.replace(budget=None) == dialect().replace(budget=None)
