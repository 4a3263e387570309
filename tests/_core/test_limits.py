"""Limits that are written are the only ones, and the first that is reached applies."""

import re

import pytest

from retrykit import (
    ConfigError,
    GiveUp,
    Policy,
    Rule,
    StopReason,
    retry,
    schedules,
    state_of,
)
from retrykit._core.limits import override
from retrykit.hints import retry_after
from retrykit.schedules import constant, exponential, linear, sequence
from retrykit.schedules._base import Schedule
from retrykit.testing import ScriptedFunction, virtual_time
from tests._support.exports import exports_of


def readable(value):
    """Return a name of a parameter, the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))


def ten_delays():
    yield from [0.25] * 10


def endless():
    while True:
        yield 1


def broken():
    yield 1
    raise LookupError


# Its end cannot be found: it is beyond the retries that `within` can add up.
TOO_FAR = constant(0).within(5).switch(after=10**9, to=constant(1))


@pytest.mark.parametrize(
    ("written", "limits"),
    [
        ({}, (5, 60.0)),
        ({"on": OSError, "name": "fetch"}, (5, 60.0)),
        ({"max_attempts": 20}, (20, None)),
        ({"max_attempts": None}, (None, None)),
        ({"max_elapsed": "10m"}, (None, 600.0)),
        ({"max_elapsed": None}, (5, None)),
        ({"max_attempts": 5, "max_elapsed": 60}, (5, 60.0)),
        ({"schedule": ["5m"]}, (None, None)),
        ({"schedule": [5, 15, 960]}, (None, None)),
        ({"schedule": exponential(1).take(9)}, (None, None)),
        ({"schedule": [5, 15], "max_attempts": 2}, (2, None)),
        ({"schedule": [5, 15], "max_elapsed": "1h"}, (None, 3600.0)),
        ({"schedule": exponential(1)}, (5, None)),
        ({"schedule": constant(1), "max_elapsed": "1h"}, (None, 3600.0)),
        ({"schedule": constant(1), "max_attempts": None}, (None, None)),
        ({"schedule": TOO_FAR}, (5, None)),
        ({"rules": [Rule(on=OSError, schedule=["1h"])]}, (5, None)),
        ({"rules": [Rule(on=OSError, max_attempts=2)]}, (5, 60.0)),
        ({"schedule": ten_delays}, (None, None)),
        ({"schedule": endless}, (5, None)),
        ({"schedule": broken}, (5, None)),
    ],
    ids=readable,
)
def test_limits_that_are_written_are_the_only_ones(written, limits):
    policy = Policy(**written)
    assert (policy.max_attempts, policy.max_elapsed) == limits


def test_defaults_give_way_to_a_limit_that_is_written_later():
    assert Policy(on=OSError).replace(max_attempts=20).max_elapsed is None
    assert Policy(max_attempts=3).replace(max_elapsed="1m").max_attempts == 3
    assert Policy(schedule=[1, 2]).replace(schedule=constant(1)).max_attempts == 5
    assert Policy(max_attempts=9).replace(name="fetch").max_elapsed is None


@pytest.mark.parametrize(
    "policy",
    [
        Policy(),
        Policy(max_attempts=5),
        Policy(max_attempts=5, max_elapsed=60),
        Policy(max_elapsed=60),
        Policy(max_attempts=None),
        Policy(max_elapsed=None),
        Policy(schedule=[1, 2], max_elapsed=None),
        Policy(schedule=Policy().schedule),
    ],
    ids=repr,
)
def test_only_written_limits_are_printed_and_stored(policy):
    other = policy.replace(max_attempts=2)
    names = {"Policy": Policy} | exports_of(schedules)
    for again in (
        eval(repr(policy), names),  # noqa: S307  our own text
        Policy.from_dict(policy.to_dict()),
    ):
        assert again == policy
        assert repr(again) == repr(policy)
        assert again.replace(max_attempts=2) == other


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            {"schedule": ["30s"], "max_elapsed": "10s"},
            (
                "max_elapsed must be at least 30s, the first delay, or nothing is ever "
                "retried, got 10.0; for a single attempt write max_attempts=1"
            ),
        ),
        (
            {"max_elapsed": 0},
            (
                "max_elapsed must be at least 250ms, the first delay, or nothing is "
                "ever retried, got 0.0; for a single attempt write max_attempts=1"
            ),
        ),
        (
            {"schedule": []},
            (
                "schedule must be at least one delay, or nothing is ever retried, got "
                "sequence([]); for a single attempt write max_attempts=1"
            ),
        ),
        (
            {"schedule": constant(1).take(0), "max_attempts": 5, "hint": retry_after()},
            (
                "schedule must be at least one delay, or nothing is ever retried, got "
                "constant(1.0).take(0); for a single attempt write max_attempts=1"
            ),
        ),
        (
            {"schedule": [1, 2], "max_attempts": 4, "max_elapsed": 9, "limits": "all"},
            (
                "max_attempts must be at most 3, since the schedule ends after 2 "
                "delays, got 4; with limits='any' the first that is reached ends a call"
            ),
        ),
        (
            {
                "schedule": constant(1).take(10**9),
                "max_attempts": 10**15,
                "max_elapsed": 9,
                "limits": "all",
            },
            (
                "max_attempts must be at most 1000000001, since the schedule ends "
                "after 1000000000 delays, got 1000000000000000; with limits='any' the "
                "first that is reached ends a call"
            ),
        ),
    ],
    ids=["first delay", "no time", "no delay", "hint", "schedule", "long schedule"],
)
def test_settings_under_which_nothing_is_retried_are_an_error(written, message):
    with pytest.raises(ConfigError) as caught:
        Policy(**written)
    assert caught.value.message == message
    with pytest.raises(ConfigError):
        retry(**written)


def test_a_replacement_of_another_setting_does_not_search_the_schedule_again():
    delays = []

    def counted():
        while True:
            delays.append(1)
            yield 1

    policy = Policy(schedule=counted)
    searched = len(delays)
    other = policy.replace(name="fetch", on=OSError)
    assert (other.max_attempts, other.max_elapsed) == (5, None)
    assert len(delays) == searched


def test_a_schedule_without_a_delay_is_an_error_whatever_makes_it():
    for schedule in ((), constant(1).within(0), sequence([])):
        with pytest.raises(ConfigError, match="schedule must be at least one delay"):
            retry(schedule=schedule)
    with pytest.raises(ConfigError, match="schedule must be at least one delay"):
        Policy(on=OSError).replace(schedule=[])
    rules = [Rule(on=OSError, max_attempts=3)]
    with pytest.raises(ConfigError, match="schedule must be at least one delay"):
        Policy(schedule=[], rules=rules)


def test_of_limits_that_each_end_a_call_the_first_one_does():
    def ends(**settings):
        with virtual_time(), pytest.raises(OSError, match="busy") as caught:
            Policy(on=OSError, **settings).call(fail)
        state = state_of(caught.value)
        return state.attempt, state.stop_reason

    def fail():
        raise OSError("busy")

    tens = {"schedule": constant(10)}
    assert ends(max_attempts=20, max_elapsed="1m", **tens) == (7, "elapsed")
    assert ends(max_attempts=5, max_elapsed="1h", **tens) == (5, "attempts")
    assert ends(max_attempts=20, schedule=[1, 2]) == (3, "schedule_ended")
    assert ends(max_attempts=2, schedule=[1, 2]) == (2, "attempts")
    assert ends(max_elapsed="2s", schedule=[1, 2]) == (2, "elapsed")


def test_a_limit_that_a_replacement_puts_first_is_taken():
    policy = Policy(schedule=constant(10), max_attempts=4)
    assert policy.replace(max_elapsed="20s").max_attempts == 4
    assert policy.replace(schedule=[1]).max_attempts == 4


@pytest.mark.parametrize(
    ("lenient", "strict"),
    [
        ({"deadline": "clip"}, {"deadline": "stop"}),
        ({"hint": retry_after()}, {"hint": None}),
        ({"rules": [Rule(on=OSError, max_attempts=2)]}, {"rules": []}),
    ],
    ids=["deadline", "hint", "rules"],
)
def test_a_replacement_that_leaves_no_retry_is_an_error(lenient, strict):
    policy = Policy(schedule=["30s"], max_elapsed="10s", **lenient)
    with pytest.raises(ConfigError, match="at least 30s, the first delay"):
        policy.replace(**strict)


def test_an_override_keeps_the_other_limits_also_when_it_is_replaced():
    policy = override(Policy(), max_attempts=9).replace(name="fetch")
    assert (policy.max_attempts, policy.max_elapsed) == (9, 60.0)
    assert repr(policy).endswith("max_attempts=9, max_elapsed=60.0, name='fetch')")


class Custom(Schedule):
    """Raises wherever it is asked."""

    __slots__ = ()

    def delay(self, retry, previous, random):
        raise LookupError

    def bounds(self, retry):
        raise LookupError


@pytest.mark.parametrize(
    "written",
    [
        {"schedule": [1, 5, 60], "max_attempts": 2},
        {"schedule": [1, 5, 60], "max_elapsed": 10},
        {"schedule": ["30s"], "max_elapsed": "10s", "deadline": "clip"},
        {"schedule": ["30s"], "max_elapsed": "10s", "deadline": "overshoot"},
        {"schedule": ["30s"], "max_elapsed": "10s", "hint": retry_after()},
        {"schedule": ["30s"], "max_elapsed": "30s"},
        {"schedule": ["30s"], "max_elapsed": 0, "max_attempts": 1},
        {
            "schedule": [1],
            "max_attempts": 4,
            "rules": [Rule(on=OSError, schedule=[1, 2, 3])],
        },
        {"schedule": constant(9).full_jitter(), "max_attempts": 9, "max_elapsed": 9},
        {"schedule": linear(1), "max_attempts": 10**6, "max_elapsed": "10w"},
        {"schedule": ten_delays, "max_attempts": 20},
        {"schedule": Custom(), "max_attempts": 20, "max_elapsed": 5},
        {"schedule": Custom(), "max_attempts": None},
        {"schedule": sequence([]), "max_attempts": 1},
        {"schedule": [], "rules": [Rule(on=OSError, schedule=[1])]},
        {"max_attempts": 20, "max_elapsed": "1m"},
        {"schedule": [0.01], "max_attempts": 3},
        {"schedule": [1], "max_attempts": 2, "max_elapsed": 9, "limits": "all"},
        {
            "schedule": [1],
            "max_attempts": 9,
            "max_elapsed": 9,
            "limits": "all",
            "hint": retry_after(),
        },
        {"schedule": TOO_FAR, "max_attempts": 10**9, "max_elapsed": 9, "limits": "all"},
    ],
    ids=readable,
)
def test_limits_that_can_both_end_a_call_are_taken(written):
    assert Policy(**written)


def give_up(_):
    return GiveUp()


REJECTED = Policy(schedule=[0], on=(), on_result=lambda _: True, hint=give_up)
HINTED = Policy(schedule=[0], on=OSError, hint=give_up)
EXCLUDED = Policy(schedule=[0], on=OSError, give_up_on=PermissionError)
ENDS = {
    "raise GiveUp": (EXCLUDED, GiveUp(), "GiveUp was raised"),
    "raise GiveUp with a cause": (HINTED, GiveUp(OSError()), "GiveUp was raised"),
    "a group with GiveUp": (
        HINTED,
        ExceptionGroup("two", [OSError(), GiveUp()]),
        "GiveUp was raised",
    ),
    "give_up_on": (EXCLUDED, PermissionError(), "give_up_on includes the error"),
    "give_up_on beside a hint": (
        EXCLUDED.replace(hint=give_up),
        PermissionError(),
        "give_up_on includes the error",
    ),
    "give_up_on of a group": (
        EXCLUDED,
        ExceptionGroup("two", [OSError(), PermissionError()]),
        "give_up_on includes the error",
    ),
    "a predicate": (
        EXCLUDED.replace(give_up_on=lambda error: not error.args),
        OSError(),
        "give_up_on includes the error",
    ),
    "a hint": (HINTED, OSError(), "the hint returned GiveUp"),
    "a hint beside give_up_on": (
        EXCLUDED.replace(hint=give_up),
        OSError(),
        "the hint returned GiveUp",
    ),
    "a hint for a result": (REJECTED, "page", "the hint returned GiveUp"),
}


@pytest.mark.parametrize(("policy", "outcome", "reason"), ENDS.values(), ids=ENDS)
def test_a_note_says_which_of_give_up_on_giveup_and_a_hint_has_ended_the_call(
    backend, policy, outcome, reason
):
    with virtual_time():
        state = backend.run(policy, ScriptedFunction([outcome, ...])).state
    assert state.stop_reason is StopReason.GAVE_UP
    assert state.describe() == f"gave up after 1 attempt in 0 s: {reason}"
