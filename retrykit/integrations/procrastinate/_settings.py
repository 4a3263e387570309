"""Settings of Procrastinate with which no job is lost or run by two workers at once.

Procrastinate leaves a job whose worker was killed in the status ``doing``. `prepare`
adds a periodic task that puts such jobs back. A worker ends when it loses the database:
run it under a supervisor that restarts it.
"""

from collections.abc import Iterable
from typing import Any, Final

from procrastinate import App, JobContext
from procrastinate.jobs import DeleteJobCondition, Job as Row

from retrykit._internal.validation import (
    check_instance,
    check_number,
    invalid_setting,
    user_facing,
)
from retrykit.durable import Capabilities
from retrykit.durable._dead_job_logs import log_dead_jobs_on_one_line
from retrykit.integrations.procrastinate._job_run import RescheduleStrategy
from retrykit.integrations.procrastinate._store import RELEASE

__all__ = ["CAPABILITIES", "RESCUE", "check_prepared", "prepare"]
__all__ += ["put_back_unfinished", "rescue"]

CAPABILITIES: Final = Capabilities(
    engine="procrastinate",
    max_hold=None,
    # Workers are notified of new jobs, but not of jobs that become due.
    granularity=5.0,
    min_delay=0.0,
    at_least_once=True,
    supports_async=True,
)
"""Capabilities of Procrastinate for waiting jobs.

The granularity is the default ``fetch_job_polling_interval`` of the workers."""

RESCUE: Final = "retrykit.rescue"
"""The name of the periodic task that rescues the jobs of killed workers."""


@user_facing
def prepare(app: App, *, cron: str = "* * * * *", queue: str = "default") -> None:
    """Prepare an application for durable jobs, before its first `task`.

    Its workers rescue the jobs of killed workers, whose last heartbeat is older than
    ``stalled_worker_timeout``. Set this only in the ``worker_defaults`` of the
    application. If an async function blocks its event loop for that long, its worker
    counts as killed, and another one attempts the job again.

    Args:
        app: The Procrastinate application.
        cron: When to check for killed workers, as in ``app.periodic``; by default every
            minute. Each check is a Procrastinate job, which ``remove_old_jobs`` can
            remove.
        queue: The queue of the periodic task; some worker must always listen to it.

    Raises:
        ConfigError: The application was already prepared, or with its settings jobs
            would be lost or attempted twice.
    """
    defaults: dict[str, Any] = {**check_instance("app", app, App).worker_defaults}
    if RESCUE in app.tasks:
        rule, suggestion = "prepared only once", "remove the other prepare(app)"
        raise invalid_setting("app", rule, app, suggestion, code="other-library")
    deleted = DeleteJobCondition(defaults.get("delete_jobs") or "never")
    if deleted is not DeleteJobCondition.NEVER:
        rule = "'never', or a job that has ended could be started again"
        suggestion = "remove old jobs with the task remove_old_jobs"
        raise invalid_setting(
            "delete_jobs", rule, deleted.value, suggestion, code="other-library"
        )
    interval = check_number(
        "update_heartbeat_interval", defaults.get("update_heartbeat_interval", 10.0)
    )
    check_number(
        "stalled_worker_timeout",
        _stalled_timeout(app),
        at_least=2 * interval,
        suggestion="or a live worker counts as killed",
    )
    log_dead_jobs_on_one_line("procrastinate.worker")
    options: Any = {"name": RESCUE, "queue": queue, "queueing_lock": RESCUE}
    app.periodic(cron=cron)(app.task(**options, pass_context=True)(_rescue))


async def rescue(app: App) -> list[int]:
    """Put the jobs of killed workers back into the queue, and return their row ids.

    An interrupted attempt is repeated, and waiting jobs continue to wait. Jobs of
    other tasks are left alone. Several processes may call it at the same time.
    """
    timeout = _stalled_timeout(app)
    stalled = await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=timeout)
    return await _put_back(app, stalled, killed=1)


async def put_back_unfinished(app: App, worker_id: int | None) -> list[int]:
    """Put the running jobs of an ending worker back; return their row ids."""
    jobs = app.job_manager
    rows = await jobs.list_jobs_async(worker_id=worker_id, status="doing")
    return await _put_back(app, rows, killed=0)


def check_prepared(app: App) -> None:
    """Raise an error unless an application was prepared for durable jobs.

    Raises:
        ConfigError: `prepare` was not called.
    """
    check_instance("app", app, App)
    if RESCUE not in app.tasks:
        rule = "one that rescues the jobs of killed workers"
        raise invalid_setting(
            "app", rule, app, "call prepare(app) first", code="other-library"
        )


async def _put_back(app: App, rows: Iterable[Row], killed: int) -> list[int]:
    released = []
    for row in rows:
        task = app.tasks.get(row.task_name)
        if task and isinstance(task.retry_strategy, RescheduleStrategy):
            released += await app.connector.execute_query_all_async(
                RELEASE, row_id=row.id, worker=row.worker_id, killed=killed
            )
    return [row["id"] for row in released]


async def _rescue(context: JobContext, /, timestamp: int) -> list[int]:
    del timestamp
    return await rescue(context.app)


def _stalled_timeout(app: App) -> float:
    return app.worker_defaults.get("stalled_worker_timeout", 30.0)
