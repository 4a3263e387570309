"""A response that a client returns in place of an error has the state of its call."""

import contextlib

import pytest

from retrykit import ConfigError, Policy, RetryError, retry, state_of
from retrykit._core.nesting import copy_state


class Response:
    """A response of a retrying client."""

    def __init__(self, response=None):
        self.response = response


def give_up_with(result):
    """Return a rejected result like a client that gives up."""
    error = Policy(schedule=[0], on_result=lambda _: True).run(lambda: result).error
    copy_state(result, error)
    return result


def test_a_response_has_the_state_of_its_call():
    response = give_up_with(Response())
    state = state_of(response)
    assert [failure.result for failure in state.failures] == [response] * 2
    assert state_of(Response()) is None
    assert state_of(Response(response)) == state


def test_a_response_of_an_inner_call_that_gave_up_is_not_retried():
    calls = []

    @retry(schedule=[0], on_result=lambda result: isinstance(result, Response))
    def outer():
        calls.append(1)
        return give_up_with(Response())

    with pytest.raises(RetryError):
        outer()
    assert calls == [1]


@pytest.mark.parametrize("state", ["a text", ["a", "list"], None])
def test_an_error_that_was_made_without_a_state_shows_what_it_has(state):
    assert str(RetryError(state)) == str(state)


@pytest.mark.parametrize(
    "value",
    [give_up_with, contextlib, 5, None, OSError],
    ids=["function", "module", "number", "None", "type"],
)
def test_state_of_rejects_other_values(value):
    with pytest.raises(ConfigError, match="outcome must be an exception or a response"):
        state_of(value)
