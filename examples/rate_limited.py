"""Wait as long as a server asks with ``Retry-After``, within a limit.

A real HTTP server answers 429 with ``Retry-After``, in seconds and as a date, and 503
once. The policy has a rule for each of the two errors, a hint that reads the header,
and a cap for the hint. Each wait is up to a tenth longer than the hint, so that the
clients of the server do not all return at once. Time is virtual, so nothing waits.

Prints::

    A server that is busy for some seconds
      HTTP Error 429: Too Many Requests; hint: 0 s, delay: 1 s
      HTTP Error 429: Too Many Requests; hint: 3 s, delay: 3.19 s
      HTTP Error 429: Too Many Requests; hint: 5 s, delay: 5.21 s
      HTTP Error 429: Too Many Requests; hint: -, delay: 4 s
      HTTP Error 503: Service Unavailable; hint: -, delay: 0.25 s
      succeeded after 6 attempts in 13.6 s
    A server that asks to wait for a day
      HTTP Error 429: Too Many Requests; hint: 86400 s, delay: -
      gave up after 1 attempt in 0 s: it was asked to wait 1 d, longer than hint_cap=1m
"""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

from retrykit import Policy, Rule
from retrykit.hints import retry_after
from retrykit.testing import virtual_time

Response = tuple[int, dict[str, str]]

# The clock of the server is wrong, so Retry-After counts from its own Date.
DATES = {
    "Date": "Thu, 01 Jan 1970 00:00:00 GMT",
    "Retry-After": "Thu, 01 Jan 1970 00:00:05 GMT",
}
BUSY: list[Response] = [
    (429, {"Retry-After": "0"}),
    (429, {"Retry-After": "3"}),
    (429, DATES),
    (429, {}),
    (503, {}),
    (200, {}),
]
BUSY_FOR_A_DAY: list[Response] = [(429, {"Retry-After": "86400"})]


def is_rate_limited(error: Exception) -> bool:
    """Return whether the status is 429."""
    return isinstance(error, HTTPError) and error.code == 429


def is_server_error(error: Exception) -> bool:
    """Return whether the status is that of a transient server error."""
    return isinstance(error, HTTPError) and error.code in {500, 502, 503, 504}


POLICY = Policy(
    rules=[
        Rule(on=is_rate_limited, schedule=[1, 1, 2, 4]),
        Rule(on=is_server_error, schedule=["250ms"], max_attempts=2),
    ],
    on=ConnectionError,
    max_attempts=8,
    hint=retry_after(),
    hint_cap="1m",
    seed=7,  # the same waits each time
)


def fetch(port: int) -> str:
    """Return the response of the server."""
    # A proxy of the environment could not reach the server.
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{port}/", timeout=5) as response:
            body: bytes = response.read()
            return body.decode()
    except HTTPError as error:
        error.close()
        raise


@contextmanager
def serve(responses: list[Response]) -> Iterator[int]:
    """Send these responses, one after the other, on a free port."""
    remaining = iter(responses)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers = next(remaining)
            self.send_response_only(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"hello")

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=[0.01]).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


def format_seconds(duration: float | None) -> str:
    """Format a duration; None is a dash."""
    return "-" if duration is None else f"{round(duration, 2):g} s"


def show(responses: list[Response]) -> None:
    """Call a server that sends these responses, and print the history."""
    with serve(responses) as port, virtual_time():
        outcome = POLICY.run(fetch, port)
    for failure in outcome.state.failures:
        hint, delay = format_seconds(failure.hint), format_seconds(failure.delay)
        print(f"  {failure.error}; hint: {hint}, delay: {delay}")
    print(f"  {outcome.state.describe()}")


def main() -> None:
    """Call two servers."""
    print("A server that is busy for some seconds")
    show(BUSY)
    print("A server that asks to wait for a day")
    show(BUSY_FOR_A_DAY)


if __name__ == "__main__":
    main()
