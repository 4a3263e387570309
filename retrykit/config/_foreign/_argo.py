"""Retry strategies of Argo Workflows.

Source: ``processNodeRetries``, ``retryStrategy``, ``mergedTemplateDefaultsInto`` and
``ParseStringToDuration`` of Argo Workflows, August 2026.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from retrykit._conditions import Condition
from retrykit._core.policy import Policy
from retrykit._internal.validation import invalid_setting
from retrykit.config._foreign._format import Format
from retrykit.config._foreign._section import Section, string_at
from retrykit.config._foreign._values import choice, go_duration, whole
from retrykit.presets import argo
from retrykit.schedules import constant

__all__ = ["FORMAT"]

T = TypeVar("T")


def _find(root: Section) -> Iterator[tuple[str, Section]]:
    """Yield the tables that have a retry strategy, such as templates, with names."""
    of_argo = string_at(root.data, "apiVersion").startswith("argoproj.io/")
    of_argo = of_argo and "Workflow" in string_at(root.data, "kind")
    for key, table in (("", root), *root.tables()):
        strategy = table.data.get("retryStrategy")
        # Others, such as AWS Batch jobs, also have a table of this name.
        if isinstance(strategy, Mapping) and (of_argo or _KEYS & {*strategy}):
            yield string_at(table.data, "name") or key, table


_KEYS = {"limit", "backoff", "retryPolicy", "expression"}


def _read(table: Section) -> Policy:
    strategies = _strategies(table)
    limit = _first(strategies, "limit", whole(-_MOST, _MOST))
    settings = _read_backoff(strategies)
    on = _read_condition(strategies)
    for each in strategies:
        each.ignore("affinity")
        each.finish()
    if "activeDeadlineSeconds" in table and table.data is not _spec(table).data:
        note = "limits an attempt; the policy has no attempt_timeout"
        table.note("activeDeadlineSeconds", note)
    with strategies[0].located():
        policy = argo(limit=max(limit or 0, 0), **settings).replace(on=on)
    if settings["factor"] == 1:
        delays = [settings["duration"], settings["cap"]]
        each_delay = min(each for each in delays if each is not None)
        policy = policy.replace(schedule=constant(each_delay))
    if limit is not None:
        return policy
    if settings["duration"]:
        strategies[0].note("backoff", "Argo waits only if there is a limit")
        if settings["max_duration"] is not None:
            why = "without a limit, Argo compares maxDuration with delays that it does "
            strategies[0].differs("backoff", why + "not wait for; the policy does not")
    return policy.replace(max_attempts=None, schedule=constant(0))


_MOST = 2**31 - 1


def _strategies(table: Section) -> list[Section]:
    """Return the strategy of a template, and the defaults that it is merged with."""
    own = table.section("retryStrategy")
    spec = _spec(table)
    defaults = spec.data.get("templateDefaults")
    found = [each for each in [own] if each is not None]
    if table.data is spec.data:
        table.note("retryStrategy", "is for templates without a strategy of their own")
    elif table.data is not defaults:
        inner = spec.section("templateDefaults") if defaults else None
        merged = inner.section("retryStrategy") if inner else None
        if merged is not None:
            note = "is merged with templateDefaults"
            if missing := ", ".join(_missing(found[0].data, merged.data)):
                note += f", of which it has {missing}"
            table.note("retryStrategy", note)
            found.append(merged)
        elif isinstance(spec.data.get("retryStrategy"), Mapping):
            note = "applies, not the retryStrategy of the whole workflow"
            table.note("retryStrategy", note)
    return found


def _missing(own: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys of defaults that a strategy or its backoff does not have."""
    for key, value in defaults.items():
        if own.get(key) is None:
            yield key
        elif isinstance(value, Mapping) and isinstance(own[key], Mapping):
            yield from (f"{key}.{each}" for each in _missing(own[key], value))


def _spec(table: Section) -> Section:
    """Return the specification of the workflow around a template; empty if none."""
    above: Section | None = table
    while above is not None:
        if above.data.keys() & {"templateDefaults", "templates", "entrypoint"}:
            # With the remarks of this template.
            return Section(table.remarks, above.place, above.data)
        above = above.parent
    return Section(table.remarks, (), {})


def _first(
    sections: Sequence[Section], key: str, parse: Callable[[str, Any], T]
) -> T | None:
    """Return the parsed value of a key in the first section that has it, or None."""
    values = [each.get(key, parse) for each in sections]
    return next((each for each in values if each is not None), None)


def _read_backoff(strategies: Sequence[Section]) -> dict[str, Any]:
    given = [each.section("backoff") for each in strategies]
    backoffs = [each for each in given if each is not None]
    if not backoffs:
        return {"duration": 0, "factor": 1, "cap": None, "max_duration": None}
    settings: dict[str, Any] = {
        "duration": _first(backoffs, "duration", _duration),
        "cap": _first(backoffs, "cap", _duration),
        "max_duration": _first(backoffs, "maxDuration", _duration),
    }
    # What is not above 0 has no effect.
    factor = _first(backoffs, "factor", whole(-_MOST, _MOST))
    settings["factor"] = max(factor or 1, 1)
    for each in backoffs:
        each.finish()
    if settings["duration"] is None:
        with backoffs[0].located():
            keys = [*backoffs[0].data]
            raise invalid_setting("backoff", "a table with duration", keys)
    if settings["max_duration"] is not None:
        note = "also ends a running attempt that is not the first"
        next(each for each in backoffs if "maxDuration" in each).note(
            "maxDuration", note
        )
    return settings


def _duration(name: str, value: Any) -> float | None:
    """Parse whole seconds or a Go duration to seconds; an empty string is None."""
    if not isinstance(value, str):
        raise invalid_setting(name, 'a string such as "10" or "1m30s"', value)
    if re.fullmatch(r"\+?[0-9]{1,15}", value):
        return float(value)
    return go_duration(name, value) if value else None


def _read_condition(strategies: Sequence[Section]) -> Condition:
    own = strategies[0]
    computed = [each for each in strategies if "expression" in each]
    if computed:
        difference = "is not computed; the policy retries whatever it says"
        computed[0].differs("expression", difference)
    policies = choice("Always", "OnFailure", *_OTHERS)
    retried = _first(strategies, "retryPolicy", policies)
    if retried is None:
        retried = "Always" if computed else "OnFailure"
    if retried in own.remarks.errors:
        return own.remarks.errors[retried]
    if retried not in _OTHERS:
        return Exception
    condition, what = _OTHERS[retried]
    own.differs("retryPolicy", f"{what}; errors={{{retried!r}: ...}} says which")
    return condition


_OTHERS: dict[str, tuple[Condition, str]] = {
    "OnError": (
        Exception,
        "retries errors of Argo and Kubernetes alone, the policy all errors",
    ),
    "OnTransientError": (
        (ConnectionError, TimeoutError),
        "retries what Argo's patterns match, the policy lost connections and timeouts",
    ),
}

FORMAT: Final = Format("templates of Argo Workflows", _find, _read)
"""Templates of Argo Workflows, with their retry strategies."""
