"""Settings of Celery under which no job is lost and none is attempted twice.

What cannot be checked is said here.

- Redis: a message is lost if the worker is killed after it took the message and
  before it noted that, some microseconds later. RabbitMQ has no such gap.
- Redis: what a worker held when it was killed comes back when the visibility
  timeout is over; on RabbitMQ, at once.
- Redis: an attempt that takes longer than three quarters of the visibility
  timeout is begun a second time beside the first.
- Redis: Celery 5.7 ends a worker that held messages when Redis goes away. Let
  something start it again.
- RabbitMQ: an attempt that is being made when the connection breaks is begun a
  second time beside the first, unless
  ``worker_cancel_long_running_tasks_on_connection_loss`` is set.
- RabbitMQ: a job that waited on quorum queues when RabbitMQ was killed may come
  three minutes late: ``dead_letter_worker_publisher_confirm_timeout``.
- RabbitMQ 4: a message of a quorum queue is dropped when it came back 20 times,
  unless its queue has the argument ``x-delivery-limit=-1``.
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

__all__ = ["Check", "capabilities", "check_route", "check_time_limit"]

# What kombu takes where nothing is set.
_VISIBILITY: Final = 3600.0
# RabbitMQ ends the worker that holds a message for half an hour.
_LONGEST_HELD, _HELD = 900.0, 600.0
# What native delayed delivery can count to: some eight years.
_LONGEST_NATIVE: Final = 2.0**28 - 1

# Seen to lose them, with kombu 5.7.
_LOSSY: Final = {"sql", "filesystem"}


def capabilities(app: Celery, task: Task[..., Any]) -> Capabilities:
    """Return what an app can do for the jobs of a task.

    It is asked when a worker starts, and when a process sends its first job.

    Args:
        app: The app, as it is configured.
        task: A task whose base is `DurableTask`.

    Raises:
        ConfigError: The app, or the task, is set up so that jobs would be lost
            or attempted twice; the error says which setting to change.
    """
    _check_task(app, task)
    _check_backend(app)
    able = _transport(app, task)
    shortest = 2 * (able.max_hop or 0.0)
    if _kept(app) <= shortest:
        rule = f"more than {shortest:g} seconds, twice as long as a hop"
        suggestion = "copies of a job are told apart by what is kept; None is for ever"
        raise invalid_setting(
            "result_expires", rule, app.conf.result_expires, suggestion
        )
    return able


def check_route(app: Celery, options: dict[str, Any], name: str) -> None:
    """Check that a queue is one through which a job can be delayed.

    Args:
        app: The app.
        options: What the job is sent with.
        name: The name of its task.

    Raises:
        ConfigError: Its exchange is a direct one, on quorum queues: delayed jobs
            would stay in a worker's hands, for longer than RabbitMQ lets them.
    """
    found = app.amqp.router.route(dict(options), name)
    queue = found.get("queue")
    if _native(app) and queue is not None and queue.exchange.type == "direct":
        rule = "one with a topic exchange, as quorum queues are delayed through"
        suggestion = "set task_default_exchange_type='topic', or declare it so"
        raise invalid_setting("queue", rule, queue.name, suggestion)


def check_time_limit(app: Celery, limit: float | None) -> None:
    """Check that no attempt is ended by the end of its process.

    Args:
        app: The app.
        limit: The time limit of a task, in seconds; None if it has none of its own.

    Raises:
        ConfigError: It is: the attempt would be made again at once, and for ever.
    """
    limit = app.conf.task_time_limit if limit is None else limit
    if limit is not None:
        rule = "None for a job, or an attempt that takes longer is made again for ever"
        suggestion = "set soft_time_limit, whose error its policy retries"
        raise invalid_setting("time_limit", rule, limit, suggestion)


class Check(bootsteps.Step):
    """What refuses to start a worker that would lose jobs."""

    name = "retrykit"

    def __init__(self, parent: Any, **settings: Any) -> None:
        super().__init__(parent, **settings)
        for task in parent.app.tasks.values():
            # It checks them when it is asked for the first time.
            getattr(task, "capabilities", None)


def _check_task(app: Celery, task: Task[..., Any]) -> None:
    for name in ("acks_late", "reject_on_worker_lost"):
        if not getattr(task, name):
            rule = f"True in {task.name}, or a job is lost when its worker is killed"
            raise invalid_setting(name, rule, getattr(task, name), "leave it out")
    check_time_limit(app, getattr(task, "time_limit", None))
    retried = getattr(task, "autoretry_for", ())
    if retried:
        rule, suggestion = (
            f"empty in {task.name}, whose policy retries",
            "say it in on=",
        )
        raise invalid_setting("autoretry_for", rule, retried, suggestion)
    if app.conf.task_protocol == 1:
        raise invalid_setting("task_protocol", "2, which has headers", 1)


def _check_backend(app: Celery) -> None:
    if isinstance(app.backend, DisabledBackend | RPCBackend):
        kind = type(app.backend).__name__
        rule = "one that every process can read, since it tells copies of a job apart"
        raise invalid_setting(
            "result_backend", rule, kind, "set it to a redis:// or a db+ URL"
        )


def _transport(app: Celery, task: Task[..., Any]) -> Capabilities:
    driver = _driver(app)
    asked = getattr(task, "max_hop", None)
    hop = None if asked is None else parse_duration("max_hop", asked)
    if hop == 0:
        raise invalid_setting("max_hop", "a duration > 0", asked)
    options = app.conf.broker_transport_options
    if driver == "redis":
        return _redis(options.get("visibility_timeout", _VISIBILITY), hop)
    if driver == "amqp":
        confirmed = options.get("confirm_publish")
        if not confirmed:
            rule = "True, or RabbitMQ may lose a job that it was not yet sure of"
            suggestion = 'set broker_transport_options={"confirm_publish": True}'
            raise invalid_setting("confirm_publish", rule, confirmed, suggestion)
        check_route(app, {}, task.name)
        return _quorum(app, hop) if _native(app) else _classic(hop)
    if driver == "memory":
        return _able("memory", hop or 60.0, at_least_once=False)
    suggestion = "set it to a redis:// or an amqp:// URL"
    if driver in _LOSSY:
        suggestion = f"it loses jobs that wait when a worker is killed: {suggestion}"
    raise invalid_setting("broker_url", "that of Redis or RabbitMQ", driver, suggestion)


def _redis(visibility: object, hop: float | None) -> Capabilities:
    timeout = check_number("visibility_timeout", visibility)
    hop = timeout / 4 if hop is None else hop
    if not hop < timeout / 2:
        rule = f"below half of the visibility timeout, which is {timeout:g} seconds"
        suggestion = (
            "a job held for longer is delivered twice: set "
            f'broker_transport_options={{"visibility_timeout": {4 * hop:g}}}'
        )
        raise invalid_setting("max_hop", rule, hop, suggestion)
    return _able("redis", hop)


def _classic(hop: float | None) -> Capabilities:
    hop = _HELD if hop is None else hop
    if hop > _LONGEST_HELD:
        rule = f"at most {_LONGEST_HELD:g} seconds on a classic queue"
        suggestion = "RabbitMQ ends a worker that holds a job for half an hour"
        raise invalid_setting("max_hop", rule, hop, suggestion)
    return _able("rabbitmq, classic queue", hop)


def _quorum(app: Celery, hop: float | None) -> Capabilities:
    # The ledger is written at each hop, so that it does not expire.
    hop = min(_kept(app) / 4, hop or _LONGEST_NATIVE, _LONGEST_NATIVE)
    return _able("rabbitmq, quorum queue", hop, min_delay=1.0)


def _able(
    engine: str, hop: float, *, min_delay: float = 0.0, at_least_once: bool = True
) -> Capabilities:
    return Capabilities(
        engine=f"celery on {engine}",
        max_hop=hop,
        granularity=1.0 + min_delay,
        min_delay=min_delay,
        at_least_once=at_least_once,
        async_ok=False,
    )


def _kept(app: Celery) -> float:
    """Return for how many seconds the result backend keeps what it has."""
    keeps = app.conf.result_expires
    return parse_duration("result_expires", keeps) if keeps else math.inf


def _driver(app: Celery) -> str:
    with app.connection_for_write() as connection:
        return str(connection.transport.driver_type)


def _native(app: Celery) -> bool:
    """Return whether RabbitMQ holds what waits, which Celery decides by this."""
    return bool(detect_quorum_queues(app, _driver(app))[0])
