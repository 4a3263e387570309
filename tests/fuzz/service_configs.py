"""Target: service configs of gRPC, as dicts and as JSON."""

import json

from retrykit import ConfigError
from retrykit.config.grpc_service_config import from_service_config, to_service_config
from tests.fuzz.target import Target
from tests.fuzz.values import altered, anything, as_json, maybe, mutated, number, text

__all__ = ["TARGETS", "service_config"]


def _retry_policy(random):
    codes = [["UNAVAILABLE"], [14], ["UNAVAILABLE", "aborted", 8]]
    return {
        "maxAttempts": _mostly(random, [2, 3, 4, 5, 9], 1),
        "initialBackoff": _duration(random),
        "maxBackoff": _duration(random),
        "backoffMultiplier": _mostly(random, [1, 1.5, 2, 0.5, 1e300], 0),
        "retryableStatusCodes": _mostly(random, codes, []),
    }


def _mostly(random, right, wrong):
    """Return one of the valid values, or rarely an invalid one."""
    if maybe(random, 0.96):
        return random.choice(right)
    return random.choice([wrong, number(random), [text(random)]])


def _duration(random):
    right = ["0.1s", "1s", "10s", ".5s", "315576000000s", "0.000000001s"]
    return _mostly(random, right, random.choice(["0s", "1.0000000001s", "1m"]))


def service_config(random):
    """Return a service config, or a retryPolicy; some are altered."""
    data = _retry_policy(random)
    if maybe(random, 0.7):
        names = [
            {},
            {"service": "shop.Cart"},
            {"service": "shop.Cart", "method": "Add"},
        ]
        named = random.sample(names, random.choice([1, 2, 3]))
        part = {"name": named, "retryPolicy": data}
        if maybe(random, 0.5):
            part["timeout"] = _duration(random)
        data = {"methodConfig": [part]}
        if maybe(random, 0.3):
            tokens = _mostly(random, [1, 10, 1000], 1001)
            ratio = _mostly(random, [0.1, 1, 0.001, 1e300], 0)
            data["retryThrottling"] = {"maxTokens": tokens, "tokenRatio": ratio}
    for _ in range(random.choice([0, 0, 0, 1, 2])):
        data = altered(random, data)
    return data


def _given(random):
    config = service_config(random)
    if maybe(random, 0.4):
        config = as_json(config)
        config = mutated(random, config) if maybe(random, 0.3) else config
    method = None
    if maybe(random, 0.3):
        method = random.choice(["shop.Cart/Add", "/shop.Cart/Add", "a.B", text(random)])
        method = anything(random) if maybe(random, 0.05) else method
    return config, method, random.choice(["proportional", "full"])


def _read(given):
    config, method, jitter = given
    return from_service_config(config, method=method, jitter=jitter), jitter


def _check(pair, _random):
    policy, jitter = pair
    assert repr(policy)
    try:
        written = to_service_config(policy, "shop.Cart/Add", jitter=jitter)
    except ConfigError:
        # gRPC has no form for decreasing delays.
        return
    again = from_service_config(json.dumps(written), jitter=jitter)
    assert repr(again) == repr(policy), "it is read as another"


TARGETS = (Target("service-configs", 80, _given, _read, _check),)
