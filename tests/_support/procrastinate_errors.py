"""Invalid settings of jobs on Procrastinate, by the message of their error."""

from datetime import UTC, datetime

from procrastinate import App

from retrykit import Policy
from retrykit.integrations import procrastinate as durable
from tests._support.procrastinate_jobs import MemoryConnector

__all__ = ["ERRORS"]

POLICY = Policy()
APP = App(connector=MemoryConnector())
durable.prepare(APP)
UNPREPARED = App(connector=MemoryConnector())


@durable.task(APP, POLICY, name="verify")
def verify():
    raise NotImplementedError


@durable.task(APP, POLICY, name="anything")
def anything(**named):
    raise NotImplementedError


verify.start_as("waits")
verify.start_as("killed")
durable.kill(APP, "killed")
APP.configure_task("verfy").defer(retrykit={"envelope": {"job": "lost", "run": 1}})
APP.connector.jobs[3]["status"] = "failed"


def prepare(**defaults):
    durable.prepare(App(connector=MemoryConnector(), worker_defaults=defaults))


ERRORS = {
    "app must be an App, got 'hosts'": lambda: durable.prepare("hosts"),
    "app must be an App, got None": lambda: durable.task(None, POLICY),
    f"app must be one that rescues the jobs of killed workers, got "
    f"{UNPREPARED!r}; call prepare(app) first": (
        lambda: durable.task(UNPREPARED, POLICY)
    ),
    "app must be an App, got 7": lambda: durable.serve(7),
    'grace must be a duration such as "12.5s", "500ms" or "1h30m", got \'soon\'; '
    "write the unit (us, ms, s, m, h, d, w)": lambda: durable.serve(APP, grace="soon"),
    "options must be one of 'abort_job_polling_interval', 'additional_context', "
    "'concurrency', 'fetch_job_polling_interval', 'listen_notify', 'name', 'queues', "
    "'task_middleware', 'worker_middleware', got 'wait'; set it in worker_defaults": (
        lambda: durable.serve(APP, wait=False)
    ),
    f"app must be prepared only once, got {APP!r}; remove the other prepare(app)": (
        lambda: durable.prepare(APP)
    ),
    "kwargs must be without 'retrykit', which stores the history of the job, got "
    "{'retrykit': 1}; give the parameter another name": (
        lambda: anything.start_as("any", retrykit=1)
    ),
    "when must be a datetime, got '1h'": lambda: durable.retry_at(APP, "waits", "1h"),
    "options must be one of 'aliases', 'priority', 'queue', 'task_middleware', got "
    "'lock'; its policy retries, and a waiting job would hold its locks": (
        lambda: durable.task(APP, POLICY, lock="hosts")
    ),
    "delete_jobs must be 'never', or a job that has ended could be "
    "started again, got 'successful'; remove old jobs with the task remove_old_jobs": (
        lambda: prepare(delete_jobs="successful")
    ),
    "update_heartbeat_interval must be a finite number >= 0, got -1": (
        lambda: prepare(update_heartbeat_interval=-1)
    ),
    "stalled_worker_timeout must be a finite number >= 20, got 15; or a live worker "
    "counts as killed": lambda: prepare(stalled_worker_timeout=15),
    "job_id must be the id of a job that was started, got 'host'": (
        lambda: durable.status(APP, "host")
    ),
    "job_id must be the id of a dead job, got 'waits'; it is waiting": (
        lambda: durable.requeue(APP, "waits")
    ),
    "task must be the name of a durable task that this process has imported, got "
    "'verfy'; did you mean verify?": lambda: durable.requeue(APP, "lost"),
    "when must be an aware datetime, got datetime.datetime(2026, 11, 23, 0, 0); "
    "write datetime.now(UTC)": (
        lambda: durable.retry_at(APP, "waits", datetime(2026, 11, 23))  # noqa: DTZ001  naive
    ),
    "job_id must be the id of an unfinished job, got 'killed'; it is dead": (
        lambda: durable.kill(APP, "killed")
    ),
    "job_id must be the id of a waiting job, got 'killed'; it is dead": (
        lambda: durable.retry_at(APP, "killed", datetime.now(UTC))
    ),
}
