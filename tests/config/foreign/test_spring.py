"""Retries of RabbitMQ, Kafka and the config server in the YAML of Spring Boot."""

from functools import reduce

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError, Policy, schedules as s
from retrykit.config import foreign

LISTENER = "rabbitmq.listener.simple.retry"
KAFKA = "kafka.retry.topic"
SERVER = "cloud.config.retry"


def read(path, table, *, closest=False):
    document = reduce(lambda inner, key: {key: inner}, path.split(".")[::-1], table)
    return foreign.read({"spring": document}, closest=closest)


def refused(path, **table):
    with pytest.raises(ConfigError) as caught:
        read(path, table)
    return caught.value.message


def notes(path, **table):
    return [note.rpartition(": ")[2] for note in read(path, table, closest=True).notes]


def enabled(path, **table):
    return read(path, {"enabled": True} | table).policy


def test_the_tables_of_an_application_are_found(tmp_path):
    path = tmp_path / "application.yml"
    path.write_text(
        "spring:\n"
        "  rabbitmq:\n"
        "    listener.simple.retry: {enabled: true, max-retries: 2}\n"
        "    listener: {direct: {retry: {enabled: true}}}\n"
        "    template.retry.enabled: true\n"
        "  kafka: {retry: {topic: {enabled: true}}}\n"
        "---\n"
        "spring.cloud.config.retry.max-attempts: 9\n"
    )
    assert foreign.names(path) == [
        "rabbitmq.listener.simple",
        "rabbitmq.listener.direct",
        "rabbitmq.template",
        "kafka.retry.topic",
        "cloud.config",
    ]
    assert foreign.read(path, "rabbitmq.listener.simple").policy.max_attempts == 3
    assert foreign.read(path, "cloud.config").policy.max_attempts == 9


@pytest.mark.parametrize(
    "document",
    [
        {"spring": None},
        {"spring": {"rabbitmq": {"listener": [{"simple": {"retry": {}}}]}}},
        {"spring": {"rabbitmq": {"template": {"retry": True}}, "kafka": 1}},
        {"spring": {"application": {"name": "x"}}},
    ],
)
def test_other_documents_have_no_tables(document):
    assert foreign.names(document) == []


@pytest.mark.parametrize("path", [LISTENER, "rabbitmq.template.retry"])
def test_the_defaults_of_rabbitmq(path):
    expected = Policy(schedule=s.constant(1).cap(10), max_attempts=4, on=Exception)
    assert enabled(path) == expected
    message = "by default 3 retries; up to Spring Boot 3, by default 3 attempts"
    assert notes(path, enabled=True) == [message]


def test_the_example_of_the_documentation_of_rabbitmq():
    # "Sending a Message", reference documentation of Spring Boot 4.
    policy = enabled("rabbitmq.template.retry", **{"initial-interval": "2s"})
    assert policy.schedule == s.constant(2).cap(10)


@pytest.mark.parametrize("path", [LISTENER, KAFKA])
@pytest.mark.parametrize("table", [{}, {"enabled": False}, {"enabled": "false"}])
def test_without_enabled_there_are_no_retries(path, table):
    assert read(path, table).policy.max_attempts == 1
    assert "not true, so that there are no retries" in notes(path, **table)


def test_the_number_of_retries_is_that_of_spring_boot_4():
    assert enabled(LISTENER, **{"max-retries": 5}).max_attempts == 6
    assert notes(LISTENER, enabled=True, max_retries=0) == []
    assert enabled(LISTENER, max_retries=0).max_attempts == 1


def test_the_number_of_attempts_is_that_of_spring_boot_3():
    assert enabled(LISTENER, **{"max-attempts": 5}).max_attempts == 5
    message = "a key of Spring Boot 3; 4 does not read it, and makes 3 retries"
    assert notes(LISTENER, enabled=True, maxAttempts=5) == [message]


def test_of_both_numbers_that_of_spring_boot_4_applies():
    both = {"max-attempts": 5, "max-retries": 1}
    assert enabled(LISTENER, **both).max_attempts == 2
    message = "not read by Spring Boot 4, as maxRetries is not by 3; that applies"
    assert notes(LISTENER, enabled=True, **both) == [message]


def test_stateful_retries_are_noted():
    table = {"enabled": True, "max-retries": 1, "stateless": False}
    message = "each retry is a new delivery of the message, after the delay"
    assert notes(LISTENER, **table) == [message]


@given(
    first=st.integers(0, 5000),
    factor=st.floats(1, 4).map(lambda x: round(x, 2)),
    longest=st.integers(1, 20_000),
    retries=st.integers(1, 9),
)
def test_delays_of_rabbitmq_are_those_of_its_formula(first, factor, longest, retries):
    policy = enabled(
        LISTENER,
        initialInterval=first,
        multiplier=factor,
        maxInterval=f"{longest}ms",
        maxRetries=retries,
    )
    assert policy.max_attempts == retries + 1
    current = first
    for retry in range(1, retries + 1):
        expected = min(current, longest) / 1000
        assert policy.schedule.bounds(retry) == pytest.approx((expected, expected))
        current = min(int(current * factor), longest)


def test_the_defaults_of_kafka():
    assert enabled(KAFKA) == Policy(
        schedule=s.constant(1), max_attempts=3, on=Exception
    )
    message = "an error of deserialization or conversion is not retried"
    assert notes(KAFKA, enabled=True) == [message]
    assert enabled(KAFKA, backoff={}).schedule == s.constant(1).cap(30)


def test_delays_of_kafka_grow():
    backoff = {"delay": "1s", "multiplier": 2, "max-delay": "3s"}
    policy = enabled(KAFKA, attempts=5, backoff=backoff)
    assert policy.max_attempts == 5
    assert policy.schedule == s.exponential(1, factor=2).cap(3)
    assert enabled(KAFKA, backoff=backoff | {"max-delay": 0}).schedule == s.exponential(
        1, factor=2
    )


def test_a_longest_delay_that_is_shorter_than_the_first_is_noted():
    backoff = {"delay": "1m"}
    assert notes(KAFKA, enabled=True, backoff=backoff)[1:] == [
        "shorter than delay, and so each delay"
    ]
    assert enabled(KAFKA, backoff=backoff).schedule.bounds(1) == (30, 30)


def test_jitter_of_kafka_is_drawn_once():
    backoff = {"delay": "1s", "jitter": "100ms"}
    message = refused(KAFKA, enabled=True, backoff=backoff)
    assert message.startswith(
        "spring.kafka.retry.topic.backoff.jitter: drawn once, when the application "
        "starts; the policy draws before each retry; closest=True"
    )
    reading = read(KAFKA, {"enabled": True, "backoff": backoff}, closest=True)
    assert reading.policy.schedule == s.constant(1) + s.constant(
        0.1
    ).full_jitter().round_down(0.001)


@given(
    first=st.integers(0, 5000),
    factor=st.floats(1, 4).map(lambda x: round(x, 2)),
    longest=st.integers(1, 20_000),
    jitter=st.integers(1, 3000),
)
def test_jitter_of_kafka_is_that_of_its_formula(first, factor, longest, jitter):
    backoff = {
        "delay": first,
        "multiplier": factor,
        "max-delay": longest,
        "jitter": jitter,
    }
    table = {"enabled": True, "attempts": 7, "backoff": backoff}
    schedule = read(KAFKA, table, closest=True).policy.schedule
    current = first
    for retry in range(1, 7):
        part = int(jitter * (current / first if first else 1))
        least = max(current - part, first)
        most = min(current + part, longest)
        bounds = sorted(min(each, longest) / 1000 for each in (least, most))
        assert schedule.bounds(retry) == pytest.approx(tuple(bounds))
        current = min(int(current * factor), longest)


@pytest.mark.parametrize(
    ("table", "schedule"),
    [
        ({"delay": "5s"}, s.constant(5)),
        ({"delay": 0, "multiplier": 2}, s.constant(0)),
        ({"delay": "1m", "multiplier": 0.5}, s.constant(60).cap(30)),
        ({"multiplier": 2}, s.exponential(1, factor=2).cap(30)),
        ({"multiplier": 2, "max-delay": "9s"}, s.exponential(1, factor=2).cap(9)),
        ({"multiplier": 1, "random-back-off": True}, s.constant(1).cap(30)),
    ],
)
def test_keys_of_spring_boot_3_have_its_delays(table, schedule):
    assert enabled(KAFKA, **table).schedule == schedule
    message = "not read by Spring Boot 4; the policy is as in Spring Boot 3"
    assert notes(KAFKA, enabled=True, **table)[1:] == [message] * len(table)


@pytest.mark.parametrize(
    ("table", "bounds"),
    [
        ({"max-delay": "5s"}, [(1, 5), (1, 5)]),
        ({"multiplier": 3, "random-back-off": True}, [(1, 3), (3, 9)]),
        ({"backoff": {"multiplier": 3, "random": True}}, [(1, 3), (3, 9)]),
    ],
)
def test_random_delays_of_spring_boot_3_are_drawn_once(table, bounds):
    assert "drawn once" in refused(KAFKA, enabled=True, **table)
    schedule = read(KAFKA, table | {"enabled": True}, closest=True).policy.schedule
    assert [schedule.bounds(retry) for retry in (1, 2)] == bounds


def test_of_delays_in_two_tables_the_inner_ones_apply():
    table = {"enabled": True, "delay": "5s", "backoff": {"delay": "2s"}}
    assert read(KAFKA, table).policy.schedule == s.constant(2).cap(30)
    assert "not read by Spring Boot 4; backoff applies" in notes(KAFKA, **table)


def test_the_defaults_of_the_config_server():
    reading = read(SERVER, {})
    schedule = s.sequence([1, 1.1, 1.21, 1.331, 1.464])
    assert reading.policy == Policy(
        schedule=schedule.cap(2), max_attempts=6, on=Exception
    )
    assert notes(SERVER) == ["only where spring.cloud.config.fail-fast is true"]


def test_random_delays_of_the_config_server():
    table = {"multiplier": 2, "max-interval": 3000, "use-random-policy": True}
    schedule = read(SERVER, table).policy.schedule
    assert [schedule.bounds(retry) for retry in (1, 2, 3)] == [(1, 2), (2, 3), (3, 3)]


def test_steady_delays_of_the_config_server_are_those_of_bootstrap_yml():
    table = {"multiplier": 1, "max-interval": 1000}
    assert read(SERVER, table).policy.schedule == s.constant(1).cap(1)
    message = "has to be more, but in bootstrap.yml"
    assert notes(SERVER, **table)[:2] == [message, message]


@pytest.mark.parametrize(
    ("path", "table", "rule"),
    [
        (LISTENER, {"max-retries": -1}, "max-retries must be an integer >= 0"),
        (LISTENER, {"max-attempts": 0}, "max-attempts must be an integer >= 1"),
        (LISTENER, {"multiplier": 0.5}, "multiplier must be a number >= 1"),
        (LISTENER, {"max-interval": 0}, "max-interval must be a duration > 0"),
        (LISTENER, {"initial-interval": "1.5s"}, "must be a duration >= 0"),
        (KAFKA, {"attempts": 0}, "attempts must be an integer >= 1"),
        (KAFKA, {"backoff": {"multiplier": 0}}, "multiplier must be a number >= 1"),
        (SERVER, {"multiplier": 0.9}, "multiplier must be a number >= 1"),
        (
            SERVER,
            {"initial-interval": "1s"},
            "initial-interval must be an integer >= 1",
        ),
        (SERVER, {"max-interval": 0}, "max-interval must be an integer >= 1"),
        (SERVER, {"max-attempts": 0}, "max-attempts must be an integer >= 1"),
    ],
)
def test_bad_values_are_refused(path, table, rule):
    assert rule in refused(path, **table)


@pytest.mark.parametrize(
    ("path", "key", "nearest"),
    [
        (LISTENER, "max-retrys", "maxRetries"),
        (KAFKA, "atempts", "attempts"),
        (SERVER, "max-intervall", "maxInterval"),
    ],
)
def test_an_unknown_key_is_told_with_the_nearest(tmp_path, path, key, nearest):
    file = tmp_path / "application.yml"
    file.write_text(f"a: 1\nspring.{path}:\n  {key}: 1\n")
    with pytest.raises(ConfigError) as caught:
        foreign.read(file)
    table = path.rpartition(".")[2]
    message = f"{file}, line 3: {table} has no key '{key}'; did you mean {nearest}?"
    assert caught.value.message == message


def test_an_unknown_key_of_delays_is_told_with_the_nearest():
    message = refused(KAFKA, backoff={"delays": 1})
    assert message.endswith("backoff has no key 'delays'; did you mean delay?")
    message = refused(KAFKA, backoff={"random": True, "jitter": 1})
    assert "backoff has no key 'jitter'" in message
