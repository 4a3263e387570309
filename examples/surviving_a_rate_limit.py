"""A client that survives a rate limit: it comes back when the service says so.

The service takes two requests in a second, and answers others with 429 and
``Retry-After: 1``. The transport of httpx waits for as long as it is asked to, in
a thread and in tasks; the code that fetches knows nothing of it. Where a day is
asked for, the answer comes back at once, and its state says why. Time is virtual,
so nothing is really waited for.

Prints::

    One after another
      page 0: 200 OK, succeeded after 1 attempt in 0s
      page 1: 200 OK, succeeded after 1 attempt in 0s
      page 2: 200 OK, succeeded after 2 attempts in 1s
      page 3: 200 OK, succeeded after 1 attempt in 0s
    Four tasks at once
      attempts: [1, 1, 2, 2]
      one of them: HTTP/1.1 429, asked to wait 1.0 s, waited 1.0 s
    A service that is closed for today
      429 Too Many Requests, gave up after 1 attempt in 0s: it was asked to wait ...
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

PATIENT = policy(schedule=["250ms"] * 8, max_elapsed="1m", name="fetch")


def one_after_another(url: str) -> None:
    """Fetch four pages in this thread."""
    with httpx.Client(transport=RetryTransport(PATIENT), trust_env=False) as client:
        for page in range(4):
            print(f"  page {page}:", told(client.get(f"{url}/{page}")))


async def at_once(url: str) -> None:
    """Fetch four pages in tasks of one client."""
    transport = AsyncRetryTransport(PATIENT)
    async with httpx.AsyncClient(transport=transport, trust_env=False) as client:
        pages = (client.get(f"{url}/{page}") for page in range(4))
        states = [history(page) for page in await asyncio.gather(*pages)]
    print("  attempts:", sorted(state.attempt for state in states))
    late = next(state for state in states if state.failures)
    for failure in late.failures:
        answer = failure.result
        assert isinstance(answer, httpx.Response)
        print(
            f"  one of them: {answer.http_version} {answer.status_code}, asked to "
            f"wait {failure.hint} s, waited {failure.delay} s"
        )


def history(response: httpx.Response) -> RetryState:
    """Return the state that every response of the transport has."""
    state = state_of(response)
    assert state is not None
    return state


def told(response: httpx.Response) -> str:
    """Return what came of a request, in a line."""
    status = f"{response.status_code} {response.reason_phrase}"
    return f"{status}, {history(response).describe()}"


@contextmanager
def service(now: Callable[[], float], wait: int = 1) -> Iterator[str]:
    """Serve two requests in each second, and give the URL."""
    taken: Counter[int] = Counter()
    lock = Lock()

    class Limited(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            with lock:
                second = int(now())
                taken[second] += 1
                free = taken[second] <= 2 and wait == 1
            self.send_response(200 if free else 429)
            if not free:
                self.send_header("Retry-After", str(wait))
            self.send_header("Content-Length", "0")
            self.send_header("Connection", "close")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Limited) as server:
        Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def main() -> None:
    """Run all three."""
    print("One after another")
    with virtual_time() as clock, service(clock.now) as url:
        one_after_another(url)
    print("Four tasks at once")
    with virtual_time() as clock, service(clock.now) as url:
        asyncio.run(at_once(url))
    print("A service that is closed for today")
    client = httpx.Client(transport=RetryTransport(PATIENT), trust_env=False)
    with virtual_time() as clock, service(clock.now, wait=86_400) as url, client:
        print(" ", told(client.get(url)))


if __name__ == "__main__":
    main()
