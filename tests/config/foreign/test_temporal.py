"""Retry policies of Temporal, with the delays of its server."""

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError
from retrykit.conditions import ErrorNames
from retrykit.config.foreign import names, read
from retrykit.errors import AttemptTimeout
from retrykit.presets import temporal

EXAMPLE = {
    "initialInterval": "2s",
    "backoffCoefficient": 3,
    "maximumInterval": "30s",
    "maximumAttempts": 6,
}


def activity(**policy):
    return {"activities": {"fetch": {"retryPolicy": policy}}}


def delays(policy, number):
    return list(policy.schedule.take(number).draw())


def test_a_policy_of_an_activity():
    reading = read(activity(**EXAMPLE))
    assert (reading.name, reading.format) == ("fetch", "temporal")
    assert (reading.differences, reading.notes) == ((), ())
    assert delays(reading.policy, 5) == [2, 6, 18, 30, 30]
    assert (reading.policy.max_attempts, reading.policy.max_elapsed) == (6, None)
    assert (reading.policy.on, reading.policy.give_up_on) == (Exception, ())


def test_snake_case_is_the_same():
    snake = {
        "initial_interval": "2s",
        "backoff_coefficient": 3,
        "maximum_interval": "30s",
        "maximum_attempts": 6,
    }
    document = {"fetch": {"retry_policy": snake}}
    assert read(document).policy == read(activity(**EXAMPLE)).policy


def test_the_defaults():
    assert read(activity(maximumAttempts=None)).policy == temporal()
    zeros = {"initialInterval": "0s", "backoffCoefficient": 0, "maximumAttempts": 0}
    assert read(activity(**zeros, maximumInterval="0")).policy == temporal()
    # The longest delay is 100 times the first.
    policy = read(activity(initialInterval="1m")).policy
    assert delays(policy, 9)[6:] == [3840, 6000, 6000]


def test_names_are_those_of_what_the_policy_is_for():
    policy = {"maximumAttempts": 3}
    document = {
        "retryPolicy": policy,
        "defaultRetryPolicy": policy,
        "activities": [{"name": "charge", "retry_policy": policy}],
        "workflow": {"retryPolicy": policy},
        "plain": policy,
    }
    assert names(document) == [
        *("", "defaultRetryPolicy", "charge", "workflow", "plain")
    ]
    assert names(policy) == [""]
    assert read(policy).policy.max_attempts == 3


def test_events_of_a_history_have_the_name_of_the_type():
    policy = {"initialInterval": "1s", "maximumInterval": "100s"}
    event = {"activityId": "5", "activityType": {"name": "charge"}}
    started = {"workflowType": {"name": "Order"}, "retryPolicy": policy}
    document = {
        "events": [
            {"workflowExecutionStartedEventAttributes": started},
            {"activityTaskScheduledEventAttributes": event | {"retryPolicy": policy}},
        ]
    }
    assert names(document) == ["Order", "charge"]


def test_the_configuration_of_the_server():
    policy = {"InitialIntervalInSeconds": 2, "MaximumIntervalCoefficient": 10}
    policy |= {"BackoffCoefficient": 3, "MaximumAttempts": 0}
    document = {"history.defaultActivityRetryPolicy": [{"value": policy}]}
    assert names(document) == ["history.defaultActivityRetryPolicy"]
    assert read(document).policy == temporal(
        initial_interval=2, backoff_coefficient=3, maximum_interval=20
    )
    policy = {"MaximumIntervalCoefficient": 5, "MaximumAttempts": 3}
    expected = temporal(maximum_interval=5, maximum_attempts=3)
    assert read({"value": policy}).policy == expected
    assert names({"value": policy}) == [""]


class Busy(Exception):  # noqa: N818  as an activity may name it
    pass


def test_errors_are_given_up_by_their_names():
    policy = read(activity(nonRetryableErrorTypes=["Busy", "KeyError"])).policy
    assert policy.give_up_on == ErrorNames(["Busy", "KeyError"])
    assert [policy.give_up_on(each) for each in (Busy(), KeyError(), OSError())] == [
        *(True, True, False)
    ]


def test_names_can_be_given_a_meaning():
    document = activity(nonRetryableErrorTypes=["InvalidAccount"])
    policy = read(document, errors={"InvalidAccount": PermissionError}).policy
    assert policy.give_up_on is PermissionError


def test_an_application_error_has_the_name_of_its_type():
    exceptions = pytest.importorskip("temporalio.exceptions")

    class Special(exceptions.ApplicationError):
        pass

    named = ErrorNames(["Busy", "Special"])
    typed = [exceptions.ApplicationError("x", type="Busy"), Special("x", type="Busy")]
    untyped = [exceptions.ApplicationError("x"), Special("x"), Special("x", type="A")]
    assert all(map(named, typed))
    assert not any(map(named, untyped))


@pytest.mark.parametrize(
    ("kind", "given_up"),
    [
        ("StartToClose", AttemptTimeout),
        ("Heartbeat", ()),
        ("ScheduleToStart", ()),
        ("ScheduleToClose", ()),
    ],
)
def test_timeouts_have_names(kind, given_up):
    types = [f"TemporalTimeout:{kind}"]
    assert read(activity(nonRetryableErrorTypes=types)).policy.give_up_on == given_up


def test_the_time_of_the_activity_is_a_limit():
    options = {
        "scheduleToCloseTimeout": "5m",
        "startToCloseTimeout": "10s",
        "retryPolicy": EXAMPLE,
    }
    reading = read({"fetch": options})
    assert reading.policy.max_elapsed == 300
    attempt = "limits an attempt; the policy has no attempt_timeout"
    assert reading.notes == (
        f"fetch.startToCloseTimeout: {attempt}",
        "fetch.scheduleToCloseTimeout: also ends a running attempt",
    )
    options = {"schedule_to_close_timeout": "0s", "retry_policy": EXAMPLE}
    reading = read({"fetch": options})
    assert (reading.policy.max_elapsed, reading.notes) == (None, ())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"maximumAttempts": -1}, "maximumAttempts must be an integer >= 0"),
        ({"backoffCoefficient": 0.5}, "backoff_coefficient must be .*>= 1"),
        ({"maximumInterval": 10}, "maximumInterval must be a duration such as"),
        (
            {"initialInterval": "9s", "maximumInterval": "8s"},
            "maximum_interval must be .*9.*no shorter than initial_interval",
        ),
        ({"maximumAttempt": 1, "backoffCoefficient": 2}, "did you mean maximumAttem"),
        (
            {"maximum_attempt": 1, "backoff_coefficient": 2},
            "did you mean maximum_attempts",
        ),
        (
            {"nonRetryableErrorTypes": ["TemporalTimeout:Total"]},
            "nonRetryableErrorTypes must be names of errors, or of TemporalTimeout:",
        ),
        ({"nonRetryableErrorTypes": [3]}, "nonRetryableErrorTypes must be a string"),
    ],
)
def test_bad_values_are_refused(fields, message):
    with pytest.raises(ConfigError, match=message):
        read(activity(**fields))


def test_a_bad_value_has_its_line(tmp_path):
    path = tmp_path / "activities.yaml"
    path.write_text("fetch:\n  retryPolicy:\n    maximumAttempts: x\n", "utf-8")
    with pytest.raises(ConfigError, match=r"activities.yaml, line 3: maximumAttempts"):
        read(path)


@pytest.mark.parametrize(
    "document",
    [
        {"retryPolicy": {"minimumBackoff": "1s", "maximumBackoff": "10s"}},
        {"retryPolicy": {"maxAttempts": 3, "initialBackoff": "1s"}},
        {"retry_policy": {"retry_on": "5xx", "num_retries": 3}},
        {"retryPolicy": {"type": "fixed", "count": 3, "maximumInterval": "PT1H"}},
        {"retry_on_failure": {"initial_interval": "5s"}},
        {"retry": {"initial-interval": "1s", "multiplier": 2, "max-interval": "9s"}},
    ],
    ids=["Pub/Sub", "gRPC", "Envoy", "Azure", "OpenTelemetry", "Spring"],
)
def test_other_tables_are_no_policies(document):
    assert names(document, format="temporal") == []


@given(
    st.integers(1, 100),
    st.floats(1, 5),
    st.none() | st.integers(100, 5000),
    st.integers(0, 20),
)
def test_drawn_policies_have_the_delays_of_the_server(first, growth, longest, attempts):
    fields = {"initialInterval": f"{first}s", "backoffCoefficient": growth}
    if longest:
        fields["maximumInterval"] = f"{longest}s"
    policy = read(activity(**fields, maximumAttempts=attempts)).policy
    cap = longest or 100 * first
    expected = [min(first * growth**n, cap) for n in range(20)]
    assert delays(policy, 20) == pytest.approx(expected)
    assert policy.max_attempts == (attempts or None)
