"""The job queues and workflow engines."""

import random
from collections.abc import Iterator
from typing import Any

from tests._support.reference_data import reference_data
from tests.originals.comparison import documented, error_of, failing, original

documented("sidekiq", '"Error Handling", wiki of Sidekiq; code of Sidekiq 8')
documented("temporal", '"Retry Policies", documentation of Temporal, 2026')


@original(
    "celery",
    {"max_retries": 12, "retry_backoff": 5, "retry_backoff_max": 100},
    {"max_retries": 12, "retry_jitter": "none"},
    {"retry_backoff": 0},
)
def celery_waits(*, retry_jitter: str = "full", **settings: Any) -> Iterator[float]:
    from celery import Celery

    own = {"retry_backoff": 1, "retry_jitter": retry_jitter == "full", **settings}
    task = Celery().task(failing(OSError), autoretry_for=[OSError], **own)
    for retries in range(task.max_retries):
        task.push_request(retries=retries, is_eager=True, called_directly=False)
        yield error_of(task.run).when


@original(
    "dramatiq",
    # Where these two are a power of 2 apart, no retry is the exception of the preset.
    {"max_retries": 9, "min_backoff": 1, "max_backoff": 16},
)
def dramatiq_waits(*, max_retries: int = 20, **settings: int) -> Iterator[float]:
    from dramatiq.common import compute_backoff
    from dramatiq.middleware import Retries

    given = {name: value * 1000 for name, value in settings.items()}
    own = Retries(max_retries=max_retries, **given)
    for retries in range(own.max_retries):
        _, milliseconds = compute_backoff(
            retries, factor=own.min_backoff, max_backoff=own.max_backoff
        )
        yield milliseconds / 1000


@original(
    "zizq",
    {"retry_limit": 9, "base": 5, "exponent": 2.5, "jitter": 10},
    package='"Backoff & Retry Policies",',
    version=lambda: "documentation of Zizq",
    how="its formula",
)
def zizq_waits(**settings: float) -> Iterator[float]:
    defaults = reference_data("zizq")["defaults"]
    limit = settings.get("retry_limit", defaults["retry_limit"])
    base = settings.get("base", defaults["B_s"])
    exponent = settings.get("exponent", defaults["E"])
    jitter = settings.get("jitter", defaults["J_s"])
    for attempt in range(1, limit + 1):
        yield base + attempt**exponent + attempt * random.uniform(0, jitter)
