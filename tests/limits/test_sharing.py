"""Limits by key and by scope, as text and as data."""

import copy
import json
import pickle

import pytest

from retrykit import ConfigError, RefusedError, schedules as s
from retrykit.limits import (
    AIMD,
    CircuitBreaker,
    Concurrency,
    Limit,
    RateLimit,
    Refusal,
    Registry,
    limit_from_dict,
    shared,
    states,
)


def pickled(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301  pickled here


class BusyError(Exception):
    """An error that data can name."""


def is_busy(error):
    """Return whether the message says busy."""
    return "busy" in str(error)


FULL = CircuitBreaker(
    failure_rate=0.25,
    window="90s",
    minimum_calls=10,
    consecutive_failures=5,
    slow_after="2s",
    slow_rate=0.75,
    open_for=s.exponential(1).cap(60).equal_jitter(),
    probes=4,
    successes=0.75,
    probe_timeout="2m",
    on=(OSError, BusyError),
    name="api",
)
BREAKERS = {
    "defaults": CircuitBreaker(),
    "calls": CircuitBreaker(window=50, minimum_calls=5),
    "in a row": CircuitBreaker(consecutive_failures=5, on=BusyError),
    "everything": FULL,
    "a list": CircuitBreaker(open_for=[1, "5s", 30]),
}


@pytest.fixture(params=BREAKERS.values(), ids=BREAKERS)
def breaker(request):
    return request.param


def test_its_expression_makes_an_equal_one(breaker):
    names = {"CircuitBreaker": CircuitBreaker, "BusyError": BusyError}
    names |= {f"{__name__}.BusyError": BusyError, **vars(s)}
    text = repr(breaker).replace(f"{__name__}.", "")
    again = eval(text, names | {name: getattr(s, name) for name in s.__all__})  # noqa: S307
    assert again.settings == breaker.settings


def test_data_and_back(breaker):
    data = json.loads(json.dumps(breaker.to_dict()))
    again = limit_from_dict(data)
    assert again.settings == breaker.settings
    assert again.to_dict() == data


def test_data_of_all_settings():
    assert FULL.to_dict() == {
        "kind": "circuit_breaker",
        "failure_rate": 0.25,
        "window": "90s",
        "minimum_calls": 10,
        "consecutive_failures": 5,
        "slow_after": 2.0,
        "slow_rate": 0.75,
        "open_for": "exponential(1.0, factor=2.0).cap(60.0).equal_jitter()",
        "probes": 4,
        "successes": 3,
        "probe_timeout": 120.0,
        "on": ["OSError", f"{__name__}:BusyError"],
        "name": "api",
    }


def test_data_written_by_hand():
    data = {"kind": "circuit_breaker", "open_for": "1m", "on": "OSError"}
    breaker = limit_from_dict(data)
    assert (breaker.open_for, breaker.on) == (60.0, OSError)
    breaker = limit_from_dict({"kind": "circuit_breaker", "open_for": ["1s", 5]})
    assert breaker.open_for == s.sequence([1, 5])


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickled])
def test_a_copy_has_the_settings_and_is_closed(breaker, again):
    seen = []
    breaker.observers.append(seen.append)
    breaker.open()
    copied = again(breaker)
    assert copied is not breaker
    assert copied.settings == breaker.settings
    assert (copied.state, copied.observers) == ("closed", [])
    copied.open()
    assert len(seen) == 1
    breaker.close()
    breaker.observers.clear()


def test_predicates_are_pickled_but_not_written():
    breaker = CircuitBreaker(on=is_busy, on_result=is_busy)
    assert pickled(breaker).on is is_busy
    assert repr(breaker) == "CircuitBreaker(on=is_busy, on_result=is_busy)"


LIMITS = {
    "a rate": RateLimit(10),
    "a slow one": RateLimit(1, per="2s", name="api"),
    "all settings": RateLimit(90, "1m", spread=True, max_wait="5m", name="api"),
}


@pytest.fixture(params=LIMITS.values(), ids=LIMITS)
def limit(request):
    return request.param


class TestRateLimits:
    def test_its_expression_makes_an_equal_one(self, limit):
        assert eval(repr(limit)).settings == limit.settings  # noqa: S307

    def test_data_and_back(self, limit):
        data = json.loads(json.dumps(limit.to_dict()))
        again = limit_from_dict(data)
        assert again.settings == limit.settings
        assert again.to_dict() == data

    def test_data_of_all_settings(self):
        assert LIMITS["all settings"].to_dict() == {
            "kind": "rate",
            "calls": 90,
            "per": 60.0,
            "spread": True,
            "max_wait": 300.0,
            "name": "api",
        }

    @pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickled])
    def test_a_copy_has_the_settings_and_no_calls(self, limit, again):
        limit.acquire().succeeded()
        copied = again(limit)
        assert copied.settings == limit.settings
        assert copied.metrics.calls == 0

    def test_a_scope_has_one(self):
        limit = shared("key:limits-5", make=lambda: RateLimit(3))
        assert shared("key:limits-5", make=lambda: RateLimit(3)) is limit
        assert copy.copy(limit) is pickled(limit) is limit
        assert limit_from_dict(limit.to_dict()) is limit
        assert repr(limit) == "shared('key:limits-5', make=lambda: RateLimit(3))"
        assert limit.label == "key:limits-5"

    def test_a_registry_has_one_for_each_key(self):
        hosts = Registry(lambda: RateLimit(1, max_wait=0))
        hosts["a"].acquire()
        assert hosts["b"].state == "free"
        assert hosts.states() == {"a": "busy", "b": "free"}
        with pytest.raises(RefusedError, match="limit 'a' is busy: 1 call per 1 s"):
            hosts["a"](int)()


class TestScopes:
    def test_a_scope_has_one_breaker(self):
        breaker = shared("key:limits-1", make=CircuitBreaker)
        assert shared("key:limits-1", make=CircuitBreaker) is breaker
        assert repr(breaker) == "shared('key:limits-1', make=CircuitBreaker)"
        assert breaker.label == breaker.scope == "key:limits-1"

    def test_states_are_listed(self):
        shared("key:limits-2", make=CircuitBreaker).isolate()
        assert states()["key:limits-2"] == "isolated"

    def test_a_copy_and_data_are_the_same_breaker(self):
        breaker = shared("key:limits-3", make=lambda: CircuitBreaker(probes=2))
        assert copy.deepcopy(breaker) is pickled(breaker) is breaker
        data = breaker.to_dict()
        assert data["scope"] == "key:limits-3"
        assert limit_from_dict(data) is breaker
        text = "shared('key:limits-3', make=lambda: CircuitBreaker(probes=2, "
        assert repr(breaker).startswith(text)

    def test_breakers_and_budgets_of_one_scope_are_apart(self):
        from retrykit import budgets

        scope = "key:limits-4"
        assert shared(scope, make=CircuitBreaker) is not budgets.shared(
            scope, make=budgets.TokenBucket
        )
        assert scope in budgets.balances()


class TestRegistry:
    def test_has_one_for_each_key(self):
        hosts = Registry(lambda: CircuitBreaker(consecutive_failures=1))
        hosts["a"].acquire().failed()
        assert hosts.states() == {"a": "open"}
        assert hosts["b"].state == "closed"
        assert hosts["a"] is hosts["a"]
        assert repr(hosts) == "<Registry of 2 limits, at most 1024>"

    def test_errors_have_the_key(self):
        hosts = Registry(CircuitBreaker)
        assert hosts["api.example", 443].label == "('api.example', 443)"
        named = Registry(lambda: CircuitBreaker(name="api"))
        assert named["a"].label == "api"

    def test_is_bounded(self):
        hosts = Registry(CircuitBreaker, at_most=2)
        first = hosts[1]
        hosts[2], hosts[3]
        assert len(hosts) == 2
        assert hosts[1] is not first

    def test_takes_limits_of_your_own(self):
        class Closed(Limit):
            state = "closed for today"

            def acquire(self):
                return Refusal(self.state, 86_400.0)

        limits = Registry(Closed)
        assert limits["shop"].acquire().retry_in == 86_400
        assert limits.states() == {"shop": "closed for today"}


CONCURRENCY = {
    "a number": (Concurrency(5), {"at_most": 5, "queue": 0, "order": "fifo"}),
    "everything": (
        Concurrency(2, queue=9, max_wait="2s", order="lifo", name="db"),
        {"at_most": 2, "queue": 9, "max_wait": 2.0, "order": "lifo", "name": "db"},
    ),
    "an algorithm": (
        Concurrency(AIMD(max_limit=50)),
        {
            "at_most": AIMD(max_limit=50).to_dict(),
            "queue": 0,
            "order": "fifo",
        },
    ),
}


@pytest.mark.parametrize(
    ("limit", "data"), CONCURRENCY.values(), ids=CONCURRENCY.keys()
)
class TestConcurrency:
    def test_its_expression_makes_an_equal_one(self, limit, data):
        names = {"Concurrency": Concurrency, "AIMD": AIMD}
        again = eval(repr(limit), names)  # noqa: S307  our own
        assert again.settings == limit.settings

    def test_data_and_back(self, limit, data):
        assert limit.to_dict() == {"kind": "concurrency", **data}
        again = limit_from_dict(json.loads(json.dumps(limit.to_dict())))
        assert again.settings == limit.settings

    @pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickled])
    def test_a_copy_has_the_settings_and_nobody_in_it(self, limit, data, again):
        lease = limit.acquire()
        copied = again(limit)
        assert copied is not limit
        assert copied.settings == limit.settings
        assert (copied.state, copied.metrics[:2]) == ("free", (0, 0))
        lease.ignored()

    def test_a_scope_has_one_limit(self, limit, data):
        scope = f"key:concurrency-{data['at_most']}"
        first = shared(scope, make=lambda: copy.copy(limit))
        assert shared(scope, make=lambda: copy.copy(limit)) is first
        assert pickled(first) is limit_from_dict(first.to_dict()) is first
        assert states()[scope] == "free"


def test_a_copy_has_learned_nothing():
    limit = Concurrency(AIMD())
    leases = [limit.acquire() for _ in range(20)]
    leases[-1].failed()
    assert (limit.at_most, copy.copy(limit).at_most) == (20, 20)
    limit = Concurrency(AIMD(initial_limit=50))
    limit.acquire().failed()
    assert (limit.at_most, copy.copy(limit).at_most) == (45, 50)
    assert repr(limit) == "Concurrency(at_most=AIMD(initial_limit=50))"


@pytest.mark.parametrize("kind", ["vega", 5])
def test_an_unknown_algorithm_is_an_error(kind):
    data = {"kind": "concurrency", "at_most": {"kind": kind, "first": 1}}
    meant = "; did you mean vegas" if kind == "vega" else "}  "
    with pytest.raises(ConfigError, match=f"gradient2, vegas, got .*{meant}"):
        limit_from_dict(data)


def test_concurrency_by_key():
    hosts = Registry(lambda: Concurrency(1))
    lease = hosts["a"].acquire()
    assert hosts["b"].acquire().delay == 0
    assert hosts.states() == {"a": "full", "b": "free"}
    error = hosts["a"].error_of(hosts["a"].acquire())
    assert str(error) == "limit 'a' is full: 1 call runs"
    lease.ignored()
