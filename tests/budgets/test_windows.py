"""Budgets against simple models, over time."""

import copy
import threading
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError
from retrykit._internal.clocks import sync_clock
from retrykit.budgets import FleetBudget, RatioBudget, Throttle, TokenBucket
from retrykit.testing import virtual_time
from tests._support import required

ERROR = OSError()
LATE = TimeoutError()


@given(
    st.integers(0, 40),
    st.lists(st.sampled_from([ERROR, LATE, None, 5, 10]), max_size=60),
)
def test_a_bucket_behaves_like_a_number(capacity, steps):
    bucket, tokens = TokenBucket(capacity), capacity
    for step in steps:
        if isinstance(step, Exception):
            cost = 10 if step is LATE else 5
            paid = cost if cost <= tokens else None
            assert bucket.withdraw(step) == paid
            tokens -= paid or 0
        else:
            bucket.deposit(step)
            tokens = min(tokens + (1 if step is None else step), capacity)
        assert bucket.balance == tokens


@given(
    st.integers(1, 12),
    st.integers(1, 1500),
    st.lists(st.sampled_from(["success", "failure", "other"]), max_size=60),
)
def test_a_throttle_behaves_like_a_number(most, thousandths, steps):
    throttle = Throttle(most, thousandths / 1000)
    tokens, gain = Fraction(most), Fraction(thousandths, 1000)
    for step in steps:
        if step == "success":
            throttle.deposit(None)
            tokens = min(tokens + gain, Fraction(most))
        else:
            throttle.failed(first=True, retryable=step == "failure")
            tokens = max(tokens - (step == "failure"), Fraction(0))
        assert throttle.balance == float(tokens)
        assert throttle.withdraw(ERROR) == (0.0 if 2 * tokens > most else None)


LEAPS = st.sampled_from([0, 0, 0, 0.01, 0.1, 0.4, 0.95, 1, 1.05, 1.2, 3, 1e9])
STEPS = st.lists(
    st.tuples(LEAPS, st.sampled_from(["ends", "fails", "fails again", "retries"])),
    max_size=60,
)
RATIOS = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.75, 1.0, 1.5])


@given(RATIOS, st.sampled_from([0, 1, 2.5]), st.sampled_from([1, 2, 10]), STEPS)
def test_a_ratio_counts_the_requests_in_its_window(ratio, reserve, window, steps):
    """A window covers the current tenth of it and the ten before."""
    budget, exact = RatioBudget(ratio, reserve=reserve, window=window), Fraction
    seen = []
    with virtual_time() as clock:
        for leap, step in steps:
            clock.advance(leap * window)
            place = clock.now() // (window / 10)
            recent = [amount for at, amount in seen if place - at <= 10]
            remaining = sum(recent) + exact(str(reserve)) * window
            if step == "retries":
                paid = remaining >= 1
                assert budget.withdraw(ERROR) == (1.0 if paid else None)
                seen.append((place, -paid))
            elif step == "ends":
                budget.deposit(None)
                seen.append((place, exact(str(ratio))))
            else:
                first = step == "fails"
                budget.failed(first=first, retryable=False)
                seen.append((place, first * exact(str(ratio))))
            remaining = sum(amount for at, amount in seen if place - at <= 10)
            remaining += exact(str(reserve)) * window
            assert budget.balance == float(max(remaining, 0))


@given(RATIOS, st.sampled_from([0, 1, 2.5]), STEPS)
def test_no_window_has_more_retries_than_the_ratio_allows(ratio, reserve, steps):
    budget, requests, retries = RatioBudget(ratio, reserve=reserve, window=1), [], []
    with virtual_time() as clock:
        for leap, step in steps:
            clock.advance(leap)
            now = clock.now()
            if step == "retries" and budget.withdraw(ERROR) is not None:
                retries.append(now)
                # Later, the requests that have paid for them can be too old.
                retry_count = sum(now - at < 1 for at in retries)
                paying = sum(now - at <= 1.1 + 1e-6 for at in requests)
                assert retry_count <= ratio * paying + reserve + 1e-9
            elif step in {"ends", "fails"}:
                budget.deposit(None)
                requests.append(now)


@given(st.floats(0, 1000), st.integers(0, 200))
def test_a_ratio_is_exactly_its_decimal(ratio, count):
    budget = RatioBudget(ratio, reserve=0)
    with virtual_time():
        for _ in range(count):
            budget.deposit(None)
        assert budget.balance == float(Fraction(repr(ratio)) * count)


def test_a_ratio_of_three_quarters_allows_three_retries_of_four():
    budget = RatioBudget(0.75, reserve=0)
    with virtual_time():
        for _ in range(4):
            budget.deposit(None)
        assert [budget.withdraw(ERROR) for _ in range(4)] == [1.0, 1.0, 1.0, None]


def test_three_tenths_add_up_exactly():
    budget = RatioBudget(0.1, reserve=0)
    with virtual_time():
        for _ in range(3):
            budget.deposit(None)
        assert budget.balance == 0.3


def test_a_call_is_one_request_however_often_it_is_retried():
    budget = RatioBudget(1, reserve=0)
    with virtual_time():
        budget.failed(first=True, retryable=True)
        cost = budget.withdraw(ERROR)
        budget.failed(first=False, retryable=True)
        budget.deposit(cost)
        assert budget.balance == 0


def test_no_request_expires_while_time_stands_still():
    budget = RatioBudget(1, reserve=0)
    with virtual_time(start=1e15):
        for _ in range(1000):
            budget.deposit(None)
        assert budget.balance == 1000


@pytest.mark.parametrize("age", [0, 0.5, 0.999, 1.0], ids=str)
def test_a_request_counts_for_a_whole_window(age):
    for start in (0, 0.3, 0.95):
        budget = RatioBudget(1, reserve=0, window="10s")
        with virtual_time(start=start) as clock:
            budget.deposit(None)
            clock.advance(age * 10)
            assert budget.balance == 1


@pytest.mark.parametrize("age", [1.1, 1.5, 60_480, 1e12], ids=str)
def test_a_request_expires_within_a_tenth_of_the_window(age):
    for start in (0, 0.3, 0.95):
        budget = RatioBudget(1, reserve=0, window="10s")
        with virtual_time(start=start) as clock:
            budget.deposit(None)
            clock.advance(age * 10 + 1e-6)
            assert budget.balance == 0


def test_a_retry_is_returned_when_it_leaves_the_window():
    budget = RatioBudget(0, reserve=1, window="1s")
    with virtual_time() as clock:
        assert (budget.withdraw(ERROR), budget.withdraw(ERROR)) == (1.0, None)
        clock.advance("2s")
        assert (budget.withdraw(ERROR), budget.withdraw(ERROR)) == (1.0, None)


def test_the_balance_is_never_below_zero():
    """The requests that paid have left the window, but the retry has not."""
    budget = RatioBudget(1, reserve=0, window="1s")
    with virtual_time() as clock:
        budget.deposit(None)
        clock.advance("1s")
        assert budget.withdraw(ERROR) == 1.0
        clock.advance("500ms")
        assert budget.balance == 0
        budget.deposit(None)
        assert budget.withdraw(ERROR) is None


def test_a_clock_that_goes_back_does_not_change_a_ratio():
    budget = RatioBudget(1, reserve=0, window="1s")
    with virtual_time(start=1e12):
        budget.deposit(None)
    with virtual_time() as clock:
        assert budget.balance == 1
        clock.advance("500ms")
        assert budget.balance == 1
        clock.advance("2s")
        assert budget.balance == 0


class InterruptedClock:
    """A clock that calls a function once while it is read."""

    def __init__(self, act):
        self.acts = [act]

    def now(self):
        for _ in range(len(self.acts)):
            self.acts.pop()()
        return 0.0

    def sleep(self, delay):
        raise NotImplementedError


class InterruptingCost(int):
    """A cost that calls a function while it is added."""

    def __new__(cls, act):
        cost = super().__new__(cls, 1)
        cost.act = act
        return cost

    def __radd__(self, tokens):
        self.act()
        return int(self) + tokens


def run_in_a_thread(work):
    """Run in a thread, so that a deadlock is a failure."""
    required.skip_without("threads")
    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(10)
    assert not worker.is_alive(), "it waits for itself"


def test_a_signal_handler_may_use_the_ratio_that_it_interrupts():
    budget = RatioBudget(1, reserve=0)

    def work():
        with sync_clock.use(InterruptedClock(lambda: budget.deposit(None))):
            budget.deposit(None)
            assert budget.balance == 2

    run_in_a_thread(work)


def test_a_signal_handler_may_use_the_bucket_that_it_interrupts():
    bucket = TokenBucket(capacity=20)
    bucket.withdraw(LATE)
    run_in_a_thread(
        lambda: bucket.deposit(InterruptingCost(lambda: bucket.deposit(None)))
    )
    assert bucket.balance >= 11


def test_a_budget_reads_the_clock_that_it_is_given():
    times = [0.0]
    budget = RatioBudget(0, reserve=1, window=2, clock=lambda: times[0])
    taken = []
    for now in (0.1, 0.2, 0.3, 2.5):
        times[0] = now
        taken.append(budget.withdraw(OSError()))
    assert taken == [1, 1, None, 1]
    assert "clock" not in budget.settings
    assert repr(budget) == "RatioBudget(ratio=0.0, reserve=1.0, window=2.0)"


def test_a_copied_budget_has_the_clock_of_calls():
    def fails():
        raise AssertionError

    assert copy.copy(RatioBudget(reserve=1, clock=fails)).balance == 10


def test_a_fleet_budget_reads_the_clock_that_it_is_given():
    times = [5.0]
    budget = FleetBudget(recent="1s", clock=lambda: times[0])
    budget.deposit(None)
    times[0] = 5.9
    assert budget.withdraw(TimeoutError()) == 1
    times[0] = 6.1
    assert budget.withdraw(TimeoutError()) is None
    assert "clock" not in budget.settings


def test_a_clock_that_goes_back_makes_no_success_recent():
    times = [100.0]
    budget = FleetBudget(recent="1s", clock=lambda: times[0])
    budget.deposit(None)
    times[0] = 10.0
    assert budget.withdraw(TimeoutError()) is None
    assert budget.withdraw(ConnectionError()) == 1.0
    budget.deposit(None)
    assert budget.withdraw(TimeoutError()) == 1.0


@pytest.mark.parametrize("kind", [RatioBudget, FleetBudget])
def test_a_clock_must_be_a_function(kind):
    with pytest.raises(ConfigError, match="clock must be a function that returns sec"):
        kind(clock=5)
