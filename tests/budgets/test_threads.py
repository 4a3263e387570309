"""Budgets shared by threads and tasks."""

import asyncio
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import retrykit.budgets
from retrykit.budgets import (
    FleetBudget,
    RatioBudget,
    Registry,
    Throttle,
    TokenBucket,
    shared,
)
from retrykit.testing import virtual_time
from tests._support.concurrency import in_thread

ERROR = OSError()
BUDGETS = retrykit.budgets.__path__[0]


def switch_threads_often(chance):
    """Return a trace function that switches threads between opcodes of budgets.

    Otherwise a thread is so rarely interrupted between reading a number and writing it
    that the tests would pass without locks.
    """

    def trace(frame, event, _):
        if not frame.f_code.co_filename.startswith(BUDGETS):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and chance.random() < 0.1:
            time.sleep(0)
        return trace

    return trace


@pytest.fixture
def threads():
    """Run a function in eight threads that are switched often."""

    def run(work, seed):
        before = sys.gettrace()
        together.wait(10)
        # CPython 3.12 crashes if many threads trace opcodes.
        if sys.version_info[:2] != (3, 12):
            sys.settrace(switch_threads_often(random.Random(seed)))  # noqa: S311
        try:
            return work(seed)
        finally:
            sys.settrace(before)

    together = threading.Barrier(8)
    with ThreadPoolExecutor(8) as pool:
        yield lambda work: list(pool.map(run, [work] * 8, range(8)))


def use(bucket, chance, tally):
    """Make a step, and record the cost that the bucket charged."""
    if chance.random() < 0.5:
        bucket.deposit(None)
        tally.append(-1)
        return None
    cost = bucket.withdraw(TimeoutError() if chance.random() < 0.5 else ERROR)
    tally.append(cost or 0)
    return cost


def give_back(bucket, cost, tally):
    if cost is not None:
        bucket.deposit(cost)
        tally.append(-cost)


def local_bucket(capacity):
    """Return a bucket that is neither filled nor emptied by these tests."""
    bucket = TokenBucket(
        capacity, costs=((TimeoutError, 10), (EOFError, capacity // 2))
    )
    return bucket, [bucket.withdraw(EOFError())]


def test_eight_threads_lose_no_token(threads):
    bucket, tally = local_bucket(10**6)

    def work(seed):
        chance, own = random.Random(seed), []  # noqa: S311
        for _ in range(50):
            cost = use(bucket, chance, own)
            give_back(bucket, cost if chance.random() < 0.7 else None, own)
        return own

    for own in threads(work):
        tally += own
    assert bucket.balance == bucket.capacity - sum(tally)


def test_eight_threads_never_overdraw_a_bucket(threads):
    bucket = TokenBucket(capacity=1_000)
    paid = threads(lambda _: sum(bucket.withdraw(ERROR) or 0 for _ in range(50)))
    assert (sum(paid), bucket.balance) == (1_000, 0)


def test_a_thousand_tasks_lose_no_token():
    bucket, tally = local_bucket(10**6)

    async def work(seed):
        chance = random.Random(seed)  # noqa: S311
        cost = use(bucket, chance, tally)
        await asyncio.sleep(0)
        give_back(bucket, cost if chance.random() < 0.7 else None, tally)

    async def main():
        await asyncio.gather(*map(work, range(1_000)))

    asyncio.run(main())
    assert len(tally) > 1_000
    assert bucket.balance == bucket.capacity - sum(tally)


@pytest.mark.thorough
def test_eight_threads_lose_no_part_of_a_throttle(threads):
    throttle = Throttle(10**6, 0.5)

    def work(_):
        for _ in range(50):
            throttle.failed(first=True, retryable=True)
            throttle.deposit(None)

    threads(work)
    assert throttle.balance == 10**6 - 200


@pytest.mark.thorough
def test_eight_threads_lose_no_success_of_a_fleet_budget(threads):
    budget = FleetBudget(0.5, capacity=10**6)

    def work(_):
        for _ in range(50):
            budget.withdraw(ERROR)
            budget.deposit(None)

    threads(work)
    assert budget.balance == 10**6 - 200


def test_eight_threads_lose_no_request(threads):
    budget = RatioBudget(0.2, reserve=0)

    def work(_):
        taken = 0
        for _ in range(50):
            budget.deposit(None)
            taken += budget.withdraw(ERROR) is not None
        return taken

    with virtual_time(process_wide=True):
        taken = sum(threads(work))
        assert taken + budget.balance == 80


def test_eight_threads_that_read_the_balance_lose_no_request(threads):
    budget = RatioBudget(1, reserve=0)
    with virtual_time(process_wide=True) as clock:
        for second in range(1, 9):
            budget.deposit(None)
            clock.sleep(1)
            assert threads(lambda _: budget.balance) == [second] * 8


def test_eight_threads_get_one_budget_of_a_scope(threads):
    together = threading.Barrier(8)

    def make():
        together.wait(10)
        return TokenBucket()

    found = threads(lambda _: shared("key:race", make))
    assert len(set(map(id, found))) == 1


def test_eight_threads_get_one_budget_of_a_key(threads):
    together = threading.Barrier(8)

    def make():
        together.wait(10)
        return TokenBucket()

    hosts = Registry(make)
    found = threads(lambda _: hosts["api.example"])
    assert len(set(map(id, found))) == 1
    assert len(hosts) == 1


@pytest.mark.thorough
def test_a_registry_stays_within_its_bound_under_eight_threads(threads):
    hosts = Registry(TokenBucket, at_most=5)
    threads(lambda seed: [hosts[(seed * n) % 23] for n in range(150)])
    assert len(hosts) == 5


def test_a_request_that_succeeds_waits_for_no_other_thread():
    budget = RatioBudget(0.5, reserve=0, window="1d")
    assert budget.balance == 0
    with budget._lock:  # noqa: SLF001  as another thread would
        in_thread(lambda: budget.deposit(None))
    assert budget.balance == 0.5
