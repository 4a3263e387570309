"""Celery apps with valid settings, apart from the given ones."""

from celery import Celery

from retrykit import Policy
from retrykit.integrations.celery import DurableTask

__all__ = ["AMQP", "CONFIRMED", "QUORUM", "REDIS", "app"]

# Nothing listens there: no test connects.
REDIS = "redis://127.0.0.1:1/0"
AMQP = "amqp://guest:guest@127.0.0.1:1//"
CONFIRMED = {"confirm_publish": True}
QUORUM = {
    "broker_transport_options": CONFIRMED,
    "task_default_queue_type": "quorum",
    "task_default_exchange_type": "topic",
}


def verify():
    """Do nothing."""


def app(broker=REDIS, task=None, fn=verify, **settings):
    """Return an app with one durable task, ``verify``.

    Args:
        broker: The URL of its broker.
        task: Options of the task.
        fn: Its function.
        **settings: Settings of the app.
    """
    app = Celery("app", broker=broker, set_as_current=False)
    good = {"result_backend": "cache", "cache_backend": "memory"}
    app.conf.update(good | settings)
    options = {"base": DurableTask, "policy": Policy(), "name": "verify"}
    app.task(shared=False, **options | (task or {}))(fn)
    return app
