"""Throttle and pushback in gRPC service configs."""

from enum import Enum

from retrykit.budgets import Throttle
from retrykit.config.grpc_service_config import from_service_config, to_service_config
from retrykit.testing import ScriptedFunction, virtual_time

EXAMPLE = {
    "maxAttempts": 4,
    "initialBackoff": "0.1s",
    "maxBackoff": "1s",
    "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE"],
}
READ = from_service_config(EXAMPLE)


class Code(Enum):
    UNAVAILABLE = (14, "unavailable")


class RpcError(Exception):
    """A minimal gRPC error."""

    def code(self):
        return Code.UNAVAILABLE

    def trailing_metadata(self):
        return [("grpc-retry-pushback-ms", "7000")]


def test_a_throttle_is_read_and_written():
    throttling = {"maxTokens": 10, "tokenRatio": 0.5}
    entry = {"name": [{}], "retryPolicy": EXAMPLE}
    config = {"methodConfig": [entry], "retryThrottling": throttling}
    policy = from_service_config(config)
    assert isinstance(policy.budget, Throttle)
    assert policy.budget.settings == {"max_tokens": 10, "token_ratio": 0.5}
    assert to_service_config(policy)["retryThrottling"] == throttling
    assert from_service_config(config).budget is not policy.budget


def test_pushback_is_not_written():
    silent = READ.replace(hint=None, hint_cap=3600)
    assert to_service_config(silent) == to_service_config(READ)


def test_a_policy_from_a_service_config_obeys_pushback():
    with virtual_time() as clock:
        READ.call(ScriptedFunction([RpcError, "done"]))
    assert clock.sleeps == [7.0]
