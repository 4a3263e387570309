"""The built-in presets: each is one function, of policies and of settings."""

import inspect
import pickle
import typing

import pytest

from retrykit import Policy, presets
from retrykit.policy.settings import Settings
from retrykit.presets import systems


@pytest.mark.parametrize("name", presets.__all__)
def test_a_preset_is_the_same_as_a_policy_and_as_settings(name):
    policy, settings = getattr(presets, name)(), getattr(systems, name)()
    assert (type(policy), type(settings)) == (Policy, Settings)
    made = Policy(**{each: getattr(settings, each) for each in SETTINGS})
    # Each has a budget of its own.
    assert made.replace(budget=policy.budget) == policy
    assert repr(policy) == repr(settings).replace("Settings(", "Policy(", 1)


SETTINGS = inspect.get_annotations(Settings)


@pytest.mark.parametrize("name", presets.__all__)
def test_a_preset_reads_as_a_function_that_returns_a_policy(name):
    preset, inner = getattr(presets, name), getattr(systems, name)
    signature = inspect.signature(preset)
    assert signature.return_annotation is Policy
    assert signature.parameters == inspect.signature(inner).parameters
    assert typing.get_type_hints(preset)["return"] is Policy
    assert typing.get_type_hints(inner)["return"] is Settings
    assert (preset.__module__, preset.__qualname__) == ("retrykit.presets", name)
    assert preset.__doc__ == inner.__doc__


@pytest.mark.parametrize("name", presets.__all__)
def test_a_preset_is_pickled_by_its_name(name):
    preset = getattr(presets, name)
    again = pickle.loads(pickle.dumps(preset))  # noqa: S301  written here
    assert again is preset
    again = pickle.loads(pickle.dumps(preset()))  # noqa: S301  and here
    assert repr(again) == repr(preset())
    assert again.replace(budget=None) == preset().replace(budget=None)
