"""Budgets by key and by scope, as text and as data."""

import copy
import json
import pickle
import sys
import threading
import tomllib

import pytest

from retrykit import ConfigError, Failure
from retrykit._core.failures import Evaluation
from retrykit._core.steps import withdraw_safely
from retrykit.budgets import (
    Budget,
    FleetBudget,
    RatioBudget,
    Registry,
    Throttle,
    TokenBucket,
    balances,
    budget_from_dict,
    shared,
)
from retrykit.budgets._shared_budgets import SerializableBudget

ERROR = OSError()


class BusyError(Exception):
    """An error that data can name."""


def is_busy(error):
    """Return whether the message says busy."""
    return "busy" in str(error)


def fails(error):
    """Fail on every error."""
    raise LookupError(error)


def test_the_cost_of_a_retry_is_that_of_the_first_matching_condition():
    costs = (((EOFError, TimeoutError), 1), (is_busy, 2), (OSError, 3))
    bucket = TokenBucket(cost=4, costs=costs)
    errors = [
        TimeoutError("busy"),
        OSError("busy"),
        OSError("gone"),
        ValueError(),
        None,
    ]
    assert [bucket.withdraw(error) for error in errors] == [1, 2, 3, 4, 4]


def test_a_rejected_result_has_the_default_cost():
    assert TokenBucket(cost=4, costs=((fails, 3),)).withdraw(None) == 4


def test_the_repr_shows_a_predicate_by_its_name():
    bucket = TokenBucket(costs=((is_busy, 2),))
    assert repr(bucket) == "TokenBucket(costs=((is_busy, 2),))"
    assert pickled(pickle.dumps(bucket)).withdraw(OSError("busy")) == 2


def test_a_failing_cost_predicate_loses_neither_a_token_nor_the_users_error():
    bucket, error = TokenBucket(costs=((fails, 3),)), OSError("gone")
    with pytest.raises(LookupError):
        bucket.withdraw(error)
    failure = Failure(1, error, None, 0.0, 0.0, 0.0)
    assert withdraw_safely(bucket, Evaluation(failure, 0.0, True)) is None
    assert "its policy failed with LookupError: gone" in error.__notes__[0]
    assert bucket.balance == 500


BUDGETS = {
    "a bucket": (TokenBucket(), "TokenBucket()"),
    "a bucket of 2026": (
        TokenBucket(300, cost=14, costs=((BusyError, 5), ((OSError, EOFError), 2))),
        (
            f"TokenBucket(capacity=300, cost=14, costs=(({__name__}.BusyError, 5), "
            "(OSError, 2), (EOFError, 2)))"
        ),
    ),
    "a bucket without costs": (
        TokenBucket(costs=(), reward=0),
        "TokenBucket(costs=(), reward=0)",
    ),
    "a throttle": (Throttle(), "Throttle()"),
    "a throttle of two": (
        Throttle(2, 0.25),
        "Throttle(max_tokens=2, token_ratio=0.25)",
    ),
    "a bucket without refunds": (
        TokenBucket(refunds=False),
        "TokenBucket(refunds=False)",
    ),
    "a fleet": (FleetBudget(), "FleetBudget()"),
    "a fleet of slow calls": (
        FleetBudget(0.5, capacity=3, recent="5s", timeouts=(KeyError, BusyError)),
        (
            "FleetBudget(ratio=0.5, capacity=3, recent=5.0, "
            f"timeouts=(KeyError, {__name__}.BusyError))"
        ),
    ),
    "a ratio": (RatioBudget(window=10), "RatioBudget()"),
    "a ratio of an hour": (
        RatioBudget(1.5, reserve=0, window="1h"),
        "RatioBudget(ratio=1.5, reserve=0.0, window=3600.0)",
    ),
}
each_budget = pytest.mark.parametrize(
    ("budget", "expression"), BUDGETS.values(), ids=BUDGETS
)


def pickled(stored):
    return pickle.loads(stored)  # noqa: S301  pickled here


def drain(budget):
    """Withdraw until the budget is empty."""
    budget.failed(first=False, retryable=True)
    while budget.withdraw(ERROR):
        pass


@each_budget
def test_the_repr_of_a_budget_builds_a_full_one(budget, expression):
    full = budget_from_dict(budget.to_dict()).balance
    drain(budget)
    assert repr(budget) == expression
    again = eval(expression, globals() | {"tests": sys.modules["tests"]})  # noqa: S307
    assert (repr(again), again.balance) == (expression, full)


@each_budget
@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda budget: pickled(pickle.dumps(budget))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_a_copy_of_a_budget_is_new_and_full(budget, expression, copied):
    drain(budget)
    other = copied(budget)
    assert other is not budget
    assert repr(other) == expression
    assert other.balance == budget_from_dict(budget.to_dict()).balance
    assert other.withdraw(ERROR) is not None or expression.startswith("RatioBudget(r")


@each_budget
def test_a_budget_survives_serialization(budget, expression):
    data = json.loads(json.dumps(budget.to_dict()))
    assert repr(budget_from_dict(data)) == expression
    assert budget_from_dict(data) is not budget_from_dict(data)


def test_budgets_are_compared_by_identity():
    bucket = TokenBucket()
    assert bucket == bucket  # noqa: PLR0124
    assert bucket != TokenBucket()
    assert len({bucket, TokenBucket()}) == 2


def test_reads_a_budget_written_by_hand_in_toml():
    text = """
    [budget]
    kind = "token_bucket"
    capacity = 100
    [budget.costs]
    TimeoutError = 20
    "tests.budgets.test_sharing:BusyError" = 1
    """
    budget = budget_from_dict(tomllib.loads(text)["budget"])
    assert budget.withdraw(TimeoutError()) == 20
    assert budget.withdraw(BusyError()) == 1
    assert budget.to_dict() == {
        "kind": "token_bucket",
        "capacity": 100,
        "cost": 5,
        "costs": {"TimeoutError": 20, "tests.budgets.test_sharing:BusyError": 1},
        "reward": 1,
        "refunds": True,
    }


def test_the_first_of_two_costs_of_a_type_applies():
    bucket = TokenBucket(costs=((OSError, 1), ((EOFError, OSError), 2)))
    assert bucket.to_dict()["costs"] == {"OSError": 1, "EOFError": 2}


def test_a_scope_in_data_selects_the_shared_budget():
    data = {"kind": "throttle", "max_tokens": 4, "scope": "host:data"}
    budget = budget_from_dict(data)
    assert budget is shared("host:data", lambda: Throttle(4))
    assert budget is budget_from_dict(budget.to_dict())
    with pytest.raises(ConfigError, match="as before in this scope"):
        budget_from_dict({"kind": "throttle", "scope": "host:data"})


def test_a_scope_has_one_budget():
    api = shared("host:api", TokenBucket)
    assert shared("host:api", lambda: TokenBucket(500, cost=5)) is api
    assert shared("key:api", TokenBucket) is not api
    assert (api.scope, TokenBucket().scope) == ("host:api", None)


class OtherBudget(SerializableBudget):
    """A custom kind of budget with the settings of a throttle."""

    kind = "other"
    balance = 0.0
    settings = Throttle().settings

    def withdraw(self, error, /):
        return None

    def deposit(self, cost, /):
        return None


def test_a_scope_rejects_another_kind_of_budget():
    shared("key:kind", Throttle)
    with pytest.raises(
        ConfigError, match=r"make must be a function that builds Throttle\(\)"
    ):
        shared("key:kind", OtherBudget)


def test_a_rejected_budget_does_not_change_that_of_the_scope():
    budget = shared("key:kept", lambda: TokenBucket(9))
    with pytest.raises(ConfigError):
        shared("key:kept", TokenBucket)
    assert shared("key:kept", lambda: TokenBucket(9)) is budget
    assert repr(budget) == "shared('key:kept', make=lambda: TokenBucket(capacity=9))"


def test_the_repr_of_a_shared_budget_is_the_expression_that_finds_it():
    plain = shared("key:plain", Throttle)
    assert repr(plain) == "shared('key:plain', make=Throttle)"
    for budget in (plain, shared("key:made", lambda: RatioBudget(0.5))):
        assert eval(repr(budget)) is budget  # noqa: S307


def test_a_copy_of_a_shared_budget_is_the_same_object():
    budget = shared("key:copied", TokenBucket)
    assert copy.deepcopy(budget) is budget
    assert pickled(pickle.dumps(budget)) is budget


def test_unpickling_creates_the_budget_of_an_unknown_scope():
    text = pickle.dumps(shared("key:before", lambda: TokenBucket(7)))
    budget = pickled(text.replace(b"key:before", b"key:beyond"))
    assert (budget.scope, budget.capacity) == ("key:beyond", 7)
    assert shared("key:beyond", lambda: TokenBucket(7)) is budget


def test_the_budget_of_the_process_wins_over_a_pickled_one():
    """Jobs pickled before a deployment must be readable after it."""
    shared("key:today", lambda: TokenBucket(8))
    text = pickle.dumps(shared("key:queue", lambda: TokenBucket(7)))
    assert pickled(text.replace(b"key:queue", b"key:today")).capacity == 8


def test_balances_has_the_balance_of_each_scope():
    shared("key:gauge", TokenBucket).withdraw(ERROR)
    assert balances()["key:gauge"] == 495.0


def test_a_registry_keeps_a_budget_for_each_key():
    hosts = Registry(TokenBucket)
    hosts["a"].withdraw(ERROR)
    assert hosts["a"] is hosts["a"]
    assert hosts.balances() == {"a": 495.0}
    assert hosts["b"].balance == 500
    assert repr(hosts) == "<Registry of 2 budgets, at most 1024>"


def test_a_registry_drops_the_least_recently_used_key():
    hosts = Registry(TokenBucket, at_most=2)
    first, second = hosts["first"], hosts["second"]
    assert hosts["first"] is first
    hosts["third"].withdraw(ERROR)
    assert list(hosts.balances()) == ["first", "third"]
    assert hosts["first"] is first
    assert hosts["second"] is not second
    assert list(hosts.balances()) == ["first", "second"]


@pytest.mark.needs("threads")
def test_a_key_may_use_the_registry_in_its_own_hash_and_eq():
    hosts = Registry(TokenBucket)

    class Host:
        def __hash__(self):
            return 1

        def __eq__(self, other):
            return hosts["other"] is None

    def look_up():
        found.extend(hosts[Host()] for _ in range(2))

    found = []
    # In a thread, since a deadlock would never end.
    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(10)
    assert len(found) == 2


def test_a_registry_accepts_custom_budgets():
    class CustomBudget(Budget):
        balance = 1.0

        def withdraw(self, error, /):
            return 1.0

        def deposit(self, cost, /):
            return None

    hosts = Registry(CustomBudget)
    assert hosts["a"] is hosts["a"]
    assert hosts.balances() == {"a": 1.0}
