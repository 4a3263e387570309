"""The job queues and workflow engines."""

import random
from collections.abc import Iterator

from tests._support.reference_data import reference_data
from tests.originals.comparison import documented, original

documented("sidekiq", '"Error Handling", wiki of Sidekiq; code of Sidekiq 8')
documented("temporal", '"Retry Policies", documentation of Temporal, 2026')


@original(
    "celery",
    "celery",
    {"max_retries": 12, "retry_backoff": 5, "retry_backoff_max": 100},
    {"max_retries": 12, "retry_jitter": "none"},
    {"retry_backoff": 0},
)
def celery_waits(
    *,
    max_retries: int = 3,
    retry_backoff: int = 1,
    retry_backoff_max: int = 600,
    retry_jitter: str = "full",
) -> Iterator[float]:
    from celery import Task
    from celery.utils.time import get_exponential_backoff_interval

    for retries in range(max_retries):
        if retry_backoff:
            yield get_exponential_backoff_interval(
                retry_backoff, retries, retry_backoff_max, retry_jitter == "full"
            )
        else:
            yield Task.default_retry_delay


@original(
    "dramatiq",
    "dramatiq",
    # Where these two are a power of 2 apart, no retry is the exception of the preset.
    {"max_retries": 9, "min_backoff": 1, "max_backoff": 16},
)
def dramatiq_waits(
    *, max_retries: int = 20, min_backoff: float = 15, max_backoff: float = 604_800
) -> Iterator[float]:
    from dramatiq.common import compute_backoff

    for retries in range(max_retries):
        _, milliseconds = compute_backoff(
            retries, factor=int(min_backoff * 1000), max_backoff=int(max_backoff * 1000)
        )
        yield milliseconds / 1000


@original(
    "zizq",
    '"Backoff & Retry Policies",',
    {"retry_limit": 9, "base": 5, "exponent": 2.5, "jitter": 10},
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
