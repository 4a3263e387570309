"""Retry a block of code, sync and async.

Each iteration of the loop is one attempt. A block passes its result to `set_result`,
so that `on_result` of the policy can reject it, which counts as a failure.

Prints::

    attempt 1: the job is queued
    attempt 2: the job is running
    attempt 3: the job is done
    attempt 1: connection reset
    attempt 2: got the page, after (ConnectionResetError(),)
"""

import asyncio

from retrykit import Policy, aretrying, retrying
from retrykit.schedules import constant


def wait_for_job() -> None:
    """Poll the status of a job until it is done."""
    statuses = iter(["queued", "running", "done"])
    until_done = Policy(
        schedule=constant("5ms"), on_result=lambda status: status != "done"
    )
    for attempt in retrying(until_done):
        with attempt:
            status = next(statuses)
            attempt.set_result(status)
            print(f"attempt {attempt.number}: the job is {status}")


async def read_page() -> None:
    """Read a page at the second attempt; other tasks run meanwhile."""
    resets = Policy(schedule=constant("5ms"), on=ConnectionError)
    async for attempt in aretrying(resets):
        with attempt:
            await asyncio.sleep(0.001)
            if attempt.number == 1:
                print("attempt 1: connection reset")
                raise ConnectionResetError
            print(
                f"attempt {attempt.number}: got the page, after {attempt.state.errors}"
            )


def main() -> None:
    """Run both."""
    wait_for_job()
    asyncio.run(read_page())


if __name__ == "__main__":
    main()
