"""Wait as long as a server asks for, if that is not too long.

A real HTTP server answers 429 with ``Retry-After``, in seconds and as a date, and
is out of order for a moment. The policy has a rule for each of the two errors,
a hint that reads the header, and the longest wait that it lets itself be asked
for. Time is virtual, so nothing is waited for.

Prints::

    A server that is busy for a while
      HTTP Error 429: Too Many Requests; asked for: 0 s, waited: 1 s
      HTTP Error 429: Too Many Requests; asked for: 3 s, waited: 3 s
      HTTP Error 429: Too Many Requests; asked for: 5 s, waited: 5 s
      HTTP Error 429: Too Many Requests; asked for: -, waited: 4 s
      HTTP Error 503: Service Unavailable; asked for: -, waited: 0.25 s
      it succeeded after 6 attempts in 13.2s
    A server that is closed for today
      HTTP Error 429: Too Many Requests; asked for: 86400 s, waited: -
      it gave up after 1 attempt in 0s: it was asked to wait longer than allowed: 1d
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

Answer = tuple[int, dict[str, str]]

# Its clock is wrong, which does no harm: the date is relative to the other one.
DATES = {
    "Date": "Thu, 01 Jan 1970 00:00:00 GMT",
    "Retry-After": "Thu, 01 Jan 1970 00:00:05 GMT",
}
BUSY_FOR_A_WHILE: list[Answer] = [
    (429, {"Retry-After": "0"}),
    (429, {"Retry-After": "3"}),
    (429, DATES),
    (429, {}),
    (503, {}),
    (200, {}),
]
CLOSED_FOR_TODAY: list[Answer] = [(429, {"Retry-After": "86400"})]


def is_limited(error: Exception) -> bool:
    """Return whether there were too many requests."""
    return isinstance(error, HTTPError) and error.code == 429


def is_broken(error: Exception) -> bool:
    """Return whether the server is out of order."""
    return isinstance(error, HTTPError) and error.code in {500, 502, 503, 504}


POLICY = Policy(
    rules=[
        Rule(on=is_limited, schedule=[1, 1, 2, 4]),
        Rule(on=is_broken, schedule=["250ms"], max_attempts=2),
    ],
    on=ConnectionError,
    max_attempts=8,
    hint=retry_after(),
    hint_cap="1m",
)


def fetch(port: int) -> str:
    """Return what the server says."""
    # The server is in this process, and no proxy finds it there.
    web = build_opener(ProxyHandler({}))
    try:
        with web.open(f"http://127.0.0.1:{port}/", timeout=5) as answer:
            text: bytes = answer.read()
            return text.decode()
    except HTTPError as error:
        error.close()
        raise


@contextmanager
def server(answers: list[Answer]) -> Iterator[int]:
    """Give these answers, one after the other, on a free port."""
    left = iter(answers)

    class Request(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers = next(left)
            self.send_response_only(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"hello")

    with HTTPServer(("127.0.0.1", 0), Request) as serving:
        Thread(target=serving.serve_forever, args=[0.01]).start()
        try:
            yield serving.server_port
        finally:
            serving.shutdown()


def told(length: float | None) -> str:
    """Return a length of time as it is printed."""
    return "-" if length is None else f"{length:g} s"


def show(answers: list[Answer]) -> None:
    """Call a server that gives these answers, and print how it went."""
    with server(answers) as port, virtual_time():
        outcome = POLICY.run(fetch, port)
    for failure in outcome.state.failures:
        asked, waited = told(failure.hint), told(failure.delay)
        print(f"  {failure.error}; asked for: {asked}, waited: {waited}")
    print(f"  it {outcome.state.describe()}")


def main() -> None:
    """Call two servers."""
    print("A server that is busy for a while")
    show(BUSY_FOR_A_WHILE)
    print("A server that is closed for today")
    show(CLOSED_FOR_TODAY)


if __name__ == "__main__":
    main()
