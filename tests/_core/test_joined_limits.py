"""Limits that end a call only together, and the limit that the note names."""

import pytest

from retrykit import (
    ConfigError,
    Policy,
    Rule,
    StopReason,
    current_state,
    retry,
    state_of,
)
from retrykit.schedules import constant
from retrykit.testing import disable_retries, limit_retries

BOTH = Policy(limits="all", max_attempts=3, max_elapsed=100, schedule=constant(20))


def ending(policy, error=OSError):
    """Return why a call that fails every time ends, after how many attempts."""

    def failing():
        raise error

    with pytest.raises(error) as caught:
        policy.call(failing)
    state = state_of(caught.value)
    return state.stop_reason, state.attempt, state.elapsed


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (StopReason.ELAPSED, 6, 100.0)),
        ({"schedule": constant(200)}, (StopReason.ELAPSED, 3, 400.0)),
        ({"max_attempts": 8}, (StopReason.ELAPSED, 8, 140.0)),
        ({"limits": "any"}, (StopReason.ATTEMPTS, 3, 40.0)),
        ({"schedule": [20], "max_attempts": 2}, (StopReason.SCHEDULE_ENDED, 2, 20.0)),
        ({"deadline": "overshoot"}, (StopReason.ELAPSED, 7, 120.0)),
        ({"max_elapsed": 90, "deadline": "overshoot"}, (StopReason.ELAPSED, 6, 100.0)),
        ({"max_elapsed": 90, "deadline": "clip"}, (StopReason.ELAPSED, 6, 90.0)),
        ({"max_elapsed": 90}, (StopReason.ELAPSED, 5, 80.0)),
    ],
)
def test_a_call_ends_at_the_last_of_both(clock, changes, expected):
    assert ending(BOTH.replace(**changes)) == expected


@pytest.mark.parametrize("attempts", [3, 8])
def test_the_note_names_both(clock, attempts):
    state = BOTH.replace(max_attempts=attempts).run(lambda: 1 / 0).state
    assert state.stop_detail == f"max_attempts={attempts} and max_elapsed=1m40s reached"


def test_a_hint_is_bounded_by_the_time_only_at_the_end(clock):
    asked = BOTH.replace(hint=lambda _: 70, hint_jitter=0, max_attempts=2)
    assert ending(asked) == (StopReason.HINT, 2, 70.0)


def test_the_time_left_is_unknown_while_attempts_are_left(clock):
    seen = []

    @retry(BOTH)
    def fetch():
        seen.append((current_state().remaining, current_state().max_attempts))

    fetch()
    assert seen == [(None, None)]


def test_a_nested_call_is_not_bounded_by_it(clock):
    inner = retry(schedule=["5m"], on=OSError)(lambda: next(outcomes))
    outcomes = iter([1])
    assert retry(BOTH)(inner)() == 1


@pytest.mark.parametrize(
    "changes", [{"max_attempts": 3}, {"max_elapsed": 60}, {"schedule": [1]}]
)
def test_both_limits_are_needed(changes):
    rule = "limits must be 'any' unless both max_attempts and max_elapsed are set"
    with pytest.raises(ConfigError, match=rule):
        Policy(limits="all", **changes)
    assert Policy(limits="all").max_elapsed == 60.0


ASKED = "gave up after 1 attempt in 0 s: it was asked to wait"


class TestNote:
    """The note names the limit that ended the call, and its value."""

    @pytest.mark.parametrize(
        ("policy", "text"),
        [
            (
                Policy(max_attempts=2, schedule=[1]),
                "gave up after 2 attempts in 1 s: max_attempts=2 reached",
            ),
            (
                Policy(max_attempts=1),
                "gave up after 1 attempt in 0 s: max_attempts=1 reached",
            ),
            (
                Policy(schedule=constant(40), max_elapsed="1m"),
                "gave up after 2 attempts in 40 s: max_elapsed=1m would be exceeded",
            ),
            (
                Policy(schedule=constant(40), max_elapsed="1m", deadline="overshoot"),
                "gave up after 3 attempts in 1 min 20 s: max_elapsed=1m reached",
            ),
            (
                Policy(schedule=[1]),
                "gave up after 2 attempts in 1 s: the schedule has ended",
            ),
            (
                Policy(schedule=[1] * 5, rules=[Rule(on=OSError, max_attempts=2)]),
                "gave up after 2 attempts in 1 s: max_attempts=2 of rules[0] reached",
            ),
            (
                Policy(schedule=[1], hint=lambda _: "2h"),
                f"{ASKED} 2 h, longer than hint_cap=1h",
            ),
            (
                Policy(schedule=[1], hint=lambda _: "2m", max_elapsed="1m"),
                f"{ASKED} 2 min, longer than max_elapsed=1m allows",
            ),
            (
                Policy(hint=lambda _: "2h", on_long_hint="clip", max_elapsed="1m"),
                f"{ASKED} 2 h, longer than max_elapsed=1m allows",
            ),
        ],
    )
    def test_of_a_limit(self, clock, policy, text):
        def failing():
            raise OSError

        with pytest.raises(OSError) as caught:
            policy.call(failing)
        assert caught.value.__notes__ == [f"retrykit: {text}"]
        detail = state_of(caught.value).stop_detail
        assert detail is None or text.endswith(detail)

    def test_of_the_call_around_it(self, clock):
        @retry(schedule=["2m"], on=OSError)
        def inner():
            raise OSError

        with pytest.raises(OSError) as caught:
            retry(schedule=[1], max_elapsed="1m")(inner)()
        notes = " ".join(caught.value.__notes__)
        assert "the time limit of the call around it would be exceeded" in notes

    @pytest.mark.parametrize(
        ("block", "text"),
        [
            (disable_retries, "max_attempts=1 reached, set by disable_retries()"),
            (lambda: limit_retries(2), "max_attempts=2 reached, set by limit_retries"),
        ],
        ids=["disabled", "limited"],
    )
    def test_of_a_test(self, block, text):
        def failing():
            raise OSError

        with block(), pytest.raises(OSError) as caught:
            Policy(schedule=[1, 1, 1]).call(failing)
        assert text in caught.value.__notes__[0]
