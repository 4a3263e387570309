"""Subscriptions of Google Pub/Sub."""

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError
from retrykit.config.foreign import names, read
from retrykit.schedules import constant, exponential

WEEK = 7 * 86_400
KEPT = "messageRetentionDuration: a message is kept for 7 d, the max_elapsed"
AT_ONCE = "retryPolicy: there is none, so a message is sent again at once"


def subscription(**fields):
    path = "projects/p/subscriptions/mail"
    return {"name": path, "topic": "projects/p/topics/mail", **fields}


@pytest.fixture
def write(tmp_path):
    def write(suffix, text):
        path = tmp_path / f"subscriptions{suffix}"
        path.write_text(text, "utf-8")
        return path

    return write


def test_backoff_is_a_difference():
    backoff = {"minimumBackoff": "5s", "maximumBackoff": "300s"}
    document = subscription(retryPolicy=backoff)
    with pytest.raises(ConfigError, match="retryPolicy: its growth is not documented"):
        read(document)
    reading = read(document, closest=True)
    assert (reading.name, reading.format) == ("mail", "pubsub")
    assert reading.policy.schedule == exponential(5).cap(300)
    assert (reading.policy.max_attempts, reading.policy.max_elapsed) == (None, WEEK)
    assert reading.policy.on is Exception
    assert reading.notes == (KEPT,)


def test_the_defaults_of_a_retry_policy():
    policy = read(subscription(retryPolicy={}), closest=True).policy
    assert policy.schedule == exponential(10).cap(600)


def test_without_a_retry_policy_messages_are_sent_again_at_once():
    reading = read(subscription())
    assert reading.policy.schedule == constant(0)
    assert (reading.policy.max_attempts, reading.policy.max_elapsed) == (None, WEEK)
    assert (reading.differences, reading.notes) == ((), (AT_ONCE, KEPT))


@pytest.mark.parametrize(("given", "attempts"), [(20, 20), (0, 5), (None, 5)])
def test_dead_letters_limit_the_attempts(given, attempts):
    dead = {"deadLetterTopic": "projects/p/topics/d", "maxDeliveryAttempts": given}
    reading = read(subscription(deadLetterPolicy=dead))
    assert reading.policy.max_attempts == attempts
    text = f"about {attempts} attempts; Pub/Sub counts approximately"
    assert reading.notes[1] == f"deadLetterPolicy.maxDeliveryAttempts: {text}"


def test_messages_are_kept_for_a_time():
    reading = read(subscription(messageRetentionDuration="86400s"))
    assert reading.policy.max_elapsed == 86_400
    assert reading.notes[1] == KEPT.replace("7 d", "1 d")


TERRAFORM = """
resource "google_pubsub_subscription" "both" {
  name  = "mail"
  topic = google_pubsub_topic.mail.id
  message_retention_duration = "1200s"
  retry_policy {
    minimum_backoff = "10s"
  }
  dead_letter_policy {
    dead_letter_topic     = google_pubsub_topic.dead.id
    max_delivery_attempts = 10
  }
}
resource "google_pubsub_subscription" "plain" {
  name  = var.name
  topic = google_pubsub_topic.mail.id
}
resource "google_pubsub_subscription" "dynamic" {
  dynamic "retry_policy" {}
}
resource "google_pubsub_topic" "mail" {
  name = "mail"
}
"""


def test_subscriptions_of_terraform(write):
    path = write(".tf", TERRAFORM)
    assert names(path) == ["mail", "plain", "dynamic"]
    policy = read(path, "mail", closest=True).policy
    assert policy.schedule == exponential(10).cap(600)
    assert (policy.max_attempts, policy.max_elapsed) == (10, 1200)
    reading = read(path, "plain")
    assert reading.policy.schedule == constant(0)
    with pytest.raises(ConfigError, match="line 19: retry_policy must be written out"):
        read(path, "dynamic")


def test_subscriptions_may_have_no_name():
    inner = {"deadLetterPolicy": {"maxDeliveryAttempts": 7}}
    assert names({"spec": inner}) == ["spec"]
    assert read(inner).policy.max_attempts == 7


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"retryPolicy": {"minimumBackoff": "601s"}},
            "minimumBackoff must be a duration of at most 600s",
        ),
        (
            {"retryPolicy": {"minimumBackoff": 10}},
            'minimumBackoff must be seconds such as "3.5s", got 10',
        ),
        (
            {"retryPolicy": {"minimumBackoff": "9s", "maximumBackoff": "8s"}},
            "maximumBackoff must be no shorter than minimumBackoff, got '8s'",
        ),
        (
            {"retryPolicy": {"minimumBackof": "9s"}},
            "no key 'minimumBackof'; did you mean minimumBackoff?",
        ),
        (
            {"deadLetterPolicy": {"maxDeliveryAttempts": 4}},
            "maxDeliveryAttempts must be an integer >= 5 and <= 100, got 4",
        ),
        (
            {"deadLetterPolicy": {"maxDeliveryAttempts": False}},
            "maxDeliveryAttempts must be an integer",
        ),
        (
            {"deadLetterPolicy": {"max_delivery_attempt": 4}},
            "no key 'max_delivery_attempt'; did you mean max_delivery_attempts?",
        ),
        (
            {"messageRetentionDuration": "599s"},
            "messageRetentionDuration must be a duration of 600s to 2678400s",
        ),
    ],
    ids=lambda given: "" if isinstance(given, dict) else given[:25],
)
def test_bad_values_are_refused(fields, message):
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        read(subscription(**fields), closest=True)


def test_a_bad_value_has_its_line(write):
    text = "name: a\nretryPolicy:\n  minimumBackoff: 10s\n  maximumBackoff: 1h\n"
    with pytest.raises(ConfigError, match="line 4: maximumBackoff must be seconds"):
        read(write(".yaml", text))


@pytest.mark.parametrize(
    "document",
    [
        {"retryPolicy": {"initialInterval": "1s", "maximumInterval": "10s"}},
        {"retryPolicy": {"maxAttempts": 3, "initialBackoff": "1s"}},
        {"retry_policy": {"retry_on": "5xx", "num_retries": 3}},
        {"retryPolicy": "text", "deadLetterPolicy": None},
        {"name": "projects/p/subscriptions/mail"},
    ],
    ids=["Temporal", "gRPC", "Envoy", "text", "name"],
)
def test_other_tables_are_no_subscriptions(document):
    assert names(document, format="pubsub") == []


@given(st.integers(0, 600), st.integers(0, 600), st.integers(5, 100))
def test_drawn_subscriptions_keep_their_bounds(one, other, attempts):
    low, high = sorted([one, other])
    document = subscription(
        retryPolicy={"minimumBackoff": f"{low}s", "maximumBackoff": f"{high}s"},
        deadLetterPolicy={"maxDeliveryAttempts": attempts},
    )
    policy = read(document, closest=True).policy
    delays = list(policy.schedule.take(30).draw())
    assert delays == [min(high, low * 2**n) for n in range(30)]
    assert policy.max_attempts == attempts
