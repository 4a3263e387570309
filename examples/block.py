"""Retry a few lines that are no function of their own.

One turn of the loop is one attempt. Where the policy asks about results, the
block names its own with `set_result`: one that is refused is a failed attempt.

Prints::

    attempt 1: the job is queued
    attempt 2: the job is running
    attempt 3: the job is done
    attempt 1: no page, the line was cut
    attempt 2: the page, after (ConnectionResetError(),)
"""

import asyncio

from retrykit import Policy, aretrying, retrying
from retrykit.schedules import constant


def wait_for_the_job() -> None:
    """Ask again until the job is done."""
    answers = iter(["queued", "running", "done"])
    until_done = Policy(
        schedule=constant("5ms"), on_result=lambda status: status != "done"
    )
    for attempt in retrying(until_done):
        with attempt:
            status = next(answers)
            attempt.set_result(status)
            print(f"attempt {attempt.number}: the job is {status}")


async def read_the_page() -> None:
    """Read a page that comes at the second attempt; other tasks run meanwhile."""
    resets = Policy(schedule=constant("5ms"), on=ConnectionError)
    async for attempt in aretrying(resets):
        with attempt:
            await asyncio.sleep(0.001)
            if attempt.number == 1:
                print("attempt 1: no page, the line was cut")
                raise ConnectionResetError
            print(f"attempt {attempt.number}: the page, after {attempt.state.errors}")


def main() -> None:
    """Run both."""
    wait_for_the_job()
    asyncio.run(read_the_page())


if __name__ == "__main__":
    main()
