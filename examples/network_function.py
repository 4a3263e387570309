"""Decorate a function that uses the network, and log its retries.

The server hangs up twice before it answers. The caller of `ask` gets the answer, and
the log shows the retries and the success.

Prints::

    WARNING retrying ask in 10 ms after ConnectionResetError: hung up (attempt 2 of 4)
    WARNING retrying ask in 20 ms after ConnectionResetError: hung up (attempt 3 of 4)
    INFO ask succeeded after 3 attempts in ...
    The answer is 42.
"""

import logging
import socket
import sys
from threading import Thread

from retrykit import retry
from retrykit.integrations.logging import observer
from retrykit.schedules import exponential


@retry(
    on=ConnectionError,
    schedule=exponential("10ms"),
    max_attempts=4,
    observers=[observer()],
)
def ask(address: tuple[str, int], question: str) -> str:
    """Send a question, and return the answer."""
    with socket.create_connection(address, timeout=5) as connection:
        connection.sendall(f"{question}\n".encode())
        with connection.makefile() as lines:
            answer = lines.readline()
    if not answer:
        msg = "hung up"
        raise ConnectionResetError(msg)
    return answer.strip()


def hang_up_twice(listener: socket.socket) -> None:
    """Answer the third connection only."""
    for answer in (b"", b"", b"42\n"):
        connection, _ = listener.accept()
        with connection:
            connection.recv(1024)
            connection.sendall(answer)


def main() -> None:
    """Start the server, and ask it."""
    logging.basicConfig(
        format="%(levelname)s %(message)s", level=logging.INFO, stream=sys.stdout
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Thread(target=hang_up_twice, args=[listener])
        server.start()
        print(f"The answer is {ask(listener.getsockname(), 'six times seven')}.")
        server.join()


if __name__ == "__main__":
    main()
