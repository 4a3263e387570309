"""A schedule that somebody else wrote takes part in everything."""

import copy
import pickle
from dataclasses import dataclass
from fractions import Fraction

import pytest

from retrykit import ConfigError, Policy, schedules as s
from retrykit.execution.backoff import STOP, Backoff


class Slots(s.Schedule):
    """Delays of so many days, written as those of the package."""

    __slots__ = ("first", "second")
    first: float
    second: float

    def delay(self, retry, _previous, _random, /):
        days = (self.first, self.second)
        return days[retry - 1] * 86_400.0 if retry <= len(days) else None

    def bounds(self, retry, /):
        delay = self.delay(retry, None, None)
        return None if delay is None else (delay, delay)


@dataclass(frozen=True)
class Data(s.Schedule):
    """The same, as a dataclass."""

    first: float
    second: float

    delay = Slots.delay
    bounds = Slots.bounds


class Plain(s.Schedule):
    """The same, as a class that makes itself."""

    def __init__(self, first, second):
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "second", second)

    delay = Slots.delay
    bounds = Slots.bounds


@pytest.fixture(params=[Slots, Data, Plain], ids=["slots", "dataclass", "plain"])
def own(request):
    return request.param


DAYS = [86_400.0, 259_200.0]


def test_the_algebra_takes_it(own):
    two = own(1, 3)
    assert list(two.draw()) == DAYS
    assert list(two.cap("2d").then([5]).draw()) == [86_400.0, 172_800.0, 5.0]
    assert list((s.constant(5) + two).draw()) == [86_405.0, 259_205.0]
    assert two.full_jitter().bounds(2) == (0.0, 259_200.0)


def test_a_call_is_retried_by_it(own, clock):
    Policy(schedule=own(1, 3), max_elapsed=None).run(lambda: 1 / 0)
    assert clock.sleeps == DAYS


def test_a_loop_of_ones_own_takes_it(own):
    backoff = Backoff(Policy(schedule=own(1, 3), max_elapsed=None))
    assert backoff.current_interval == 86_400.0
    assert [backoff.next() for _ in range(3)] == [*DAYS, STOP]


def test_it_has_no_jitter_to_take_out(own):
    two = own(1, 3)
    assert two.without_jitter() == two
    jittered = two.full_jitter().cap("2d")
    assert list(jittered.without_jitter().draw()) == [86_400.0, 172_800.0]


def test_others_of_its_class_are_not_taken_for_it(own):
    assert own(1, 3) != own(1, 7)
    assert Policy(schedule=own(1, 3)) != Policy(schedule=own(1, 7))


def test_its_copies_draw_what_it_draws(own):
    two = own(1, 3)
    stored = pickle.dumps(two)
    again = pickle.loads(stored)  # noqa: S301  written in the line above
    for other in (again, copy.copy(two), copy.deepcopy(two)):
        assert list(other.draw()) == DAYS


def test_it_is_told_the_delay_before_unless_it_is_the_first():
    class Doubling(s.Schedule):
        """The delay before, doubled; one second at first."""

        __slots__ = ()

        def delay(self, _retry, previous, _random, /):
            return 1.0 if previous is None else previous * 2

        def bounds(self, retry, /):
            return (2.0 ** (retry - 1),) * 2

    assert list(Doubling().take(4).draw()) == [1, 2, 4, 8]
    restarted = s.sequence([9, 9]).then(Doubling())
    assert list(restarted.take(5).draw()) == [9, 9, 1, 2, 4]
    continued = s.sequence([9, 9]).switch(after=2, to=Doubling())
    assert list(continued.take(4).draw()) == [9, 9, 18, 36]


def test_it_cannot_be_written_as_data(own):
    two = own(1, 3)
    for schedule in (two, two.cap(60), s.constant(1) + two):
        with pytest.raises(ConfigError, match=r"schedule must be made of retrykit's o"):
            Policy(schedule=schedule).to_dict()


class Exact(s.Schedule):
    def delay(self, retry, _previous, _random, /):
        return Fraction(retry, 2)

    def bounds(self, retry, /):
        return Fraction(retry, 2), Fraction(retry, 2)


@pytest.mark.parametrize("limit", [None, 60])
def test_numbers_of_any_kind_become_seconds(colour, clock, flaky, limit):
    fetch = flaky(OSError(), OSError(), "value")
    assert colour(schedule=Exact(), max_elapsed=limit)(fetch)() == "value"
    assert [type(nap) for nap in clock.sleeps] == [float, float]
    assert clock.sleeps == [0.5, 1.0]
