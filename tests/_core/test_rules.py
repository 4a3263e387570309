"""Rules: schedules and limits for some errors, under the limits of the policy."""

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
from retrykit._core.rules import Rule
from retrykit._core.settings import SETTINGS
from retrykit.schedules import constant, decorrelated, exponential
from retrykit.schedules._randomness import call_random
from retrykit.testing import ScriptedFunction, virtual_time

COMMON = Policy(schedule=[1, 2, 3, 4], max_attempts=None, max_elapsed=None, on=OSError)


class BusyError(Exception):
    pass


def raise_in_turn(*errors):
    return ScriptedFunction([*errors, "done"])


def sleeps(backend, policy, *errors):
    """Return the sleeps of a call, and its state if it gave up."""
    with virtual_time() as clock:
        outcome = backend.run(policy, raise_in_turn(*errors))
    return clock.sleeps, outcome.state


def test_each_rule_counts_its_own_retries(backend):
    policy = COMMON.replace(rules=[Rule(on=BusyError, schedule=[10, 20])])
    errors = OSError(), BusyError(), OSError(), BusyError(), OSError()
    slept, state = sleeps(backend, policy, *errors)
    assert slept == [1.0, 10.0, 2.0, 20.0, 3.0]
    assert [failure.rule for failure in state.failures] == [None, 0, None, 0, None]
    assert state.rule_counts == (2,)


def test_a_rule_without_a_schedule_uses_the_policys(backend):
    policy = COMMON.replace(rules=[Rule(on=BusyError, max_attempts=9)])
    slept, _ = sleeps(backend, policy, OSError(), BusyError(), OSError())
    assert slept == [1.0, 2.0, 3.0]


def test_the_end_of_a_rules_schedule_ends_the_call(backend):
    policy = COMMON.replace(rules=[Rule(on=BusyError, schedule=[10])])
    slept, state = sleeps(backend, policy, BusyError(), OSError(), BusyError())
    assert slept == [10.0, 1.0]
    assert state.stop_reason is StopReason.SCHEDULE_ENDED


def test_max_attempts_of_a_rule_and_of_the_policy_apply(backend):
    policy = COMMON.replace(rules=[Rule(on=BusyError, max_attempts=2)])
    slept, state = sleeps(backend, policy, BusyError(), OSError(), BusyError())
    assert (slept, state.stop_reason) == ([1.0, 2.0], StopReason.ATTEMPTS)
    slept, state = sleeps(
        backend, policy.replace(max_attempts=2), BusyError(), OSError()
    )
    assert (slept, state.stop_reason) == ([1.0], StopReason.ATTEMPTS)


def test_max_elapsed_applies_to_every_rule(backend):
    policy = COMMON.replace(
        rules=[Rule(on=BusyError, schedule=[50, 50])], max_elapsed=60
    )
    slept, state = sleeps(backend, policy, BusyError(), BusyError())
    assert (slept, state.stop_reason) == ([50.0], StopReason.ELAPSED)


def test_the_first_matching_rule_applies(backend):
    rules = [Rule(on=ConnectionError, schedule=[7]), Rule(on=OSError, schedule=[9, 9])]
    policy = COMMON.replace(rules=rules)
    assert sleeps(backend, policy, ConnectionError(), OSError())[0] == [7.0, 9.0]


def test_a_rule_retries_errors_that_on_does_not_match(backend):
    assert sleeps(backend, COMMON.replace(rules=[Rule(BusyError, [5])]), BusyError())[
        0
    ] == [5.0]


def test_give_up_on_wins_over_rules(backend):
    policy = COMMON.replace(rules=[Rule(OSError, [5])], give_up_on=ConnectionError)
    slept, state = sleeps(backend, policy, OSError(), ConnectionError())
    assert (slept, state.stop_reason) == ([5.0], StopReason.GAVE_UP)


def test_rules_may_be_predicates(backend):
    rule = Rule(on=lambda error: "busy" in error.args, schedule=[5])
    policy = COMMON.replace(rules=[rule])
    assert sleeps(backend, policy, OSError("busy"), OSError("gone"))[0] == [5.0, 1.0]


def test_a_signal_matches_no_rule(backend):
    policy = COMMON.replace(rules=[Rule(on=OSError, schedule=[])])
    assert sleeps(backend, policy, RetryAfter(6, OSError()))[0] == [6.0]


def test_rules_may_have_async_predicates():
    async def is_busy_async(error):
        return "busy" in error.args

    @aretry(schedule=[0], rules=[Rule(on=is_busy_async, schedule=[0, 0, 0])])
    async def fetch():
        raise OSError("busy")

    with pytest.raises(OSError, match="busy") as caught:
        asyncio.run(fetch())
    assert state_of(caught.value).attempt == 4
    plain = "on must be a sync function where nothing can await it"
    with pytest.raises(ConfigError, match=plain):
        retry(rules=[Rule(on=is_busy_async, max_attempts=2)])(print)
    with pytest.raises(ConfigError, match=plain):
        retrying(rules=[Rule(on=is_busy_async, max_attempts=2)])


def test_an_error_in_a_rule_does_not_replace_the_users_error(backend, caplog):
    def failing_predicate(_error):
        raise ZeroDivisionError

    with pytest.raises(OSError, match="gone") as caught:
        backend(COMMON, rules=[Rule(on=failing_predicate, max_attempts=2)])(
            raise_in_turn(OSError("gone"))
        )()
    note = "not retried, because its policy failed with ZeroDivisionError"
    assert note in "".join(caught.value.__notes__)
    assert len(caplog.records) == 1


def test_the_previous_delay_is_that_of_the_same_schedule():
    rule_schedule = decorrelated(1)
    policy = COMMON.replace(
        schedule=constant(500), rules=[Rule(BusyError, rule_schedule)]
    )
    state = RetryState("fetch", 7, 0.0)
    previous = None
    for attempt in range(1, 9, 2):
        state._record.add_failure(failed_state(attempt, OSError(), 500.0))
        state._record.begin_attempt(state.elapsed)
        count, chance = (attempt + 1) // 2, call_random(seed=7, retry=attempt + 1)
        delay = policy.decide(state, failed_state(attempt + 1, BusyError())).delay
        assert delay == rule_schedule.delay(count, previous, chance)
        state._record.add_failure(failed_state(attempt + 1, BusyError(), delay, 0))
        state._record.begin_attempt(state.elapsed)
        previous = delay


def failed_state(attempt, error, delay=None, rule=None):
    return Failure(attempt, error, None, 0.0, 0.0, delay, rule)


def test_dropped_failures_count_for_their_rule():
    policy = COMMON.replace(
        rules=[Rule(BusyError, exponential(1)), Rule(KeyError, max_attempts=5)],
        max_failures=2,
    )
    with virtual_time() as clock:
        outcome = policy.run(raise_in_turn(*[BusyError()] * 5, *[KeyError()] * 5))
    assert clock.sleeps == [1, 2, 4, 8, 16, 1, 2, 3, 4]
    assert outcome.state.stop_reason is StopReason.ATTEMPTS
    assert (outcome.state.rule_counts, outcome.state.dropped_failures) == ((5, 5), 8)


def test_a_resumed_call_continues_in_each_schedule():
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
        first = policy.replace(max_attempts=3).run(raise_in_turn(*errors[:3]))
        data = json.loads(json.dumps(first.state.to_dict()))
        state = RetryState.from_dict(data)
        assert state.rule_counts == (2,)
        assert [failure.rule for failure in state.failures] == [0, None, 0]
        resume(raise_in_turn(*errors[3:]), state, policy)()
    assert clock.sleeps == [10, 1, 2, 30, 3]


def test_a_record_of_an_error_keeps_its_rule():
    policy = COMMON.replace(rules=[Rule(BusyError, [10])])
    state = RetryState("fetch", 7, 0.0)
    state._record.add_failure(failed_state(1, BusyError(), 10.0, 0))
    loaded = RetryState.from_dict(state.to_dict())
    record = loaded.failures[0]._replace(attempt=2)
    assert policy.decide(RetryState("fetch", 7, 0.0), record) == Again(10.0)
    assert policy.decide(loaded, record) == Stop(StopReason.SCHEDULE_ENDED)


def test_a_resumed_call_follows_changed_rules():
    """The changed policy applies from then on."""
    state = RetryState("fetch", 7, 0.0)
    state._record.add_failure(failed_state(1, BusyError(), 10.0, 3))
    assert state.rule_counts == (0, 0, 0, 1)
    policy = COMMON.replace(rules=[Rule(BusyError, [10])])
    assert policy.decide(state, failed_state(2, OSError())) == Again(2.0)
    assert policy.decide(state, failed_state(2, BusyError())) == Again(10.0)


@pytest.mark.parametrize("name", [*SETTINGS])
def test_an_error_knows_every_setting_that_only_the_policy_has(name):
    if name not in Rule._field_names:
        with pytest.raises(ConfigError, match="write it in the policy"):
            Rule(OSError, max_attempts=2, **{name: None})
