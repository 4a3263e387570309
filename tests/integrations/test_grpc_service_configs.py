"""Service configs, judged by grpcio and read by retrykit."""

import contextlib
import copy
import json

import grpc
import pytest
from hypothesis import given, settings, strategies as st

from retrykit import ConfigError
from retrykit.config.grpc_service_config import from_service_config
from tests._support.grpc_server import DOWN, shop, stub

# grpcio 1.85 sometimes never makes the retry after a delay of a millisecond.
RETRY_POLICY = {
    "maxAttempts": 4,
    "initialBackoff": "0.01s",
    "maxBackoff": "0.02s",
    "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE"],
}


@contextlib.contextmanager
def configured_channel(address, config):
    text = config if isinstance(config, str) else json.dumps(config)
    # Of its own, or grpcio shares the connection of another channel to the address.
    options = [("grpc.service_config", text), ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(address, options) as channel:
        yield channel


@pytest.fixture(scope="module")
def address():
    with shop() as cart:
        yield cart.address


def is_read_by_grpcio(address, config):
    """Return whether grpcio reads a config.

    If so, the call ends as the method is unknown, or with the timeout of the config.
    """
    with configured_channel(address, config) as channel:
        with pytest.raises(grpc.RpcError) as raised:
            channel.unary_unary("/shop.Unknown/Get")(b"", timeout=30)
    code = raised.value.code().name
    assert code in {"UNIMPLEMENTED", "DEADLINE_EXCEEDED", "INVALID_ARGUMENT"}, code
    return code != "INVALID_ARGUMENT"


def is_read_by_retrykit(config):
    try:
        from_service_config(config, method="shop.Cart/Get")
    except ConfigError as error:
        # gRPC has no error for a config that retries nothing.
        return str(error).startswith(("method must be", "hedgingPolicy must be"))
    return True


integers = st.one_of(
    st.integers(-2, 9),
    st.sampled_from([2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**64, 10**400]),
    st.sampled_from([2.0, 2.5, 1e300, True, None, [2], {}]),
    st.sampled_from(
        ["4", " 4 ", "+4", "04", "4.0", "4e0", "0x4", "4_0", "٤", "", "-4"]
    ),
)
numbers = st.one_of(
    integers,
    st.floats(-1, 10, width=32),
    st.sampled_from([1e-46, 1e-45, 1e-39, 1e39, 1e300, 5e-324]),
    st.sampled_from(["1.5", ".5", "5.", "1e3", "1E+3", "inf", "-inf", "Infinity"]),
    st.sampled_from(["1e999", "1e-999", "1d", "1,5", "--1", "1e", "e1", "."]),
)
ratios = st.one_of(
    integers.filter(lambda value: not isinstance(value, int) or value < 10**6),
    st.sampled_from([0.001, 0.0009, 0.0019, 1.5, 1e-5, 1e16, 4294967]),
    st.sampled_from(["0.5", " 0.5", "+0.5", "1.", ".5", "1e3", "-0.5", "1.23456789"]),
)
durations = st.one_of(
    st.integers(0, 3 * 10**9).map(lambda nano: f"{nano / 10**9:.9f}s"),
    st.sampled_from(
        ["1s", "0.1s", ".1s", "1.s", "0s", "0.0009s", "0.001s", "-1s", "1"]
    ),
    st.sampled_from([" 1s", "1 s", "1s ", "+1s", "01s", "1e3s", "1m", "1ms", "s", ""]),
    st.sampled_from(["0.0000000001s", "315576000000s", "315576000000.5s"]),
    st.sampled_from(["315576000001s", "9" * 400 + "s", "٣s", 1, 1.5, None, True, []]),
)
NAMES = ["UNAVAILABLE", "ABORTED", "CANCELLED", "OK", "unavailable", "CANCELED", "NOPE"]
codes = st.one_of(
    st.lists(st.sampled_from(NAMES[:4]), max_size=3),
    st.lists(st.sampled_from([*NAMES, 14, "14", None, [], True]), max_size=3),
    st.sampled_from([None, "UNAVAILABLE", {}, 14]),
)
anything = st.sampled_from([None, True, 1, "1s", "x", [], {}, [{}], {"a": 1}])
RETRY_KEYS = {
    "maxAttempts": integers,
    "initialBackoff": durations,
    "maxBackoff": durations,
    "backoffMultiplier": numbers,
    "retryableStatusCodes": codes,
    "perAttemptRecvTimeout": durations,
    "comment": anything,
}
ENTRY_KEYS = {
    "retryPolicy": anything,
    "hedgingPolicy": anything,
    "timeout": durations,
    "waitForReady": anything,
    "maxRequestMessageBytes": integers,
    "maxResponseMessageBytes": integers,
    "comment": anything,
    "name": st.one_of(
        anything,
        st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "service": st.sampled_from(["shop.Cart", "shop.Pay", "", None, 1]),
                    "method": st.sampled_from(["Get", "", None, 1]),
                    "comment": anything,
                },
            ),
            max_size=3,
        ),
    ),
}
CONFIG_KEYS = {
    "methodConfig": anything.filter(lambda value: value != [{}]),
    "retryThrottling": st.one_of(
        anything,
        st.fixed_dictionaries(
            {"maxTokens": integers, "tokenRatio": ratios}, optional={"x": anything}
        ),
    ),
    "comment": anything,
}


@st.composite
def altered(draw, data, keys):
    """Draw data of which up to two keys are set to something else or removed."""
    for key in draw(st.lists(st.sampled_from(list(keys)), max_size=2)):
        if draw(st.integers(0, 9)):
            data = data | {key: draw(keys[key])}
        else:
            data.pop(key, None)
    return data


@st.composite
def service_configs(draw):
    """Draw a config of two entries, in which few things are unusual."""
    entries = [
        {"name": [{}], "retryPolicy": copy.deepcopy(RETRY_POLICY)},
        {"name": [{"service": "shop.Pay"}], "retryPolicy": RETRY_POLICY | {}},
    ]
    at = draw(st.integers(0, 1))
    part = draw(st.sampled_from(["retryPolicy", "retryPolicy", "entry", "config"]))
    if part == "retryPolicy":
        retry_policy = draw(altered(entries[at]["retryPolicy"], RETRY_KEYS))
        entries[at]["retryPolicy"] = retry_policy
    elif part == "entry":
        entries[at] = draw(altered(entries[at], ENTRY_KEYS))
    config = {"methodConfig": entries}
    return draw(altered(config, CONFIG_KEYS)) if part == "config" else config


@settings(max_examples=300, deadline=None)
@given(config=service_configs())
def test_a_config_is_read_if_and_only_if_grpcio_reads_it(address, config):
    # Without its methodConfig, a config is a retryPolicy for retrykit alone.
    if "methodConfig" in config:
        assert is_read_by_retrykit(config) is is_read_by_grpcio(address, config)
        text = json.dumps(config)
        assert is_read_by_retrykit(text) is is_read_by_retrykit(config)


WHOLE = json.dumps({"methodConfig": [{"name": [{}], "retryPolicy": RETRY_POLICY}]})
TEXTS = {
    "as it is": WHOLE,
    "spaces around": f" \n{WHOLE}\t ",
    "a repeated key": f'{WHOLE[:-1]}, "methodConfig": []}}',
    "a repeated unknown key": f'{WHOLE[:-1]}, "x": 1, "x": 2}}',
    "NaN": f'{WHOLE[:-1]}, "x": NaN}}',
    "a byte order mark": f"\ufeff{WHOLE}",
    "something behind": f"{WHOLE} x",
    "a control character": f'{WHOLE[:-1]}, "x": "\x01"}}',
    "long digits": f'{WHOLE[:-1]}, "x": {"9" * 5000}}}',
    "many zeros": WHOLE.replace('"maxAttempts": 4', f'"maxAttempts": 4{"0" * 5000}'),
    "a whole number with decimals": WHOLE.replace("4", "4.0"),
    "a whole number with an exponent": WHOLE.replace("4", "4e0"),
    "a leading zero": WHOLE.replace("4", "04"),
    "a large exponent": WHOLE.replace('ier": 2', 'ier": 1e999'),
    "a ratio with an exponent": (
        f'{WHOLE[:-1]}, "retryThrottling": {{"maxTokens": 9, "tokenRatio": 1e-1}}}}'
    ),
    "a list": "[]",
    "nothing": "",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_json_is_read_if_and_only_if_grpcio_reads_it(address, text):
    assert is_read_by_retrykit(text) is is_read_by_grpcio(address, text)


CHANGES = {
    "nothing": {},
    "a text": {"maxAttempts": "3"},
    "more than five": {"maxAttempts": 9},
    "a multiplier as text": {"backoffMultiplier": "1.5"},
    "an endless multiplier": {"backoffMultiplier": "inf"},
    "an unknown key": {"perAttemptRecvTimeout": "2s"},
    "OK beside": {"retryableStatusCodes": ["OK", "UNAVAILABLE"]},
    "another code": {"retryableStatusCodes": ["ABORTED"]},
    "OK alone": {"retryableStatusCodes": ["OK"]},
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_a_policy_makes_the_attempts_that_grpcio_makes(changes):
    retry_policy = RETRY_POLICY | changes
    config = {"methodConfig": [{"name": [{}], "retryPolicy": retry_policy}]}
    with (
        shop(*[[DOWN]] * 9) as cart,
        configured_channel(cart.address, config) as channel,
        pytest.raises(grpc.RpcError) as raised,
    ):
        stub(channel)(b"", timeout=30)
    try:
        policy = from_service_config(config)
    except ConfigError:
        expected = 1
    else:
        expected = policy.max_attempts if policy.on(raised.value) else 1
    assert cart.attempts() == expected


@pytest.mark.parametrize("timeout", ["0s", None])
def test_a_timeout_of_zero_is_none_for_grpcio(timeout):
    entry = {"name": [{}], "retryPolicy": RETRY_POLICY, "timeout": timeout}
    config = {"methodConfig": [entry]}
    with shop([b"done"]) as cart, configured_channel(cart.address, config) as channel:
        assert stub(channel)(b"", timeout=30) == b"done"
    assert from_service_config(config).max_elapsed is None
