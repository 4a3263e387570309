"""Queues of Google Cloud Tasks, with the delays that its documentation gives."""

import json

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError
from retrykit.config.foreign import names, read
from retrykit.presets import cloud_tasks

EXAMPLE = {"minBackoff": "10s", "maxBackoff": "300s", "maxDoublings": 3}
DELAYS = [10, 20, 40, 80, 160, 240, 300, 300]


def queue(name="mail", **config):
    path = f"projects/p/locations/us-central1/queues/{name}"
    return {"name": path, "state": "RUNNING", "retryConfig": config}


def delays(policy, number):
    return list(policy.schedule.take(number).draw())


@pytest.fixture
def write(tmp_path):
    def write(suffix, text):
        path = tmp_path / f"queues{suffix}"
        path.write_text(text, "utf-8")
        return path

    return write


def test_the_example_of_its_documentation():
    reading = read(queue(maxAttempts=9, **EXAMPLE))
    assert (reading.name, reading.format) == ("mail", "cloud-tasks")
    assert (reading.differences, reading.notes) == ((), ())
    assert delays(reading.policy, 8) == DELAYS
    assert (reading.policy.max_attempts, reading.policy.max_elapsed) == (9, None)


def test_the_defaults():
    assert read(queue()).policy == cloud_tasks()
    assert read(queue(minBackoff="0.1s", maxBackoff=None)).policy == cloud_tasks()
    assert read(queue(maxRetryDuration="0s")).policy == cloud_tasks()


def test_both_limits_must_be_reached():
    reading = read(queue(maxAttempts=5, maxRetryDuration="3600s"))
    policy = reading.policy
    assert (policy.max_attempts, policy.max_elapsed) == (5, 3600)
    assert policy.limits == "all"
    text = "a task is given up only after both limits: of attempts and of time"
    assert reading.notes == (f"retryConfig.maxAttempts: {text}",)


def test_attempts_may_be_unlimited():
    reading = read(queue(maxAttempts=-1))
    policy = reading.policy
    assert (policy.max_attempts, policy.max_elapsed) == (None, None)
    text = "unlimited, but Cloud Tasks deletes a task after 31 days"
    assert reading.notes == (f"retryConfig.maxAttempts: {text}",)


def test_unlimited_attempts_end_with_the_time():
    reading = read(queue(maxAttempts=-1, maxRetryDuration="60s"))
    policy = reading.policy
    assert (policy.max_attempts, policy.max_elapsed) == (None, 60)
    assert (policy.limits, reading.notes) == ("any", ())


def test_no_attempts_are_the_default():
    reading = read(queue(maxAttempts=0))
    assert reading.policy == cloud_tasks()
    assert reading.notes == ("retryConfig.maxAttempts: 0 is the default, 100",)


def test_fractions_of_the_first_delay_are_a_difference():
    document = queue(minBackoff="1.5s")
    with pytest.raises(ConfigError, match=r"minBackoff: documented to be cut to whol"):
        read(document)
    reading = read(document, closest=True)
    assert delays(reading.policy, 2) == [1.5, 3]
    assert len(reading.differences) == 1


def test_fractions_of_other_times_are_cut():
    reading = read(queue(maxBackoff="20.9s", maxRetryDuration="90.5s"))
    assert reading.policy == cloud_tasks(max_backoff=20, max_retry_duration=90)
    assert reading.notes[:2] == (
        "retryConfig.maxBackoff: cut to whole seconds",
        "retryConfig.maxRetryDuration: cut to whole seconds",
    )


def test_more_doublings_than_matter_are_read():
    assert read(queue(maxDoublings=1000)).policy == cloud_tasks(max_doublings=60)


TERRAFORM = """
resource "google_cloud_tasks_queue" "advanced" {
  name     = "mail"
  location = "us-central1"
  retry_config {
    max_attempts = 9
    min_backoff  = "10s"
    max_backoff  = "300s"
    max_doublings = 3
  }
}
resource "google_cloud_tasks_queue" "plain" {
  name = "mail-${var.stage}"
  dynamic "http_target" {}
}
resource "google_cloud_tasks_queue" "dynamic" {
  dynamic "retry_config" {
    for_each = var.retries
    content {}
  }
}
resource "google_cloud_tasks_queue" "counted" {
  retry_config {
    max_attempts = var.attempts
  }
}
"""


def test_queues_of_terraform(write):
    path = write(".tf", TERRAFORM)
    assert names(path) == ["mail", "plain", "dynamic", "counted"]
    reading = read(path, "mail")
    assert (reading.differences, reading.notes) == ((), ())
    assert delays(reading.policy, 8) == DELAYS
    assert reading.policy.max_attempts == 9


def test_a_queue_of_terraform_without_settings_has_the_defaults(write):
    path = write(".tf", TERRAFORM)
    reading = read(path, "plain")
    assert reading.policy == cloud_tasks()
    note = "plain.retry_config: there is none, so "
    assert reading.notes == (f"{path}, line 12: {note}the defaults apply",)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dynamic", "line 17: retry_config must be written out, got 'dynamic \"ret"),
        ("counted", "line 24: max_attempts must be written out, got 'var.attempts'"),
    ],
)
def test_what_terraform_computes_is_refused(write, name, message):
    with pytest.raises(ConfigError, match=message):
        read(write(".tf", TERRAFORM), name)


@pytest.mark.parametrize("several", [False, True], ids=["a table", "a list"])
def test_terraform_in_json(write, several):
    config = {"max_attempts": 9}
    resource = {"name": "mail", "retry_config": [config] if several else config}
    queues = {"q": [resource] if several else resource}
    document = {"resource": {"google_cloud_tasks_queue": queues}}
    path = write(".tf.json", json.dumps([document] if several else document))
    assert names(path) == ["mail"]
    assert read(path).policy == cloud_tasks(max_attempts=9)


APP_ENGINE = """\
queue:
- name: fooqueue
  rate: 1/s
  retry_parameters:
    task_retry_limit: 7
    task_age_limit: 2d
- name: barqueue
  rate: 1/s
  retry_parameters:
    min_backoff_seconds: 10
    max_backoff_seconds: 200
    max_doublings: 0
- name: bazqueue
  rate: 1/s
  retry_parameters:
    min_backoff_seconds: 10
    max_backoff_seconds: 300
    max_doublings: 3
- name: plain
  rate: 1/s
"""


def test_the_examples_of_app_engine(write):
    path = write(".yaml", APP_ENGINE)
    assert names(path) == ["fooqueue", "barqueue", "bazqueue"]
    foo, bar, baz = (read(path, each).policy for each in names(path))
    # Up to seven retries, and up to two days.
    assert (foo.max_attempts, foo.max_elapsed, foo.limits) == (8, 172_800, "all")
    assert delays(bar, 21) == [10 * min(n, 20) for n in range(1, 22)]
    assert (bar.max_attempts, bar.max_elapsed) == (None, None)
    assert delays(baz, 8) == DELAYS


def parameters(**given):
    return {"queue": [{"name": "q", "rate": "5/s", "retry_parameters": given}]}


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("30m", 1800), ("90s", 90), ("1.5h", 5400), (" 1d ", 86400)],
)
def test_times_of_app_engine(written, seconds):
    policy = read(parameters(task_age_limit=written)).policy
    assert (policy.max_attempts, policy.max_elapsed) == (None, seconds)


def test_a_limit_of_retries_without_a_time():
    policy = read(parameters(task_retry_limit=0)).policy
    assert (policy.max_attempts, policy.max_elapsed) == (1, None)


def test_a_delay_beyond_the_other_moves_it():
    assert delays(read(parameters(min_backoff_seconds=9000)).policy, 2) == [9000, 9000]
    short = read(parameters(max_backoff_seconds=0.05)).policy
    assert delays(short, 2) == [0.05, 0.05]


def test_a_pull_queue_is_a_difference():
    document = parameters(task_retry_limit=3)
    document["queue"][0]["mode"] = "pull"
    with pytest.raises(ConfigError, match=r"queue\[0\].mode: workers lease the tasks"):
        read(document)
    assert read(document, closest=True).policy.max_attempts == 4


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (queue(maxAttempts=-2), "maxAttempts must be an integer >= -1"),
        (queue(minBackoff=10), 'minBackoff must be seconds such as "3.5s", got 10'),
        (queue(minBackoff="20s", maxBackoff="10s"), "max_backoff must be .*20"),
        (queue(maxDoublings=-1), "maxDoublings must be an integer >= 0"),
        (queue(maxAttempt=1), "no key 'maxAttempt'; did you mean maxAttempts?"),
        (queue(max_attempt=1), "no key 'max_attempt'; did you mean max_attempts?"),
        (parameters(task_age_limit="2w"), "task_age_limit must be a time > 0 such as"),
        (parameters(task_age_limit="0s"), "task_age_limit must be a time > 0"),
        (parameters(task_age_limit=30), "task_age_limit must be a time > 0"),
        (parameters(task_retry_limits=1), "did you mean task_retry_limit?"),
        (parameters(task_retry_limit=-1), "must be an integer >= 0"),
        (
            parameters(min_backoff_seconds=2, max_backoff_seconds=1),
            "max_backoff must be",
        ),
    ],
)
def test_bad_values_are_refused(document, message):
    with pytest.raises(ConfigError, match=message):
        read(document)


def test_a_bad_value_has_its_line(write):
    text = "name: projects/p/locations/l/queues/q\nretryConfig:\n  maxAttempts: many\n"
    with pytest.raises(ConfigError, match=r"queues.yaml, line 3: maxAttempts must be"):
        read(write(".yaml", text))
    text = '{"name": "q",\n "retryConfig": {"minBackoff": "1s",\n  "maxBackoff": 3}}'
    with pytest.raises(ConfigError, match=r"queues.json, line 3: maxBackoff must be"):
        read(write(".json", text))


@pytest.mark.parametrize(
    "document",
    [
        {"retryConfig": {"retryCount": 3, "maxDoublings": 5}},
        {"retryConfig": {"maxAttempts": 3}},
        {"retryConfig": "text", "retry_parameters": 3},
        {"retry_parameters": {"x": 1}},
        {"resource": {"google_pubsub_topic": {"a": {"retry_config": {}}}}},
    ],
    ids=["Cloud Scheduler", "any", "text", "unknown", "other resource"],
)
def test_other_tables_are_no_queues(document):
    assert names(document, format="cloud-tasks") == []


def test_a_queue_may_have_no_name():
    assert names({"a": {"retryConfig": {"minBackoff": "1s"}}}) == ["a"]
    assert names({"retry_config": {"min_backoff": "1s"}, "rateLimits": {}}) == [""]


@given(
    st.integers(1, 200),
    st.integers(1, 100),
    st.integers(0, 100),
    st.integers(0, 20),
)
def test_drawn_queues_have_the_delays_of_the_original(attempts, low, more, doublings):
    high = low + more
    config = {"minBackoff": f"{low}s", "maxBackoff": f"{high}s"}
    config |= {"maxDoublings": doublings, "maxAttempts": attempts}
    policy = read(queue(**config)).policy
    # `Retry` in the SDK of App Engine.
    expected = []
    for retry in range(1, 30):
        exponent = min(retry - 1, doublings)
        expected.append(min(high, low * 2**exponent * (retry - exponent)))
    assert delays(policy, 29) == expected
    assert policy.max_attempts == attempts
