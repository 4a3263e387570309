"""Budgets by key and by scope, as text and as data."""

import copy
import json
import pickle
import sys
import threading
import tomllib

import pytest

from retrykit import ConfigError, Failure
from retrykit.budgets import (
    Budget,
    RatioBudget,
    Registry,
    Throttle,
    TokenBucket,
    balances,
    budget_from,
    shared,
)
from retrykit.budgets.base import withdraw_safely
from retrykit.budgets.shared_budgets import ScopedBudget
from retrykit.state.failures import Evaluation

ERROR = OSError()


class BusyError(Exception):
    """An error that is found by its name."""


def is_busy(error):
    """Return whether the message says busy."""
    return "busy" in str(error)


def fails(error):
    """Fail on every error."""
    raise LookupError(error)


def test_what_costs_a_retry_is_the_first_condition_that_holds():
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


def test_a_result_that_was_refused_has_no_error_to_ask_about():
    assert TokenBucket(cost=4, costs=((fails, 3),)).withdraw(None) == 4


def test_a_predicate_prints_as_its_name():
    bucket = TokenBucket(costs=((is_busy, 2),))
    assert repr(bucket) == "TokenBucket(costs=((is_busy, 2),))"
    assert unpickled(pickle.dumps(bucket)).withdraw(OSError("busy")) == 2


def test_an_error_in_a_cost_loses_neither_a_token_nor_the_users_error():
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
    "a ratio": (RatioBudget(window=10), "RatioBudget()"),
    "a ratio of an hour": (
        RatioBudget(1.5, reserve=0, window="1h"),
        "RatioBudget(ratio=1.5, reserve=0.0, window=3600.0)",
    ),
}
each_budget = pytest.mark.parametrize(
    ("budget", "expression"), BUDGETS.values(), ids=BUDGETS
)


def unpickled(stored):
    return pickle.loads(stored)  # noqa: S301  written by these tests


def use_up(budget):
    """Withdraw until the budget is empty."""
    budget.failed(first=False, retryable=True)
    while budget.withdraw(ERROR):
        pass


@each_budget
def test_a_budget_prints_as_the_expression_that_makes_a_full_one(budget, expression):
    full = budget_from(budget.to_dict()).balance
    use_up(budget)
    assert repr(budget) == expression
    again = eval(expression, globals() | {"tests": sys.modules["tests"]})  # noqa: S307
    assert (repr(again), again.balance) == (expression, full)


@each_budget
@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda budget: unpickled(pickle.dumps(budget))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_a_copy_of_a_budget_is_a_new_one_that_is_full(budget, expression, copied):
    use_up(budget)
    other = copied(budget)
    assert other is not budget
    assert repr(other) == expression
    assert other.balance == budget_from(budget.to_dict()).balance
    assert other.withdraw(ERROR) is not None or expression.startswith("RatioBudget(r")


@each_budget
def test_a_budget_is_written_as_data_and_read_again(budget, expression):
    data = json.loads(json.dumps(budget.to_dict()))
    assert repr(budget_from(data)) == expression
    assert budget_from(data) is not budget_from(data)


def test_budgets_are_equal_if_they_are_the_same():
    bucket = TokenBucket()
    assert bucket == bucket  # noqa: PLR0124
    assert bucket != TokenBucket()
    assert len({bucket, TokenBucket()}) == 2


def test_a_budget_is_read_from_toml_as_it_is_written_by_hand():
    text = """
    [budget]
    kind = "token_bucket"
    capacity = 100
    [budget.costs]
    TimeoutError = 20
    "tests.budgets.test_sharing:BusyError" = 1
    """
    budget = budget_from(tomllib.loads(text)["budget"])
    assert budget.withdraw(TimeoutError()) == 20
    assert budget.withdraw(BusyError()) == 1
    assert budget.to_dict() == {
        "kind": "token_bucket",
        "capacity": 100,
        "cost": 5,
        "costs": {"TimeoutError": 20, "tests.budgets.test_sharing:BusyError": 1},
        "reward": 1,
    }


def test_of_a_type_that_is_written_twice_the_first_cost_counts():
    bucket = TokenBucket(costs=((OSError, 1), ((EOFError, OSError), 2)))
    assert bucket.to_dict()["costs"] == {"OSError": 1, "EOFError": 2}


def test_a_scope_that_is_written_in_data_is_the_shared_budget():
    data = {"kind": "throttle", "max_tokens": 4, "scope": "host:data"}
    budget = budget_from(data)
    assert budget is shared("host:data", lambda: Throttle(4))
    assert budget is budget_from(budget.to_dict())
    with pytest.raises(ConfigError, match="as before in this scope"):
        budget_from({"kind": "throttle", "scope": "host:data"})


def test_a_scope_has_one_budget():
    api = shared("host:api", TokenBucket)
    assert shared("host:api", lambda: TokenBucket(500, cost=5)) is api
    assert shared("key:api", TokenBucket) is not api
    assert (api.scope, TokenBucket().scope) == ("host:api", None)


class Other(ScopedBudget):
    """Another kind of budget, with the settings of a throttle."""

    kind = "other"
    balance = 0.0
    settings = Throttle().settings

    def withdraw(self, error, /):
        return None

    def deposit(self, cost, /):
        return None


def test_a_budget_of_another_kind_is_another_budget():
    shared("key:kind", Throttle)
    with pytest.raises(
        ConfigError, match=r"make must be a function that builds Throttle\(\)"
    ):
        shared("key:kind", Other)


def test_a_refused_budget_leaves_that_of_the_scope_as_it_is():
    kept = shared("key:kept", lambda: TokenBucket(9))
    with pytest.raises(ConfigError):
        shared("key:kept", TokenBucket)
    assert shared("key:kept", lambda: TokenBucket(9)) is kept
    assert repr(kept) == "shared('key:kept', make=lambda: TokenBucket(capacity=9))"


def test_a_shared_budget_prints_as_the_expression_that_finds_it():
    plain = shared("key:plain", Throttle)
    assert repr(plain) == "shared('key:plain', make=Throttle)"
    for budget in (plain, shared("key:made", lambda: RatioBudget(0.5))):
        assert eval(repr(budget)) is budget  # noqa: S307


def test_a_copy_of_a_shared_budget_is_that_of_its_scope():
    budget = shared("key:copied", TokenBucket)
    assert copy.deepcopy(budget) is budget
    assert unpickled(pickle.dumps(budget)) is budget


def test_a_pickled_budget_of_a_scope_that_is_new_here_is_made():
    text = pickle.dumps(shared("key:before", lambda: TokenBucket(7)))
    budget = unpickled(text.replace(b"key:before", b"key:beyond"))
    assert (budget.scope, budget.capacity) == ("key:beyond", 7)
    assert shared("key:beyond", lambda: TokenBucket(7)) is budget


def test_the_settings_of_the_process_win_over_those_of_a_pickle():
    """Yesterday's jobs must be readable after a deployment."""
    shared("key:today", lambda: TokenBucket(8))
    text = pickle.dumps(shared("key:queue", lambda: TokenBucket(7)))
    assert unpickled(text.replace(b"key:queue", b"key:today")).capacity == 8


def test_the_balance_of_each_scope_is_a_gauge():
    shared("key:gauge", TokenBucket).withdraw(ERROR)
    assert balances()["key:gauge"] == 495.0


def test_a_registry_keeps_a_budget_for_each_key():
    hosts = Registry(TokenBucket)
    hosts["a"].withdraw(ERROR)
    assert hosts["a"] is hosts["a"]
    assert hosts.balances() == {"a": 495.0}
    assert hosts["b"].balance == 500
    assert repr(hosts) == "<Registry of 2 budgets, at most 1024>"


def test_of_too_many_keys_the_one_that_was_not_asked_for_longest_goes():
    hosts = Registry(TokenBucket, at_most=2)
    first, second = hosts["first"], hosts["second"]
    assert hosts["first"] is first
    hosts["third"].withdraw(ERROR)
    assert list(hosts.balances()) == ["first", "third"]
    assert hosts["first"] is first
    assert hosts["second"] is not second
    assert list(hosts.balances()) == ["first", "second"]


def test_a_key_may_ask_the_registry_while_it_is_looked_up():
    hosts = Registry(TokenBucket)

    class Host:
        def __hash__(self):
            return 1

        def __eq__(self, other):
            return hosts["other"] is None

    def ask():
        found.extend(hosts[Host()] for _ in range(2))

    found = []
    # In a thread, since a deadlock would never end.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(10)
    assert len(found) == 2


def test_a_registry_is_for_budgets_of_ones_own_too():
    class Purse(Budget):
        balance = 1.0

        def withdraw(self, error, /):
            return 1.0

        def deposit(self, cost, /):
            return None

    hosts = Registry(Purse)
    assert hosts["a"] is hosts["a"]
    assert hosts.balances() == {"a": 1.0}
