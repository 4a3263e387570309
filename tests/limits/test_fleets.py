"""A breaker that tells other processes of itself, and opens by what they know."""

import pytest

from retrykit.limits import CircuitBreaker, Lease

pytestmark = pytest.mark.usefixtures("clock")


def fail(breaker):
    breaker.acquire().failed()


@pytest.fixture
def breaker():
    return CircuitBreaker(consecutive_failures=1, open_for=["10s", "20s", "40s"])


def test_it_tells_of_an_opening_by_its_own_calls(breaker, clock):
    assert breaker.standing() == (0, "closed", None, 0)
    fail(breaker)
    clock.advance(4)
    assert breaker.standing() == (1, "open", 4, 6)
    clock.advance(7)
    assert breaker.standing() == (1, "open", 11, 0)
    breaker.acquire()
    assert breaker.standing() == (2, "half-open", None, 0)


def test_it_opens_for_others_and_does_not_say_so_itself(breaker, clock):
    changes = []
    breaker.observers.append(changes.append)
    breaker.open_for_others(0, 3, "5 of 8 processes are")
    assert breaker.acquire() == ("open, as 5 of 8 processes are", 3)
    assert breaker.standing() == (1, "open", None, 0)
    [change] = changes
    assert change[1:] == ("closed", "open", "5 of 8 processes are", 1, 3)
    clock.advance(3)
    breaker.acquire().succeeded()
    assert breaker.state == "closed"


@pytest.mark.parametrize("by_hand", [False, True])
def test_an_opening_for_others_is_not_the_first_of_its_own(breaker, clock, by_hand):
    breaker.open_for_others(0, 3, "others are")
    if by_hand:
        breaker.open()
    else:
        clock.advance(3)
        fail(breaker)
    assert breaker.standing()[2:] == (0, 10)


@pytest.mark.parametrize("generation", [0, 2])
def test_it_opens_for_others_only_in_the_state_that_they_know(breaker, generation):
    breaker.close()
    breaker.open_for_others(generation, 3, "others are")
    assert isinstance(breaker.acquire(), Lease)
    breaker.isolate()
    breaker.open_for_others(2, 3, "others are")
    assert breaker.state == "isolated"
