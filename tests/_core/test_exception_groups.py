"""Exception groups: matched by their members, or as a whole."""

import asyncio

import pytest

from retrykit import (
    ConfigError,
    GiveUp,
    Policy,
    RetryAfter,
    Rule,
    StopReason,
    aretry,
    state_of,
)

REFUSED, TIMEOUT, KEY = ConnectionError("refused"), TimeoutError(), KeyError("id")


def group(*members):
    return ExceptionGroup("tasks", members)


@pytest.mark.parametrize(
    ("rule", "on", "error", "retried"),
    [
        ("all", OSError, group(REFUSED, TIMEOUT), True),
        ("all", OSError, group(REFUSED, KEY), False),
        ("all", OSError, group(REFUSED, group(TIMEOUT, KEY)), False),
        ("all", OSError, group(REFUSED, group(TIMEOUT)), True),
        ("any", OSError, group(REFUSED, KEY), True),
        ("any", OSError, group(KEY), False),
        ("whole", OSError, group(REFUSED), False),
        ("whole", ExceptionGroup, group(KEY), True),
        ("all", ExceptionGroup, group(KEY), True),
        ("all", (OSError, ExceptionGroup), group(KEY), True),
        ("all", Exception, group(KEY, TypeError()), True),
        ("all", lambda e: isinstance(e, OSError), group(REFUSED, TIMEOUT), True),
        ("all", lambda e: not isinstance(e, KeyError), group(REFUSED, KEY), False),
        ("any", lambda e: not isinstance(e, KeyError), group(REFUSED, KEY), True),
        ("whole", lambda e: isinstance(e, ExceptionGroup), group(KEY), True),
        ("all", (), group(REFUSED), False),
    ],
)
def test_the_rule_decides_which_members_must_match(
    backend, clock, flaky, rule, on, error, retried
):
    fetch = flaky(error)
    policy = Policy(
        schedule=[1], on=on, exception_groups=rule, on_result=lambda _: False
    )
    outcome = None
    try:
        outcome = backend(policy)(fetch)()
    except ExceptionGroup as caught:
        assert caught is error
        assert state_of(caught).stop_reason is StopReason.NOT_RETRYABLE
    assert (outcome == "done") is retried
    assert clock.sleeps == [1.0] * retried


def test_by_default_all_members_must_be_worth_a_retry(backend, clock, flaky):
    assert backend(schedule=[1])(flaky(group(REFUSED, KEY)))() == "done"
    error = group(REFUSED, TypeError("x"))
    with pytest.raises(ExceptionGroup) as caught:
        backend(schedule=[1])(flaky(error))()
    assert "TypeError is a programming error" in caught.value.__notes__[0]


@pytest.mark.parametrize("condition", [KeyError, lambda e: isinstance(e, KeyError)])
@pytest.mark.parametrize("rule", ["all", "any"])
def test_give_up_on_matches_any_member(backend, clock, flaky, rule, condition):
    policy = Policy(schedule=[1], give_up_on=condition, exception_groups=rule)
    with pytest.raises(ExceptionGroup) as caught:
        backend(policy)(flaky(group(REFUSED, KEY)))()
    assert state_of(caught.value).stop_reason is StopReason.GAVE_UP


def test_give_up_on_matches_the_whole_group(clock, flaky):
    policy = Policy(schedule=[1], give_up_on=KeyError, exception_groups="whole")
    assert policy.call(flaky(group(REFUSED, KEY))) == "done"


def test_a_rule_matches_the_members(backend, clock, flaky):
    rules = [Rule(on=TimeoutError, schedule=[7]), Rule(on=OSError, schedule=[9])]
    policy = Policy(schedule=[1], rules=rules)
    errors = [group(REFUSED, TIMEOUT), group(TIMEOUT), group(KEY)]
    assert backend(policy)(flaky(*errors))() == "done"
    assert clock.sleeps == [9.0, 7.0, 1.0]


def test_a_signal_in_a_group_is_obeyed(backend, clock, flaky):
    asked = group(REFUSED, RetryAfter())
    assert backend(schedule=[1], on=OSError)(flaky(asked))() == "done"
    assert backend(schedule=[1], on=KeyError)(flaky(group(RetryAfter())))() == "done"
    for signal, reason in ((GiveUp(), "gave_up"), (ConfigError(), "not_retryable")):
        with pytest.raises(ExceptionGroup) as caught:
            backend(schedule=[1], on=OSError)(flaky(group(REFUSED, signal)))()
        assert state_of(caught.value).stop_reason == reason


def test_the_longest_delay_that_a_member_asks_for_is_kept(backend, clock, flaky):
    asked = {REFUSED: 5, TIMEOUT: "7s", KEY: None}
    policy = Policy(schedule=[1, 1], hint=asked.get, hint_jitter=0)
    assert backend(policy)(flaky(group(REFUSED, TIMEOUT, KEY), group(KEY)))() == "done"
    assert clock.sleeps == [7.0, 1.0]


def test_a_hint_of_a_member_can_give_up(clock, flaky):
    policy = Policy(schedule=[1], hint=lambda e: GiveUp() if e is KEY else 3)
    with pytest.raises(ExceptionGroup):
        policy.call(flaky(group(REFUSED, KEY)))
    assert clock.sleeps == []


def test_a_predicate_that_fails_is_noted_on_the_group(backend, clock, flaky, caplog):
    with pytest.raises(ExceptionGroup) as caught:
        backend(schedule=[1], on=lambda e: e.status)(flaky(group(REFUSED)))()
    assert "policy failed with AttributeError" in caught.value.__notes__[0]


def test_a_task_group_is_retried(clock):
    calls = []

    async def fail_twice():
        calls.append(1)
        if len(calls) <= 2:
            raise OSError

    @aretry(schedule=[1], on=OSError)
    async def gather():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail_twice())
            tasks.create_task(fail_twice())
        return "done"

    assert asyncio.run(gather()) == "done"
    assert clock.sleeps == [1.0]


def test_the_decision_is_that_of_the_call():
    from retrykit import Again, Failure, RetryState, Stop

    state = RetryState("fetch", seed=7, epoch=0.0)
    failure = Failure(1, group(REFUSED, KEY), None, 0.0, 0.1, None)
    policy = Policy(schedule=[2], on=OSError)
    assert policy.decide(state, failure) == Stop(StopReason.NOT_RETRYABLE)
    assert policy.replace(exception_groups="any").decide(state, failure) == Again(2.0)


def test_an_unknown_rule_is_an_error():
    with pytest.raises(ConfigError, match="exception_groups must be one of 'all'"):
        Policy(exception_groups="some")
