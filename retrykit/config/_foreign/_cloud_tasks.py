"""Queues of Google Cloud Tasks, from its API, Terraform or App Engine.

Source: ``queue.proto`` of the API, version 2; `Retry` and ``queueinfo.py`` in the SDK
of App Engine for Python 3, August 2026. Cloud Tasks runs the queues of App Engine.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from retrykit._core.policy import Policy
from retrykit._internal.validation import invalid_setting
from retrykit.config._foreign._format import Format
from retrykit.config._foreign._section import Section, camel, spelled, string_at
from retrykit.config._foreign._terraform import block, is_resource, resource_name
from retrykit.config._foreign._values import number, protobuf_duration, whole
from retrykit.presets import cloud_tasks

__all__ = ["FORMAT"]

_RESOURCE = "google_cloud_tasks_queue"
_LARGEST_INT = 2**31 - 1


def _find(root: Section) -> Iterator[tuple[str, Section]]:
    """Yield the queues, with their names."""
    for key, table in (("", root), *root.tables()):
        if is_resource(table, _RESOURCE):
            yield resource_name(table), table
        elif _is_queue(table.data) or _is_of_app_engine(table.data):
            yield string_at(table.data, "name").rpartition("/")[2] or key, table


def _is_queue(data: Mapping[str, Any]) -> bool:
    config = data.get("retryConfig", data.get("retry_config"))
    if not isinstance(config, Mapping):
        return False
    if "/queues/" in string_at(data, "name") or "rateLimits" in data:
        return True
    keys = {spelled(str(each)) for each in config}
    # A job of Cloud Scheduler has a part of these keys, and others.
    own = {"minbackoff", "maxbackoff", "maxdoublings", "maxretryduration"}
    others = {"retrycount", "minbackoffduration", "maxbackoffduration"}
    return bool(keys & own) and not keys & others


def _is_of_app_engine(data: Mapping[str, Any]) -> bool:
    parameters = data.get("retry_parameters")
    keys = {*parameters} if isinstance(parameters, Mapping) else set()
    return bool(keys & _OF_APP_ENGINE) or ("rate" in data and bool(keys))


def _read(queue: Section) -> Policy:
    if "retry_parameters" in queue:
        return _read_app_engine(queue)
    if is_resource(queue, _RESOURCE):
        config = block(queue, "retry_config")
    else:
        config = queue.respelled(spelled).section("retryConfig")
    if config is None:
        queue.note("retry_config", "there is none, so the defaults apply")
        return cloud_tasks()
    return _read_config(config)


def _read_config(config: Section) -> Policy:
    """Return the policy of a ``RetryConfig``."""
    key: Callable[[str], str] = str if any("_" in x for x in config.data) else camel
    table = config.respelled(spelled)
    attempts = table.get(key("max_attempts"), whole(-1, _LARGEST_INT), 0)
    doublings = table.get(key("max_doublings"), whole(0, _LARGEST_INT))
    times = {each: table.get(key(each), protobuf_duration) for each in _TIMES}
    table.finish()
    for name, value in times.items():
        if value is not None and value % 1 and (name, value) != _DEFAULT_BACKOFF:
            if name == "min_backoff":
                text = "documented to be cut to whole seconds, though 0.1 s is its "
                text += "default; the policy keeps the fraction"
                table.differs(key(name), text)
            else:
                times[name] = math.floor(value)
                table.note(key(name), "cut to whole seconds")
    age = times.pop("max_retry_duration") or None
    settings = {**times, "max_doublings": doublings}
    if attempts == 0:
        attempts = _DEFAULT_ATTEMPTS
        if key("max_attempts") in table:
            table.note(key("max_attempts"), f"0 is the default, {attempts}")
    limit = None if attempts < 0 else attempts
    return _build(table, key("max_attempts"), settings, limit, age)


_TIMES = ("min_backoff", "max_backoff", "max_retry_duration")
_DEFAULT_ATTEMPTS = 100
_DEFAULT_BACKOFF = ("min_backoff", 0.1)


def _read_app_engine(queue: Section) -> Policy:
    """Return the policy of a queue in a ``queue.yaml``."""
    parameters = queue.section("retry_parameters") or queue
    limit = parameters.get("task_retry_limit", whole(0, _LARGEST_INT))
    age = parameters.get("task_age_limit", _age)
    low = parameters.get("min_backoff_seconds", number(0))
    high = parameters.get("max_backoff_seconds", number(0))
    doublings = parameters.get("max_doublings", whole(0, _LARGEST_INT))
    parameters.finish()
    if queue.data.get("mode") == "pull":
        text = "workers lease the tasks of a pull queue; the policy has the delays of "
        queue.differs("mode", text + "a push queue")
    if low is not None and high is None:
        high = max(low, _DEFAULT_LONGEST)
    if low is None and high is not None:
        low = min(high, _DEFAULT_FIRST)
    settings = {"min_backoff": low, "max_backoff": high, "max_doublings": doublings}
    attempts = None if limit is None else limit + 1
    return _build(parameters, "task_retry_limit", settings, attempts, age)


_DEFAULT_FIRST = 0.1
_DEFAULT_LONGEST = 3600.0


def _age(name: str, value: Any) -> float:
    """Parse an App Engine time, such as ``2d``, to seconds."""
    pattern = r"([0-9]{1,15}(?:\.[0-9]{0,15})?)([smhd])"
    match = re.fullmatch(pattern, value.strip()) if isinstance(value, str) else None
    if not match or not float(match[1]):
        raise invalid_setting(
            name, 'a time > 0 such as "2d" (s, m, h, d)', value, code="out-of-range"
        )
    units = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
    return float(match[1]) * units[match[2]]


_OF_APP_ENGINE = {"task_retry_limit", "task_age_limit", "min_backoff_seconds"}
_OF_APP_ENGINE |= {"max_backoff_seconds", "max_doublings"}


def _build(
    table: Section,
    key: str,
    settings: Mapping[str, Any],
    attempts: int | None,
    age: float | None,
) -> Policy:
    given = {name: value for name, value in settings.items() if value is not None}
    if "max_doublings" in given:
        # More do not matter: the longest delay is reached.
        given["max_doublings"] = min(given["max_doublings"], _MOST_DOUBLINGS)
    both = attempts is not None and age is not None
    with table.located():
        policy = cloud_tasks(
            **given,
            max_attempts=attempts or 1,
            max_retry_duration=age if both else None,
        )
    if both:
        text = "a task is given up only after both limits: of attempts and of time"
        table.note(key, text)
    if attempts is None and age is None:
        table.note(key, "unlimited, but Cloud Tasks deletes a task after 31 days")
    if attempts is None:
        return policy.replace(max_attempts=None, max_elapsed=age)
    return policy


_MOST_DOUBLINGS = 60

FORMAT: Final = Format("queues of Google Cloud Tasks", _find, _read)
"""Queues of Google Cloud Tasks, with their retry config."""
