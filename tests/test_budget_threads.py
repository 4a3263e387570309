"""Threads and tasks share a budget, and lose nothing of it."""

import asyncio
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from retrykit.budgets import RatioBudget, Registry, Throttle, TokenBucket, shared
from retrykit.testing import virtual_time

ERROR = OSError()


@pytest.fixture
def threads():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    with ThreadPoolExecutor(8) as pool:
        yield lambda work: list(pool.map(work, range(8)))
    sys.setswitchinterval(before)


def use(bucket, chance, tally):
    """Make a step, and write down what it took from the bucket."""
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


def drained(capacity):
    """Return a bucket that no step of these tests fills, and none empties."""
    bucket = TokenBucket(
        capacity, costs=((TimeoutError, 10), (EOFError, capacity // 2))
    )
    return bucket, [bucket.withdraw(EOFError())]


def test_eight_threads_lose_no_token(threads):
    bucket, tally = drained(10**6)

    def work(seed):
        chance, own = random.Random(seed), []  # noqa: S311
        for _ in range(2_000):
            cost = use(bucket, chance, own)
            give_back(bucket, cost if chance.random() < 0.7 else None, own)
        return own

    for own in threads(work):
        tally += own
    assert bucket.balance == bucket.capacity - sum(tally)


def test_eight_threads_never_pay_with_a_token_that_is_not_there(threads):
    bucket = TokenBucket(capacity=10_000)
    paid = threads(lambda _: sum(bucket.withdraw(ERROR) or 0 for _ in range(1_000)))
    assert (sum(paid), bucket.balance) == (10_000, 0)


def test_a_thousand_tasks_lose_no_token():
    bucket, tally = drained(10**6)

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


def test_eight_threads_lose_no_part_of_a_throttle(threads):
    throttle = Throttle(10**6, 0.5)

    def work(_):
        for _ in range(5_000):
            throttle.failed(first=True, retryable=True)
            throttle.deposit(None)

    threads(work)
    assert throttle.balance == 10**6 - 20_000


def test_eight_threads_lose_no_request(threads):
    budget = RatioBudget(0.2, reserve=0)

    def work(_):
        taken = 0
        for _ in range(1_000):
            budget.deposit(None)
            taken += budget.withdraw(ERROR) is not None
        return taken

    with virtual_time(everywhere=True):
        taken = sum(threads(work))
        assert taken + budget.balance == 1_600


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


def test_a_registry_stays_within_its_bound_under_eight_threads(threads):
    hosts = Registry(TokenBucket, at_most=5)
    threads(lambda seed: [hosts[(seed * n) % 23] for n in range(500)])
    assert len(hosts) == 5
