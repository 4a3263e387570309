"""The job queues in Python."""

from collections.abc import Iterator
from datetime import UTC, datetime
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from tests.originals.comparison import failing, original, without_sleep


@original(
    "dbos-step",
    {"interval_seconds": 100, "max_attempts": 6, "backoff_rate": 3},
    package="dbos",
    how="a run",
)
def dbos_waits(**settings: Any) -> list[float]:
    from dbos import DBOS

    with TemporaryDirectory() as folder:
        config = {"name": "original", "log_level": "CRITICAL"}
        DBOS(config={**config, "system_database_url": f"sqlite:///{folder}/database"})
        step = DBOS.step(name="step", retries_allowed=True, **settings)
        call = DBOS.workflow(name="call")(step(failing(OSError)))
        DBOS.launch()
        with without_sleep("dbos._outcome") as waits:
            call()
        DBOS.destroy(destroy_registry=True)
    return waits


@original(
    "huey",
    {"retries": 4, "retry_delay": 10},
    {"retries": 9, "retry_delay": 1.5, "retry_backoff": 2},
)
def huey_waits(**settings: float) -> Iterator[float]:
    from huey import MemoryHuey

    huey = MemoryHuey()
    task = huey.task(**settings)(lambda: None).s()
    now = huey._get_timestamp()
    while task.retries:
        huey._requeue_task(task, now)
        yield (task.eta - now).total_seconds() if task.eta else 0


@original(
    "procrastinate",
    {"max_attempts": 3, "wait": 1, "linear_wait": 10, "exponential_wait": 2},
    {"linear_wait": 60, "exponential_wait": 1},
)
def procrastinate_waits(**settings: int) -> Iterator[float]:
    from procrastinate import RetryStrategy

    strategy, job = RetryStrategy(**settings), SimpleNamespace(attempts=0)
    while decision := strategy.get_retry_decision(exception=OSError(), job=job):
        # Its delays are whole seconds.
        yield round((decision.retry_at - datetime.now(UTC)).total_seconds())
        job.attempts += 1


@original(
    "rq",
    {"max": 2, "interval": 30},
    {"max": 4, "interval": [1, 5]},
    {"max": 2, "interval": [1, 2, 3, 4]},
)
def rq_waits(*, max: int = 3, **settings: Any) -> Iterator[float]:  # noqa: A002
    from rq import Retry
    from rq.job import Job

    retry = Retry(max, **settings)
    for left in range(retry.max, 0, -1):
        job = SimpleNamespace(retry_intervals=retry.intervals, retries_left=left)
        yield Job.get_retry_interval(job)


@original(
    "taskiq",
    {"default_retry_count": 9, "default_delay": 9, "use_delay_exponent": True},
    {"use_jitter": True},
    {"default_retry_count": 6, "use_delay_exponent": True, "max_delay_exponent": 12},
    {"use_delay_exponent": True, "use_jitter": True},
)
def taskiq_waits(**settings: Any) -> Iterator[float]:
    from taskiq import SmartRetryMiddleware

    middleware, message = SmartRetryMiddleware(**settings), SimpleNamespace(labels={})
    for retries in range(1, middleware.default_retry_count):
        yield middleware.make_delay(message, retries)
