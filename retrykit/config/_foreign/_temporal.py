"""Retry policies of Temporal, from protobuf JSON or the server's configuration.

Source: ``EnsureDefaults``, ``Validate`` and ``getBackoffInterval`` of the server of
Temporal, 2026.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from retrykit._conditions import Condition
from retrykit._core.policy import Policy
from retrykit._internal.validation import invalid_setting
from retrykit.config._foreign._conditions import conditions_named
from retrykit.config._foreign._format import Format
from retrykit.config._foreign._section import Section, camel, spelled, string_at
from retrykit.config._foreign._values import go_duration, number, texts, whole
from retrykit.errors import AttemptTimeout
from retrykit.presets import temporal

__all__ = ["FORMAT"]


def _find(root: Section) -> Iterator[tuple[str, Section]]:
    """Yield the retry policies, with the names of what they are for."""
    for key, table in (("", root), *root.tables()):
        if _is_policy(key, table.data):
            yield _name(key, table), table


def _is_policy(key: str, data: Mapping[str, Any]) -> bool:
    keys = {spelled(str(each)) for each in data}
    # Other tables also have an initial or a maximum interval.
    intervals = keys & _INTERVALS
    own = intervals == _INTERVALS or (intervals and "retrypolicy" in spelled(key))
    return bool(own or keys & _OWN) and not keys & _OTHERS


_INTERVALS = {"initialinterval", "maximuminterval"}
_OWN = {"backoffcoefficient", "maximumattempts", "nonretryableerrortypes"}
_OTHERS = {"multiplier", "maxinterval", "maxattempts", "type", "count", "interval"}
_OTHERS |= {"firstretryinterval", "randomizationfactor", "maxelapsedtime"}


def _name(key: str, table: Section) -> str:
    """Return a name for a policy.

    It is the policy's key. If that is a general one such as ``retryPolicy``, it is the
    name of the activity or workflow around the policy, or else the key of the table
    around it.
    """
    above = table.parent
    if above is None or spelled(key) not in {"retry", "retrypolicy", "value"}:
        return key
    # As an event of a history has it.
    types = (above.data.get(f"{each}Type") for each in ("activity", "workflow"))
    named = [above.data, *(each for each in types if isinstance(each, Mapping))]
    found = [name for each in named if (name := string_at(each, "name"))]
    keys = [each for each in above.place if isinstance(each, str)]
    return [*found, *keys[-1:], ""][0]


def _read(table: Section) -> Policy:
    key: Callable[[str], str] = str if any("_" in x for x in table.data) else camel
    section = table.respelled(spelled)
    settings: dict[str, Any] = {
        "initial_interval": section.get(key("initial_interval"), go_duration),
        "backoff_coefficient": section.get(key("backoff_coefficient"), number(0)),
        "maximum_interval": section.get(key("maximum_interval"), go_duration),
        "maximum_attempts": section.get(key("maximum_attempts"), whole(0, 2**31 - 1)),
    }
    _read_server_configuration(section, settings)
    name = key("non_retryable_error_types")
    types = section.get(name, texts, [])
    section.finish()
    # In protobuf, 0 is the same as none.
    given = {key: value for key, value in settings.items() if value}
    with section.located():
        policy = temporal(**given)
    if types:
        policy = policy.replace(give_up_on=_read_types(section, name, types))
    return _with_timeouts(table, policy)


def _read_server_configuration(section: Section, settings: dict[str, Any]) -> None:
    """Add the settings of ``history.defaultActivityRetryPolicy``."""
    first = section.get("InitialIntervalInSeconds", number(0))
    settings["initial_interval"] = settings["initial_interval"] or first
    factor = section.get("MaximumIntervalCoefficient", number(0))
    if factor and not settings["maximum_interval"]:
        settings["maximum_interval"] = (settings["initial_interval"] or 1) * factor


def _read_types(section: Section, key: str, types: list[str]) -> Condition:
    """Return the condition for names of errors and of Temporal's timeouts."""
    for each in types:
        if each.startswith(_PREFIX) and each not in _TIMEOUTS:
            with section.located(key):
                rule = f"names of errors, or of {', '.join(_TIMEOUTS)}"
                raise invalid_setting(key, rule, each, code="unknown-name")
    return conditions_named(section, key, types, _TIMEOUTS)


_PREFIX = "TemporalTimeout:"
# Only the first is a time limit that a policy can have. The last two always end it.
_TIMEOUTS: dict[str, Condition] = {
    f"{_PREFIX}StartToClose": AttemptTimeout,
    f"{_PREFIX}Heartbeat": (),
    f"{_PREFIX}ScheduleToStart": (),
    f"{_PREFIX}ScheduleToClose": (),
}


def _with_timeouts(table: Section, policy: Policy) -> Policy:
    """Return a policy with the time limit that the table around it has, if any."""
    if table.parent is None:
        return policy
    above = table.parent
    options = Section(table.remarks, above.place, above.data, spelled)
    snake = any("_" in key for key in above.data)
    key: Callable[[str], str] = str if snake else camel
    if key("start_to_close_timeout") in options:
        note = "limits an attempt; the policy has no attempt_timeout"
        options.note(key("start_to_close_timeout"), note)
    total = options.get(key("schedule_to_close_timeout"), go_duration)
    if not total:
        return policy
    options.note(key("schedule_to_close_timeout"), "also ends a running attempt")
    return policy.replace(max_elapsed=total)


FORMAT: Final = Format("retry policies of Temporal", _find, _read)
"""Retry policies of Temporal, with the time limit of the activity."""
