"""Events in their order, and draws that are the same anywhere."""

import gc
import math

import pytest

from retrykit import Policy
from retrykit.simulate import Clients
from retrykit.simulate._calls import Call
from retrykit.simulate._draws import Stream, logarithm
from retrykit.simulate._events import SECOND, Events
from retrykit.simulate._simulate import run


def test_events_happen_in_the_order_of_their_times_and_of_their_making():
    events, happened = Events(), []
    for time, name in [(2, "c"), (1, "a"), (2, "d"), (1, "b"), (5, "e")]:
        events.at(time, happened.append, name)
    events.run(5)
    assert (happened, events.now, len(events)) == ([*"abcd"], 5, 1)
    events.run(6)
    assert happened == [*"abcde"]


def test_an_event_may_make_another_one_for_the_same_time():
    events, happened = Events(), []
    events.at(1, lambda name: events.at(events.now, happened.append, name), "a")
    events.run(2)
    assert happened == ["a"]


def test_a_cancelled_event_does_not_happen():
    events, happened = Events(), []
    first = events.at(1, happened.append, "a")
    events.at(1, happened.append, "b")
    events.cancel(first)
    events.run(2)
    assert happened == ["b"]


def test_cancelled_events_leave_the_heap_long_before_their_time():
    events, happened = Events(), []
    events.at(10**9, happened.append, "kept")
    for time in range(10_000):
        events.cancel(events.at(10**10 + time, happened.append, time))
        assert len(events) < 200
    events.run(10**11)
    assert happened == ["kept"]


def test_events_of_all_times_are_in_order():
    # Far more than one page of the calendar, and several in each.
    times = [(7**index % 1009) * SECOND for index in range(1, 500)]
    events, happened = Events(rate=2.0), []
    for number, time in enumerate(times):
        events.at(time, happened.append, (time, number))
    assert len(events) == len(times)
    events.run(1009 * SECOND)
    assert happened == sorted(happened)
    assert (len(happened), len(events)) == (len(times), 0)


@pytest.mark.thorough
def test_calls_that_have_ended_leave_nothing_until_their_timeouts():
    gc.collect()
    living = []

    def count(*_):
        if len(living) % 500 == 0:
            found = (type(each) is Call for each in gc.get_objects())
            living.append(sum(found))
        else:
            living.append(0)

    clients = Clients(Policy(max_attempts=1), timeout="1h")
    run(clients, load="50%", horizon="60s", told=count)
    assert len(living) > 2500
    assert max(living) < 200


@pytest.mark.parametrize("number", [1.0, 0.5, 0.7072, 0.7071, 1e-300, 2**-53, 3.0])
def test_a_logarithm_is_right_to_the_last_digits(number):
    assert logarithm(number) == pytest.approx(math.log(number), rel=4e-16, abs=1e-17)


def test_draws_are_the_same_on_any_machine():
    stream = Stream(1, "arrivals")
    drawn = [stream.exponential(SECOND) for _ in range(4)]
    assert drawn == [813532008, 1152911678, 1231438389, 474853589]


def test_a_stream_does_not_depend_on_another_one():
    one, other = Stream(1, "arrivals"), Stream(1, "service times")
    drawn = [one.below(1000) for _ in range(9)]
    assert drawn != [other.below(1000) for _ in range(9)]
    assert drawn != [Stream(2, "arrivals").below(1000) for _ in range(9)]
    assert set(drawn) <= {*range(1000)}
