"""The libraries that retry, in Python."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tests.originals.comparison import (
    failing,
    original,
    run_by_hand,
    with_defaults,
    without_sleep,
)

if TYPE_CHECKING:
    from urllib3 import Retry

run_by_hand("langchain", "`Runnable.with_retry`, langchain-core 1.8.3")


@original(
    "aiohttp-retry",
    {"attempts": 9, "start_timeout": 0.5, "max_timeout": 20, "factor": 3},
)
def aiohttp_retry_waits(*, attempts: int = 3, **settings: float) -> Iterator[float]:
    from aiohttp_retry import ExponentialRetry

    options = ExponentialRetry(attempts, **settings)
    for retry in range(1, options.attempts):
        yield options.get_timeout(retry)


@original(
    "backoff-expo",
    {"max_tries": 8, "base": 3, "factor": 0.5, "max_value": 20},
    package="backoff",
    how="a run",
)
def backoff_waits(**settings: Any) -> list[float]:
    import backoff

    retry = backoff.on_exception(backoff.expo, OSError, logger=None, **settings)
    with without_sleep("backoff._sync") as waits:
        retry(failing(OSError))()
    return waits


@original(
    "google-api-core",
    {"initial": 0.5, "maximum": 10, "multiplier": 3},
    {"initial": 30, "maximum": 20},
)
def google_api_core_waits(**settings: float) -> Iterator[float]:
    from google.api_core.retry import Retry, exponential_sleep_generator

    retry = Retry(**settings)
    return exponential_sleep_generator(
        retry._initial, retry._maximum, retry._multiplier
    )


@original(
    "httpx-retries",
    {"backoff_factor": 0.5},
    {"total": 4, "backoff_factor": 2, "backoff_jitter": 0.25, "max_backoff_wait": 12},
    {"backoff_factor": 0.5, "backoff_jitter": 0},
)
def httpx_retries_waits(**settings: Any) -> Iterator[float]:
    from httpx_retries import Retry

    retry = Retry(**settings)
    while not retry.is_exhausted():
        retry = retry.increment()
        yield retry._calculate_sleep({})


@original(
    "redis-py", {"retries": 5, "base": 1, "cap": 10}, package="redis", how="a run"
)
def redis_waits(**settings: float) -> list[float]:
    import redis
    from redis.backoff import ExponentialWithJitterBackoff
    from redis.retry import Retry

    retry = redis.Redis().get_retry()
    if settings:
        retries = settings.pop("retries")
        retry = Retry(ExponentialWithJitterBackoff(**settings), int(retries))

    with without_sleep("redis.retry", "sleep") as waits:
        retry.call_with_retry(failing(redis.ConnectionError), lambda _: None)
    return waits


@original("requests", {"max_retries": 3})
def requests_waits(**settings: int) -> Iterator[float]:
    from requests.adapters import HTTPAdapter

    return urllib3_steps(HTTPAdapter(**settings).max_retries)


@original(
    "stamina",
    {"wait_initial": 0.5, "wait_jitter": 0.25, "wait_max": 3, "wait_exp_base": 3},
    {"attempts": 3, "wait_jitter": 0},
)
def stamina_waits(**settings: Any) -> Iterator[float]:
    from stamina import _core, retry

    given = with_defaults(retry, settings)
    growth = given.wait_max, given.wait_initial, given.wait_exp_base, given.wait_jitter
    for failed in range(1, given.attempts):
        yield _core._compute_backoff(failed, *growth)


@original(
    "urllib3",
    {"backoff_factor": 0.5},
    {"total": 5, "backoff_factor": 2, "backoff_jitter": 3, "backoff_max": 20},
)
def urllib3_waits(**settings: float) -> Iterator[float]:
    from urllib3 import Retry

    return urllib3_steps(Retry(**settings))


def urllib3_steps(retry: "Retry") -> Iterator[float]:
    from urllib3.exceptions import MaxRetryError

    while True:
        try:
            retry = retry.increment("GET", "/", error=OSError())
        except (MaxRetryError, OSError):
            return
        yield retry.get_backoff_time()
