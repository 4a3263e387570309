"""A budget that pays for a retry of a timeout only while calls succeed."""

from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from retrykit import Policy, retry
from retrykit.budgets import FleetBudget, TokenBucket, budget_from_dict
from retrykit.testing import virtual_time

ERROR = ConnectionRefusedError()
LATE = TimeoutError()


class ReadTimeoutError(Exception):
    """Stands for those of clients that do not derive from `TimeoutError`."""


class SlowTimeout(ReadTimeoutError):  # noqa: N818  as in httpx and requests
    """A class of such an error."""


def is_slow(error):
    """Match the timeouts of a client that has a class of its own for nothing."""
    return "slow" in str(error)


def test_ten_retries_are_in_the_bank_of_a_new_process():
    budget = FleetBudget()
    assert [budget.withdraw(ERROR) for _ in range(11)] == [1.0] * 10 + [None]
    assert budget.withdraw(None) is None
    assert budget.balance == 0


def test_five_successes_earn_a_retry():
    budget = FleetBudget(capacity=1)
    assert budget.withdraw(ERROR) == 1.0
    for paid in (None, 1.0, None, None):
        budget.deposit(paid)
        assert budget.withdraw(ERROR) is None
    budget.deposit(None)
    assert (budget.balance, budget.withdraw(ERROR)) == (1.0, 1.0)
    for _ in range(99):
        budget.deposit(None)
    assert budget.balance == 1


def test_a_timeout_is_retried_for_a_second_after_a_success():
    with virtual_time() as clock:
        budget = FleetBudget()
        assert budget.withdraw(LATE) is None
        budget.deposit(None)
        clock.advance(0.75)
        assert budget.withdraw(LATE) == 1.0
        clock.advance(0.25)
        assert budget.withdraw(LATE) is None
        assert (budget.withdraw(ERROR), budget.balance) == (1.0, 8.0)


def test_a_timeout_is_paid_for_like_any_other_failure():
    with virtual_time():
        budget = FleetBudget(0, capacity=1)
        budget.deposit(None)
        assert [budget.withdraw(LATE), budget.withdraw(LATE)] == [1.0, None]


def test_timeouts_are_never_retried_if_no_success_is_recent():
    with virtual_time():
        budget = FleetBudget(recent=0)
        budget.deposit(None)
        assert budget.withdraw(LATE) is None


@pytest.mark.parametrize(
    ("timeouts", "error", "late"),
    [
        (TimeoutError, ERROR, False),
        (TimeoutError, ExceptionGroup("all", [ERROR]), False),
        (TimeoutError, ExceptionGroup("any", [ERROR, LATE]), True),
        (TimeoutError, SlowTimeout(), True),
        (TimeoutError, ExceptionGroup("named", [ERROR, SlowTimeout()]), True),
        ((TimeoutError,), SlowTimeout(), False),
        ((), LATE, False),
        ((KeyError, OSError), KeyError("slow"), True),
        (is_slow, OSError("slow"), True),
        (is_slow, OSError("gone"), False),
    ],
    ids=[
        "another error",
        "a group without one",
        "a group with one",
        "one by its name",
        "a group with one by its name",
        "not by its name",
        "nothing",
        "a tuple",
        "a predicate",
        "a predicate that says no",
    ],
)
def test_a_timeout_is_what_the_condition_says(timeouts, error, late):
    budget = FleetBudget(timeouts=timeouts)
    assert (budget.withdraw(error) is None) is late


def test_a_retry_that_is_not_made_is_refunded_up_to_the_capacity():
    budget = FleetBudget(capacity=2)
    budget.withdraw(ERROR)
    budget.refund(1.0)
    budget.refund(1.0)
    assert budget.balance == 2


@pytest.mark.parametrize("timeouts", [LookupError, (LookupError, OSError), ()], ids=str)
def test_timeouts_are_written_by_their_names(timeouts):
    budget = FleetBudget(timeouts=timeouts)
    data = budget.to_dict()
    assert budget_from_dict(data).settings == budget.settings
    assert eval(repr(budget)).settings == budget.settings  # noqa: S307  its repr


def test_a_policy_gives_up_on_a_timeout_and_retries_a_refusal():
    failures = [LATE, ERROR, None]

    @retry(Policy(schedule=[0, 0], budget=FleetBudget()))
    def fetch():
        failure = failures.pop(0)
        if failure is not None:
            raise failure
        return "page"

    with pytest.raises(TimeoutError):
        fetch()
    assert fetch() == "page"


STEPS = st.lists(
    st.tuples(
        st.sampled_from([0, 0.125, 0.5, 1, 7]),
        st.sampled_from(["succeeds", "fails", "times out", "refunds"]),
    ),
    max_size=60,
)


@given(st.sampled_from([0.0, 0.1, 0.2, 0.75, 1.5]), st.integers(0, 4), STEPS)
def test_it_behaves_like_a_number_and_a_time(ratio, capacity, steps):
    bank, last = Fraction(capacity), None
    with virtual_time() as clock:
        budget = FleetBudget(ratio, capacity=capacity)
        for delay, step in steps:
            clock.advance(delay)
            if step == "succeeds":
                budget.deposit(None)
                bank = min(bank + Fraction(str(ratio)), Fraction(capacity))
                last = clock.now()
            elif step == "refunds":
                budget.refund(1.0)
                bank = min(bank + 1, Fraction(capacity))
            else:
                late = step == "times out"
                answers = last is not None and clock.now() - last < 1
                pays = bank >= 1 and (answers or not late)
                paid = budget.withdraw(LATE if late else ERROR)
                assert paid == (1.0 if pays else None)
                bank -= pays
            assert budget.balance == float(bank)


def test_the_bucket_of_brooker_adds_as_much_for_a_retried_success():
    bucket = TokenBucket(20, cost=10, costs=(), refunds=False)
    assert [bucket.withdraw(ERROR), bucket.withdraw(ERROR)] == [10, 10]
    bucket.deposit(10)
    bucket.deposit(None)
    assert bucket.balance == 2
    bucket.refund(10)
    assert bucket.balance == 12
