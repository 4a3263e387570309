"""Budgets in sync and async calls."""

import asyncio
import math
import threading

import pytest

from retrykit import (
    Again,
    ConfigError,
    Failure,
    GiveUp,
    Policy,
    RetryState,
    Stop,
    StopReason,
    aretry,
    aretrying,
    retry,
    retrying,
    state_of,
)
from retrykit.budgets import Budget, RatioBudget, Throttle, TokenBucket

EAGER = Policy(schedule=[0] * 9, max_attempts=4, max_elapsed=None, on=OSError)


class Ledger(Budget):
    """A budget that records its calls, and pays for some retries."""

    def __init__(self, retries):
        self.retries = retries
        self.told = []

    @property
    def balance(self):
        return self.retries

    def failed(self, *, first, retryable):
        self.told.append(("failed", first, retryable))

    def withdraw(self, error):
        self.told.append(("withdraw", str(error)))
        if not self.retries:
            return None
        self.retries -= 1
        return 2.5

    def deposit(self, cost):
        self.told.append(("deposit", cost))


def failing(times, error=OSError):
    left = [error(str(number)) for number in range(times, 0, -1)]

    def fetch():
        if left:
            raise left.pop(0)
        return "done"

    return fetch


def test_a_first_success_is_deposited(colour):
    """The first call is observed, and the second takes the fast path."""
    budget = Ledger(9)
    fetch = colour(EAGER, budget=budget)(failing(0))
    assert [fetch(), fetch()] == ["done", "done"]
    assert budget.told == [("deposit", None)] * 2


def test_a_success_gives_back_what_its_last_retry_cost(colour):
    budget = Ledger(9)
    outcome = colour.run(EAGER.replace(budget=budget), failing(2))
    assert budget.told == [
        ("failed", True, True),
        ("withdraw", "2"),
        ("failed", False, True),
        ("withdraw", "1"),
        ("deposit", 2.5),
    ]
    assert outcome.state.retry_cost == 2.5


def test_a_retry_that_is_not_paid_for_is_not_made(colour):
    budget = Ledger(1)
    with pytest.raises(OSError, match="8") as caught:
        colour(EAGER, budget=budget)(failing(9))()
    state = state_of(caught.value)
    assert (state.attempt, state.stop_reason) == (2, StopReason.BUDGET)
    assert state.failures[-1].delay is None
    assert "the retry budget is spent" in caught.value.__notes__[0]
    assert ("deposit", 2.5) not in budget.told


def test_it_is_asked_before_the_sleep_and_for_nothing_that_is_not_slept(colour):
    """A retry that the limits forbid is free, but its failure counts."""
    budget = Ledger(9)
    with pytest.raises(OSError, match="6"):
        colour(EAGER, budget=budget)(failing(9))()
    asked = [told for told in budget.told if told[0] == "withdraw"]
    assert len(asked) == 3
    assert budget.told[-1] == ("failed", False, True)
    assert budget.balance == 6


@pytest.mark.parametrize("error", [ValueError, GiveUp], ids=["not on", "given up"])
def test_what_is_not_retried_is_told_as_such(colour, error):
    budget = Ledger(9)

    def fetch():
        raise error

    with pytest.raises(error):
        colour(EAGER, budget=budget)(fetch)()
    assert budget.told == [("failed", True, False)]


def test_a_refused_result_is_paid_for_like_an_error(colour):
    budget = Ledger(9)
    results = [0, 1]
    policy = EAGER.replace(budget=budget, on_result=lambda result: not result)
    assert colour.run(policy, lambda: results.pop(0)).value == 1
    told = [("failed", True, True), ("withdraw", "None"), ("deposit", 2.5)]
    assert budget.told == told


def test_blocks_pay_alike():
    budget = Ledger(9)
    fetch = failing(1)
    for attempt in retrying(EAGER, budget=budget):
        with attempt:
            fetch()
    told = [("failed", True, True), ("withdraw", "1"), ("deposit", 2.5)]
    assert budget.told == told

    async def block():
        fetch = failing(1)
        async for attempt in aretrying(EAGER, budget=budget):
            with attempt:
                fetch()

    budget.told.clear()
    asyncio.run(block())
    assert budget.told == told


class Awaited(Ledger):
    """An async budget, as if over a network."""

    async def withdraw(self, error):
        await asyncio.sleep(0)
        return super().withdraw(error)

    async def deposit(self, cost):
        await asyncio.sleep(0)
        super().deposit(cost)


def test_a_budget_may_be_awaited():
    budget = Awaited(1)

    async def main():
        fetch = failing(1)

        @aretry(EAGER, budget=budget)
        async def awaiting():
            return fetch()

        assert await awaiting() == "done"
        assert await awaiting() == "done"

    asyncio.run(main())
    deposits = [told for told in budget.told if told[0] == "deposit"]
    assert deposits == [("deposit", 2.5), ("deposit", None)]
    rule = "budget must be a sync budget where nothing can await it"
    for write in (
        lambda: retry(budget=budget)(print),
        lambda: aretrying(budget=budget),
    ):
        with pytest.raises(ConfigError, match=rule):
            write()


class Hanging(Ledger):
    async def withdraw(self, error):
        await asyncio.Event().wait()


class Interrupted(Ledger):
    def withdraw(self, error):
        raise KeyboardInterrupt


def test_a_call_that_is_left_while_it_asks_keeps_what_has_failed():
    @aretry(EAGER, budget=Hanging(9))
    async def fetch():
        return failing(9)()

    async def main():
        task = asyncio.create_task(fetch())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return state_of(caught.value)

    with pytest.raises(KeyboardInterrupt) as caught:
        retry(EAGER, budget=Interrupted(9))(failing(9))()
    for state in (asyncio.run(main()), state_of(caught.value)):
        assert state.stop_reason is StopReason.CANCELLED
        assert [str(error) for error in state.errors] == ["9"]
        assert state.failures[0].delay is None


class Broken(Ledger):
    def withdraw(self, error):
        raise ZeroDivisionError

    def deposit(self, cost):
        raise ZeroDivisionError


class AwaitedBroken(Broken):
    async def withdraw(self, error):
        raise ZeroDivisionError

    async def deposit(self, cost):
        raise ZeroDivisionError


def test_a_budget_that_fails_loses_neither_error_nor_result(colour, caplog):
    """A faulty budget pays for nothing, so there is no retry."""
    with pytest.raises(OSError, match="9") as caught:
        colour(EAGER, budget=Broken(9))(failing(9))()
    assert state_of(caught.value).stop_reason is StopReason.BUDGET
    notes = "".join(caught.value.__notes__)
    assert "not retried, because its policy failed with ZeroDivisionError" in notes
    assert len(caplog.records) == 1
    assert colour(EAGER, budget=Broken(9))(failing(0))() == "done"
    assert len(caplog.records) == 2


@pytest.mark.parametrize("cost", ["5", -1, math.nan, math.inf, ()], ids=repr)
def test_a_budget_whose_cost_is_none_pays_for_nothing(colour, cost):
    class Wrong(Ledger):
        def withdraw(self, error):
            return cost

    with pytest.raises(OSError, match="9") as caught:
        colour(EAGER, budget=Wrong(9))(failing(9))()
    assert state_of(caught.value).stop_reason is StopReason.BUDGET
    assert f"got {cost!r}" in "".join(caught.value.__notes__)


def test_an_awaited_budget_that_fails_loses_neither(caplog):
    @aretry(EAGER, budget=AwaitedBroken(9))
    async def fetch(times):
        return failing(times)()

    with pytest.raises(OSError, match="9"):
        asyncio.run(fetch(9))
    assert asyncio.run(fetch(0)) == "done"
    policy = EAGER.replace(budget=Broken(9), on_result=lambda _: True)
    assert policy.run(lambda: 5).state.stop_reason is StopReason.BUDGET
    assert len(caplog.records) == 3


def test_an_error_of_an_inner_call_is_counted_once(colour):
    budget = Ledger(9)
    inner = colour(EAGER, budget=budget, max_attempts=2)(failing(9))
    with pytest.raises(OSError, match="8"):
        retry(EAGER, budget=budget)(inner)()
    told = [retryable for what, *_, retryable in budget.told if what == "failed"]
    assert told == [True, True, False]


def test_a_decision_is_pure_and_is_told_whether_it_is_paid_for():
    budget = Ledger(0)
    policy = EAGER.replace(budget=budget)
    state = RetryState("fetch", 7, 0.0)
    failure = Failure(1, OSError(), None, 0.0, 0.0, None)
    assert policy.decide(state, failure) == Again(0.0)
    assert policy.decide(state, failure, budgeted=False) == Stop(StopReason.BUDGET)
    last = failure._replace(attempt=4)
    assert policy.decide(state, last, budgeted=False) == Stop(StopReason.ATTEMPTS)
    assert budget.told == []


def test_aws_tokens_in_calls(colour):
    bucket = TokenBucket(20)
    fetch = colour(EAGER, budget=bucket)
    with pytest.raises(OSError, match="6"):
        fetch(failing(9))()
    assert bucket.balance == 5
    with pytest.raises(OSError, match="8") as caught:
        fetch(failing(9))()
    assert bucket.balance == 0
    assert state_of(caught.value).stop_reason is StopReason.BUDGET
    for _ in range(7):
        assert fetch(failing(0))() == "done"
    assert bucket.balance == 7
    assert fetch(failing(1))() == "done"
    assert bucket.balance == 7


def test_grpc_throttles_calls(colour):
    """Ten tokens: five failures leave five, which is not more than half."""
    throttle = Throttle(10, 0.1)
    policy = EAGER.replace(budget=throttle, max_attempts=9)
    outcome = colour.run(policy, failing(9))
    assert (outcome.state.attempt, throttle.balance) == (5, 5.0)
    assert outcome.state.stop_reason is StopReason.BUDGET
    for _ in range(11):
        colour.run(policy, failing(0))
    assert colour.run(policy, failing(1)).ok


def test_a_share_of_the_requests_may_be_retried(clock):
    budget = RatioBudget(0.5, reserve=0)
    fetch = retry(EAGER, budget=budget)
    for _ in range(4):
        fetch(failing(0))()
    with pytest.raises(OSError, match="7"):
        fetch(failing(9))()
    clock.advance(20)
    with pytest.raises(OSError, match="9"):
        fetch(failing(9))()


def test_threads_share_a_budget_to_the_last_token():
    bucket = TokenBucket(1000, cost=5)
    start = threading.Barrier(8)
    retries = []

    @retry(EAGER, budget=bucket, max_attempts=None, schedule=[0] * 99)
    def fetch():
        raise OSError("dead")

    def work():
        start.wait()
        for _ in range(20):
            with pytest.raises(OSError, match="dead") as caught:
                fetch()
            retries.append(state_of(caught.value).attempt - 1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sum(retries), bucket.balance) == (200, 0)


def test_a_thousand_tasks_share_a_budget_to_the_last_token():
    bucket = TokenBucket(500, cost=5)
    retries = []

    @aretry(EAGER, budget=bucket)
    async def fetch():
        await asyncio.sleep(0)
        raise OSError("dead")

    async def main():
        outcomes = [fetch() for _ in range(1000)]
        errors = await asyncio.gather(*outcomes, return_exceptions=True)
        retries.extend(state_of(error).attempt - 1 for error in errors)

    asyncio.run(main())
    assert (sum(retries), bucket.balance) == (100, 0)
