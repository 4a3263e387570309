"""Durable jobs on Celery, with Redis or RabbitMQ as the broker."""

from retrykit.integrations._extras import needs

with needs("celery"):
    from retrykit.integrations.celery.config_checks import capabilities
    from retrykit.integrations.celery.job_control import (
        jobs,
        kill,
        requeue,
        retry_at,
        status,
    )
    from retrykit.integrations.celery.lost_jobs import sweep
    from retrykit.integrations.celery.serving import serve
    from retrykit.integrations.celery.task import DurableTask

__all__ = ["DurableTask", "capabilities", "jobs", "kill", "requeue"]
__all__ += ["retry_at", "serve", "status", "sweep"]
