"""Capabilities of Celery, and checks of settings that would lose or repeat jobs.

Limitations that no check can detect:

- Redis: a message is lost if the worker is killed between taking it and recording it
  as unacknowledged. `sweep` sends it again after the visibility timeout. RabbitMQ has
  no such gap.
- Redis: messages of a killed worker are redelivered after the visibility timeout; on
  RabbitMQ, at once.
- Redis: an attempt that takes longer than three quarters of the visibility timeout is
  started a second time, in parallel.
- Redis: Celery 5.7 stops a worker that holds messages when Redis goes away. A
  supervisor has to restart it.
- RabbitMQ: an attempt that is running when the connection breaks is started a second
  time, in parallel, unless
  ``worker_cancel_long_running_tasks_on_connection_loss`` is set.
- RabbitMQ: a job that waited on quorum queues when RabbitMQ was killed may be three
  minutes late, the default of ``dead_letter_worker_publisher_confirm_timeout``.
- RabbitMQ 4: a message of a quorum queue is dropped after 20 redeliveries, unless the
  queue has the argument ``x-delivery-limit=-1``.
"""

import math
from typing import Any, Final

from celery import Celery, Task, bootsteps
from celery.backends.base import DisabledBackend
from celery.backends.rpc import RPCBackend
from celery.utils.quorum_queues import detect_quorum_queues

from retrykit._internal.durations import parse_duration
from retrykit._internal.validation import check_number, invalid_setting
from retrykit.durable import Capabilities

__all__ = ["Check", "capabilities", "check_route", "check_time_limit", "driver"]
__all__ += ["visibility_timeout"]

# The default of kombu, in seconds.
_VISIBILITY_TIMEOUT: Final = 3600.0
# In seconds: RabbitMQ closes the channel of a worker that holds a message for 30 min.
_MAX_CLASSIC_HOP, _CLASSIC_HOP = 900.0, 600.0
# The limit of native delayed delivery, in seconds: about eight years.
_MAX_NATIVE_HOP: Final = 2.0**28 - 1

# Observed to lose jobs with kombu 5.7.
_LOSSY_DRIVERS: Final = {"sql", "filesystem"}


def capabilities(app: Celery, task: Task[..., Any]) -> Capabilities:
    """Return the capabilities of an app for the jobs of a task.

    It is called when a worker starts, and when a process sends its first job.

    Raises:
        ConfigError: With the settings of the app or of the task, jobs would be lost or
            attempted twice; the error names the setting to change.
    """
    _check_task(app, task)
    if isinstance(app.backend, DisabledBackend | RPCBackend):
        kind = type(app.backend).__name__
        rule = "readable by every process, to detect duplicate messages"
        suggestion = "set it to a redis:// or a db+ URL"
        raise invalid_setting(
            "result_backend", rule, kind, suggestion, code="other-library"
        )
    result = _transport_capabilities(app, task)
    minimum = 2 * (result.max_hold or 0.0)
    expires = app.conf.result_expires
    if _retention(app) <= minimum:
        rule = f"more than {minimum:g} seconds, twice max_hold"
        suggestion = "duplicates are detected by their results; None keeps all results"
        raise invalid_setting(
            "result_expires", rule, expires, suggestion, code="other-library"
        )
    return result


def check_route(app: Celery, options: dict[str, Any], name: str) -> None:
    """Raise an error unless jobs of a task, sent with these options, can be delayed.

    Raises:
        ConfigError: The jobs go to a quorum queue with a direct exchange. A worker
            would hold delayed jobs for longer than RabbitMQ allows.
    """
    queue = app.amqp.router.route(dict(options), name).get("queue")
    if _has_native_delay(app) and queue is not None and queue.exchange.type == "direct":
        rule = "bound to a topic exchange, which delays need on quorum queues"
        suggestion = "set task_default_exchange_type='topic', or declare the queue "
        suggestion += "with a topic exchange"
        raise invalid_setting(
            "queue", rule, queue.name, suggestion, code="other-library"
        )


def check_time_limit(app: Celery, limit: float | None) -> None:
    """Raise an error if a task or its app has a hard time limit.

    Raises:
        ConfigError: One of them has such a limit. It would kill the process that makes
            an attempt, and the attempt would be repeated at once.
    """
    limit = app.conf.task_time_limit if limit is None else limit
    if limit is not None:
        rule = "None for a job, or a slow attempt is repeated forever"
        suggestion = "set soft_time_limit, whose error is retried by the policy"
        raise invalid_setting(
            "time_limit", rule, limit, suggestion, code="other-library"
        )


class Check(bootsteps.Step):
    """Bootstep that checks all durable tasks before the worker starts."""

    name = "retrykit"

    def __init__(self, parent: Any, **settings: Any) -> None:
        super().__init__(parent, **settings)
        for task in parent.app.tasks.values():
            # The property checks the settings.
            getattr(task, "capabilities", None)


def _check_task(app: Celery, task: Task[..., Any]) -> None:
    for name in ("acks_late", "reject_on_worker_lost"):
        if not getattr(task, name):
            rule = f"True in {task.name}, or a job is lost when its worker is killed"
            raise invalid_setting(
                name, rule, getattr(task, name), "leave it out", code="other-library"
            )
    check_time_limit(app, getattr(task, "time_limit", None))
    retried = getattr(task, "autoretry_for", ())
    if retried:
        rule = f"empty in {task.name}, whose policy retries"
        suggestion = "list the errors in its policy: Policy(on=...)"
        raise invalid_setting(
            "autoretry_for", rule, retried, suggestion, code="other-library"
        )
    if app.conf.task_protocol == 1:
        raise invalid_setting(
            "task_protocol", "2, which has headers", 1, code="other-library"
        )


def _transport_capabilities(app: Celery, task: Task[..., Any]) -> Capabilities:
    kind = driver(app)
    max_hold = getattr(task, "max_hold", None)
    hop = None if max_hold is None else parse_duration("max_hold", max_hold)
    if hop == 0:
        raise invalid_setting(
            "max_hold", "a duration > 0", max_hold, code="out-of-range"
        )
    options = app.conf.broker_transport_options
    if kind == "redis":
        return _on_redis(visibility_timeout(app), hop)
    if kind == "amqp":
        confirmed = options.get("confirm_publish")
        if not confirmed:
            rule = "True, or RabbitMQ may lose an unconfirmed job"
            suggestion = 'set broker_transport_options={"confirm_publish": True}'
            raise invalid_setting(
                "confirm_publish", rule, confirmed, suggestion, code="other-library"
            )
        check_route(app, {}, task.name)
        if not _has_native_delay(app):
            return _on_classic_queue(hop)
        # Each hop writes the ledger, so that it does not expire.
        hop = min(_retention(app) / 4, hop or _MAX_NATIVE_HOP, _MAX_NATIVE_HOP)
        return _build("rabbitmq, quorum queue", hop, min_delay=1.0)
    if kind == "memory":
        return _build("memory", hop or 60.0, at_least_once=False)
    suggestion = "set it to a redis:// or an amqp:// URL"
    if kind in _LOSSY_DRIVERS:
        suggestion = f"waiting jobs are lost if a worker is killed: {suggestion}"
    raise invalid_setting(
        "broker_url",
        "that of Redis or RabbitMQ",
        kind,
        suggestion,
        code="other-library",
    )


def visibility_timeout(app: Celery) -> float:
    """Return the time after which Redis redelivers a message, in seconds.

    Raises:
        ConfigError: The timeout is not a number.
    """
    options = app.conf.broker_transport_options
    given = options.get("visibility_timeout", _VISIBILITY_TIMEOUT)
    return check_number("visibility_timeout", given)


def _on_redis(timeout: float, hop: float | None) -> Capabilities:
    hop = timeout / 4 if hop is None else hop
    if not hop < timeout / 2:
        rule = f"less than half of the visibility timeout of {timeout:g} seconds"
        suggestion = (
            "a job held for longer is delivered twice: set "
            f'broker_transport_options={{"visibility_timeout": {4 * hop:g}}}'
        )
        raise invalid_setting("max_hold", rule, hop, suggestion, code="other-library")
    return _build("redis", hop)


def _on_classic_queue(hop: float | None) -> Capabilities:
    hop = _CLASSIC_HOP if hop is None else hop
    if hop > _MAX_CLASSIC_HOP:
        rule = f"at most {_MAX_CLASSIC_HOP:g} seconds on a classic queue"
        suggestion = "RabbitMQ disconnects a worker that holds a job for half an hour"
        raise invalid_setting("max_hold", rule, hop, suggestion, code="other-library")
    return _build("rabbitmq, classic queue", hop)


def _build(
    engine: str, hop: float, *, min_delay: float = 0.0, at_least_once: bool = True
) -> Capabilities:
    return Capabilities(
        engine=f"celery on {engine}",
        max_hold=hop,
        granularity=1.0 + min_delay,
        min_delay=min_delay,
        at_least_once=at_least_once,
        supports_async=False,
    )


def _retention(app: Celery) -> float:
    """Return how long the result backend keeps results, in seconds or as infinity."""
    expires = app.conf.result_expires
    return parse_duration("result_expires", expires) if expires else math.inf


def driver(app: Celery) -> str:
    """Return the kind of an app's broker, such as "redis" or "amqp"."""
    with app.connection_for_write() as connection:
        return str(connection.transport.driver_type)


def _has_native_delay(app: Celery) -> bool:
    """Return whether Celery lets RabbitMQ hold delayed messages."""
    return bool(detect_quorum_queues(app, driver(app))[0])
