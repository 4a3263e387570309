"""The libraries that retry, in Python."""

from collections.abc import Iterator

from tests.originals.comparison import original


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
    from urllib3.exceptions import MaxRetryError

    retry = Retry(**settings)
    while True:
        try:
            retry = retry.increment("GET", "/", error=OSError())
        except (MaxRetryError, OSError):
            return
        yield retry.get_backoff_time()
