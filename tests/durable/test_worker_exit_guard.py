"""Jobs that would stop their worker fail instead."""

import asyncio

import pytest

from retrykit.durable import JobFailed
from retrykit.durable._job_attempt import protect_worker


class Stopped(BaseException):
    """An error that ``except Exception`` must not catch."""


@pytest.mark.parametrize(
    "exit_",
    [
        *(SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()),
        *(GeneratorExit(), Stopped()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_job_fails_instead_of_stopping_its_worker(exit_):
    with (
        pytest.raises(JobFailed, match="would have stopped its worker"),
        protect_worker(),
    ):
        raise exit_


def test_a_coroutine_fails_if_it_cancels_itself():
    async def protected():
        with protect_worker():
            raise asyncio.CancelledError

    with pytest.raises(JobFailed):
        asyncio.run(protected())


def test_an_attempt_is_interrupted_when_its_worker_stops():
    async def protected():
        with protect_worker():
            await asyncio.sleep(60)

    async def cancel_it():
        attempt = asyncio.ensure_future(protected())
        await asyncio.sleep(0)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt

    asyncio.run(cancel_it())
