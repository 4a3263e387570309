"""Durable jobs on DBOS Transact, on SQLite or Postgres."""

from retrykit.integrations.dbos.job_control import (
    dead,
    delete_finished,
    kill,
    requeue,
    retry_at,
    status,
    take_over,
)
from retrykit.integrations.dbos.jobs import DurableJob, job
from retrykit.integrations.dbos.lifecycle import connect, listen
from retrykit.integrations.dbos.serving import serve
from retrykit.integrations.dbos.settings import CAPABILITIES, config

__all__ = ["CAPABILITIES", "DurableJob", "config", "connect", "dead"]
__all__ += ["delete_finished", "job", "kill", "listen", "requeue", "retry_at"]
__all__ += ["serve", "status", "take_over"]
