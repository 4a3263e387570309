"""A response that comes out in place of an error has the state of its call."""

import contextlib

import pytest

from retrykit import ConfigError, Policy, state_of
from retrykit.execution.nesting import copy_state


class Response:
    """What comes out of a client that retries, in place of an error."""

    def __init__(self, response=None):
        self.response = response


def through_a_client(found):
    """Return what a client lets out that has given up."""
    error = Policy(schedule=[0], on_result=lambda _: True).run(lambda: found).error
    copy_state(found, error)
    return found


def test_a_response_has_the_state_of_its_call():
    response = through_a_client(Response())
    state = state_of(response)
    assert [failure.result for failure in state.failures] == [response] * 2
    assert state_of(Response()) is None
    assert state_of(Response(response)) == state


@pytest.mark.parametrize(
    "value",
    [through_a_client, contextlib, 5, None, OSError],
    ids=["function", "module", "number", "None", "type"],
)
def test_what_is_no_outcome_has_no_state(value):
    with pytest.raises(ConfigError, match="outcome must be an exception or a response"):
        state_of(value)
