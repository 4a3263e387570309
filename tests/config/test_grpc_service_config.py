"""gRPC service configs: read, written and round-tripped."""

import json
import pickle
import sys
from enum import Enum
from types import MappingProxyType

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError, Policy, schedules as s
from retrykit._core.rules import Rule
from retrykit.budgets import TokenBucket
from retrykit.config.grpc_service_config import from_service_config, to_service_config
from retrykit.hints import grpc_pushback, retry_after
from retrykit.hints.grpc import StatusCodes
from retrykit.testing import ScriptedFunction, virtual_time

# The example of gRFC A6, with the parts of a config around it.
EXAMPLE = {
    "maxAttempts": 4,
    "initialBackoff": "0.1s",
    "maxBackoff": "1s",
    "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE"],
}
DELAYS = s.exponential(0.1, factor=2).cap(1)
UNAVAILABLE = StatusCodes(["UNAVAILABLE"])
READ = Policy(
    schedule=DELAYS.jitter(0.2),
    max_attempts=4,
    on=UNAVAILABLE,
    hint=grpc_pushback(),
    hint_cap=None,
)


def service_config(*entries, **more):
    return {"methodConfig": [*entries], **more}


def entry(*names, attempts=2, **more):
    return {
        "name": [*names],
        "retryPolicy": EXAMPLE | {"maxAttempts": attempts},
        **more,
    }


def test_the_example_of_the_design_is_read():
    policy = from_service_config(EXAMPLE)
    assert policy == READ
    bounds = [policy.schedule.bounds(retry) for retry in (1, 2, 3, 4, 5)]
    rounded = [tuple(round(bound, 9) for bound in both) for both in bounds]
    assert rounded == [
        (0.08, 0.12),
        (0.16, 0.24),
        (0.32, 0.48),
        (0.64, 0.96),
        (0.8, 1.2),
    ]


def test_the_jitter_before_2024_is_full():
    policy = from_service_config(EXAMPLE, jitter="full")
    assert policy == READ.replace(schedule=DELAYS.full_jitter())
    assert policy.schedule.bounds(9) == (0, 1)


CHANGED = {
    "a text of JSON": (json.dumps(EXAMPLE), READ),
    "nine digits": (EXAMPLE | {"initialBackoff": "0.100000000s"}, READ),
    "six attempts": (EXAMPLE | {"maxAttempts": 6}, READ.replace(max_attempts=5)),
    "numbers as texts": (
        EXAMPLE | {"maxAttempts": "4", "backoffMultiplier": "2"},
        READ,
    ),
    "a number with an exponent": (EXAMPLE | {"backoffMultiplier": "0.2e1"}, READ),
    "an endless number": (
        json.dumps(EXAMPLE | {"backoffMultiplier": 3}).replace("3", "1e999"),
        READ.replace(
            schedule=s.exponential(0.1, factor=sys.float_info.max).cap(1).jitter(0.2)
        ),
    ),
    "unknown keys": (
        EXAMPLE | {"perAttemptRecvTimeout": "2s", "comment": "x", "later": [None]},
        READ,
    ),
    "a mapping": (MappingProxyType(EXAMPLE), READ),
    "a code twice": (
        EXAMPLE | {"retryableStatusCodes": ["UNAVAILABLE", "UNAVAILABLE"]},
        READ,
    ),
    "a code that is never retried": (
        EXAMPLE | {"retryableStatusCodes": ["OK", "UNAVAILABLE"]},
        READ,
    ),
    "codes in any order": (
        EXAMPLE | {"retryableStatusCodes": ["UNAVAILABLE", "DEADLINE_EXCEEDED"]},
        READ.replace(on=StatusCodes(["DEADLINE_EXCEEDED", "UNAVAILABLE"])),
    ),
    "steady": (
        EXAMPLE | {"backoffMultiplier": 1},
        READ.replace(schedule=s.exponential(0.1, factor=1).cap(1).jitter(0.2)),
    ),
    "shrinking": (
        EXAMPLE | {"backoffMultiplier": 0.5, "initialBackoff": "2s"},
        READ.replace(schedule=s.sequence([1, 1, 0.5, 0.25]).jitter(0.2)),
    ),
    "whole": (service_config(entry({}, attempts=4)), READ),
    "whole, with a timeout": (
        service_config(entry({}, attempts=4, timeout="1.5s")),
        READ.replace(max_elapsed=1.5),
    ),
    "whole, with a timeout of zero, which is none": (
        service_config(entry({}, attempts=4, timeout="0s")),
        READ,
    ),
    "whole, with other settings": (
        service_config(
            entry({}, attempts=4, waitForReady=True, maxRequestMessageBytes="9")
        ),
        READ,
    ),
    "whole, with a hedgingPolicy beside": (
        service_config(entry({}, attempts=4, hedgingPolicy={"maxAttempts": 2})),
        READ,
    ),
    "whole, without throttling": (
        service_config(
            entry({}, attempts=4),
            retryThrottling=None,
            loadBalancingConfig=[{"round_robin": {}}],
        ),
        READ,
    ),
    "whole, one part retried": (
        service_config(
            entry({"service": "a"}, {"service": "b"}, attempts=4), {"name": [{}]}
        ),
        READ,
    ),
    "whole, one part without a name": (
        service_config(
            entry({}, attempts=4), entry(), {"retryPolicy": EXAMPLE, "name": None}
        ),
        READ,
    ),
}


@pytest.mark.parametrize(("config", "policy"), CHANGED.values(), ids=CHANGED)
def test_a_config_is_read_like_grpc_does(config, policy):
    before = repr(config)
    assert from_service_config(config) == policy
    assert repr(config) == before


SERVICES = service_config(
    entry({}, attempts=2),
    entry({"service": "shop.Cart", "method": ""}, {"service": "shop.Pay"}, attempts=3),
    entry({"service": "shop.Cart", "method": "Add"}, attempts=4),
    {"name": [{"service": "shop.Cart", "method": "Drop"}], "timeout": "1s"},
)


@pytest.mark.parametrize(
    ("method", "attempts"),
    {
        "shop.Cart/Add": 4,
        "/shop.Cart/Add": 4,
        "shop.Cart/List": 3,
        "shop.Cart": 3,
        "shop.Pay/Add": 3,
        "shop.Other/Add": 2,
        "Cart/Add": 2,
    }.items(),
)
def test_the_most_specific_part_of_a_config_applies_to_a_method(method, attempts):
    assert from_service_config(SERVICES, method=method).max_attempts == attempts


@pytest.mark.parametrize("method", ["shop.Cart/Drop", None])
def test_a_config_without_exactly_one_matching_part_is_rejected(method):
    with pytest.raises(
        ConfigError, match=r"/, shop\.Cart/, shop\.Pay/, shop\.Cart/Add, got"
    ):
        from_service_config(SERVICES, method=method)


@pytest.mark.parametrize("missing", EXAMPLE)
def test_every_key_of_a_retry_policy_is_required(missing):
    config = {key: value for key, value in EXAMPLE.items() if key != missing}
    with pytest.raises(ConfigError, match="retryPolicy must be a dict with the keys"):
        from_service_config(config)


@pytest.mark.parametrize(
    "other",
    [{"retryPolicy": EXAMPLE | {"maxAttempts": 1}}, {"timeout": 1}],
    ids=["retryPolicy", "timeout"],
)
def test_one_invalid_entry_makes_the_whole_config_invalid(other):
    config = service_config(entry({}), {"name": [{"service": "other"}], **other})
    with pytest.raises(ConfigError, match=r"^methodConfig\[1\]: "):
        from_service_config(config)


def test_a_config_that_retries_only_ok_is_rejected():
    with pytest.raises(ConfigError, match="method must be one that the config retries"):
        from_service_config(EXAMPLE | {"retryableStatusCodes": ["OK"]})


BAD_DURATIONS = ["", "1", "s", "1.s", "-1s", "0s", "0.0009s", "1m", "1s ", "1e3s", "٣s"]
BAD_DURATIONS += [".1s"]
BAD_DURATIONS += ["0.1234567891s", "315576000001s", "9" * 400 + "s", 1, None, True]


@pytest.mark.parametrize("value", BAD_DURATIONS, ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize("key", ["initialBackoff", "maxBackoff"])
def test_an_invalid_protobuf_duration_is_rejected(key, value):
    with pytest.raises(ConfigError, match=f"{key} must be >= 0.001s"):
        from_service_config(EXAMPLE | {key: value})


BAD_CODES = [
    ["OK"],
    [0],
    [17],
    [-1],
    [True],
    ["NOPE"],
    ["\u0131nternal"],
    [None],
    [[14]],
]


@pytest.mark.parametrize("codes", [*BAD_CODES, [], "UNAVAILABLE", None, {}], ids=repr)
def test_an_invalid_status_code_is_rejected(codes):
    with pytest.raises(ConfigError, match="codes must be"):
        StatusCodes(codes)


class Code(Enum):
    UNAVAILABLE = (14, "unavailable")
    INTERNAL = (13, "internal")


class RpcError(Exception):
    def __init__(self, answer):
        super().__init__(str(answer))
        self.answer = answer

    def code(self):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class UnreadableError(Exception):
    @property
    def code(self):
        raise LookupError


class NumberedError(Exception):
    code = 14


@pytest.mark.parametrize(
    ("error", "retried"),
    {
        "the code": (RpcError(Code.UNAVAILABLE), True),
        "another code": (RpcError(Code.INTERNAL), False),
        "no code": (RpcError(None), False),
        "a number": (RpcError(14), False),
        "a failing method": (RpcError(ValueError()), False),
        "no method": (NumberedError(), False),
        "a failing property": (UnreadableError(), False),
        "none of gRPC": (ConnectionError(), False),
    }.values(),
)
def test_an_error_is_retried_by_its_code(error, retried):
    assert UNAVAILABLE(error) is retried


def test_a_call_is_retried_under_the_policy_of_a_config():
    fetch = ScriptedFunction([RpcError(Code.UNAVAILABLE), RpcError(Code.INTERNAL)])
    with virtual_time() as clock, pytest.raises(RpcError, match="INTERNAL"):
        from_service_config(EXAMPLE).call(fetch)
    assert len(clock.sleeps) == 1
    assert 0.08 <= clock.sleeps[0] <= 0.12


def test_the_predicate_is_a_value():
    codes = StatusCodes({"unavailable", 4})
    assert codes == StatusCodes([4, 14])
    assert hash(codes) == hash(StatusCodes([4, 14]))
    assert codes != UNAVAILABLE
    assert eval(repr(codes)) == codes  # noqa: S307  under test
    assert pickle.loads(pickle.dumps(codes)) == codes  # noqa: S301  pickled here


durations = st.integers(10**6, 10**6 * 10**9).map(lambda nano: nano / 10**9)
texts = st.integers(10**6, 10**15).map(
    lambda nano: f"{nano // 10**9}.{nano % 10**9:09}s"
)
codes = st.sets(st.integers(1, 16), min_size=1)
factors = st.floats(1, 1e6)
jitters = st.sampled_from(["proportional", "full"])


@st.composite
def grpc_policies(draw, jitter):
    delays = s.exponential(draw(durations), factor=draw(factors)).cap(draw(durations))
    return Policy(
        schedule=delays.full_jitter() if jitter == "full" else delays.jitter(0.2),
        max_attempts=draw(st.integers(2, 5)),
        max_elapsed=draw(st.none() | durations),
        on=StatusCodes(draw(codes)),
        hint=grpc_pushback(),
        hint_cap=None,
    )


@given(st.data(), jitters)
def test_a_policy_survives_a_service_config(data, jitter):
    policy = data.draw(grpc_policies(jitter))
    config = json.dumps(to_service_config(policy, jitter=jitter), allow_nan=False)
    assert from_service_config(config, jitter=jitter) == policy


@given(
    st.fixed_dictionaries(
        {
            "maxAttempts": st.integers(2, 5),
            "initialBackoff": texts,
            "maxBackoff": texts,
            "backoffMultiplier": factors,
            "retryableStatusCodes": codes.map(StatusCodes).map(lambda on: [*on.codes]),
        }
    ),
    st.none() | texts,
    jitters,
)
def test_a_service_config_survives_a_policy(policy, timeout, jitter):
    limit = {} if timeout is None else {"timeout": timeout}
    name = {"service": "shop.Cart", "method": "Add"}
    config = service_config({"name": [name], "retryPolicy": policy, **limit})
    read = from_service_config(config, jitter=jitter)
    assert normalized(
        to_service_config(read, "shop.Cart/Add", jitter=jitter)
    ) == normalized(config)


def normalized(data):
    """Return a config with durations as numbers, so that 1s equals 1.000s."""
    if isinstance(data, dict):
        return {key: normalized(value) for key, value in data.items()}
    if isinstance(data, list):
        return [normalized(value) for value in data]
    is_duration = isinstance(data, str) and data[0].isdigit()
    return float(data[:-1]) if is_duration else data


def test_a_policy_is_written_for_the_given_methods():
    written = to_service_config(READ, "shop.Cart/Add", "/shop.Pay/Pay", "shop.Ship")
    assert written == service_config(
        {
            "name": [
                {"service": "shop.Cart", "method": "Add"},
                {"service": "shop.Pay", "method": "Pay"},
                {"service": "shop.Ship"},
            ],
            "retryPolicy": EXAMPLE,
        }
    )
    assert to_service_config(READ)["methodConfig"][0]["name"] == [{}]


OTHERS = {
    "no jitter": DELAYS,
    "more jitter": DELAYS.jitter(0.5),
    "full jitter": DELAYS.full_jitter(),
    "no cap": s.exponential(0.1).jitter(0.2),
    "the cap outside": s.exponential(0.1).jitter(0.2).cap(1),
    "a cap of all that": DELAYS.jitter(0.2).cap(1),
    "an end": DELAYS.jitter(0.2).take(3),
    "at least instead of cap": s.exponential(0.1).at_least(1).jitter(0.2),
    "another growth": s.decorrelated(0.1, factor=2).cap(1).jitter(0.2),
    "a list": s.sequence([1, 0.5]).jitter(0.2),
    "the default": Policy().schedule,
}


@pytest.mark.parametrize("schedule", OTHERS.values(), ids=OTHERS)
def test_a_schedule_that_grpc_does_not_support_is_rejected(schedule):
    with pytest.raises(ConfigError, match="schedule must be a capped exponential"):
        to_service_config(READ.replace(schedule=schedule))


@pytest.mark.parametrize(
    "setting",
    [
        {"deadline": "clip", "max_elapsed": 9},
        {"give_up_on": OSError},
        {"on_result": callable},
        {"raises": "group"},
        {"max_failures": 5},
        {"seed": 1},
        {"observers": [print]},
        {"name": "add"},
        {"rules": [Rule(on=OSError, max_attempts=2)]},
        {"hint": retry_after()},
        {"hint_cap": 3600},
        {"hint": None},
        {"on_long_hint": "clip"},
        {"budget": TokenBucket()},
        {"attempt_timeout": 5},
        {"nested": "retry"},
    ],
    ids=lambda setting: next(iter(setting)),
)
def test_a_setting_that_grpc_does_not_support_is_rejected(setting):
    name = "hint_cap" if setting == {"hint": None} else next(iter(setting))
    with pytest.raises(ConfigError, match=f"{name} must be .*gRPC"):
        to_service_config(READ.replace(**setting))


def test_a_fallback_is_rejected():
    with pytest.raises(ConfigError, match=r"fallback must be left out .* got 0"):
        to_service_config(READ.replace(fallback=0))


@pytest.mark.parametrize("most", [None, 1, 6])
def test_max_attempts_that_grpc_does_not_support_are_rejected(most):
    with pytest.raises(ConfigError, match="max_attempts must be an integer from 2"):
        to_service_config(READ.replace(max_attempts=most))


def test_durations_are_rounded_to_nanoseconds():
    written = to_service_config(READ.replace(max_elapsed=1 / 3))
    assert written["methodConfig"][0]["timeout"] == "0.333333333s"


def test_a_method_without_a_part_is_not_retried():
    config = service_config(entry({"service": "shop.Cart"}))
    with pytest.raises(ConfigError, match=r"retries: shop\.Cart/, got 'shop\.Pay/Pay'"):
        from_service_config(config, method="shop.Pay/Pay")
