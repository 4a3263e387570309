"""The timeouts of clients are timeouts for a `FleetBudget`."""

import importlib

import pytest

from retrykit.budgets import FleetBudget

TIMEOUTS = {
    "aiohttp": "ServerTimeoutError",
    "botocore.exceptions": "ReadTimeoutError",
    "httpx": "ReadTimeout",
    "httpx2": "ReadTimeout",
    "openai": "APITimeoutError",
    "redis": "TimeoutError",
    "requests": "ReadTimeout",
    "urllib3.exceptions": "ReadTimeoutError",
}


@pytest.mark.parametrize("module", TIMEOUTS)
def test_a_timeout_of_a_client_is_not_retried_in_a_hang(module):
    kind = getattr(importlib.import_module(module), TIMEOUTS[module])
    error = kind.__new__(kind)
    assert FleetBudget().withdraw(error) is None
    assert FleetBudget(timeouts=()).withdraw(error) == 1
