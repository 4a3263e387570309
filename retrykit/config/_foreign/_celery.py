"""Options of Celery tasks, and kombu's retries of connections.

Source: ``celery.app.autoretry``, ``Task.retry`` and ``Task.annotate``, code of
Celery 5.7; ``Connection.ensure``, ``retry_over_time`` and ``fxrange``, code of kombu
5.7.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from retrykit._conditions import Condition
from retrykit._core.policy import Policy
from retrykit._internal.error_texts import type_from_name
from retrykit._internal.validation import invalid_setting
from retrykit.conditions import any_of
from retrykit.config._foreign._format import Format
from retrykit.config._foreign._section import Section
from retrykit.config._foreign._values import flag, number, whole
from retrykit.presets import celery
from retrykit.schedules import Schedule, constant, linear, sequence

__all__ = ["FORMAT"]


def _find(root: Section) -> Iterator[tuple[str, Section]]:
    """Yield the tables of tasks and of connection policies, with their keys."""
    for key, table in (("", root), *root.tables()):
        if _is_task(table) or _is_connection(table):
            yield str(key or table.data.get("name") or ""), table


def _is_task(table: Section) -> bool:
    keys = table.data.keys()
    if table.place[-1] == "retry_kwargs":
        return False
    return (
        not keys.isdisjoint({"autoretry_for", "default_retry_delay"})
        or ("retry_backoff" in keys and not keys.isdisjoint(_BESIDE_BACKOFF))
        or (_is_within(table, "task_annotations") and not keys.isdisjoint(_OPTIONS))
    )


def _is_connection(table: Section) -> bool:
    own, keys = str(table.place[-1]).lower(), table.data.keys()
    if own.endswith("task_publish_retry_policy"):
        return True
    if own == "retry_policy" and _is_within(table, _OF_RESULTS):
        return True
    if keys.isdisjoint(_INTERVALS):
        return False
    # Other tables also have an interval_start.
    known = own.endswith(("retry_policy", "transport_options"))
    return known or len(keys & {*_INTERVALS, "max_retries"}) > 1


def _is_within(table: Section, name: str) -> bool:
    """Return whether a table is in the setting *name*, with any prefix like CELERY_."""
    return any(str(each).lower().endswith(name) for each in table.place[:-1])


def _read(section: Section) -> Policy:
    return _read_task(section) if _is_task(section) else _read_connection(section)


def _read_task(section: Section) -> Policy:
    options = _read_options(section)
    errors, kwargs = options.get("autoretry_for"), options.get("retry_kwargs", {})
    backoff = options.get("retry_backoff", 0) if errors else 0
    if not errors:
        told = "only the task itself retries errors; the policy retries each"
        section.differs("autoretry_for", told)
    for key in _WITH_BACKOFF if not backoff else ():
        if key in options:
            section.note(key, "has no effect without autoretry_for and retry_backoff")
    for key in _WITHOUT_BACKOFF if backoff else ():
        if key in options or key in kwargs:
            section.note(key, "has no effect beside retry_backoff")
    delay = kwargs.get("countdown", options.get("default_retry_delay", 180))
    retries = kwargs.get("max_retries", options.get("max_retries", 3))
    policy = celery(
        max_retries=retries or 0,
        retry_backoff=backoff,
        retry_backoff_max=options.get("retry_backoff_max", 600),
        retry_jitter="full" if options.get("retry_jitter", True) else "none",
        default_retry_delay=delay,
    )
    limit = None if retries is None else policy.max_attempts
    given_up = options.get("dont_autoretry_for") or ()
    return policy.replace(
        on=errors or Exception, give_up_on=given_up, max_attempts=limit
    )


_WITH_BACKOFF = ("retry_backoff", "retry_backoff_max", "retry_jitter")
_WITHOUT_BACKOFF = ("default_retry_delay", "countdown")


def _read_options(section: Section) -> dict[str, Any]:
    """Return the options of a task; the options under ``*`` override its own."""
    options = _read_table(section)
    everywhere = section.parent.data.get("*") if section.parent else None
    if not isinstance(everywhere, Mapping) or section.place[-1] == "*":
        return options
    place = (*section.place[:-1], "*")
    others = _read_table(Section(section.remarks, place, everywhere))
    for key, value in others.items():
        if options.get(key, value) != value:
            section.note(key, "the one of '*' applies, which Celery sets last")
    return options | others


def _read_table(section: Section) -> dict[str, Any]:
    found = {key: section.get(key, parse) for key, parse in _OPTIONS.items()}
    for key in _ERRORS:
        found[key] = _read_errors(section, key)
    kwargs = section.section("retry_kwargs")
    if kwargs:
        given = {key: kwargs.get(key, parse) for key, parse in _ARGUMENTS.items()}
        kwargs.ignore(*_OF_MESSAGES, "throw")
        kwargs.finish()
        found["retry_kwargs"] = {k: v for k, v in given.items() if v is not None}
    for key in ("time_limit", "soft_time_limit"):
        if key in section:
            section.note(key, "limits an attempt; the policy has no attempt_timeout")
    section.ignore(*_OF_TASKS, *_OF_MESSAGES)
    section.finish()
    options = {key: value for key, value in found.items() if value is not None}
    # Null is no limit.
    endless = section.data.get("max_retries", 0) is None
    return options | {"max_retries": None} if endless else options


def _backoff(name: str, value: Any) -> int:
    """Parse ``retry_backoff`` to whole seconds, at least 1; 0 if delays do not grow."""
    if isinstance(value, bool):
        return int(value)
    found = number(0)(name, value)
    return int(max(1.0, found)) if found else 0


def _whole_seconds(name: str, value: Any) -> int:
    return int(number(0)(name, value))


_OPTIONS: dict[str, Callable[[str, Any], Any]] = {
    "max_retries": whole(0),
    "retry_backoff": _backoff,
    "retry_backoff_max": _whole_seconds,
    "retry_jitter": flag,
    "default_retry_delay": number(0),
}
_BESIDE_BACKOFF = {"max_retries", "retry_backoff_max", "retry_jitter", "retry_kwargs"}
_ARGUMENTS: dict[str, Callable[[str, Any], Any]] = {
    "max_retries": whole(0),
    "countdown": number(0),
}
_ERRORS = ("autoretry_for", "dont_autoretry_for")
_OF_TASKS = (
    *("name", "bind", "base", "typing", "throws", "serializer", "backend", "pydantic"),
    *("ignore_result", "store_errors_even_if_ignored", "store_eager_result", "trail"),
    *("send_events", "track_started", "acks_late", "acks_on_failure_or_timeout"),
    *("reject_on_worker_lost", "rate_limit", "resultrepr_maxsize", "abstract"),
)
_OF_MESSAGES = (
    *("queue", "exchange", "routing_key", "priority", "expires", "compression"),
    *("delivery_mode", "headers"),
)


def _read_errors(section: Section, key: str) -> Condition | None:
    """Return the condition for listed types or their names; None if there are none."""
    listed = section.get(key, _listed, [])
    found: list[Condition] = []
    for each in listed:
        name = str(each)
        if name in section.remarks.errors:
            found.append(section.remarks.errors[name])
        elif isinstance(each, type):
            found.append(each)
        else:
            # Celery itself writes module.Name.
            written = name if ":" in name else ":".join(name.rsplit(".", 1))
            with section.located(key):
                found.append(cast("Condition", type_from_name(key, written)))
    return any_of(found) if found else None


def _listed(name: str, value: Any) -> list[Any]:
    if isinstance(value, str):
        value = [each.strip() for each in value.split(",")]
    listed = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(each, str | type) and each for each in listed):
        raise invalid_setting(name, "a list of names of exceptions", value)
    return list(listed)


def _read_connection(section: Section) -> Policy:
    retries, *others = _defaults(section)
    if "max_retries" in section.data:
        retries = section.get("max_retries", whole(0))
    start, step, longest = (
        section.get(key, number(0), default)
        for key, default in zip(_INTERVALS, others, strict=True)
    )
    missing = [key for key in _INTERVALS if key not in section]
    if missing:
        section.note(missing[0], "not given, so the default of kombu applies")
    timeout = section.get("timeout", number(0)) or None
    on = _read_retried(section)
    section.ignore("errback", "callback", "on_revive")
    if not str(section.place[-1]).endswith("options"):
        section.finish()
    return Policy(
        schedule=_intervals(start, step, longest),
        max_attempts=None if retries is None else retries + 1,
        max_elapsed=timeout,
        deadline="overshoot" if timeout else "stop",
        on=on,
    )


_INTERVALS = ("interval_start", "interval_step", "interval_max")
_OF_RESULTS = "result_backend_transport_options"


def _defaults(section: Section) -> tuple[int | None, float, float, float]:
    """Return kombu's default number of retries, first delay, step and longest delay.

    The number of retries is None if it is unlimited.
    """
    if _is_within(section, _OF_RESULTS):
        return 20, 0, 1, 1
    # Of `Connection.ensure`, or of `Connection.ensure_connection`.
    policy = str(section.place[-1]).lower().endswith("retry_policy")
    return (None, 1, 1, 1) if policy else (None, 2, 2, 30)


def _read_retried(section: Section) -> Condition:
    """Return the condition on errors that are retried.

    They depend on the transport: unless the user gave a condition for them, every error
    is retried, and that is recorded as a difference.
    """
    others = _read_errors(section, "retry_errors")
    errors = section.remarks.errors.get(_TRANSPORT)
    if errors is None:
        told = f"of the transport; errors={{{_TRANSPORT!r}: ...}} says which they are"
        section.differs("errors", f"{told}, and without it every error is retried")
        return Exception
    return any_of([errors, others] if others else [errors])


_TRANSPORT = "recoverable_connection_errors"


def _intervals(start: float, step: float, longest: float) -> Schedule:
    """Return delays that grow by *step*, up to *longest*.

    They stop growing below *longest* if no step reaches it.
    """
    if not step:
        return constant(min(start, longest))
    current, steps = start, 0
    while current + step <= longest + start and steps < _MOST_STEPS:
        current += step
        steps += 1
    growing = sequence([0]).then(linear(step))
    growing = constant(start) + growing if start else growing
    return growing.cap(min(current, longest))


_MOST_STEPS = 10_000

FORMAT: Final = Format("options of Celery tasks, and retries of kombu", _find, _read)
"""Options of tasks, such as ``autoretry_for``, and retry policies of connections."""
