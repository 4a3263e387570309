"""Rows of a real server that hangs up in between; each is handed out once.

The server hangs up behind every third row. The next attempt asks for the rows behind
the last one, and so the limit of two attempts is never reached: it counts failures in
a row.

Prints::

    row 1, row 2, row 3, row 4, row 5, row 6, row 7, row 8
    The server saw requests for the rows from 1, 4, 7.
    3 attempts, 8 items, 2 errors
"""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import closing
from socket import create_connection

from retrykit import retry, streams

ROWS = 8
FROM: list[int] = []


class Table(socketserver.StreamRequestHandler):
    """Sends rows from a number on, and hangs up behind three of them."""

    def handle(self) -> None:
        """Answer one request."""
        first = int(self.rfile.readline())
        FROM.append(first)
        for number in range(first, min(first + 3, ROWS + 1)):
            self.wfile.write(f"row {number}\n".encode())
        if first + 3 > ROWS:
            self.wfile.write(b"end\n")


def behind(last_row: str, _state: object) -> dict[str, int]:
    """Return the arguments that continue behind a row."""
    return {"first": int(last_row.removeprefix("row ")) + 1}


@retry(
    stream=streams.resume(behind), on=ConnectionError, schedule=["10ms"], max_attempts=2
)
def rows(port: int, first: int = 1) -> Iterator[str]:
    """Yield the rows of the server, from a number on."""
    with closing(create_connection(("127.0.0.1", port))) as connection:
        connection.sendall(f"{first}\n".encode())
        for line in connection.makefile():
            if line == "end\n":
                return
            yield line.strip()
    # The server has hung up.
    raise ConnectionError


def main() -> None:
    """Read all rows."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Table) as server:
        threading.Thread(target=server.serve_forever, args=[0.01]).start()
        stream = rows(server.server_address[1])
        print(*stream, sep=", ")
        server.shutdown()
    state = stream.state
    items = 0 if state.stream is None else state.stream.items
    print(f"The server saw requests for the rows from {', '.join(map(str, FROM))}.")
    print(f"{state.attempt} attempts, {items} items, {len(state.errors)} errors")


if __name__ == "__main__":
    main()
