"""Schedules that users define."""

import copy
import pickle
from dataclasses import dataclass
from fractions import Fraction

import pytest

from retrykit import ConfigError, Policy, schedules as s
from retrykit.backoff import STOP, Backoff


class Slots(s.Schedule):
    """Delays of so many days, defined like the schedules of the package."""

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
    """The same, as a plain class."""

    def __init__(self, first, second):
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "second", second)

    delay = Slots.delay
    bounds = Slots.bounds


@pytest.fixture(params=[Slots, Data, Plain], ids=["slots", "dataclass", "plain"])
def custom(request):
    return request.param


DAYS = [86_400.0, 259_200.0]


def test_it_can_be_composed(custom):
    two = custom(1, 3)
    assert list(two.draw()) == DAYS
    assert list(two.cap("2d").then([5]).draw()) == [86_400.0, 172_800.0, 5.0]
    assert list((s.constant(5) + two).draw()) == [86_405.0, 259_205.0]
    assert two.full_jitter().bounds(2) == (0.0, 259_200.0)


def test_a_call_can_use_it(custom, clock):
    Policy(schedule=custom(1, 3)).run(lambda: 1 / 0)
    assert clock.sleeps == DAYS


def test_backoff_can_use_it(custom):
    backoff = Backoff(Policy(schedule=custom(1, 3)))
    assert backoff.current_interval == 86_400.0
    assert [backoff.next() for _ in range(3)] == [*DAYS, STOP]


def test_it_is_unchanged_without_jitter(custom):
    two = custom(1, 3)
    assert two.without_jitter() == two
    jittered = two.full_jitter().cap("2d")
    assert list(jittered.without_jitter().draw()) == [86_400.0, 172_800.0]


def test_it_is_compared_by_its_fields(custom):
    assert custom(1, 3) != custom(1, 7)
    assert Policy(schedule=custom(1, 3)) != Policy(schedule=custom(1, 7))


def test_its_copies_draw_the_same_delays(custom):
    two = custom(1, 3)
    stored = pickle.dumps(two)
    again = pickle.loads(stored)  # noqa: S301  pickled here
    for other in (again, copy.copy(two), copy.deepcopy(two)):
        assert list(other.draw()) == DAYS


def test_it_gets_the_previous_delay():
    class Doubling(s.Schedule):
        """The previous delay, doubled; one second at first."""

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


def test_it_cannot_be_written_as_data(custom):
    two = custom(1, 3)
    for schedule in (two, two.cap(60), s.constant(1) + two):
        with pytest.raises(ConfigError, match=r"schedule must be made of retrykit's o"):
            Policy(schedule=schedule).to_dict()


class Exact(s.Schedule):
    def delay(self, retry, _previous, _random, /):
        return Fraction(retry, 2)

    def bounds(self, retry, /):
        return Fraction(retry, 2), Fraction(retry, 2)


@pytest.mark.parametrize("limit", [None, 60])
def test_numbers_of_any_type_become_seconds(backend, clock, flaky, limit):
    fetch = flaky(OSError(), OSError(), "value")
    assert backend(schedule=Exact(), max_elapsed=limit)(fetch)() == "value"
    assert [type(nap) for nap in clock.sleeps] == [float, float]
    assert clock.sleeps == [0.5, 1.0]
