"""States of AWS Step Functions, with the delays that its documentation gives."""

import json

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError, Policy, Rule
from retrykit.conditions import ErrorNames, Excluding
from retrykit.config.foreign import names, read
from retrykit.presets import step_functions
from retrykit.testing import virtual_time


class Busy(Exception):  # noqa: N818  as a function of Lambda may name it
    pass


def state(*retriers, **fields):
    return {"States": {"Get": {"Type": "Task", "Retry": [*retriers], **fields}}}


def retrier(*errors, **fields):
    return {"ErrorEquals": [*errors], **fields}


def test_each_retrier_counts_for_itself():
    document = state(
        retrier("Busy", IntervalSeconds=2, MaxAttempts=2, MaxDelaySeconds=3),
        retrier("States.Timeout", IntervalSeconds=10, BackoffRate=1.5),
        retrier("States.ALL", IntervalSeconds=5, MaxAttempts=1),
    )
    policy = read(document, "Get").policy
    script = [
        Busy(),
        TimeoutError(),
        Busy(),
        TimeoutError(),
        KeyError(),
        TimeoutError(),
    ]
    failures = iter([*script, KeyError()])

    def fail():
        raise next(failures)

    with virtual_time() as clock, pytest.raises(KeyError):
        policy.call(fail)
    assert clock.sleeps == [2, 10, 3, 15, 5, 22.5]


def test_a_single_retrier_is_a_policy_without_rules():
    document = state(retrier("States.ALL", IntervalSeconds=3, JitterStrategy="FULL"))
    expected = step_functions(interval_seconds=3, jitter_strategy="FULL")
    assert read(document).policy == Policy(
        on=Exception,
        schedule=expected.schedule,
        max_attempts=expected.max_attempts,
        max_elapsed=None,
    )


@given(
    st.integers(1, 1000), st.integers(0, 9), st.floats(1, 4), st.none() | st.just(5000)
)
def test_a_retrier_is_read_as_the_preset_of_its_settings(first, most, rate, longest):
    fields = {"IntervalSeconds": first, "MaxAttempts": most, "BackoffRate": rate}
    if longest:
        fields["MaxDelaySeconds"] = longest
    expected = step_functions(
        interval_seconds=first,
        max_attempts=most,
        backoff_rate=rate,
        max_delay_seconds=longest,
    )
    policy = read(state(retrier("X", **fields))).policy
    assert (policy.schedule, policy.max_attempts) == (
        expected.schedule,
        expected.max_attempts,
    )


def test_names_are_those_of_the_classes():
    on = read(state(retrier("Busy", "States.TaskFailed"))).policy.on
    assert [on(each) for each in (Busy(), TimeoutError(), KeyError())] == [
        *(True, False, True)
    ]
    assert read(state(retrier("Busy"))).policy.on == ErrorNames(["Busy"])
    assert read(state(retrier("States.TaskFailed"))).policy.on == Excluding(
        [TimeoutError]
    )
    assert read(state(retrier("States.Timeout"))).policy.on is TimeoutError


def test_names_can_be_given_a_meaning():
    errors = {"Lambda.ServiceException": OSError, "Slow": (TimeoutError, EOFError)}
    document = state(retrier("Lambda.ServiceException", "Slow"))
    policy = read(document, errors=errors).policy
    assert policy.on == (OSError, TimeoutError, EOFError)
    with pytest.raises(ConfigError, match=r"errors\['X'\] must be an Exception type"):
        read(document, errors={"X": 3})


def test_states_are_found_wherever_they_are():
    inner = {"StartAt": "A", "States": {"A": {"Retry": [retrier("X")]}}}
    document = {
        "Resources": {
            "Machine": {
                "Definition": {
                    "States": {
                        "Both": {"Type": "Parallel", "Branches": [inner, inner]},
                        "Each": {"Type": "Map", "ItemProcessor": inner},
                        "Done": {"Type": "Succeed"},
                        "Odd": {"Retry": "no list"},
                        "Get": {"Retry": [retrier("X", MaxAttempts=0)]},
                    }
                }
            }
        }
    }
    assert names(document) == ["A", "A (2)", "A (3)", "Get"]
    assert read(document, "Get").policy.max_attempts == 1
    assert names({"Retry": [retrier("X")]}) == [""]


def test_a_timeout_of_the_state_is_told():
    reading = read(state(retrier("X"), TimeoutSeconds=9))
    assert reading.differences == ()
    text = "limits an attempt; the policy has no attempt_timeout"
    assert reading.notes == (f"States.Get.TimeoutSeconds: {text}",)


@pytest.mark.parametrize(
    ("retriers", "message"),
    [
        ([retrier("X", IntervalSeconds=0)], "IntervalSeconds must be an integer >= 1"),
        ([retrier("X", BackoffRate=0.5)], "BackoffRate must be a number >= 1, got 0.5"),
        (
            [retrier("X", JitterStrategy="HALF")],
            "must be one of FULL, NONE, got 'HALF'",
        ),
        ([{"MaxAttempts": 2}, retrier("X")], "Retry must be a table with ErrorEquals"),
        (
            [retrier("X", MaxAttempt=2)],
            "no key 'MaxAttempt'; did you mean MaxAttempts?",
        ),
        (
            [retrier("X", Colour=2)],
            "no key 'Colour'; the keys are BackoffRate, Comment",
        ),
        ([retrier("States.ALL", "X")], "ErrorEquals must be States.ALL alone"),
        (
            [retrier("States.ALL"), retrier("X")],
            "must be States.ALL in the last retrier alone",
        ),
        (
            [retrier("X", IntervalSeconds=9, MaxDelaySeconds=8)],
            "max_delay_seconds must be",
        ),
        ([retrier("X"), "retry"], "Retry must be a table, got 'retry'"),
        (
            [retrier("X", MaxAttempts="${N}")],
            "must be written out, got '${N}'; a reader",
        ),
        ([retrier(3)], "ErrorEquals must be a string, got 3"),
        ([retrier("X") | {"ErrorEquals": {}}], "must be a list of strings, got {}"),
    ],
)
def test_what_step_functions_refuses_is_refused(retriers, message):
    with pytest.raises(ConfigError) as info:
        read(state(*retriers))
    assert message in info.value.message


def test_an_error_has_the_file_and_the_line(tmp_path):
    path = tmp_path / "machine.json"
    document = state(retrier("X", MaxAttempts=-1), retrier("Y", Kind=1))
    path.write_text(json.dumps(document, indent=1), "utf-8")
    with pytest.raises(ConfigError) as info:
        read(path)
    assert info.value.message == (
        f"{path}, line 10: MaxAttempts must be an integer >= 0 and <= 99999999, got -1"
    )


def test_the_rules_of_a_state_are_python_that_builds_them():
    from retrykit.config.rendering import to_python

    document = state(retrier("Busy"), retrier("X", "States.TaskFailed"))
    policy = read(document).policy
    scope = {}
    exec(to_python("machine", policy), scope)  # noqa: S102  our own text
    assert scope["machine"] == policy
    assert isinstance(policy.rules[0], Rule)
