"""Each budget against the published numbers of its source."""

from fractions import Fraction

import pytest

from retrykit.budgets import RatioBudget, Throttle, TokenBucket
from retrykit.testing import virtual_time

ERROR = OSError()


class ThrottledError(Exception):
    """A service asks for fewer calls."""


class DrainError(Exception):
    """Costs as much as the tests of the source withdraw directly."""


def play(budget, outcomes, attempts=3):
    """Use a budget as a driver does, and return the outcome of each attempt."""
    log, attempt, cost = [], 1, None
    for error in outcomes:
        if error is None:
            budget.deposit(cost)
            log.append(("success", budget.balance))
            attempt, cost = 1, None
            continue
        budget.failed(first=attempt == 1, retryable=True)
        if attempt == attempts:
            log.append(("max attempts", budget.balance))
            attempt, cost = 1, None
        elif (paid := budget.withdraw(error)) is None:
            log.append(("no quota", budget.balance))
            attempt, cost = 1, None
        else:
            log.append(("retry", budget.balance))
            attempt, cost = attempt + 1, paid
    return log


# The shared tests of the AWS SDKs: "Retry Behavior 2.0" and its 2026 revision, "2.1".
# They give the numbers of tokens and of attempts.
BEFORE_2026 = {
    "retry eventually succeeds": (
        (500, 3),
        [ERROR, ERROR, None],
        [("retry", 495), ("retry", 490), ("success", 495)],
    ),
    "fail due to max attempts reached": (
        (500, 3),
        [ERROR] * 3,
        [("retry", 495), ("retry", 490), ("max attempts", 490)],
    ),
    "retry quota reached after a single retry": (
        (5, 3),
        [ERROR, ERROR],
        [("retry", 0), ("no quota", 0)],
    ),
    "no retries at all if retry quota is 0": ((0, 3), [ERROR], [("no quota", 0)]),
    "five attempts": (
        (500, 5),
        [ERROR] * 5,
        [("retry", balance_after) for balance_after in (495, 490, 485, 480)]
        + [("max attempts", 480)],
    ),
    "a timeout costs twice as much and gives it back": (
        (500, 3),
        [ERROR, TimeoutError(), None],
        [("retry", 495), ("retry", 485), ("success", 495)],
    ),
    "a call that is not retried gives one": (
        (5, 2),
        [ERROR, ERROR, None, None],
        [("retry", 0), ("max attempts", 0), ("success", 1), ("success", 2)],
    ),
}
SINCE_2026 = {
    "retry eventually succeeds": (
        (500, 3),
        [ERROR, ERROR, None],
        [("retry", 486), ("retry", 472), ("success", 486)],
    ),
    "fail due to max attempts reached": (
        (500, 3),
        [ERROR] * 3,
        [("retry", 486), ("retry", 472), ("max attempts", 472)],
    ),
    "retry quota reached after a single retry": (
        (14, 3),
        [ERROR, ERROR],
        [("retry", 0), ("no quota", 0)],
    ),
    "no retries at all if retry quota is 0": ((0, 3), [ERROR], [("no quota", 0)]),
    "retry stops after retry quota exhaustion": (
        (20, 5),
        [ERROR, ERROR],
        [("retry", 6), ("no quota", 6)],
    ),
    "retry quota recovery after successful responses": (
        (30, 5),
        [ERROR, ERROR, None, ERROR, None],
        [("retry", 16), ("retry", 2), ("success", 16), ("retry", 2), ("success", 16)],
    ),
    "a throttling error takes 5 tokens": (
        (500, 3),
        [ThrottledError(), None],
        [("retry", 495), ("success", 500)],
    ),
}


@pytest.mark.parametrize("case", BEFORE_2026.values(), ids=BEFORE_2026)
def test_the_bucket_counts_as_the_aws_sdks_do(case):
    (capacity, attempts), outcomes, expected = case
    assert play(TokenBucket(capacity), outcomes, attempts) == expected


@pytest.mark.parametrize("case", SINCE_2026.values(), ids=SINCE_2026)
def test_the_bucket_counts_as_the_aws_sdks_do_since_2026(case):
    (capacity, attempts), outcomes, expected = case
    bucket = TokenBucket(capacity, cost=14, costs=((ThrottledError, 5),))
    assert play(bucket, outcomes, attempts) == expected


def test_the_bucket_goes_through_the_quota_test_of_the_aws_sdk_for_cpp():
    """TestStandardRetryStrategy, its six steps on one client."""
    bucket = TokenBucket(costs=((DrainError, 473), (TimeoutError, 10)))
    late = TimeoutError()

    def balance_after(*outcomes):
        return [balance for _, balance in play(bucket, outcomes)]

    assert balance_after(None) == [500]
    assert balance_after(ERROR, late, ERROR) == [495, 485, 485]
    assert balance_after(ERROR, late, None) == [480, 470, 480]
    bucket.withdraw(DrainError())
    assert balance_after(ERROR, ERROR) == [2, 2]
    assert balance_after(ERROR) == [2]
    assert balance_after(None) == [3]


def test_a_group_costs_as_much_as_its_most_expensive_error():
    bucket = TokenBucket(costs=((TimeoutError, 10), (KeyError, 2)))
    late = ExceptionGroup("late", [OSError(), TimeoutError()])
    group = ExceptionGroup("all", [KeyError(), late])
    assert bucket.withdraw(group) == 10
    assert bucket.withdraw(ExceptionGroup("missing", [KeyError()])) == 2
    assert bucket.withdraw(ExceptionGroup("other", [KeyError(), OSError()])) == 5
    flat = TokenBucket(costs=((ExceptionGroup, 1), (TimeoutError, 10)))
    assert flat.withdraw(group) == 1


def test_a_full_bucket_accepts_no_deposit():
    bucket = TokenBucket(capacity=20, reward=7)
    assert play(bucket, [None, ERROR, None, ERROR, ERROR, ERROR, None, None]) == [
        ("success", 20),
        ("retry", 15),
        ("success", 20),
        ("retry", 15),
        ("retry", 10),
        ("max attempts", 10),
        ("success", 17),
        ("success", 20),
    ]


def test_the_throttle_allows_four_retries_but_not_the_fifth():
    """A6: maxTokens 10, tokenRatio 0.1; no retry at or below maxTokens / 2."""
    outcomes = play(Throttle(10, 0.1), [ERROR] * 5, attempts=9)
    assert outcomes == [
        ("retry", 9),
        ("retry", 8),
        ("retry", 7),
        ("retry", 6),
        ("no quota", 5),
    ]


def test_the_throttle_recovers_from_zero_with_51_successes():
    throttle = Throttle(10, 0.1)
    for _ in range(12):
        throttle.failed(first=True, retryable=True)
    assert throttle.balance == 0
    for _ in range(50):
        throttle.deposit(None)
    assert (throttle.balance, throttle.withdraw(ERROR)) == (5, None)
    throttle.deposit(None)
    assert (throttle.balance, throttle.withdraw(ERROR)) == (5.1, 0.0)


def test_the_throttle_counts_a_success_after_retries_like_any_other():
    throttle = Throttle(10, 0.5)
    assert play(throttle, [ERROR, None, None, None]) == [
        ("retry", 9),
        ("success", 9.5),
        ("success", 10),
        ("success", 10),
    ]


def test_the_throttle_does_not_count_failures_that_are_not_retryable():
    """A6: this avoids conflating server failure with malformed requests."""
    throttle = Throttle()
    throttle.failed(first=True, retryable=False)
    assert throttle.balance == 10


@pytest.mark.parametrize(
    ("ratio", "gained"),
    [(0.5466, 0.546), (0.0019, 0.001), (0.1, 0.1), (1e-3, 0.001), (2, 2), (2e16, 10)],
    ids=str,
)
def test_the_throttle_ignores_what_follows_three_decimals(ratio, gained):
    throttle = Throttle(10, ratio)
    for _ in range(10):
        throttle.failed(first=True, retryable=True)
    throttle.deposit(None)
    assert throttle.balance == gained


# The tests of tower's TpsBudget; a deposit there is a request here.
def requests(budget, count=1):
    for _ in range(count):
        budget.deposit(None)


def test_tower_tps_empty():
    budget = RatioBudget(1.0, reserve=0, window=1)
    assert budget.withdraw(ERROR) is None


def test_tower_tps_leaky():
    budget = RatioBudget(1.0, reserve=0, window=1)
    with virtual_time() as clock:
        requests(budget)
        clock.advance("3s")
        assert budget.withdraw(ERROR) is None


@pytest.mark.parametrize("start", [0, 0.05, 0.0999, 7.3, 86_400.02], ids=str)
def test_tower_tps_slots(start):
    budget = RatioBudget(0.5, reserve=0, window=1)
    with virtual_time(start=start) as clock:
        requests(budget, 2)
        clock.advance("901ms")
        assert budget.withdraw(ERROR) == 1.0
        clock.advance("2001ms")
        requests(budget)
        clock.advance("301ms")
        requests(budget)
        clock.advance("801ms")
        requests(budget)
        # The first request has left the window; the other two pay for one retry.
        assert budget.balance == 1
        assert budget.withdraw(ERROR) == 1.0
        assert budget.withdraw(ERROR) is None


def test_tower_tps_reserve():
    budget = RatioBudget(1.0, reserve=5, window=1)
    with virtual_time():
        assert [budget.withdraw(ERROR) for _ in range(6)] == [1.0] * 5 + [None]


# Finagle's RetryBudgetTest allows one more or less, for its scaled integers.
FINAGLE = [0.1, 0.5, 0.25, 0.75, 0.99, 0.999, 0.9999, 0.01, 0.001, 0.0001]


@pytest.mark.thorough
@pytest.mark.parametrize("ratio", FINAGLE, ids=str)
def test_exactly_the_ratio_of_many_requests_is_retried_like_finagle(ratio):
    budget = RatioBudget(ratio, reserve=0, window=60)
    with virtual_time():
        retried = 0
        for count in range(1, 10_001):
            requests(budget)
            retried += budget.withdraw(ERROR) is not None
            assert retried == count * Fraction(str(ratio)) // 1
        assert budget.balance < 1


@pytest.mark.parametrize(
    ("ratio", "reserve", "window"),
    [(0.0, 10, 1), (0.0, 5, 2), (0.1, 10, 1), (0.5, 5, 2)],
    ids=str,
)
def test_the_reserve_of_finagle_is_added(ratio, reserve, window):
    budget = RatioBudget(ratio, reserve=reserve, window=window)
    with virtual_time():
        assert budget.balance == reserve * window
        requests(budget, 10_000)
        assert budget.balance == reserve * window + 10_000 * ratio


def test_the_ratio_of_finagle_may_exceed_one():
    budget = RatioBudget(2.0, reserve=0, window=60)
    with virtual_time():
        assert (budget.balance, budget.withdraw(ERROR)) == (0, None)
        requests(budget, 10_000)
        assert budget.balance == 20_000


def test_without_ratio_and_reserve_nothing_is_retried():
    budget = RatioBudget(0, reserve=0)
    requests(budget, 10)
    assert (budget.balance, budget.withdraw(ERROR)) == (0, None)


def test_the_numbers_of_finagle():
    """20 % of the requests of ten seconds, and ten retries for each second."""
    budget = RatioBudget(reserve=10)
    with virtual_time():
        requests(budget, 10)
        retried = sum(budget.withdraw(ERROR) is not None for _ in range(200))
    assert retried == 10 * 10 + 2


def test_the_default_reserve_is_one_retry_in_ten_seconds():
    budget = RatioBudget()
    with virtual_time() as clock:
        assert [budget.withdraw(ERROR), budget.withdraw(ERROR)] == [1.0, None]
        clock.advance("11s")
        assert [budget.withdraw(ERROR), budget.withdraw(ERROR)] == [1.0, None]
