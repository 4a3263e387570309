"""All presets are functions that return a policy."""

import inspect
import pickle
import typing

import pytest

from retrykit import Policy, presets


@pytest.mark.parametrize("name", presets.__all__)
def test_a_preset_returns_a_policy(name):
    preset = getattr(presets, name)
    assert type(preset()) is Policy
    assert inspect.signature(preset).return_annotation is Policy
    assert typing.get_type_hints(preset)["return"] is Policy


@pytest.mark.parametrize("name", presets.__all__)
def test_a_preset_is_pickled_by_its_name(name):
    preset = getattr(presets, name)
    again = pickle.loads(pickle.dumps(preset))  # noqa: S301  pickled here
    assert again is preset
    again = pickle.loads(pickle.dumps(preset()))  # noqa: S301  pickled here
    assert repr(again) == repr(preset())
    # Two budgets, or two limits, are never equal.
    bare = {"budget": None, "admission": ()}
    assert again.replace(**bare) == preset().replace(**bare)


def test_the_signature_of_a_preset_shows_the_bounds_of_its_parameters():
    parameters = inspect.signature(presets.grpc).parameters
    assert "Annotated[int, >= 2]" in str(parameters["max_attempts"])
    assert "1 to 1000" in str(parameters["max_tokens"])
