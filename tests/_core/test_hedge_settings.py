"""The settings of a `Hedge`: checked, compared, shown, and as data."""

import pickle
from copy import deepcopy

import pytest

from retrykit import ConfigError, Hedge, Policy, aretry, aretrying, retry, retrying

FIXED = Hedge("50ms", idempotent=True)
FOR_CLIENTS = Hedge("50ms")
FULL = Hedge(quantile=0.95, at_most=3, extra=0.5, idempotent=True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "delay must be given, or quantile, and not both, got None"),
        ({"delay": 1, "quantile": 0.9}, "not both"),
        ({"delay": -1}, "delay must be"),
        ({"quantile": 0}, "quantile must be a number > 0 and < 1, got 0"),
        ({"quantile": 1}, "quantile must be a number > 0 and < 1, got 1"),
        ({"quantile": 95}, "quantile must be"),
        ({"delay": 1, "at_most": 1}, "at_most must be"),
        ({"delay": 1, "at_most": 11}, "at_most must be"),
        ({"delay": 1, "extra": 0}, "extra must be a number > 0 and <= 9, got 0"),
        ({"delay": 1, "extra": 10}, "extra must be"),
        ({"delay": 1, "idempotent": 1}, "idempotent must be a bool, got 1"),
    ],
)
def test_a_setting_out_of_its_bounds_is_rejected(settings, message):
    with pytest.raises(ConfigError, match=message):
        Hedge(**{"idempotent": True, **settings})


@pytest.mark.parametrize(
    ("hedge", "text"),
    [
        (FIXED, "Hedge(0.05, idempotent=True)"),
        (FOR_CLIENTS, "Hedge(0.05)"),
        (FULL, "Hedge(quantile=0.95, at_most=3, extra=0.5, idempotent=True)"),
    ],
    ids=["fixed", "for clients", "full"],
)
class TestEach:
    def test_its_repr_is_its_code(self, hedge, text):
        assert repr(hedge) == text
        assert eval(text, {"Hedge": Hedge}) == hedge  # noqa: S307

    def test_it_is_the_same_after_pickling_copying_and_as_data(self, hedge, text):
        for other in (
            pickle.loads(pickle.dumps(hedge)),  # noqa: S301  pickled here
            deepcopy(hedge),
            Hedge(**hedge.to_dict()),
        ):
            assert (other, hash(other)) == (hedge, hash(hedge))

    def test_a_policy_has_it_as_data(self, hedge, text):
        policy = Policy(hedge=hedge)
        assert Policy.from_dict(policy.to_dict()) == policy


def test_others_are_not_equal():
    assert FIXED not in {FULL, FOR_CLIENTS}
    assert FIXED != "Hedge(0.05, idempotent=True)"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("50ms", "hedge must be a dict of settings of a Hedge"),
        ({"delay": 1, "idempotent": True, "at_mots": 3}, "at_most"),
    ],
    ids=["no dict", "unknown key"],
)
def test_data_that_is_no_hedge_is_rejected(data, message):
    policy = {**Policy(hedge=FIXED).to_dict(), "hedge": data}
    with pytest.raises(ConfigError, match=message):
        Policy.from_dict(policy)


def test_a_policy_takes_nothing_else():
    with pytest.raises(ConfigError, match=r"hedge must be a Hedge, got '50ms'; write"):
        Policy(hedge="50ms")


@pytest.mark.parametrize("form", [retrying, aretrying], ids=["sync", "async"])
def test_a_block_cannot_be_sent_twice(form):
    with pytest.raises(ConfigError, match="put what is hedged into a function"):
        form(hedge=FIXED)


@pytest.mark.parametrize(
    "decorator",
    [
        FOR_CLIENTS,
        retry(hedge=FOR_CLIENTS),
        Policy(hedge=FOR_CLIENTS).call,
    ],
    ids=["alone", "retry", "call"],
)
def test_a_function_needs_the_promise(decorator):
    with pytest.raises(ConfigError, match=r"got False; write idempotent=True"):
        decorator(len)


def test_a_coroutine_function_needs_the_promise():
    async def look_up(): ...

    for decorator in (FOR_CLIENTS, aretry(hedge=FOR_CLIENTS)):
        with pytest.raises(ConfigError, match="idempotent must be True"):
            decorator(look_up)


def test_only_a_callable_is_hedged():
    with pytest.raises(ConfigError, match="fn must be a function"):
        FIXED("name")
