"""Retries of RabbitMQ, Kafka and the config server in the YAML of Spring Boot.

Source: ``RabbitProperties``, ``KafkaProperties`` and ``KafkaAutoConfiguration``, code
of Spring Boot 4.1, and of 3.5 for its own keys; ``ExponentialBackOff``, code of Spring
Framework 7; ``RetryProperties``, code of Spring Cloud Config 5.0.
"""

from collections.abc import Iterator
from typing import Any, Final

from retrykit._core.policy import Policy
from retrykit._internal.validation import LARGEST, invalid_setting
from retrykit.config._foreign._format import Format
from retrykit.config._foreign._section import Section, spelled
from retrykit.config._foreign._spring_properties import (
    growing_milliseconds,
    grown_milliseconds,
    listed_milliseconds,
    properties_at,
    scaled,
    spring_milliseconds,
)
from retrykit.config._foreign._values import flag, number, whole
from retrykit.schedules import Schedule, constant, uniform

__all__ = ["FORMAT"]

_PATHS = (
    "rabbitmq.listener.simple.retry",
    "rabbitmq.listener.direct.retry",
    "rabbitmq.template.retry",
    "kafka.retry.topic",
    "cloud.config.retry",
)


def _find(root: Section) -> Iterator[tuple[str, Section]]:
    for path in _PATHS:
        section = properties_at(root, "spring", *path.split("."))
        if section:
            yield path.removesuffix(".retry"), section


def _read(section: Section) -> Policy:
    path = spelled(".".join(map(str, section.place)))
    section = section.respelled(spelled)
    if "kafka" in path:
        return _read_kafka(section)
    return _read_rabbit(section) if "rabbitmq" in path else _read_config(section)


def _read_rabbit(section: Section) -> Policy:
    attempts = _read_attempts(section)
    first = section.get("initialInterval", spring_milliseconds, 1000)
    factor = section.get("multiplier", number(1), 1.0)
    longest = section.get("maxInterval", _above_zero, 10_000)
    if not section.get("stateless", flag, default=True):
        told = "each retry is a new delivery of the message, after the delay"
        section.note("stateless", told)
    attempts = _unless_disabled(section, attempts)
    section.finish()
    growing = growing_milliseconds(first, factor, attempts - 1)
    return _policy(growing.cap(longest / 1000), attempts)


def _read_attempts(section: Section) -> int:
    retries = section.get("maxRetries", whole(0))
    attempts = section.get("maxAttempts", whole(1))
    if retries is not None:
        if attempts is not None:
            told = "not read by Spring Boot 4, as maxRetries is not by 3; that applies"
            section.note("maxAttempts", told)
        return retries + 1
    if attempts is not None:
        told = "a key of Spring Boot 3; 4 does not read it, and makes 3 retries"
        section.note("maxAttempts", told)
        return attempts
    told = "by default 3 retries; up to Spring Boot 3, by default 3 attempts"
    section.note("maxRetries", told)
    return 4


def _above_zero(name: str, value: Any) -> int:
    found = spring_milliseconds(name, value)
    if not found:
        raise invalid_setting(name, "a duration > 0", value, code="out-of-range")
    return found


def _unless_disabled(section: Section, attempts: int) -> int:
    """Return the number of attempts: 1 unless retries are enabled."""
    if section.get("enabled", flag, default=False):
        return attempts
    section.note("enabled", "not true, so that there are no retries")
    return 1


def _policy(schedule: Schedule, attempts: int) -> Policy:
    return Policy(schedule=schedule, max_attempts=attempts, on=Exception)


def _read_kafka(topic: Section) -> Policy:
    attempts = topic.get("attempts", whole(1), 3)
    attempts = _unless_disabled(topic, attempts)
    topic.note("attempts", "an error of deserialization or conversion is not retried")
    backoff = topic.section("backoff")
    for key in _OLD_KEYS:
        if key in topic:
            told = "backoff applies" if backoff else "the policy is as in Spring Boot 3"
            topic.note(key, f"not read by Spring Boot 4; {told}")
    topic.finish()
    if not backoff:
        schedule = _read_delays_of_3(topic, "randomBackOff", attempts - 1)
    elif "random" in backoff:
        schedule = _read_delays_of_3(backoff, "random", attempts - 1)
    else:
        schedule = _read_delays(backoff, attempts - 1)
    return _policy(schedule, attempts)


_OLD_KEYS = ("delay", "multiplier", "maxDelay", "randomBackOff")


def _read_delays(backoff: Section, retries: int) -> Schedule:
    first = backoff.get("delay", spring_milliseconds, 1000)
    factor = backoff.get("multiplier", number(1), 1.0)
    longest = backoff.get("maxDelay", spring_milliseconds, 30_000) or LARGEST
    jitter = backoff.get("jitter", spring_milliseconds, 0)
    backoff.finish()
    if longest < first:
        backoff.note("maxDelay", "shorter than delay, and so each delay")
    if not jitter:
        growing = growing_milliseconds(first, factor, retries)
        return growing if longest == LARGEST else growing.cap(longest / 1000)
    _differ_in_draws(backoff, "jitter")
    lower, width = [], []
    for each in grown_milliseconds(first, factor, retries):
        delay = min(each, longest)
        part = int(jitter * (delay / first)) if first else jitter
        lower.append(min(max(delay - part, first), longest))
        width.append(min(delay + part, longest) - lower[-1])
    random = listed_milliseconds(width, retries).full_jitter().round_down("1ms")
    return listed_milliseconds(lower, retries) + random


def _read_delays_of_3(backoff: Section, key: str, retries: int) -> Schedule:
    """Return the delays that the keys of Spring Boot 3 set."""
    delay = backoff.get("delay", spring_milliseconds, 1000)
    factor = backoff.get("multiplier", number(0), 0)
    longest = backoff.get("maxDelay", spring_milliseconds, 0)
    random = backoff.get(key, flag)
    backoff.finish()
    if not delay:
        return constant(0)
    if factor:
        cap = (longest if longest > delay else 30_000) / 1000
        schedule = growing_milliseconds(delay, max(factor, 1), retries)
        if random and factor > 1:
            _differ_in_draws(backoff, key)
            schedule = _spread(schedule, factor)
        return schedule.cap(cap)
    if longest > delay:
        _differ_in_draws(backoff, "maxDelay")
        return uniform(delay / 1000, longest / 1000).round_down("1ms")
    return constant(delay / 1000)


def _differ_in_draws(backoff: Section, key: str) -> None:
    told = "drawn once, when the application starts; the policy draws before each retry"
    backoff.differs(key, told)


def _spread(schedule: Schedule, factor: float) -> Schedule:
    """Return whole milliseconds drawn from a schedule's delay to *factor* times it."""
    return (schedule + scaled(schedule, factor - 1).full_jitter()).round_down("1ms")


def _read_config(section: Section) -> Policy:
    attempts = section.get("maxAttempts", whole(1), 6)
    first = section.get("initialInterval", whole(1), 1000)
    factor = section.get("multiplier", number(1), 1.1)
    longest = section.get("maxInterval", whole(1), 2000)
    random = section.get("useRandomPolicy", flag, default=False)
    section.finish()
    if factor == 1:
        section.note("multiplier", _BOOTSTRAP)
    if longest <= first:
        section.note("maxInterval", _BOOTSTRAP)
    section.note("maxAttempts", "only where spring.cloud.config.fail-fast is true")
    schedule = growing_milliseconds(first, factor, attempts - 1)
    if random:
        schedule = _spread(schedule, factor)
    return _policy(schedule.cap(longest / 1000), attempts)


_BOOTSTRAP = "has to be more, but in bootstrap.yml"

FORMAT: Final = Format(
    "retries of RabbitMQ, Kafka and the config server, in YAML of Spring Boot",
    _find,
    _read,
)
"""Tables of ``spring.rabbitmq``, ``spring.kafka`` and ``spring.cloud.config``."""
