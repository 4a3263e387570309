"""Durable jobs on Celery, with Redis or RabbitMQ as the broker."""

from retrykit._internal.extras import needs

with needs("celery"):
    from retrykit.integrations.celery._config_checks import capabilities
    from retrykit.integrations.celery._job_control import (
        job_engine,
        jobs,
        kill,
        requeue,
        retry_at,
        status,
    )
    from retrykit.integrations.celery._lost_jobs import sweep
    from retrykit.integrations.celery._serving import serve
    from retrykit.integrations.celery._task import DurableTask

__all__ = ["DurableTask", "capabilities", "job_engine", "jobs", "kill", "requeue"]
__all__ += ["retry_at", "serve", "status", "sweep"]
