"""Respect a rate limit: retry when the service says so.

The service accepts two requests per second, and answers all others with 429 and
``Retry-After: 1``. The transport for httpx waits for as long as the header says and up
to a tenth longer, in a thread and in tasks, without any change to the code that sends
the requests. If the header asks for a day, the response is returned at once, and its
state says why. Time is virtual, so the example does not really wait.

Prints::

    One after another
      page 0: 200 OK, succeeded after 1 attempt in 0 s
      page 1: 200 OK, succeeded after 1 attempt in 0 s
      page 2: 200 OK, succeeded after 2 attempts in 1.05 s
      page 3: 200 OK, succeeded after 1 attempt in 0 s
    Four tasks at once
      attempts: [1, 1, 2, 2]
      one of them: HTTP/1.1 429, asked to wait 1.0 s, waited 1.05 s
    A service that is closed for today
      429 Too Many Requests, gave up after 1 attempt in 0 s: it was asked to wait ...
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

import httpx

from retrykit import RetryState, state_of
from retrykit.integrations.httpx import AsyncRetryTransport, RetryTransport, policy
from retrykit.testing import virtual_time

PATIENT = policy(schedule=["250ms"] * 8, max_elapsed="1m", name="fetch", seed=7)


def one_after_another(url: str) -> None:
    """Fetch four pages in this thread."""
    with httpx.Client(transport=RetryTransport(PATIENT), trust_env=False) as client:
        for page in range(4):
            print(f"  page {page}:", summarize(client.get(f"{url}/{page}")))


async def at_once(url: str) -> None:
    """Fetch four pages in concurrent tasks, with one client."""
    transport = AsyncRetryTransport(PATIENT)
    async with httpx.AsyncClient(transport=transport, trust_env=False) as client:
        pages = (client.get(f"{url}/{page}") for page in range(4))
        states = [history(page) for page in await asyncio.gather(*pages)]
    print("  attempts:", sorted(state.attempt for state in states))
    retried = next(state for state in states if state.failures)
    for failure in retried.failures:
        response = failure.result
        assert isinstance(response, httpx.Response)
        print(
            f"  one of them: {response.http_version} {response.status_code}, asked to "
            f"wait {failure.hint} s, waited {failure.delay:.2f} s"
        )


def history(response: httpx.Response) -> RetryState:
    """Return the state of a response; every response of the transport has one."""
    state = state_of(response)
    assert state is not None
    return state


def summarize(response: httpx.Response) -> str:
    """Return the outcome of a request, as a line of text."""
    status = f"{response.status_code} {response.reason_phrase}"
    return f"{status}, {history(response).describe()}"


@contextmanager
def serve(
    now: Callable[[], float], limit: int = 2, retry_after: int = 1
) -> Iterator[str]:
    """Serve up to *limit* requests per second of the clock, and yield the URL."""
    requests: Counter[int] = Counter()
    lock = Lock()

    class Limited(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            with lock:
                second = int(now())
                requests[second] += 1
                ok = requests[second] <= limit
            self.send_response(200 if ok else 429)
            if not ok:
                self.send_header("Retry-After", str(retry_after))
            self.send_header("Content-Length", "0")
            self.send_header("Connection", "close")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Keep requests out of the output."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Limited) as server:
        Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def main() -> None:
    """Run the three examples."""
    print("One after another")
    with virtual_time() as clock, serve(clock.now) as url:
        one_after_another(url)
    print("Four tasks at once")
    with virtual_time() as clock, serve(clock.now) as url:
        asyncio.run(at_once(url))
    print("A service that is closed for today")
    client = httpx.Client(transport=RetryTransport(PATIENT), trust_env=False)
    with virtual_time() as clock, serve(clock.now, 0, 86_400) as url, client:
        print(" ", summarize(client.get(url)))


if __name__ == "__main__":
    main()
