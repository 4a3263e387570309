"""Calls that fail every time, until their policy lets the error out."""

import pytest

from retrykit import state_of

__all__ = ["died"]


class Failing:
    """A function that fails each time with an error of its own."""

    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        raise ConnectionError(self.calls)


def died(colour, policy):
    """Return the calls that were made until the error came out, and the state."""
    fn = Failing()
    decorated = colour(policy)(fn)
    with pytest.raises(ConnectionError) as caught:
        decorated()
    state = state_of(caught.value)
    assert state.errors[-1] is caught.value
    return fn.calls, state
