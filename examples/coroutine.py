"""Retry coroutine functions, decorated or not.

Six calls of a decorated function run concurrently. While one waits for its next
attempt, the others go on; each has its own state.

Prints::

    fetch(0) succeeded at attempt 1
    fetch(1) succeeded at attempt 2
    fetch(2) succeeded at attempt 3
    fetch(3) succeeded at attempt 1
    fetch(4) succeeded at attempt 2
    fetch(5) succeeded at attempt 3
    fetch(1) with one attempt: ConnectionResetError('page 1')
    download() under the same policy: 12 bytes
"""

import asyncio

from retrykit import Policy, aretry, current_state, with_policy
from retrykit.schedules import exponential

QUICK = Policy(
    schedule=exponential("5ms").full_jitter(), max_attempts=3, on=ConnectionError
)


@aretry(QUICK)
async def fetch(page: int) -> str:
    """Succeed at the first, second or third attempt, depending on the page."""
    attempt = current_state().attempt
    await asyncio.sleep(0.001)
    if attempt <= page % 3:
        msg = f"page {page}"
        raise ConnectionResetError(msg)
    return f"fetch({page}) succeeded at attempt {attempt}"


async def download(url: str) -> bytes:
    """Stand in for a coroutine function of another library."""
    return url.encode()


async def main() -> None:
    """Call both functions."""
    for line in await asyncio.gather(*map(fetch, range(6))):
        print(line)

    # The same function under another policy; fetch itself is unchanged.
    fetch_once = with_policy(fetch, max_attempts=1)
    try:
        await fetch_once(1)
    except ConnectionResetError as error:
        print(f"fetch(1) with one attempt: {error!r}")

    data = await QUICK.acall(download, "http://a.b/c")
    print(f"download() under the same policy: {len(data)} bytes")


if __name__ == "__main__":
    asyncio.run(main())
