"""Durable jobs on Celery, with Redis or RabbitMQ as its broker."""

from retrykit.integrations.celery.reports import dead, kill, requeue, status
from retrykit.integrations.celery.settings import capabilities
from retrykit.integrations.celery.task import DurableTask

__all__ = ["DurableTask", "capabilities", "dead", "kill", "requeue", "status"]
