"""Retries of resilience4j in the YAML of Spring Boot."""

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError, Policy, schedules as s
from retrykit.config import foreign

# The example of the documentation, "Getting started with resilience4j-spring-boot".
EXAMPLE = """\
resilience4j.retry:
    instances:
        backendA:
            maxAttempts: 3
            waitDuration: 10s
            enableExponentialBackoff: true
            exponentialBackoffMultiplier: 2
            retryExceptions:
                - org.springframework.web.client.HttpServerErrorException
                - java.io.IOException
            ignoreExceptions:
                - io.github.robwin.exception.BusinessException
"""
ERRORS = {
    "org.springframework.web.client.HttpServerErrorException": ConnectionError,
    "java.io.IOException": OSError,
    "io.github.robwin.exception.BusinessException": FileNotFoundError,
}


def read(instance, name="a", *, closest=False, errors=None, configs=None, **groups):
    retry = {"instances": {"a": instance}, "configs": configs or {}} | groups
    document = {"resilience4j": {"retry": retry}}
    return foreign.read(document, name, closest=closest, errors=errors)


def refused(instance, **settings):
    with pytest.raises(ConfigError) as caught:
        read(instance, **settings)
    return caught.value.message


def notes(instance, **settings):
    return [note.rpartition(": ")[2] for note in read(instance, **settings).notes]


def test_the_example_of_the_documentation_is_exact(tmp_path):
    path = tmp_path / "application.yml"
    path.write_text(EXAMPLE)
    reading = foreign.read(path, errors=ERRORS)
    assert reading.policy == Policy(
        schedule=s.exponential(10, factor=2),
        max_attempts=3,
        on=(ConnectionError, OSError),
        give_up_on=FileNotFoundError,
    )
    assert reading[1:] == ("backendA", "resilience4j", (), ())


def test_classes_of_java_without_a_meaning_are_differences(tmp_path):
    path = tmp_path / "application.yml"
    path.write_text(EXAMPLE)
    with pytest.raises(ConfigError, match=r"line 8: .*retryExceptions: org.springfr"):
        foreign.read(path)
    reading = foreign.read(path, closest=True)
    assert reading.policy.on is Exception
    assert reading.policy.give_up_on == ()
    assert [each.rpartition(": ")[2] for each in reading.differences] == [
        "...} says what it is",
        "...} says what it is",
        "none is known; the policy retries every error",
        "...} says what it is",
    ]


def test_the_defaults():
    reading = read({})
    assert reading.policy == Policy(
        schedule=s.constant(0.5), max_attempts=3, on=Exception
    )
    assert reading.notes == reading.differences == ()


@pytest.mark.parametrize("name", ["java.lang.Exception", "java.lang.Throwable"])
def test_every_error_of_java_is_every_exception(name):
    assert read({"retryExceptions": [name]}).policy.on is Exception


NESTED = "resilience4j: {retry: {instances: {a: {max-attempts: 7}}}}"


@pytest.mark.parametrize(
    "text",
    [
        NESTED,
        "resilience4j.retry.instances.a.maxAttempts: 7",
        "resilience4j.retry.instances.a: {MAX_ATTEMPTS: 7}",
        "resilience4j: {retry.instances: {a.max-attempts: '7'}}",
        "resilience4j: {retry.backends: {'[a]': {max-attempts: 7}}}",
        "a: 1\n---\nRESILIENCE4J: {retry: {instances: {a: {max-attempts: 7}}}}",
        f"resilience4j.retry.instances.a.wait-duration: 1s\n{NESTED}",
        f"{NESTED}\nresilience4j.retry: {{instances: {{a: {{wait-duration: 1s}}}}}}",
        "resilience4j: 1\nresilience4j.retry.instances.a.maxAttempts: 7",
    ],
)
def test_properties_are_read_in_any_spelling(tmp_path, text):
    path = tmp_path / "application.yml"
    path.write_text(text)
    assert foreign.names(path) == ["a"]
    assert foreign.read(path).policy.max_attempts == 7


def test_errors_in_dotted_keys_have_their_line(tmp_path):
    path = tmp_path / "application.yml"
    path.write_text("a: 1\n\nresilience4j.retry.instances.a.max-attempts: 0\n")
    with pytest.raises(ConfigError, match="line 3: max-attempts must be an integer"):
        foreign.read(path)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"resilience4j": None},
        {"resilience4j": []},
        {"resilience4j": {"retry": {"instances": [{"a": {}}], "configs": 3}}},
        {"resilience4j": {"retry": {"instances": {"a": None, "b": 1}}}},
        {1: {"resilience4j": 2}, "resilience4j.x": {2: [{3: 4}]}},
        {"resilience4j": {"circuitbreaker": {"instances": {"a": {}}}}},
    ],
)
def test_other_documents_have_no_instances(document):
    assert foreign.names(document, format="resilience4j") == []


def test_deep_data_beside_the_instances_is_left_alone():
    deep = {}
    for _ in range(400):
        deep = {"a": [deep]}
    document = {"resilience4j.retry.instances.a": {"maxAttempts": 7}, "deep": deep}
    assert foreign.read(document, format="resilience4j").policy.max_attempts == 7


def test_instances_and_configs_are_listed():
    document = {
        "resilience4j.retry": {
            "instances": {"a": {}, "b": {}},
            "backends": {"c": {}},
            "configs": {"default": {"maxAttempts": 9}},
        }
    }
    assert foreign.names(document) == ["a", "b", "c", "configs.default"]
    assert foreign.read(document, "configs.default").policy.max_attempts == 9
    assert foreign.read(document, "c").policy.max_attempts == 9


def test_an_instance_applies_before_its_config_and_that_before_the_default():
    configs = {
        "default": {"maxAttempts": 2, "waitDuration": 1000, "ignoreExceptions": "X"},
        "shared": {"maxAttempts": 4, "waitDuration": "2s"},
    }
    instance = {"baseConfig": "shared", "max-attempts": 5}
    reading = read(instance, configs=configs, errors={"X": KeyError})
    policy = Policy(
        schedule=s.constant(2), max_attempts=5, on=Exception, give_up_on=KeyError
    )
    assert reading.policy == policy
    retry, shared = "resilience4j.retry", "resilience4j.retry.configs.shared"
    assert reading.notes == (
        f"{retry}.instances.a.max-attempts: applies, and not that of configs.shared",
        f"{shared}.maxAttempts: applies, and not that of configs.default",
        f"{shared}.waitDuration: applies, and not that of configs.default",
    )


def test_what_two_levels_say_alike_is_not_remarked():
    assert notes({"maxAttempts": 5}, configs={"default": {"max-attempts": 5}}) == []


def test_other_keys_of_delays_are_inherited_by_an_instance_with_a_duration():
    config = {
        "waitDuration": 100,
        "enableExponentialBackoff": True,
        "exponentialBackoffMultiplier": 3,
    }
    policy = read({"waitDuration": 200}, configs={"default": config}).policy
    assert policy.schedule == s.exponential(0.2, factor=3)


def test_without_a_duration_of_its_own_an_instance_has_the_delays_of_its_config():
    config = {"waitDuration": 100, "enableExponentialBackoff": True}
    instance = {"exponentialBackoffMultiplier": 3}
    reading = read(instance, configs={"default": config})
    assert reading.policy.schedule == s.exponential(0.1, factor=1.5)
    message = "has no effect without a waitDuration beside it"
    assert [note.rpartition(": ")[2] for note in reading.notes] == [message]


def test_without_any_duration_delays_are_500_ms():
    instance = {"enableExponentialBackoff": True}
    assert read(instance).policy.schedule == s.constant(0.5)
    assert notes(instance) == ["has no effect without a waitDuration beside it"]


@pytest.mark.parametrize(
    ("settings", "schedule", "note"),
    [
        (
            {"exponentialBackoffMultiplier": 2},
            s.constant(1),
            "enableExponentialBackoff",
        ),
        ({"exponentialMaxWaitDuration": 1}, s.constant(1), "enableExponentialBackoff"),
        ({"randomizedWaitFactor": 0.1}, s.constant(1), "enableRandomizedWait"),
        (
            {"enableExponentialBackoff": True, "exponentialMaxWaitDuration": 1},
            s.exponential(1, factor=1.5),
            "exponentialBackoffMultiplier",
        ),
        (
            {
                "enableExponentialBackoff": True,
                "enableRandomizedWait": True,
                "exponentialBackoffMultiplier": 2,
                "exponentialMaxWaitDuration": 1,
            },
            None,
            "randomizedWaitFactor",
        ),
        (
            {
                "enableExponentialBackoff": True,
                "enableRandomizedWait": True,
                "randomizedWaitFactor": 0.1,
            },
            None,
            "exponentialBackoffMultiplier",
        ),
    ],
)
def test_keys_without_effect_are_noted(settings, schedule, note):
    instance = {"waitDuration": "1s"} | settings
    assert notes(instance) == [f"has no effect without {note}"]
    found = read(instance).policy.schedule
    if schedule is None:
        assert found.bounds(1) == pytest.approx((0.5, 1.501))
    else:
        assert found == schedule


def test_each_delay_is_rounded_down_before_it_grows():
    instance = {
        "waitDuration": 500,
        "maxAttempts": 6,
        "enableExponentialBackoff": True,
        "exponentialBackoffMultiplier": 1.5,
        "exponentialMaxWaitDuration": "2s",
    }
    delays = s.sequence([0.5, 0.75, 1.125, 1.687, 2.53]).cap(2)
    assert read(instance).policy.schedule == delays


def test_delays_may_shrink():
    instance = {
        "waitDuration": 2,
        "maxAttempts": 4,
        "enableExponentialBackoff": True,
        "exponentialBackoffMultiplier": 0.5,
    }
    assert read(instance).policy.schedule == s.sequence([0.002, 0.001, 0.0])


def test_a_very_long_list_of_delays_ends_with_its_last():
    instance = {
        "waitDuration": "1ms",
        "maxAttempts": 5000,
        "enableExponentialBackoff": True,
        "exponentialBackoffMultiplier": 1.5,
    }
    schedule = read(instance).policy.schedule
    assert schedule.bounds(4999) == (0.001, 0.001)


def test_random_delays_are_whole_milliseconds():
    instance = {"waitDuration": 3, "enableRandomizedWait": True}
    schedule = read(instance | {"randomizedWaitFactor": 0.9}).policy.schedule
    drawn = {round(next(schedule.draw(seed)) * 1000, 6) for seed in range(99)}
    # From 0.3 to 6.7, rounded down, and at least 1.
    assert drawn == {1, 2, 3, 4, 5, 6}
    assert read(instance | {"randomizedWaitFactor": 0}).policy.schedule == s.constant(
        0.003
    )


@given(
    wait=st.integers(1, 10_000),
    multiplier=st.floats(0.5, 4).map(lambda x: round(x, 2)),
    factor=st.none() | st.floats(0.01, 0.99).map(lambda x: round(x, 2)),
    longest=st.none() | st.integers(1, 100_000),
    attempts=st.integers(2, 12),
)
def test_delays_are_those_of_its_formula(wait, multiplier, factor, longest, attempts):
    instance = {
        "maxAttempts": attempts,
        "waitDuration": f"{wait}ms",
        "enableExponentialBackoff": True,
        "exponentialBackoffMultiplier": multiplier,
        "exponentialMaxWaitDuration": longest,
        "enableRandomizedWait": factor is not None,
        "randomizedWaitFactor": factor,
    }
    policy = read(instance).policy
    assert policy.max_attempts == attempts
    interval = wait
    for retry in range(1, attempts):
        shortest = most = interval
        if factor is not None:
            shortest = max(1, int(interval - factor * interval))
            most = max(1, int(interval + factor * interval + 1))
        expected = [min(each, longest or each) / 1000 for each in (shortest, most)]
        found = policy.schedule.bounds(retry)
        # The upper bound itself is drawn with probability 0.
        assert found[0] == pytest.approx(expected[0], abs=1e-9)
        assert found[1] == pytest.approx(expected[1], abs=1e-3 + 1e-9)
        assert factor is not None or found[1] == pytest.approx(expected[1], abs=1e-9)
        interval = int(interval * multiplier)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (0, 0),
        (1500, 1.5),
        ("1500", 1.5),
        ("2s", 2),
        ("1m", 60),
        ("1H", 3600),
        ("1d", 86_400),
        ("+5ms", 0.005),
        ("1999us", 0.001),
        ("5000000ns", 0.005),
        ("PT0.5S", 0.5),
        ("pt1m", 60),
        ("P1DT1H", 90_000),
    ],
)
def test_durations_are_those_of_spring(value, seconds):
    assert read({"waitDuration": value}).policy.schedule == s.constant(seconds)


@pytest.mark.parametrize(
    "value",
    [
        -1,
        "-1s",
        "1.5s",
        "1 s",
        "1x",
        "P",
        "PT",
        "P1DT",
        "PTS",
        True,
        1.5,
        [],
        "",
        10**300,
    ],
)
def test_other_durations_are_refused(value):
    assert "waitDuration must be a duration >= 0" in refused({"waitDuration": value})


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("maxAttempts", 0, "an integer >= 1"),
        ("maxAttempts", "${RETRIES:3}", "written out"),
        ("exponentialBackoffMultiplier", 0, "a number > 0"),
        ("randomizedWaitFactor", 1, "a number >= 0 and < 1"),
        ("randomizedWaitFactor", -1, "a number >= 0 and <= 1"),
        ("enableRandomizedWait", "maybe", "true or false"),
        ("baseConfig", "none", "the name of one of configs"),
    ],
)
def test_bad_values_are_refused(key, value, rule):
    message = refused({key: value})
    assert message.startswith(f"resilience4j.retry.instances.a: {key} must be")
    assert rule in message


@pytest.mark.parametrize("switch", ["enableExponentialBackoff", "enableRandomizedWait"])
def test_no_delay_cannot_grow_or_vary(switch):
    message = refused({"waitDuration": 0, switch: True})
    assert "waitDuration must be a duration >= 1 ms where delays" in message


def test_the_longest_delay_is_not_zero():
    instance = {
        "waitDuration": 1,
        "enableExponentialBackoff": True,
        "exponentialBackoffMultiplier": 2,
        "exponentialMaxWaitDuration": 0,
    }
    assert "exponentialMaxWaitDuration must be a duration >= 1 ms" in refused(instance)


def test_configs_that_are_based_on_each_other_are_refused():
    configs = {"x": {"baseConfig": "y"}, "y": {"baseConfig": "x"}}
    assert "not based on this one" in refused({"baseConfig": "x"}, configs=configs)
    configs = {"x": {"baseConfig": "x"}}
    assert "not based on this one" in refused({"baseConfig": "x"}, configs=configs)


def test_a_config_is_based_on_the_default_one():
    configs = {"x": {}, "default": {"maxAttempts": 8}}
    assert read({"baseConfig": "x"}, configs=configs).policy.max_attempts == 8
    # Also as a name of its own.
    assert read({}, "configs.x", configs=configs).policy.max_attempts == 8


def test_a_table_of_configs_that_is_none_has_no_default():
    assert read({}, configs=[1]).policy.max_attempts == 3


@pytest.mark.parametrize(
    ("key", "difference"),
    [
        ("resultPredicate", "the policy retries no result"),
        ("retryExceptionPredicate", "the policy does not ask it"),
        ("intervalBiFunction", "the policy waits as the other keys say"),
        ("consumeResultBeforeRetryAttempt", "the policy does not call it"),
    ],
)
def test_classes_of_java_are_differences(key, difference):
    assert difference in refused({key: "com.example.X"})
    (found,) = read({key: "com.example.X"}, closest=True).differences
    place = f"resilience4j.retry.instances.a.{key}"
    assert found == f"{place}: a class of Java; {difference}"


def test_the_name_of_version_1_is_a_difference():
    reading = read({"maxRetryAttempts": 4}, closest=True)
    assert reading.policy.max_attempts == 4
    assert "resilience4j 2 ignores it" in reading.differences[0]
    both = {"maxRetryAttempts": 4, "maxAttempts": 5}
    assert read(both, closest=True).policy.max_attempts == 5


def test_what_is_not_about_retries_is_ignored():
    others = {"eventConsumerBufferSize": 10, "writableStackTraceEnabled": False}
    assert notes(others | {"failAfterMaxAttempts": False}) == []
    message = "only about results; the last error is raised as it is"
    assert notes({"failAfterMaxAttempts": True}) == [message]


def test_an_unknown_key_is_told_with_the_nearest(tmp_path):
    path = tmp_path / "application.yml"
    path.write_text(EXAMPLE.replace("waitDuration", "wait-durations"))
    with pytest.raises(ConfigError) as caught:
        foreign.read(path, errors=ERRORS)
    assert caught.value.message == (
        f"{path}, line 5: backendA has no key 'wait-durations'; did you mean "
        "waitDuration?"
    )


def test_a_key_in_two_spellings_is_refused():
    message = refused({"maxAttempts": 2, "max-attempts": 3})
    assert "max-attempts must be written once, got it as maxAttempts as well" in message
