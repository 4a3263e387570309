"""Cost of retries in HTTP clients: ``python -m benchmarks.http``.

Each client, bare and with retries, sends requests to a stub in the same process, which
shows the cost alone, and to a server on loopback, for comparison. The main benchmark
has a table of the stub alone, which also fails.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from itertools import cycle
from time import perf_counter, thread_time
from timeit import Timer
from typing import Any, NamedTuple, final

from benchmarks.calls import Lap, best
from benchmarks.contenders import RETRYKIT, importable
from benchmarks.faulty import Faulty
from benchmarks.table import machine, markdown, number, versions
from benchmarks.ways import SUBJECTS, Fetch, Subject, Way

__all__ = ["LIBRARIES", "Cost", "costs", "prove", "table"]

LIBRARIES = ["httpx", "httpx-retries", "requests", "urllib3", "aiohttp"]
LIBRARIES += ["aiohttp-retry", "prometheus-client"]
"""The distributions that the tables need besides those of the contenders."""

_OK, _BUSY = 200, 503

_NOTES = """\
Times are microseconds per request, the best of {rounds} laps, run in turns; brackets
show the difference to the bare client, and the multiple of it. "At once" is answered in
the same process. Every way but the bare one was first checked to retry.
"""


@final
class Cost(NamedTuple):
    """The time of a request.

    Attributes:
        client: The name of the client.
        way: How it retries.
        at_once: Answered in the same process, in seconds.
        loopback: Answered by a server, in seconds.
    """

    client: str
    way: str
    at_once: float
    loopback: float


def costs(subject: Subject, url: str, rounds: int) -> list[Cost]:
    """Return the costs of a client in each way, the bare one first.

    Args:
        subject: The client.
        url: The URL of a server that never fails.
        rounds: Laps of each way. Count, >= 1.
    """
    ways = _ways(subject)
    at_once, loopback = (_measure(subject, ways, rounds, to, [_OK]) for to in ("", url))
    return [
        Cost(subject.name, subject.title(way), *times)
        for way, *times in zip(ways, at_once, loopback, strict=True)
    ]


def table(rounds: int) -> str:
    """Return the table of clients that are answered at once, in microseconds.

    Args:
        rounds: Laps of each way. Count, >= 1.
    """
    rows = []
    for subject in SUBJECTS:
        ways = _ways(subject)
        ways.remove(Way.DECORATED)
        for title, statuses in (("success", [_OK]), ("503, success", [_BUSY, _OK])):
            times = _measure(subject, ways, rounds, "", statuses)
            # Nobody repeats a request of the bare client.
            times[0] *= len(statuses)
            cells = [f"{number(x * 1e6)} ({x / times[0]:.2f})" for x in times]
            rows.append([subject.name, title, subject.peer, *cells])
    heads = ["client (µs)", "", "other", "bare", "retrykit", "the other"]
    return markdown(heads, rows, words=3)


def prove(subject: Subject, server: Faulty) -> None:
    """Check that each way but the bare one retries.

    Args:
        subject: The client.
        server: A server that fails every second request.

    Raises:
        RuntimeError: One does not.
    """
    for way in _ways(subject):
        before = server.counts()
        with asyncio.Runner() as runner:
            passed = runner.run(_succeeds(subject, way, server.url))
        if server.counts().faults == before.faults or passed is (way is Way.BARE):
            rule = "not retry" if way is Way.BARE else "retry"
            msg = f"{subject.name}, {subject.title(way)} must {rule}"
            raise RuntimeError(msg)


def _ways(subject: Subject) -> list[Way]:
    peer = bool(subject.peer) and importable(subject.needs)
    return [way for way in Way if way is not Way.PEER or peer]


async def _succeeds(subject: Subject, way: Way, url: str) -> bool:
    """Return whether three requests succeed, of which the server fails at least one."""
    async with AsyncExitStack() as stack:
        fetch = await _open(stack, subject, way, url, [_OK])
        for _ in range(3):
            try:
                response = await fetch() if subject.aopen else fetch()
            except Exception:  # noqa: BLE001  errors differ by client
                return False
            status = getattr(response, "status_code", None) or response.status
            if status != _OK:
                return False
    return True


async def _open(
    stack: AsyncExitStack, subject: Subject, way: Way, url: str, statuses: list[int]
) -> Fetch:
    answers = cycle(statuses)
    if subject.aopen is not None:
        return await stack.enter_async_context(subject.aopen(way, url, answers))
    assert subject.open is not None  # noqa: S101  it has one of the two
    return stack.enter_context(subject.open(way, url, answers))


def _measure(
    subject: Subject, ways: list[Way], rounds: int, url: str, statuses: list[int]
) -> list[float]:
    """Return the seconds per request in each way, measured in turns."""
    timer = perf_counter if url else thread_time
    # One event loop for all, since connections belong to a loop.
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        fetches = [
            runner.run(_open(stack, subject, way, url, statuses)) for way in ways
        ]
        make_lap = _alap(runner, timer) if subject.aopen else _lap(timer)
        laps = [make_lap(fetch) for fetch in fetches]
        times = [each.best for each in best(laps, rounds, [RETRYKIT.stub] * len(laps))]
        runner.run(stack.aclose())
    return times


def _lap(timer: Callable[[], float]) -> Callable[[Fetch], Lap]:
    return lambda fetch: Timer(fetch, timer=timer).timeit


def _alap(runner: asyncio.Runner, timer: Callable[[], float]) -> Callable[[Fetch], Lap]:
    async def run(fetch: Callable[[], Any], number: int) -> float:
        start = timer()
        for _ in range(number):
            await fetch()
        return timer() - start

    return lambda fetch: lambda number: runner.run(run(fetch, number))


def _row(cost: Cost, bare: Cost) -> list[str]:
    cells = [
        f"{time * 1e6:,.1f}"
        if cost is bare
        else f"{time * 1e6:,.1f} ({(time - base) * 1e6:+.1f}, {time / base:.2f})"
        for time, base in zip(cost[2:], bare[2:], strict=True)
    ]
    return [cost.client, cost.way, *cells]


def main() -> None:
    """Print a line for each way of each client."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http")
    parser.add_argument("--rounds", type=int, default=15, help="laps of each way (15)")
    rounds = parser.parse_args().rounds
    subjects = [each for each in SUBJECTS if importable(each.module)]
    if importable("grpc"):
        from benchmarks.ways_of_grpc import GRPC  # noqa: PLC0415  may be missing

        subjects += GRPC
    for subject in subjects:
        print(f"checking that {subject.name} retries", file=sys.stderr)
        with Faulty(every=2, module=subject.server) as server:
            prove(subject, server)
    rows = []
    for subject in subjects:
        print(f"measuring {subject.name}", file=sys.stderr)
        with Faulty(module=subject.server) as server:
            bare, *others = costs(subject, server.url, rounds)
        rows += [_row(cost, bare) for cost in (bare, *others)]
    print(markdown(["client", "way", "at once (us)", "loopback (us)"], rows, 2))
    print(
        f"\n{_NOTES.format(rounds=rounds)}\n{machine()}\n\n{versions(_names(subjects))}"
    )


def _names(subjects: list[Subject]) -> list[str]:
    clients = [each.module.rpartition(".")[2] for each in subjects]
    used = [each.needs for each in subjects if Way.PEER in _ways(each)]
    peers = [name.replace("_", "-") for name in used]
    names = dict.fromkeys(["retrykit", *clients, *peers])
    return ["grpcio" if name == "grpc" else name for name in names]


if __name__ == "__main__":
    main()
