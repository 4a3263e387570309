"""Retry coroutine functions: one's own, and those of somebody else.

Six calls of one decorated function run side by side. While one of them waits
for its next attempt the others go on, and none sees the failures of another.

Prints::

    fetch(0) came through at attempt 1
    fetch(1) came through at attempt 2
    fetch(2) came through at attempt 3
    fetch(3) came through at attempt 1
    fetch(4) came through at attempt 2
    fetch(5) came through at attempt 3
    fetch(1) in one attempt: ConnectionResetError('page 1')
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
    """Return a page that comes at its first, second or third attempt."""
    attempt = current_state().attempt
    await asyncio.sleep(0.001)
    if attempt <= page % 3:
        msg = f"page {page}"
        raise ConnectionResetError(msg)
    return f"fetch({page}) came through at attempt {attempt}"


async def download(url: str) -> bytes:
    """Stand for a coroutine function that is not ours to decorate."""
    return url.encode()


async def main() -> None:
    """Await them."""
    for line in await asyncio.gather(*map(fetch, range(6))):
        print(line)

    # The same function under another policy; fetch itself stays as it is.
    fetch_once = with_policy(fetch, max_attempts=1)
    try:
        await fetch_once(1)
    except ConnectionResetError as error:
        print(f"fetch(1) in one attempt: {error!r}")

    data = await QUICK.acall(download, "http://a.b/c")
    print(f"download() under the same policy: {len(data)} bytes")


if __name__ == "__main__":
    asyncio.run(main())
