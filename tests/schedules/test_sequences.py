"""Lists, other re-iterables and generator functions as schedules."""

import functools
import itertools
import pickle
import re
import weakref
from collections import deque
from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError, Policy, schedules as s
from retrykit.schedules._base import is_endless
from retrykit.schedules._parsing import schedule_from_data, schedule_to_text
from retrykit.schedules._randomness import call_random
from retrykit.testing.strategies import durations

WAIT = "write constant(...) for the same delay each time"
REFUSED = "schedule must be a schedule, a re-iterable of durations, or a "
REFUSED += f"generator function, got {{}}; {WAIT}"
ONE_SHOT = "schedule must be re-iterable, got the one-shot {}; pass a list, a "
ONE_SHOT += "generator function, or an object whose __iter__ starts over"
NEEDS = "schedule must be a generator function that can be called without "
NEEDS += "arguments, got {}; bind them with functools.partial"


class Countdown:
    """A re-iterable without a length."""

    def __iter__(self):
        return iter([3, "2s", timedelta(seconds=1)])


class Client:
    """A class with a generator function as a method."""

    first = 5.0

    def growing_delays(self):
        yield from itertools.count(self.first)


def three():
    yield 3
    yield "2s"
    yield timedelta(seconds=1)


def growing_delays(first=1.0):
    yield from itertools.count(first)


def needs_argument(first):
    yield first


FINITE = {
    "list": [3, 2, 1],
    "tuple": (3.0, 2.0, 1.0),
    "range": range(3, 0, -1),
    "deque": deque([3, 2, 1]),
    "texts": ["3s", "2000ms", "1s"],
    "timedeltas": [timedelta(seconds=n) for n in (3, 2, 1)],
    "keys of a dict": {3: "a", 2: "b", 1: "c"}.keys(),
    "re-iterable without a length": Countdown(),
    "generator function": three,
}
ENDLESS = {
    "generator function": (growing_delays, 1.0),
    "partial of a generator function": (functools.partial(needs_argument, 7), 7.0),
    "partial by name": (functools.partial(growing_delays, first=7), 7.0),
    "method": (Client().growing_delays, 5.0),
    "lambda": (lambda: (yield 9), 9.0),
}


@pytest.mark.parametrize("delays", FINITE.values(), ids=FINITE)
def test_a_re_iterable_is_a_schedule(delays):
    schedule = Policy(schedule=delays).schedule
    assert list(schedule.draw()) == [3.0, 2.0, 1.0]
    assert list(schedule.draw()) == [3.0, 2.0, 1.0]
    assert {type(delay) for delay in schedule.draw()} == {float}
    bounds = [schedule.bounds(retry) for retry in (1, 2, 3, 4, 10**6)]
    assert bounds == [(3, 3), (2, 2), (1, 1), None, None]


@pytest.mark.parametrize("delays", FINITE.values(), ids=FINITE)
def test_iterables_can_be_composed_with_schedules(delays):
    one = s.constant(1)
    assert list((one + delays).draw()) == [4.0, 3.0, 2.0]
    assert list((one | delays).take(4).draw()) == [1.0, 1.0, 1.0, 1.0]
    assert list((one & delays).draw()) == [3.0, 2.0, 1.0]
    assert list(one.take(1).then(delays).draw()) == [1.0, 3.0, 2.0, 1.0]
    assert list(one.switch(after=1, to=delays).draw()) == [1.0, 2.0, 1.0]


@pytest.mark.parametrize(("delays", "first"), ENDLESS.values(), ids=ENDLESS)
def test_a_generator_function_is_a_schedule(delays, first):
    schedule = s.sequence(delays)
    assert schedule.bounds(1) == (first, first)
    assert next(schedule.draw()) == next(schedule.draw()) == first


def test_an_endless_generator_function_is_read_as_far_as_needed():
    schedule = s.sequence(growing_delays).cap(4)
    assert list(itertools.islice(schedule.draw(), 6)) == [1, 2, 3, 4, 4, 4]
    assert schedule.bounds(10_000) == (4, 4)


def test_the_next_retry_continues_an_iteration():
    """So the 10,000th retry takes no longer than the tenth."""
    yielded = []

    def counted():
        for number in itertools.count(1):
            yielded.append(number)
            yield number

    delays = s.sequence(counted).draw()
    assert [next(delays) for _ in range(10_000)] == [*range(1, 10_001)]
    assert len(yielded) == 10_000


def test_calls_that_take_turns_have_iterations_of_their_own():
    numbers = itertools.count()

    def unique():
        while True:
            yield next(numbers)

    schedule = s.sequence(unique)
    first, second = schedule.draw(), schedule.draw()
    found = [next(each) for _ in range(50) for each in (first, second)]
    assert len({*found}) == 100


class Iteration(itertools.count):
    """One that can be referred to weakly."""


class Delays:
    """A re-iterable that knows its iterations."""

    def __init__(self):
        self.alive = weakref.WeakSet()

    def __iter__(self):
        iteration = Iteration(1)
        self.alive.add(iteration)
        return iteration


def test_few_iterations_are_kept():
    delays = Delays()
    schedule = s.sequence(delays)
    for retry in range(1, 1000, 2):
        assert schedule.bounds(retry) == (retry, retry)
    assert len(delays.alive) <= 64


def test_an_empty_list_allows_no_retry():
    assert list(s.sequence([]).draw()) == []
    assert s.sequence([]).bounds(1) is None


@given(st.lists(durations(), min_size=1), st.integers(1, 10**6))
def test_the_last_delay_of_a_sequence_repeats(delays, retry):
    """As in tenacity's `wait_chain`."""
    schedule = s.sequence(delays, repeat_last=True)
    expected = delays[min(retry, len(delays)) - 1]
    assert schedule.bounds(retry) == (expected, expected)
    assert schedule.delay(retry, None, call_random(seed=7, retry=retry)) == expected
    assert is_endless(schedule)


def test_a_sequence_that_repeats_its_last_delay_is_written_as_its_parts():
    schedule = s.sequence([5, "15s", 960], repeat_last=True)
    assert schedule == s.sequence([5, 15, 960]).then(s.constant(960))
    assert schedule_from_data("sequence([5, 15, '16m'], repeat_last=True)") == schedule
    assert schedule_from_data(schedule_to_text(schedule)) == schedule
    assert s.sequence([5], repeat_last=False) == s.sequence([5])


@pytest.mark.parametrize(
    "delays", [[], three, Countdown()], ids=["empty", "function", "without a length"]
)
def test_only_a_list_has_a_last_delay_to_repeat(delays):
    message = f"schedule must be a list with a last delay to repeat, got {delays!r}"
    with pytest.raises(ConfigError, match=rf"^{re.escape(message)}  \["):
        s.sequence(delays, repeat_last=True)


def test_each_call_starts_a_sequence_again(clock):
    policy = Policy(schedule=three)
    for _ in range(2):
        assert len(policy.run(int, "seven").state.errors) == 4
    assert clock.sleeps == [3.0, 2.0, 1.0] * 2


def test_sequences_of_equal_delays_are_equal():
    assert s.sequence([1, 60]) == s.sequence(("1s", timedelta(minutes=1)))
    assert s.sequence([1]) != s.sequence([1, 1])
    assert s.sequence(three) == s.sequence(three)
    assert s.sequence(three) != s.sequence(growing_delays)
    assert pickle.loads(pickle.dumps(s.sequence([1]))) == s.sequence([1])  # noqa: S301  pickled here


def test_a_list_is_copied():
    delays = [1, 2]
    schedule = s.sequence(delays)
    delays.append(3)
    assert schedule == s.sequence([1, 2])


def test_the_repr_of_a_sequence_is_its_list_or_its_function():
    assert repr(s.sequence(range(2))) == "sequence([0.0, 1.0])"
    assert repr(s.sequence(three)) == "sequence(three)"


def test_a_list_can_be_data_and_a_function_cannot():
    text = schedule_to_text(s.sequence(["1s", 2]))
    assert text == "sequence([1.0, 2.0])"
    assert schedule_from_data([1, "2s"]) == schedule_from_data(text)
    with pytest.raises(ConfigError, match=r"list its delays"):
        schedule_to_text(s.sequence(three).cap(1))
    with pytest.raises(ConfigError, match=r"written in at most 100000 characters"):
        schedule_to_text(s.sequence([1] * 30_000))


def yields(message, value):
    return message.format(repr(value)), value


OF_CODE = REFUSED.replace(
    WAIT, "call it if it makes a schedule, or let it yield the delays"
)
NO_ORDER = "schedule must be an ordered iterable, got {}; write a list"
WRONG = {
    "set": yields(NO_ORDER, {1, 2}),
    "frozenset": yields(NO_ORDER, frozenset([1, 2])),
    "one-shot iterator": yields(ONE_SHOT, iter([1, 2])),
    "generator": yields(ONE_SHOT, three()),
    "itertools": yields(ONE_SHOT, itertools.repeat(1)),
    "map": yields(ONE_SHOT, map(float, [1, 2])),
    "text": yields(REFUSED, "5s"),
    "bytes": yields(REFUSED, b"12"),
    "bytes that change": yields(REFUSED, bytearray(b"12")),
    "dict": yields(REFUSED, {1: 2}),
    "number": yields(REFUSED, 5),
    "none": yields(REFUSED, None),
    "duration": yields(REFUSED, timedelta(seconds=5)),
    "plain function": yields(OF_CODE, len),
    "class": yields(OF_CODE, Countdown),
    "function that needs an argument": yields(NEEDS, needs_argument),
    "method that is not bound": yields(NEEDS, Client.growing_delays),
    "partial that binds too little": yields(NEEDS, functools.partial(needs_argument)),
}


@pytest.mark.parametrize(("message", "value"), WRONG.values(), ids=WRONG)
def test_an_invalid_schedule_is_rejected_with_a_suggestion(message, value):
    for write in (s.sequence, s.constant(1).take(1).then, s.constant(1).__add__):
        with pytest.raises(ConfigError, match=rf"^{re.escape(message)}  \["):
            write(value)
    with pytest.raises(ConfigError, match=rf"^{re.escape(message)}  \["):
        Policy(schedule=value)


WAY_OUT = 'give seconds as a number, a timedelta, or text such as "1h30m"'
UNITS = "write the unit (us, ms, s, m, h, d, w)"
ELEMENTS = {
    -1: "a finite number >= 0, got -1",
    None: f"a finite number >= 0, got None; {WAY_OUT}",
    True: f"a finite number >= 0, got True; {WAY_OUT}",
    float("nan"): "a finite number >= 0, got nan",
    float("inf"): "a finite number >= 0, got inf",
    "soon": f'a duration such as "12.5s", "500ms" or "1h30m", got \'soon\'; {UNITS}',
}


@pytest.mark.parametrize(("element", "rule"), ELEMENTS.items(), ids=map(repr, ELEMENTS))
def test_an_invalid_element_is_named_by_its_index(element, rule):
    def yields_values():
        yield 1
        yield 2
        yield element
        yield 4

    message = f"^{re.escape(f'schedule[2] must be {rule}')}  "
    with pytest.raises(ConfigError, match=message):
        s.sequence([1, 2, element, 4])
    late = s.sequence(yields_values)
    assert late.bounds(2) == (2, 2)
    with pytest.raises(ConfigError, match=message):
        late.delay(3, None, call_random(seed=7, retry=3))
    with pytest.raises(ConfigError, match=message):
        late.bounds(3)
