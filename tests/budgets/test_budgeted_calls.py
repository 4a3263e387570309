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
    Rule,
    Stop,
    StopReason,
    aretry,
    aretrying,
    retry,
    retrying,
    state_of,
)
from retrykit.budgets import Budget, RatioBudget, Throttle, TokenBucket

EAGER = Policy(schedule=[0] * 9, max_attempts=4, on=OSError)


class RecordingBudget(Budget):
    """A budget that records its calls, and pays for a number of retries."""

    def __init__(self, retries):
        self.retries = retries
        self.calls = []

    @property
    def balance(self):
        return self.retries

    def failed(self, *, first, retryable):
        self.calls.append(("failed", first, retryable))

    def withdraw(self, error):
        self.calls.append(("withdraw", str(error)))
        if not self.retries:
            return None
        self.retries -= 1
        return 2.5

    def deposit(self, cost):
        self.calls.append(("deposit", cost))


def fail_times(times, error=OSError):
    left = [error(str(number)) for number in range(times, 0, -1)]

    def fetch():
        if left:
            raise left.pop(0)
        return "done"

    return fetch


def test_a_first_success_is_deposited(backend):
    """The first call is observed, and the second takes the fast path."""
    budget = RecordingBudget(9)
    fetch = backend(EAGER, budget=budget)(fail_times(0))
    assert [fetch(), fetch()] == ["done", "done"]
    assert budget.calls == [("deposit", None)] * 2


def test_a_first_result_that_is_judged_is_deposited(backend):
    budget = RecordingBudget(9)
    fetch = backend(EAGER, budget=budget, on_result=str.isspace)(fail_times(0))
    assert [fetch(), fetch()] == ["done", "done"]
    assert budget.calls == [("deposit", None)] * 2


def test_a_success_returns_the_cost_of_the_last_retry(backend):
    budget = RecordingBudget(9)
    outcome = backend.run(EAGER.replace(budget=budget), fail_times(2))
    assert budget.calls == [
        ("failed", True, True),
        ("withdraw", "2"),
        ("failed", False, True),
        ("withdraw", "1"),
        ("deposit", 2.5),
    ]
    assert outcome.state.retry_cost == 2.5


def test_a_denied_retry_is_not_made(backend):
    budget = RecordingBudget(1)
    with pytest.raises(OSError, match="8") as caught:
        backend(EAGER, budget=budget)(fail_times(9))()
    state = state_of(caught.value)
    assert (state.attempt, state.stop_reason) == (2, StopReason.BUDGET)
    assert state.failures[-1].delay is None
    assert "the retry budget is spent" in caught.value.__notes__[0]
    assert ("deposit", 2.5) not in budget.calls


def test_the_budget_pays_before_the_sleep_and_only_for_retries_that_are_made(backend):
    """A retry that the limits forbid costs nothing, but its failure is reported."""
    budget = RecordingBudget(9)
    with pytest.raises(OSError, match="6"):
        backend(EAGER, budget=budget)(fail_times(9))()
    withdrawals = [call for call in budget.calls if call[0] == "withdraw"]
    assert len(withdrawals) == 3
    assert budget.calls[-1] == ("failed", False, True)
    assert budget.balance == 6


@pytest.mark.parametrize("error", [ValueError, GiveUp], ids=["not on", "given up"])
def test_the_budget_is_notified_of_errors_that_are_not_retryable(backend, error):
    budget = RecordingBudget(9)

    def fetch():
        raise error

    with pytest.raises(error):
        backend(EAGER, budget=budget)(fetch)()
    assert budget.calls == [("failed", True, False)]


def test_a_retry_after_a_rejected_result_is_paid_for(backend):
    budget = RecordingBudget(9)
    results = [0, 1]
    policy = EAGER.replace(budget=budget, on_result=lambda result: not result)
    assert backend.run(policy, lambda: results.pop(0)).value == 1
    expected = [("failed", True, True), ("withdraw", "None"), ("deposit", 2.5)]
    assert budget.calls == expected


def test_a_call_that_an_event_ends_pays_for_no_retry_and_deposits_nothing(backend):
    class SetEvent:
        def is_set(self):
            return True

        if backend.name == "sync":

            def wait(self, seconds): ...

        else:

            async def wait(self): ...

    budget = RecordingBudget(9)
    policy = EAGER.replace(budget=budget, stop_event=SetEvent(), fallback="old")
    outcome = backend.run(policy, fail_times(1))
    assert (outcome.value, outcome.state.stop_reason) == ("old", StopReason.STOPPED)
    assert budget.calls == [("failed", True, True)]


def test_a_result_that_a_rule_rejects_is_paid_for(backend):
    budget, results = RecordingBudget(9), iter(["busy", "done"])
    rules = [Rule(on_result="busy".__eq__, schedule=[0])]
    policy = Policy(on=(), rules=rules, budget=budget)
    assert backend.run(policy, lambda: next(results)).value == "done"
    assert budget.calls == [
        ("failed", True, True),
        ("withdraw", "None"),
        ("deposit", 2.5),
    ]


def test_retries_of_blocks_are_paid_for():
    budget = RecordingBudget(9)
    fetch = fail_times(1)
    for attempt in retrying(EAGER, budget=budget):
        with attempt:
            fetch()
    expected = [("failed", True, True), ("withdraw", "1"), ("deposit", 2.5)]
    assert budget.calls == expected

    async def block():
        fetch = fail_times(1)
        async for attempt in aretrying(EAGER, budget=budget):
            with attempt:
                fetch()

    budget.calls.clear()
    asyncio.run(block())
    assert budget.calls == expected


def test_a_block_that_does_not_fail_is_reported():
    budget = RecordingBudget(9)
    for attempt in retrying(EAGER, budget=budget):
        with attempt:
            pass
    assert budget.calls == [("deposit", None)]


class AsyncBudget(RecordingBudget):
    """An async budget."""

    async def withdraw(self, error):
        await asyncio.sleep(0)
        return super().withdraw(error)

    async def deposit(self, cost):
        await asyncio.sleep(0)
        super().deposit(cost)


def test_a_budget_may_be_async():
    budget = AsyncBudget(1)

    async def main():
        fetch = fail_times(1)

        @aretry(EAGER, budget=budget)
        async def awaited_fetch():
            return fetch()

        assert await awaited_fetch() == "done"
        assert await awaited_fetch() == "done"

    asyncio.run(main())
    deposits = [call for call in budget.calls if call[0] == "deposit"]
    assert deposits == [("deposit", 2.5), ("deposit", None)]
    rule = "budget must be a sync budget where nothing can await it"
    for write in (
        lambda: retry(budget=budget)(print),
        lambda: aretrying(budget=budget),
    ):
        with pytest.raises(ConfigError, match=rule):
            write()


class HangingBudget(RecordingBudget):
    async def withdraw(self, error):
        await asyncio.Event().wait()


class InterruptedBudget(RecordingBudget):
    def withdraw(self, error):
        raise KeyboardInterrupt


def test_a_call_cancelled_while_the_budget_is_asked_keeps_its_failure():
    @aretry(EAGER, budget=HangingBudget(9))
    async def fetch():
        return fail_times(9)()

    async def main():
        task = asyncio.create_task(fetch())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return state_of(caught.value)

    with pytest.raises(KeyboardInterrupt) as caught:
        retry(EAGER, budget=InterruptedBudget(9))(fail_times(9))()
    for state in (asyncio.run(main()), state_of(caught.value)):
        assert state.stop_reason is StopReason.CANCELLED
        assert [str(error) for error in state.errors] == ["9"]
        assert state.failures[0].delay is None


class BrokenBudget(RecordingBudget):
    def withdraw(self, error):
        raise ZeroDivisionError

    def deposit(self, cost):
        raise ZeroDivisionError


class BrokenAsyncBudget(BrokenBudget):
    async def withdraw(self, error):
        raise ZeroDivisionError

    async def deposit(self, cost):
        raise ZeroDivisionError


def test_a_failing_budget_does_not_lose_the_error_or_the_result(backend, caplog):
    """A failing budget pays for nothing, so there is no retry."""
    with pytest.raises(OSError, match="9") as caught:
        backend(EAGER, budget=BrokenBudget(9))(fail_times(9))()
    assert state_of(caught.value).stop_reason is StopReason.BUDGET
    notes = "".join(caught.value.__notes__)
    assert "not retried, because its policy failed with ZeroDivisionError" in notes
    assert len(caplog.records) == 1
    assert backend(EAGER, budget=BrokenBudget(9))(fail_times(0))() == "done"
    assert len(caplog.records) == 2


@pytest.mark.parametrize("cost", ["5", -1, math.nan, math.inf, ()], ids=repr)
def test_a_budget_that_returns_an_invalid_cost_denies_the_retry(backend, cost):
    class NoCost(RecordingBudget):
        def withdraw(self, error):
            return cost

    with pytest.raises(OSError, match="9") as caught:
        backend(EAGER, budget=NoCost(9))(fail_times(9))()
    assert state_of(caught.value).stop_reason is StopReason.BUDGET
    assert f"got {cost!r}" in "".join(caught.value.__notes__)


def test_a_failing_async_budget_does_not_lose_the_error_or_the_result(caplog):
    @aretry(EAGER, budget=BrokenAsyncBudget(9))
    async def fetch(times):
        return fail_times(times)()

    with pytest.raises(OSError, match="9"):
        asyncio.run(fetch(9))
    assert asyncio.run(fetch(0)) == "done"
    policy = EAGER.replace(budget=BrokenBudget(9), on_result=lambda _: True)
    assert policy.run(lambda: 5).state.stop_reason is StopReason.BUDGET
    assert len(caplog.records) == 3


def test_an_error_of_a_nested_call_is_paid_for_once(backend):
    budget = RecordingBudget(9)
    inner = backend(EAGER, budget=budget, max_attempts=2)(fail_times(9))
    with pytest.raises(OSError, match="8"):
        retry(EAGER, budget=budget)(inner)()
    retryable = [each[-1] for each in budget.calls if each[0] == "failed"]
    assert retryable == [True, True, False]


def test_decide_does_not_use_the_budget():
    budget = RecordingBudget(0)
    policy = EAGER.replace(budget=budget)
    state = RetryState("fetch", 7, 0.0)
    failure = Failure(1, OSError(), None, 0.0, 0.0, None)
    assert policy.decide(state, failure) == Again(0.0)
    assert policy.decide(state, failure, budgeted=False) == Stop(StopReason.BUDGET)
    last = failure._replace(attempt=4)
    assert policy.decide(state, last, budgeted=False) == Stop(StopReason.ATTEMPTS)
    assert budget.calls == []


def test_the_aws_token_bucket_in_calls(backend):
    bucket = TokenBucket(20)
    fetch = backend(EAGER, budget=bucket)
    with pytest.raises(OSError, match="6"):
        fetch(fail_times(9))()
    assert bucket.balance == 5
    with pytest.raises(OSError, match="8") as caught:
        fetch(fail_times(9))()
    assert bucket.balance == 0
    assert state_of(caught.value).stop_reason is StopReason.BUDGET
    for _ in range(7):
        assert fetch(fail_times(0))() == "done"
    assert bucket.balance == 7
    assert fetch(fail_times(1))() == "done"
    assert bucket.balance == 7


def test_the_grpc_throttle_in_calls(backend):
    """Ten tokens: five failures leave five, which is not more than half."""
    throttle = Throttle(10, 0.1)
    policy = EAGER.replace(budget=throttle, max_attempts=9)
    outcome = backend.run(policy, fail_times(9))
    assert (outcome.state.attempt, throttle.balance) == (5, 5.0)
    assert outcome.state.stop_reason is StopReason.BUDGET
    for _ in range(11):
        backend.run(policy, fail_times(0))
    assert backend.run(policy, fail_times(1)).ok


def test_the_ratio_budget_in_calls(clock):
    budget = RatioBudget(0.5, reserve=0)
    fetch = retry(EAGER, budget=budget)
    for _ in range(4):
        fetch(fail_times(0))()
    with pytest.raises(OSError, match="7"):
        fetch(fail_times(9))()
    clock.advance(20)
    with pytest.raises(OSError, match="9"):
        fetch(fail_times(9))()


@pytest.mark.needs("threads")
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
