"""Settings of Procrastinate under which no job is lost and none is attempted twice.

A job whose worker was killed stays ``doing`` in its table until somebody puts it
back: Procrastinate itself does not. `prepare` gives an application a periodic task
that does, which every worker of its queue carries out. A worker itself ends when its
database is away: let whatever runs it start it again.
"""

from typing import Any, Final

from procrastinate import App, JobContext
from procrastinate.jobs import DeleteJobCondition

from retrykit._internal.validation import check_instance, check_number, invalid_setting
from retrykit.durable import Capabilities
from retrykit.integrations.procrastinate.job_run import RescheduleStrategy
from retrykit.integrations.procrastinate.store import WAKE

__all__ = ["CAPABILITIES", "RESCUE", "prepare", "rescue"]

CAPABILITIES: Final = Capabilities(
    engine="procrastinate",
    max_hop=None,
    # It is notified of new jobs, and not of those that have become due.
    granularity=5.0,
    min_delay=0.0,
    at_least_once=True,
    async_ok=True,
)
"""What Procrastinate does for a job that waits.

Its granularity is the ``fetch_job_polling_interval`` of the workers, here what that
is by default."""

RESCUE: Final = "retrykit.rescue"
"""The name of the periodic task that rescues the jobs of killed workers."""


def prepare(app: App, *, cron: str = "* * * * *", queue: str = "default") -> None:
    """Make an application fit for durable jobs, before its first `task`.

    Its workers look for jobs whose worker was killed. That is one whose heartbeat is
    older than ``stalled_worker_timeout``; the settings of workers are taken from the
    ``worker_defaults`` of the application, so set them there and nowhere else. A
    coroutine function that blocks its event loop for as long as that is taken for
    dead, and attempted by another worker, too.

    Args:
        app: The application.
        cron: How often to look, as ``app.periodic`` takes it; by default every
            minute. Each time is a job of its own, for ``remove_old_jobs`` to remove.
        queue: The queue of that task: one that workers always listen to.

    Raises:
        ConfigError: A setting would lose jobs; the error says which.
    """
    defaults: dict[str, Any] = {**check_instance("app", app, App).worker_defaults}
    if RESCUE in app.tasks:
        raise invalid_setting("app", "prepared once", app, "leave out one prepare(app)")
    deleted = DeleteJobCondition(defaults.get("delete_jobs") or "never")
    if deleted is not DeleteJobCondition.NEVER:
        rule = "'never', or a job that has ended would be unknown and begun anew"
        suggestion = "let the task remove_old_jobs remove what is old"
        raise invalid_setting("delete_jobs", rule, deleted.value, suggestion)
    interval = check_number(
        "update_heartbeat_interval", defaults.get("update_heartbeat_interval", 10.0)
    )
    check_number(
        "stalled_worker_timeout",
        _silence(app),
        at_least=2 * interval,
        suggestion="or a worker that lives is taken for dead",
    )
    options: Any = {"name": RESCUE, "queue": queue, "queueing_lock": RESCUE}
    app.periodic(cron=cron)(app.task(**options, pass_context=True)(_rescue))


async def rescue(app: App) -> list[int]:
    """Put the jobs of workers that were killed back into the queue.

    Their envelopes decide what follows: the attempt in whose middle they were killed
    is made again, and who waited waits on. Jobs of other tasks are left alone. It may
    be called by several processes at the same time.

    Args:
        app: The application.

    Returns:
        The ids of their rows.
    """
    silence = _silence(app)
    stalled = await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=silence)
    woken = []
    for row in stalled:
        registered = app.tasks.get(row.task_name)
        if registered and isinstance(registered.retry_strategy, RescheduleStrategy):
            woken += await app.connector.execute_query_all_async(
                WAKE, place=row.id, worker=row.worker_id
            )
    return [row["id"] for row in woken]


async def _rescue(context: JobContext, /, timestamp: int) -> list[int]:
    del timestamp
    return await rescue(context.app)


def _silence(app: App) -> float:
    return app.worker_defaults.get("stalled_worker_timeout", 30.0)
