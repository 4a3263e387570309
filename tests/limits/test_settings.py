"""Settings of limits that are invalid."""

import pytest

from retrykit import ConfigError
from tests._support.limit_errors import CALL_ERRORS, ERRORS

EVERY = ERRORS | CALL_ERRORS


@pytest.mark.parametrize(
    ("message", "raise_error"),
    EVERY.items(),
    ids=[message.partition(", got")[0][:60] for message in EVERY],
)
def test_an_error_names_the_setting_the_rule_and_the_value(message, raise_error):
    with pytest.raises(ConfigError) as caught:
        raise_error()
    assert caught.value.message == message
