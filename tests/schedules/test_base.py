"""Methods and operators of schedules."""

from datetime import timedelta
from itertools import islice

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError, schedules as s
from retrykit.schedules._randomness import call_random
from retrykit.testing.strategies import schedules

WAVE = s.sequence([1, 8, 3, 0.2])

# Calculated by hand.
TABLES = {
    "cap": (WAVE.cap(3), [1, 3, 3, 0.2]),
    "cap of zero": (WAVE.cap(0), [0, 0, 0, 0]),
    "at_least": (WAVE.at_least("2s"), [2, 8, 3, 2]),
    "a cap below what is at least": (WAVE.at_least(5).cap(4), [4, 4, 4, 4]),
    "at least what is above the cap": (WAVE.cap(4).at_least(5), [5, 5, 5, 5]),
    "round_down": (s.sequence([0, 0.9, 1, 2.99]).round_down(1), [0, 0, 1, 2]),
    "round_down to halves": (s.sequence([0.7, 1.2]).round_down(0.5), [0.5, 1]),
    "round_down to tenths": (s.sequence([0.3, 0.39]).round_down(0.1), [0.3, 0.3]),
    "round_down to minutes": (s.linear(25).round_down("1m").take(3), [0, 0, 60]),
    "take": (WAVE.take(2), [1, 8]),
    "take nothing": (WAVE.take(0), []),
    "take more than there is": (WAVE.take(9), [1, 8, 3, 0.2]),
    "scale": (WAVE * 2, [2, 16, 6, 0.4]),
    "times from the left": (0.5 * WAVE, [0.5, 4, 1.5, 0.1]),
    "times zero": (WAVE * 0, [0, 0, 0, 0]),
    "within": (WAVE.within(11.9), [1, 8]),
    "within, met exactly": (WAVE.within(12), [1, 8, 3]),
    "within nothing, without a delay": (s.constant(0).take(2).within(0), [0, 0]),
    "within nothing": (WAVE.within(0), []),
    "within, and nothing smaller after it": (WAVE.within(4), [1]),
    "then": (s.linear(1).take(2).then(s.linear(10).take(2)), [1, 2, 10, 20]),
    "then from a list": (WAVE.take(1).then([7, 7]), [1, 7, 7]),
    "then after nothing": (s.linear(1).take(0).then([7]), [7]),
    "then, and then": (s.constant(1).take(1).then([2]).then([3]), [1, 2, 3]),
    "switch": (s.linear(1).switch(after=2, to=s.linear(10)).take(4), [1, 2, 30, 40]),
    "switch at once": (s.linear(1).switch(after=0, to=[7, 8]), [7, 8]),
    "switch from nothing": (s.sequence([]).switch(after=0, to=[7, 8]), [7, 8]),
    "switch to an earlier end": (s.linear(1).switch(after=2, to=[7, 8, 9]), [1, 2, 9]),
    "switch to what has ended": (s.linear(1).switch(after=2, to=[7]), [1, 2]),
    "switch after the end": (s.sequence([1]).switch(after=2, to=s.linear(1)), [1]),
    "switch at the end": (s.sequence([1]).switch(after=1, to=[7, 8]), [1, 8]),
    "sum": (WAVE + s.constant(1), [2, 9, 4, 1.2]),
    "plus ends with the shorter": (WAVE + s.sequence([10, 20]), [11, 28]),
    "union": (WAVE | s.constant(2).take(3), [1, 2, 2, 0.2]),
    "either goes on with the longer": (s.sequence([5]) | WAVE, [1, 8, 3, 0.2]),
    "intersection": (WAVE & s.constant(2), [2, 8, 3, 2]),
    "both ends with the shorter": (WAVE & [0, 9], [1, 9]),
    "three joined": (WAVE + s.constant(1).take(2) | s.constant(3).take(3), [2, 3, 3]),
}


@pytest.mark.parametrize(("schedule", "delays"), TABLES.values(), ids=TABLES)
def test_each_method_has_the_expected_delays(schedule, delays):
    assert list(schedule.draw()) == pytest.approx(delays)
    end = len(delays) + 1
    bounds = [schedule.bounds(n) for n in range(1, end)]
    assert bounds == [(pytest.approx(d), pytest.approx(d)) for d in delays]
    assert schedule.bounds(end) is None
    assert schedule.bounds(10**6) is None


RANGES = {
    "full": (s.constant(8).full_jitter(), (0, 8)),
    "equal": (s.constant(8).equal_jitter(), (4, 8)),
    "proportional": (s.constant(8).jitter(0.25), (6, 10)),
    "proportional, none": (s.constant(8).jitter(0), (8, 8)),
    "proportional, all": (s.constant(8).jitter(1), (0, 16)),
    "the cap before": (s.constant(80).cap(60).jitter(0.5), (30, 90)),
    "the cap after": (s.constant(80).jitter(0.5).cap(60), (40, 60)),
    "at least before": (s.constant(2).at_least(4).full_jitter(), (0, 4)),
    "at least after": (s.constant(8).full_jitter().at_least(4), (4, 8)),
    "rounded before": (s.constant(5.9).round_down(1).jitter(0.5), (2.5, 7.5)),
    "rounded after": (s.constant(5.9).jitter(0.5).round_down(1), (2, 8)),
    "times before": ((s.constant(2) * 4).equal_jitter(), (4, 8)),
    "times after": (s.constant(2).equal_jitter() * 4, (4, 8)),
    "one on the other": (s.constant(8).equal_jitter().jitter(0.5), (2, 12)),
    "sum": (s.constant(8).full_jitter() + s.constant(4).equal_jitter(), (2, 12)),
    "union": (s.constant(8).equal_jitter() | s.constant(5), (4, 5)),
    "intersection": (s.constant(8).equal_jitter() & s.constant(5), (5, 8)),
    "a part of a sum": (s.constant(15) + s.linear(30).full_jitter(), (15, 45)),
    "uniform": (s.uniform("1s", "3s"), (1, 3)),
    "uniform, of one delay": (s.uniform(2, 2), (2, 2)),
    "google": (s.google_interval(), (0.25, 0.75)),
    "google without chance": (s.google_interval(randomization_factor=0), (0.5, 0.5)),
}


@pytest.mark.parametrize(("schedule", "bounds"), RANGES.values(), ids=RANGES)
def test_each_method_has_the_expected_bounds(schedule, bounds):
    assert schedule.bounds(1) == bounds


def widths(schedule, upto=60):
    bounds = [schedule.bounds(retry) for retry in range(1, upto)]
    return [high - low for low, high in bounds]


def test_jitter_after_a_cap_stays_at_the_cap():
    """``.cap(60).jitter(0.5)`` caps the interval."""
    schedule = s.exponential(1).cap(60).jitter(0.5)
    drawn = {
        schedule.delay(50, None, call_random(seed=seed, retry=50))
        for seed in range(200)
    }
    assert len(drawn) == 200
    assert widths(schedule)[-1] == 60.0


def test_a_cap_after_jitter_bounds_the_jittered_delay():
    """``.jitter(0.5).cap(60)`` caps the randomized interval."""
    schedule = s.exponential(1).jitter(0.5).cap(60)
    assert [schedule.bounds(retry) for retry in (6, 7, 8)] == [
        (16, 48),
        (32, 60),
        (60, 60),
    ]


SPREAD = {
    "full": lambda delays: delays.full_jitter(),
    "equal": lambda delays: delays.equal_jitter(),
    "proportional": lambda delays: delays.jitter(0.1),
}
GROWING = [
    s.constant(3),
    s.linear(0.1),
    s.exponential(0.01).cap("1h"),
    s.polynomial(4),
    s.fibonacci().cap(900),
]


@pytest.mark.parametrize("spread", SPREAD.values(), ids=SPREAD)
@pytest.mark.parametrize("delays", GROWING, ids=lambda delays: delays.kind)
def test_jitter_never_shrinks(spread, delays):
    found = widths(spread(delays))
    assert found == sorted(found)
    assert found[0] > 0


def test_within_counts_the_longest_delays():
    """The number of delays does not depend on random numbers."""
    schedule = s.constant(4).jitter(0.5).within(17)
    lengths = {len(list(schedule.draw(seed))) for seed in range(50)}
    assert lengths == {2}
    assert len(list(s.constant(4).within(17).draw())) == 4


def test_the_cost_of_then_does_not_grow_with_each_link():
    """Each link reads the one before it, which must not be repeated."""
    computed = []

    class Counted(s.Schedule):
        def delay(self, retry, _previous, _random, /):
            computed.append(retry)
            return 1.0 if retry <= 3 else None

        def bounds(self, retry, /):
            computed.append(retry)
            return (1.0, 1.0) if retry <= 3 else None

    chained = Counted()
    for link in range(10):
        chained = chained.then([float(link)])
    computed.clear()
    assert list(chained.draw()) == [1, 1, 1, *range(10)]
    assert len(computed) < 20


@pytest.mark.parametrize("nested", [1, 2])
def test_the_cost_of_within_does_not_grow_with_the_square_of_the_retries(nested):
    class Counted(s.Schedule):
        def delay(self, _retry, _previous, _random, /):
            return 1.0

        def bounds(self, retry, /):
            computed.append(retry)
            return 1.0, 1.0

    computed = []
    schedule = Counted()
    for _ in range(nested):
        schedule = schedule.within("7d")
    assert len(list(islice(schedule.draw(7), 400))) == 400
    assert len(computed) <= 20 * 400


def test_then_starts_the_numbers_again_and_switch_goes_on():
    two = s.constant(9).take(2)
    assert list(two.then(s.exponential(1)).take(4).draw()) == [9, 9, 1, 2]
    continued = s.constant(9).switch(after=2, to=s.exponential(1))
    assert list(continued.take(4).draw()) == [9, 9, 4, 8]


def test_a_random_walk_after_then_starts_anew():
    walk = s.constant(500).take(2).then(s.decorrelated(1))
    assert [walk.bounds(n) for n in (1, 2, 3, 4)] == [
        (500, 500),
        (500, 500),
        (1, 3),
        (1, 9),
    ]
    assert all(
        walk.delay(3, 500.0, call_random(seed=seed, retry=3)) <= 3
        for seed in range(100)
    )


def test_then_needs_an_end():
    with pytest.raises(ConfigError, match=r"finite, since \.then\(\) starts after"):
        s.constant(1).then([2])


@pytest.mark.parametrize(
    "schedule",
    [s.decorrelated(1) + s.constant(100), s.decorrelated(1) * 50, s.decorrelated(1)],
    ids=["in a sum", "in a multiple", "alone"],
)
def test_a_random_walk_stays_in_its_bounds_in_every_composition(schedule):
    for seed in range(50):
        for retry, delay in enumerate(islice(schedule.draw(seed), 40), 1):
            low, high = schedule.bounds(retry)
            assert low <= delay <= high


@given(schedules(), schedules(), st.integers(1, 60))
def test_operators_end_as_their_parts_do(left, right, retry):
    ends = [part.bounds(retry) is None for part in (left, right)]
    assert ((left + right).bounds(retry) is None) == any(ends)
    assert ((left & right).bounds(retry) is None) == any(ends)
    assert ((left | right).bounds(retry) is None) == all(ends)


def test_methods_accept_durations_of_every_type():
    limit = timedelta(milliseconds=2500)
    plain = s.constant(3)
    assert plain.cap("2s500ms") == plain.cap(limit) == plain.cap(2.5)
    assert plain.at_least(limit) == plain.at_least("2.5s")
    assert plain.round_down(limit) == plain.round_down("2.5s")
    assert plain.within(limit) == plain.within("2.5s")


def test_schedules_can_be_summed():
    assert sum([s.constant(1), s.linear(5)]) == s.constant(1) + s.linear(5)
    assert sum([WAVE]) == WAVE


@pytest.mark.parametrize("other", [5, 0.0, False, None, [1, 2]], ids=repr)
def test_only_zero_can_be_added_from_the_left(other):
    with pytest.raises(TypeError):
        other + s.constant(1)


def test_multiplying_by_something_else_raises_type_error():
    with pytest.raises(ConfigError, match=r"factor must be a finite number >= 0"):
        s.constant(3) * s.constant(2)
