"""Errors that are retried in a way of their own, under common limits."""

import asyncio
import json

import pytest

from retrykit import (
    Again,
    ConfigError,
    Failure,
    Policy,
    RetryAfter,
    RetryState,
    Stop,
    StopReason,
    aretry,
    resume,
    retry,
    retrying,
    state_of,
)
from retrykit.policy.rules import Rule
from retrykit.schedules import constant, decorrelated, exponential
from retrykit.schedules.randomness import call_random
from retrykit.testing import virtual_time

COMMON = Policy(schedule=[1, 2, 3, 4], max_attempts=None, max_elapsed=None, on=OSError)


class BusyError(Exception):
    pass


def raising(*errors):
    left = list(errors)

    def fetch():
        if left:
            raise left.pop(0)
        return "done"

    return fetch


def sleeps(colour, policy, *errors):
    """Return what was slept, and the state of the call if it gave up."""
    with virtual_time() as clock:
        outcome = colour.run(policy, raising(*errors))
    return clock.sleeps, outcome.state


def test_each_rule_has_its_own_place_in_its_schedule(colour):
    policy = COMMON.replace(rules=[Rule(on=BusyError, schedule=[10, 20])])
    errors = OSError(), BusyError(), OSError(), BusyError(), OSError()
    slept, state = sleeps(colour, policy, *errors)
    assert slept == [1.0, 10.0, 2.0, 20.0, 3.0]
    assert [failure.rule for failure in state.failures] == [None, 0, None, 0, None]
    assert state.rule_counts == (2,)


def test_a_rule_without_a_schedule_goes_on_in_the_policys(colour):
    policy = COMMON.replace(rules=[Rule(on=BusyError, max_attempts=9)])
    slept, _ = sleeps(colour, policy, OSError(), BusyError(), OSError())
    assert slept == [1.0, 2.0, 3.0]


def test_a_schedule_of_a_rule_that_ends_ends_the_call(colour):
    policy = COMMON.replace(rules=[Rule(on=BusyError, schedule=[10])])
    slept, state = sleeps(colour, policy, BusyError(), OSError(), BusyError())
    assert slept == [10.0, 1.0]
    assert state.stop_reason is StopReason.SCHEDULE_ENDED


def test_attempts_are_counted_for_each_rule_and_for_all(colour):
    policy = COMMON.replace(rules=[Rule(on=BusyError, max_attempts=2)])
    slept, state = sleeps(colour, policy, BusyError(), OSError(), BusyError())
    assert (slept, state.stop_reason) == ([1.0, 2.0], StopReason.ATTEMPTS)
    slept, state = sleeps(
        colour, policy.replace(max_attempts=2), BusyError(), OSError()
    )
    assert (slept, state.stop_reason) == ([1.0], StopReason.ATTEMPTS)


def test_the_common_time_holds_for_every_rule(colour):
    policy = COMMON.replace(
        rules=[Rule(on=BusyError, schedule=[50, 50])], max_elapsed=60
    )
    slept, state = sleeps(colour, policy, BusyError(), BusyError())
    assert (slept, state.stop_reason) == ([50.0], StopReason.ELAPSED)


def test_the_first_rule_that_accepts_an_error_holds_for_it(colour):
    rules = [Rule(on=ConnectionError, schedule=[7]), Rule(on=OSError, schedule=[9, 9])]
    policy = COMMON.replace(rules=rules)
    assert sleeps(colour, policy, ConnectionError(), OSError())[0] == [7.0, 9.0]


def test_a_rule_holds_for_errors_that_on_does_not_name(colour):
    assert sleeps(colour, COMMON.replace(rules=[Rule(BusyError, [5])]), BusyError())[
        0
    ] == [5.0]


def test_what_gives_up_is_asked_before_the_rules(colour):
    policy = COMMON.replace(rules=[Rule(OSError, [5])], give_up_on=ConnectionError)
    slept, state = sleeps(colour, policy, OSError(), ConnectionError())
    assert (slept, state.stop_reason) == ([5.0], StopReason.GAVE_UP)


def test_rules_may_be_predicates(colour):
    rule = Rule(on=lambda error: "busy" in error.args, schedule=[5])
    policy = COMMON.replace(rules=[rule])
    assert sleeps(colour, policy, OSError("busy"), OSError("gone"))[0] == [5.0, 1.0]


def test_a_signal_is_of_no_rule(colour):
    policy = COMMON.replace(rules=[Rule(on=OSError, schedule=[])])
    assert sleeps(colour, policy, RetryAfter(6, OSError()))[0] == [6.0]


def test_rules_may_be_asked_asynchronously():
    async def busy(error):
        return "busy" in error.args

    @aretry(schedule=[0], rules=[Rule(on=busy, schedule=[0, 0, 0])])
    async def fetch():
        raise OSError("busy")

    with pytest.raises(OSError, match="busy") as caught:
        asyncio.run(fetch())
    assert state_of(caught.value).attempt == 4
    plain = "on must be a sync function where nothing can await it"
    with pytest.raises(ConfigError, match=plain):
        retry(rules=[Rule(on=busy, max_attempts=2)])(print)
    with pytest.raises(ConfigError, match=plain):
        retrying(rules=[Rule(on=busy, max_attempts=2)])


def test_a_rule_that_fails_leaves_the_error_as_it_is(colour, caplog):
    def broken(_error):
        raise ZeroDivisionError

    with pytest.raises(OSError, match="gone") as caught:
        colour(COMMON, rules=[Rule(on=broken, max_attempts=2)])(
            raising(OSError("gone"))
        )()
    note = "not retried, because its policy failed with ZeroDivisionError"
    assert note in "".join(caught.value.__notes__)
    assert len(caplog.records) == 1


def test_a_delay_is_drawn_from_the_one_before_of_the_same_schedule():
    mine = decorrelated(1)
    policy = COMMON.replace(schedule=constant(500), rules=[Rule(BusyError, mine)])
    state = RetryState("fetch", 7, 0.0)
    previous = None
    for attempt in range(1, 9, 2):
        state.record(failed(attempt, OSError(), 500.0))
        state.begin_attempt()
        count, chance = (attempt + 1) // 2, call_random(seed=7, retry=attempt + 1)
        delay = policy.decide(state, failed(attempt + 1, BusyError())).delay
        assert delay == mine.delay(count, previous, chance)
        state.record(failed(attempt + 1, BusyError(), delay, 0))
        state.begin_attempt()
        previous = delay


def failed(attempt, error, delay=None, rule=None):
    return Failure(attempt, error, None, 0.0, 0.0, delay, rule)


def test_failures_that_are_no_longer_kept_are_counted():
    policy = COMMON.replace(
        rules=[Rule(BusyError, exponential(1)), Rule(KeyError, max_attempts=5)],
        max_failures=2,
    )
    with virtual_time() as clock:
        outcome = policy.run(raising(*[BusyError()] * 5, *[KeyError()] * 5))
    assert clock.sleeps == [1, 2, 4, 8, 16, 1, 2, 3, 4]
    assert outcome.state.stop_reason is StopReason.ATTEMPTS
    assert (outcome.state.rule_counts, outcome.state.dropped_failures) == ((5, 5), 8)


def test_a_resumed_call_goes_on_in_each_schedule():
    policy = COMMON.replace(rules=[Rule(BusyError, [10, 20, 30])])
    errors = [
        BusyError(),
        OSError(),
        BusyError(),
        OSError(),
        BusyError(),
        OSError("last"),
    ]
    with virtual_time() as clock:
        first = policy.replace(max_attempts=3).run(raising(*errors[:3]))
        data = json.loads(json.dumps(first.state.to_dict()))
        state = RetryState.from_dict(data)
        assert state.rule_counts == (2,)
        assert [failure.rule for failure in state.failures] == [0, None, 0]
        resume(raising(*errors[3:]), state, policy)()
    assert clock.sleeps == [10, 1, 2, 30, 3]


def test_a_record_of_an_error_is_decided_by_the_rule_that_held_for_it():
    policy = COMMON.replace(rules=[Rule(BusyError, [10])])
    state = RetryState("fetch", 7, 0.0)
    state.record(failed(1, BusyError(), 10.0, 0))
    kept = RetryState.from_dict(state.to_dict())
    record = kept.failures[0]._replace(attempt=2)
    assert policy.decide(RetryState("fetch", 7, 0.0), record) == Again(10.0)
    assert policy.decide(kept, record) == Stop(StopReason.SCHEDULE_ENDED)


def test_rules_under_another_policy_than_before():
    """A changed policy is followed from then on."""
    state = RetryState("fetch", 7, 0.0)
    state.record(failed(1, BusyError(), 10.0, 3))
    assert state.rule_counts == (0, 0, 0, 1)
    policy = COMMON.replace(rules=[Rule(BusyError, [10])])
    assert policy.decide(state, failed(2, OSError())) == Again(2.0)
    assert policy.decide(state, failed(2, BusyError())) == Again(10.0)
