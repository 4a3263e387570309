"""Subscriptions of Google Pub/Sub, from its API or Terraform.

Source: ``pubsub.proto`` of the API, version 1, and "Handle message failures" in the
documentation.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from retrykit._core.policy import Policy
from retrykit._internal.durations import duration_in_words
from retrykit._internal.validation import invalid_setting
from retrykit.config._foreign._format import Format
from retrykit.config._foreign._section import Section, camel, spelled, string_at
from retrykit.config._foreign._terraform import block, is_resource, resource_name
from retrykit.config._foreign._values import protobuf_duration, whole
from retrykit.schedules import constant, exponential
from retrykit.schedules._base import Schedule

__all__ = ["FORMAT"]

_RESOURCE = "google_pubsub_subscription"


def _find(root: Section) -> Iterator[tuple[str, Section]]:
    """Yield the subscriptions, with their names."""
    for key, table in (("", root), *root.tables()):
        if is_resource(table, _RESOURCE):
            yield resource_name(table), table
        elif _is_subscription(table.data):
            yield string_at(table.data, "name").rpartition("/")[2] or key, table


def _is_subscription(data: Mapping[str, Any]) -> bool:
    tables = {spelled(str(key)): value for key, value in data.items()}
    inner = {
        spelled(str(key))
        for name in ("retrypolicy", "deadletterpolicy")
        for key in (tables[name] if isinstance(tables.get(name), Mapping) else ())
    }
    own = {"minimumbackoff", "maximumbackoff", "deadlettertopic", "maxdeliveryattempts"}
    named = "/subscriptions/" in string_at(data, "name") and "topic" in data
    return bool(inner & own) or named


def _read(subscription: Section) -> Policy:
    snake = any("_" in key for key in subscription.data)
    key: Callable[[str], str] = str if snake else camel
    of_terraform = is_resource(subscription, _RESOURCE)
    table = subscription.respelled(spelled)
    inner = {
        each: block(table, each) if of_terraform else table.section(key(each))
        for each in ("retry_policy", "dead_letter_policy")
    }
    retries, dead = inner.values()
    if retries is None:
        note = "there is none, so a message is sent again at once"
        table.note(key("retry_policy"), note)
        schedule: Schedule = constant(0)
    else:
        schedule = _read_backoff(retries)
        text = (
            "its growth is not documented, and its delays are approximate; the policy "
        )
        table.differs(key("retry_policy"), text + "doubles them")
    attempts = dead and _read_dead_letters(dead)
    kept = table.get(key("message_retention_duration"), _retention, _WEEK)
    text = f"a message is kept for {duration_in_words(kept)}, the max_elapsed"
    table.note(key("message_retention_duration"), text)
    return Policy(
        schedule=schedule, max_attempts=attempts, max_elapsed=kept, on=Exception
    )


def _read_backoff(retries: Section) -> Schedule:
    key: Callable[[str], str] = str if any("_" in x for x in retries.data) else camel
    table = retries.respelled(spelled)
    first = table.get(key("minimum_backoff"), _backoff, 10.0)
    longest = table.get(key("maximum_backoff"), _backoff, 600.0)
    table.finish()
    if longest < first:
        with table.located(key("maximum_backoff")):
            rule = f"no shorter than {key('minimum_backoff')}"
            raise invalid_setting(
                key("maximum_backoff"), rule, f"{longest:g}s", code="contradiction"
            )
    return exponential(first).cap(longest)


def _read_dead_letters(dead: Section) -> int:
    key: Callable[[str], str] = str if any("_" in x for x in dead.data) else camel
    table = dead.respelled(spelled)
    attempts = table.get(key("max_delivery_attempts"), _attempts)
    table.ignore(key("dead_letter_topic"))
    table.finish()
    attempts = attempts or _DEFAULT_ATTEMPTS
    note = f"about {attempts} attempts; Pub/Sub counts approximately"
    table.note(key("max_delivery_attempts"), note)
    return attempts


def _attempts(name: str, value: Any) -> int:
    # In protobuf, 0 is the same as none.
    return whole(0, 0)(name, value) if value == 0 else whole(5, 100)(name, value)


def _backoff(name: str, value: Any) -> float:
    seconds = protobuf_duration(name, value)
    if seconds > _LONGEST:
        raise invalid_setting(
            name, "a duration of at most 600s", value, code="out-of-range"
        )
    return seconds


def _retention(name: str, value: Any) -> float:
    seconds = protobuf_duration(name, value)
    if not _SHORTEST_KEPT <= seconds <= _LONGEST_KEPT:
        raise invalid_setting(
            name, "a duration of 600s to 2678400s", value, code="out-of-range"
        )
    return seconds


_DEFAULT_ATTEMPTS = 5
_LONGEST = 600
_WEEK = 604_800.0
_SHORTEST_KEPT = 600
_LONGEST_KEPT = 2_678_400

FORMAT: Final = Format("subscriptions of Google Pub/Sub", _find, _read)
"""Subscriptions of Google Pub/Sub, with their retry and dead letter policies."""
