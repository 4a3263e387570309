"""Errors for what cannot be simulated, and what to write instead."""

import pytest

from retrykit import ConfigError, Policy, Rule
from retrykit.simulate import simulate
from tests._support.simulation_errors import ERRORS, NEEDS_RESPONSE


async def asks(error):
    return True


@pytest.mark.parametrize(
    ("message", "raise_error"), ERRORS.items(), ids=[each[:60] for each in ERRORS]
)
def test_an_argument_out_of_bounds_is_an_error(message, raise_error):
    with pytest.raises(ConfigError) as raised:
        raise_error()
    assert raised.value.message == message


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Policy(on=asks), "on must be a sync function where nothing can await it"),
        (
            Policy(rules=[Rule(on=NEEDS_RESPONSE, max_attempts=3)]),
            "on must be code that can be asked about",
        ),
        (
            Policy(rules=[Rule(on=OSError, hint=NEEDS_RESPONSE)]),
            "hint must be code that can be asked about",
        ),
    ],
    ids=["async", "rule", "hint of a rule"],
)
def test_a_policy_that_cannot_be_simulated_is_an_error(policy, message):
    with pytest.raises(ConfigError) as raised:
        simulate(policy)
    assert raised.value.message.startswith(message)
    assert "; " in raised.value.message


def test_a_predicate_that_needs_a_response_gets_an_error_of_the_client():
    class FailedError(Exception):
        response = type("Response", (), {"status_code": 503})

    errors = dict.fromkeys(["timeout", "refused", "unavailable"], FailedError())
    policy = Policy(on=NEEDS_RESPONSE, schedule=[0])
    result = simulate(policy, errors=errors, load="20%", horizon="20s")
    assert result.retries > 100


def test_a_predicate_is_asked_when_the_simulation_begins():
    asked = []

    def is_failure(error):
        asked.append(type(error).__name__)
        return True

    result = simulate(Policy(on=is_failure), load="20%", horizon="20s")
    assert len(asked) == 8
    assert result.retries > 100
