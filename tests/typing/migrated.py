"""Types of what ``retrykit migrate`` writes; checked by mypy and pyright, never run.

Functions keep their types under the adapters of hooks, strategies and handlers.
"""

from typing import Any, assert_type

import tenacity

from retrykit import Policy, aretrying, retry, retrying
from retrykit.integrations import backoff as backoff_hooks, tenacity as hooks
from retrykit.schedules import constant, exponential


def warn(state: tenacity.RetryCallState) -> None: ...


def is_busy(state: tenacity.RetryCallState) -> bool:
    return True


def delay(state: tenacity.RetryCallState) -> float:
    return 0


def tell(details: dict[str, Any]) -> None: ...


def is_hopeless(error: Exception) -> bool:
    return True


@retry(
    on=hooks.retry_on_error(is_busy),
    on_result=hooks.retry_on_result(is_busy),
    max_attempts=None,
    schedule=constant(0),
    hint=hooks.wait(delay, stop=is_busy, after=warn),
    hint_cap=None,
    observers=[
        hooks.before(warn),
        hooks.before_sleep(warn),
        hooks.after(warn),
    ],
)
def fetch(url: str, *, times: int = 1) -> bytes:
    return b""


@retry(hooks.policy(stop=tenacity.stop_after_attempt(3), reraise=True))
async def find(url: str) -> list[int]:
    return []


@retry(
    on=OSError,
    give_up_on=backoff_hooks.giveup(is_hopeless, OSError),
    schedule=backoff_hooks.wait(exponential(1).full_jitter(), max_time=60),
    max_attempts=None,
    observers=[backoff_hooks.on_backoff(tell), backoff_hooks.on_giveup(tell)],
)
def search(query: str) -> int:
    return 0


class Client:
    @retry(on=OSError, max_attempts=3, raises="retry_error")
    def fetch(self, url: str) -> bytes:
        return b""


async def use(client: Client) -> None:
    assert_type(fetch("/", times=2), bytes)
    assert_type(await find("/"), list[int])
    assert_type(search("x"), int)
    assert_type(client.fetch("/"), bytes)
    assert_type(Policy(on=OSError).call(search, "x"), int)
    for attempt in retrying(on=OSError, max_attempts=3):
        with attempt:
            assert_type(attempt.number, int)
    async for each in aretrying(on=OSError, max_attempts=3):
        with each:
            assert_type(each.number, int)
