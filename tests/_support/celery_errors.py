"""Invalid settings of jobs on Celery, by the message of their error."""

from datetime import datetime

from kombu import Exchange, Queue

from retrykit.integrations.celery import (
    jobs,
    kill,
    requeue,
    retry_at,
    serve,
    status,
)
from retrykit.integrations.celery._job_control import _check_results
from retrykit.integrations.celery._job_locks import _acquired
from retrykit.integrations.celery._ledger import Entry, write_entry
from retrykit.testing import virtual_time
from tests._support.celery_apps import AMQP, CONFIRMED, QUORUM, app

__all__ = ["ERRORS"]

LONG = "é" * 128
SET = "set it to a redis:// or an amqp:// URL"


NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001


def capabilities(*args, **options):
    return app(*args, **options).tasks["verify"].capabilities


def start(**options):
    app("memory://").tasks["verify"].apply_async(**options)


def route_to_direct_exchange():
    """Send a job from a quorum queue to a queue that cannot delay messages."""
    quorum = {"x-queue-type": "quorum"}
    queues = [
        Queue("celery", Exchange("topics", "topic"), "celery", queue_arguments=quorum),
        Queue("direct", Exchange("direct", "direct"), "direct"),
    ]
    celery = app(AMQP, task_queues=queues, **QUORUM)
    celery.tasks["verify"].apply_async(queue="direct")


async def averify():
    """Do nothing."""


def app_with_job(status):
    """Return an app whose ledger has a job of this status, and no message of it."""
    celery = app("memory://")
    # All apps of the process share both.
    celery.backend.client.cache.clear()
    with celery.connection_for_write() as connection:
        connection.channel().queues.clear()
    envelope = celery.tasks["verify"].job.envelope("job-7")
    write_entry(celery, "job-7", Entry.of(envelope, 0).replace(status=status))
    return celery


def lock_locked():
    with virtual_time():
        _acquired("verify-7", lambda: None).__enter__()


ERRORS = {
    "job_id must be the id of a job that no other process is changing, got "
    "'verify-7'; try again": lock_locked,
    "app must be a Celery, got 7": lambda: serve(7),
    'grace must be a duration such as "12.5s", "500ms" or "1h30m", got \'late\'; '
    "write the unit (us, ms, s, m, h, d, w)": (
        lambda: serve(app("memory://"), grace="late")
    ),
    "options must be one of 'autoscale', 'concurrency', 'exclude_queues', 'hostname', "
    "'include', 'logfile', 'loglevel', 'max_memory_per_child', 'max_tasks_per_child', "
    "'optimization', 'pool', 'prefetch_multiplier', 'queues', 'soft_time_limit', "
    "'task_events', 'without_gossip', 'without_heartbeat', 'without_mingle', got "
    "'time_limit'; set it in app.conf": (lambda: serve(app("memory://"), time_limit=9)),
    "acks_late must be True in verify, or a job is lost when its worker is killed, "
    "got False; leave it out": lambda: capabilities(task={"acks_late": False}),
    "autoretry_for must be empty in verify, whose policy retries, got "
    f"({OSError},); list the errors in its policy: Policy(on=...)": (
        lambda: capabilities(task={"autoretry_for": (OSError,)})
    ),
    "time_limit must be None for a job, or a slow attempt is repeated forever, "
    "got 60; set soft_time_limit, whose error is retried by the policy": (
        lambda: capabilities(task={"time_limit": 60})
    ),
    "time_limit must be None for a job, or a slow attempt is repeated forever, "
    "got 70; set soft_time_limit, whose error is retried by the policy": (
        lambda: capabilities(task_time_limit=70)
    ),
    "time_limit must be None for a job, or a slow attempt is repeated forever, "
    "got 80; set soft_time_limit, whose error is retried by the policy": (
        lambda: start(time_limit=80)
    ),
    f"task_id must be at most 255 bytes long, and without '.retrykit', got {LONG!r}": (
        lambda: start(task_id=LONG)
    ),
    "task_id must be at most 255 bytes long, and without '.retrykit', got "
    "'job-7.retrykit'": lambda: start(task_id="job-7.retrykit"),
    "task_protocol must be 2, which has headers, got 1": (
        lambda: capabilities(task_protocol=1)
    ),
    "result_backend must be readable by every process, to detect duplicate "
    "messages, got 'DisabledBackend'; set it to a redis:// or a db+ URL": (
        lambda: capabilities(result_backend=None)
    ),
    "result_backend must be readable by every process, to detect duplicate "
    "messages, got 'RPCBackend'; set it to a redis:// or a db+ URL": (
        lambda: capabilities(result_backend="rpc://")
    ),
    "result_expires must be more than 1800 seconds, twice max_hold, got 600; "
    "duplicates are detected by their results; None keeps all results": (
        lambda: capabilities(result_expires=600)
    ),
    "result_expires must be a finite number >= 0, got -1": (
        lambda: capabilities(result_expires=-1)
    ),
    "max_hold must be a finite number >= 0, got -1": (
        lambda: capabilities(task={"max_hold": -1})
    ),
    "max_hold must be a duration > 0, got '0s'": lambda: capabilities(
        task={"max_hold": "0s"}
    ),
    "max_hold must be less than half of the visibility timeout of 60 seconds, got "
    "30.0; a job held for longer is delivered twice: set "
    'broker_transport_options={"visibility_timeout": 120}': (
        lambda: capabilities(
            task={"max_hold": 30}, broker_transport_options={"visibility_timeout": 60}
        )
    ),
    "visibility_timeout must be a finite number >= 0, got '1h'": (
        lambda: capabilities(broker_transport_options={"visibility_timeout": "1h"})
    ),
    "max_hold must be at most 900 seconds on a classic queue, got 1200.0; RabbitMQ "
    "disconnects a worker that holds a job for half an hour": (
        lambda: capabilities(
            AMQP, {"max_hold": "20m"}, broker_transport_options=CONFIRMED
        )
    ),
    "confirm_publish must be True, or RabbitMQ may lose an unconfirmed job, "
    'got None; set broker_transport_options={"confirm_publish": True}': (
        lambda: capabilities(AMQP)
    ),
    "queue must be bound to a topic exchange, which delays need on quorum queues, "
    "got 'celery'; set task_default_exchange_type='topic', or declare the queue with a "
    "topic exchange": (
        lambda: capabilities(AMQP, **QUORUM | {"task_default_exchange_type": "direct"})
    ),
    "queue must be bound to a topic exchange, which delays need on quorum queues, "
    "got 'direct'; set task_default_exchange_type='topic', or declare the queue with a "
    "topic exchange": (route_to_direct_exchange),
    f"broker_url must be that of Redis or RabbitMQ, got 'sql'; waiting jobs are lost "
    f"if a worker is killed: {SET}": lambda: capabilities("sqla+sqlite://"),
    "broker_url must be that of Redis or RabbitMQ, got 'filesystem'; waiting jobs "
    f"are lost if a worker is killed: {SET}": lambda: capabilities("filesystem://"),
    f"broker_url must be that of Redis or RabbitMQ, got 'pyro'; {SET}": (
        lambda: capabilities("pyro://")
    ),
    "policy must be a Policy, got None; write policy=Policy(...)": (
        lambda: app(task={"policy": None}).finalize()
    ),
    f"fn must be a sync function on Celery, got {averify!r}; call "
    "asyncio.run(...) in it, or use DBOS": (lambda: app(fn=averify).finalize()),
    "retry must be left to the policy of verify, got 'retry()'; raise "
    "RetryAfter(delay), or the error itself": app().tasks["verify"].retry,
    "expires must be None for a job, got 60; set max_elapsed in its policy, so that "
    "it ends as dead": lambda: start(expires=60),
    "eta must be an aware datetime, got 'tomorrow'; write datetime.now(UTC)": (
        lambda: start(eta="tomorrow")
    ),
    "countdown must be a finite number >= 0, got -1": lambda: start(countdown=-1),
    "job_id must be the id of a job that was started, got 'job-0'": (
        lambda: status(app("memory://"), "job-0")
    ),
    "job_id must be the id of a job in the queue retrykit.dead, or of a killed or lost "
    "one, got 'job-0'; it is unknown": lambda: requeue(app("memory://"), "job-0"),
    "job_id must be the id of a job whose message is still stored, got 'job-7'": (
        lambda: requeue(app_with_job("dead"), "job-7")
    ),
    "status must be 'dead': with this broker there is no list of other jobs, got "
    "None; query jobs by their ids": lambda: jobs(app("memory://")),
    "when must be an aware datetime, got datetime.datetime(2026, 1, 1, 0, 0); write "
    "datetime.now(UTC)": lambda: retry_at(app("memory://"), "job-7", NAIVE),
    "job_id must be the id of a waiting job, got 'job-7'; it is dead": (
        lambda: retry_at(app_with_job("dead"), "job-7", NAIVE.astimezone())
    ),
    "result_backend must be that of a file in which a worker has stored results, got "
    "'db+sqlite:///none'; check its path": (
        lambda: _check_results("db+sqlite:///none")
    ),
    "job_id must be the id of an unfinished job, got 'job-7'; it is succeeded": (
        lambda: kill(app_with_job("succeeded"), "job-7")
    ),
}
