"""Durable jobs on DBOS Transact, on SQLite or Postgres."""

from retrykit._internal.extras import needs

with needs("dbos"):
    from retrykit.integrations.dbos._job_control import (
        delete_finished,
        job_engine,
        jobs,
        kill,
        requeue,
        retry_at,
        status,
        take_over,
    )
    from retrykit.integrations.dbos._job_functions import DurableJob, job
    from retrykit.integrations.dbos._lifecycle import connect, disconnect, listen
    from retrykit.integrations.dbos._serving import serve
    from retrykit.integrations.dbos._settings import CAPABILITIES, config

__all__ = ["CAPABILITIES", "DurableJob", "config", "connect"]
__all__ += ["delete_finished", "disconnect", "job", "job_engine", "jobs", "kill"]
__all__ += ["listen", "requeue", "retry_at", "serve", "status", "take_over"]
