"""Calls that fail every time, until their policy gives up."""

import pytest

from retrykit import state_of

__all__ = ["exhaust"]


class Failing:
    """A function that raises a new error each time."""

    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        raise ConnectionError(self.calls)


def exhaust(backend, policy):
    """Return the number of calls until the policy gives up, and the state."""
    fn = Failing()
    decorated = backend(policy)(fn)
    with pytest.raises(ConnectionError) as caught:
        decorated()
    state = state_of(caught.value)
    assert state.errors[-1] is caught.value
    return fn.calls, state
