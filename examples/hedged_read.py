"""A read that is sent again when a real server is slow; the quicker answer counts.

The second request hangs. After 250 ms another one is sent, and its answer is taken; the
first one is cancelled, which the server notices. The fourth request takes half a
second, but nothing is sent again: a tenth more load is allowed, besides one hedge each
ten seconds, and that one is used up.

Prints::

    read 1: answer to request 1
    no answer yet: send 2 of this attempt
    read 2: answer to request 3
    read 3: answer to request 4
    The server saw 4 requests. The client hung up on request 2.
"""

import asyncio

from retrykit import Hedge, aretry
from retrykit.events import Event, HedgeStarted


class Server:
    """Answers with the number of the request; the second one hangs, the fourth is late.

    Attributes:
        requests: How many requests it has received.
        abandoned: The requests whose clients hung up.
    """

    def __init__(self) -> None:
        self.requests = 0
        self.abandoned: list[int] = []

    async def answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer the request of a connection."""
        await reader.readline()
        self.requests += 1
        number = self.requests
        if number == 2:
            # Until the client hangs up.
            await reader.read()
            self.abandoned.append(number)
        elif number == 4:
            await asyncio.sleep(0.5)
        writer.write(f"answer to request {number}\n".encode())
        writer.close()


def print_hedge(event: Event) -> None:
    """Print that a read is sent again; an observer."""
    if isinstance(event, HedgeStarted):
        print(f"no answer yet: send {event.number} of this attempt")


@aretry(hedge=Hedge("250ms", extra=0.1, idempotent=True), observers=[print_hedge])
async def read(port: int) -> str:
    """Return the answer of the server."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"read\n")
        return (await reader.readline()).decode().strip()
    finally:
        writer.close()


async def main() -> None:
    """Read three times."""
    server = Server()
    async with await asyncio.start_server(server.answer, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        for number in range(1, 4):
            print(f"read {number}: {await read(port)}")
    hung_up = ", ".join(map(str, server.abandoned))
    print(
        f"The server saw {server.requests} requests. "
        f"The client hung up on request {hung_up}."
    )


if __name__ == "__main__":
    asyncio.run(main())
