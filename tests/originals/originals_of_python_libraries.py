"""The libraries that retry, in Python."""

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tests.originals.comparison import (
    RETRIES,
    original,
    run_by_hand,
    without_sleep,
)

if TYPE_CHECKING:
    from urllib3 import Retry

run_by_hand("langchain", "`Runnable.with_retry`, langchain-core 1.8.3")


@original(
    "aiohttp-retry",
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
    "backoff",
    {"max_tries": 8, "base": 3, "factor": 0.5, "max_value": 20},
    how="a run",
)
def backoff_waits(*, max_tries: int = 0, **settings: float) -> list[float]:
    import backoff

    waits: list[float] = []

    def follow(details: dict[str, Any]) -> None:
        waits.append(details["wait"])
        if len(waits) == RETRIES:
            # It is endless by default.
            raise StopIteration

    def fail() -> None:
        raise OSError

    with without_sleep("backoff._sync"), suppress(OSError, StopIteration):
        backoff.on_exception(
            backoff.expo,
            OSError,
            max_tries=max_tries or None,
            on_backoff=follow,
            logger=None,
            **settings,
        )(fail)()
    return waits


@original(
    "google-api-core",
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
    "redis-py",
    "redis",
    {"retries": 5, "base": 1, "cap": 10},
    how="a run",
)
def redis_waits(**settings: float) -> list[float]:
    import redis
    from redis.backoff import ExponentialWithJitterBackoff
    from redis.retry import Retry

    retry = redis.Redis().get_retry()
    if settings:
        retries = settings.pop("retries")
        retry = Retry(ExponentialWithJitterBackoff(**settings), int(retries))

    def fail() -> None:
        raise redis.ConnectionError

    with without_sleep("redis.retry", "sleep") as waits:
        with suppress(redis.ConnectionError):
            retry.call_with_retry(fail, lambda _: None)
    return waits


@original("requests", "requests", {"max_retries": 3})
def requests_waits(**settings: int) -> Iterator[float]:
    from requests.adapters import HTTPAdapter

    return urllib3_steps(HTTPAdapter(**settings).max_retries)


@original(
    "stamina",
    "stamina",
    {"wait_initial": 0.5, "wait_jitter": 0.25, "wait_max": 3, "wait_exp_base": 3},
    {"attempts": 3, "wait_jitter": 0},
)
def stamina_waits(
    *,
    attempts: int = 10,
    wait_initial: float = 0.1,
    wait_max: float = 5,
    wait_jitter: float = 1,
    wait_exp_base: float = 2,
) -> Iterator[float]:
    from stamina import _core

    for retry in range(1, attempts):
        yield _core._compute_backoff(
            retry, wait_max, wait_initial, wait_exp_base, wait_jitter
        )


@original(
    "urllib3",
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
