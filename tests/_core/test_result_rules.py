"""Retries because of results, and rules for results as for errors."""

import pytest

from retrykit import (
    ConfigError,
    Policy,
    RetryAfter,
    RetryError,
    Rule,
    StopReason,
    retrying,
    state_of,
)
from retrykit.durable._job import fingerprint


def pending(result):
    return result == "pending"


def busy(result):
    return result == "busy"


def test_results_alone_are_judged(backend, clock, flaky):
    policy = Policy(schedule=[1, 1], on=(), on_result=pending)
    assert backend(policy)(flaky("pending", "pending"))() == "done"
    error = OSError()
    with pytest.raises(OSError) as caught:
        backend(policy)(flaky("pending", error))()
    assert caught.value is error
    assert clock.sleeps == [1.0, 1.0, 1.0]


RULES = [
    Rule(on_result=busy, schedule=[7, 8]),
    Rule(on=TimeoutError, on_result=pending, max_attempts=2),
]


def test_each_result_has_the_schedule_of_its_rule(backend, clock, flaky):
    policy = Policy(schedule=[1, 2, 3], rules=RULES, on_result=lambda x: x == "odd")
    outcomes = ["busy", "odd", "busy", "pending", OSError()]
    assert backend(policy)(flaky(*outcomes))() == "done"
    assert clock.sleeps == [7.0, 1.0, 8.0, 2.0, 3.0]


def test_a_rule_counts_its_errors_and_its_results_together(backend, clock, flaky):
    policy = Policy(schedule=[1, 2, 3], rules=RULES)
    with pytest.raises(RetryError) as caught:
        backend(policy)(flaky(TimeoutError(), "pending"))()
    state = state_of(caught.value)
    assert (state.stop_reason, state.rule_counts) == (StopReason.ATTEMPTS, (0, 2))
    assert state.stop_detail == "max_attempts=2 of rules[1] reached"


def test_the_decision_on_a_stored_failure_is_that_of_the_call(clock, flaky):
    policy = Policy(schedule=[1, 2, 3], rules=RULES)
    states = []
    policy.replace(fallback=states.append).call(flaky(*["busy"] * 3))
    failures, (state,) = states[0].failures, states
    assert [each.rule for each in failures] == [0, 0, 0]
    before = type(state)("fetch", seed=7, epoch=0.0)
    assert policy.decide(before, failures[0]).delay == 7.0


def test_a_rule_has_its_own_hint(backend, clock, flaky):
    rules = [
        Rule(on=TimeoutError, hint=lambda _: 9),
        Rule(on_result=busy, hint=lambda r: "5s" if r == "busy" else None),
        Rule(on=ConnectionError, max_attempts=5),
    ]
    policy = Policy(schedule=[1] * 4, rules=rules, hint=lambda _: 3, hint_jitter=0)
    outcomes = [TimeoutError(), "busy", ConnectionError(), ValueError()]
    assert backend(policy)(flaky(*outcomes))() == "done"
    assert clock.sleeps == [9.0, 5.0, 3.0, 3.0]


def test_a_result_that_a_rule_rejects_is_released(backend, clock, flaky):
    class Condition:
        released = ()

        def __call__(self, result):
            return result == "busy"

        def release(self, result):
            self.released += (result,)

    condition = Condition()
    policy = Policy(rules=[Rule(on_result=condition, schedule=[1])])
    assert backend(policy)(flaky("busy"))() == "done"
    assert condition.released == ("busy",)


@pytest.mark.parametrize("cause", [None, OSError("busy")])
def test_a_signal_without_a_delay_asks_for_the_schedule(backend, clock, flaky, cause):
    policy = Policy(schedule=[4, 5], on=KeyError)
    outcomes = [RetryAfter(cause=cause), RetryAfter(2, cause)]
    assert backend(policy)(flaky(*outcomes))() == "done"
    assert clock.sleeps == [4.0, 2.0]


def test_a_hint_without_a_delay_asks_for_the_schedule(backend, clock, flaky):
    policy = Policy(schedule=[4], hint=lambda _: RetryAfter())
    assert backend(policy)(flaky(OSError()))() == "done"
    assert clock.sleeps == [4.0]


class TestBlocks:
    def test_a_block_without_a_result_is_a_success(self, clock):
        tries = []
        for attempt in retrying(schedule=[1], on_result=pending):
            with attempt:
                tries.append(1)
                if len(tries) == 1:
                    raise OSError
        assert (len(tries), clock.sleeps) == (2, [1.0])

    def test_a_result_that_is_given_is_judged(self, clock):
        results = iter(["pending", "done"])
        for attempt in retrying(schedule=[1], on_result=pending):
            with attempt:
                attempt.set_result(next(results))
        assert clock.sleeps == [1.0]

    def test_none_can_be_given(self, clock):
        with pytest.raises(RetryError):
            for attempt in retrying(schedule=[1], on_result=lambda x: x is None):
                with attempt:
                    attempt.set_result(None)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda: Rule(schedule=[1]), "rule must be given errors in on, or a predicate"),
        (lambda: Rule(on=OSError), "given a schedule, max_attempts or hint, got"),
        (lambda: Rule(on_result=busy), "given a schedule, max_attempts or hint, got"),
        (lambda: Rule(on_result=str, schedule=[1]), "on_result must be a predicate"),
        (lambda: Rule(on=OSError, hint=5), "hint must be a function"),
    ],
)
def test_a_rule_that_cannot_apply_is_an_error(write, message):
    with pytest.raises(ConfigError, match=message):
        write()


async def abusy(_result):
    return True


def test_an_async_predicate_needs_aretry():
    with pytest.raises(ConfigError, match="on_result must be a sync function"):
        Policy(rules=[Rule(on_result=abusy, schedule=[1])]).call(print)


def test_a_rule_for_results_is_not_left_out_of_the_policy_as_data():
    policy = Policy(rules=[Rule(on=OSError, on_result=busy, schedule=[1])])
    with pytest.raises(ConfigError, match=r"^rules\[0\]: on_result must be left out"):
        policy.to_dict()
    without = policy.replace(rules=[Rule(on=OSError, schedule=[1])])
    assert fingerprint(policy) != fingerprint(without)
