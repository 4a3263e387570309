"""What a transport costs where nothing fails: ``python -m benchmarks.http``.

Each client, bare and with what retries around it, sends requests to something in
its own process that answers at once, which shows the cost itself, and to a server
on loopback, in another process, beside which it has to be seen.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from time import perf_counter
from timeit import Timer
from typing import Any, NamedTuple, final

from benchmarks.calls import Lap, best
from benchmarks.contenders import importable
from benchmarks.faulty import Faulty
from benchmarks.table import machine, markdown, versions
from benchmarks.ways import SUBJECTS, Fetch, Subject, Way

__all__ = ["Cost", "costs", "proven"]

_NOTES = """\
Times are microseconds for each request, the best of {rounds} laps, run in turns; in
brackets is how much more that is than the bare client takes, and how many times.
"At once" is answered in the process itself. Before, every way but the bare one has
been shown to send again what failed.
"""


@final
class Cost(NamedTuple):
    """What a request costs.

    Attributes:
        client: Of whom.
        way: What is around it.
        at_once: Where it is answered in the process itself, in seconds.
        loopback: Where a server answers, in seconds.
    """

    client: str
    way: str
    at_once: float
    loopback: float


def costs(subject: Subject, url: str, rounds: int) -> list[Cost]:
    """Return what the ways of a client cost, the bare one first.

    Args:
        subject: The client.
        url: Where a server is that never fails.
        rounds: How many laps each of them runs. Count, >= 1.
    """
    ways = _ways(subject)
    at_once, loopback = (_measured(subject, ways, to, rounds) for to in ("", url))
    return [
        Cost(subject.name, subject.called(way), *times)
        for way, *times in zip(ways, at_once, loopback, strict=True)
    ]


def proven(subject: Subject, server: Faulty) -> None:
    """Check that each way sends again what failed, but for the bare one.

    Args:
        subject: The client.
        server: Fails every second request.

    Raises:
        RuntimeError: One does not.
    """
    for way in _ways(subject):
        before = server.counts()
        with asyncio.Runner() as runner:
            passed = runner.run(_passes(subject, way, server.url))
        if server.counts().faults == before.faults or passed is (way is Way.BARE):
            told = "send once" if way is Way.BARE else "send again"
            msg = f"{subject.name}, {subject.called(way)} must {told} what failed"
            raise RuntimeError(msg)


def _ways(subject: Subject) -> list[Way]:
    peer = bool(subject.peer) and importable(subject.needs)
    return [way for way in Way if way is not Way.PEER or peer]


async def _passes(subject: Subject, way: Way, url: str) -> bool:
    """Return whether three requests give good answers; one of them fails first."""
    async with AsyncExitStack() as stack:
        fetch = await _opened(stack, subject, way, url)
        for _ in range(3):
            try:
                response = await fetch() if subject.aopen else fetch()
            except Exception:  # noqa: BLE001  whatever the client says of it
                return False
            status = getattr(response, "status_code", None) or response.status
            if status != 200:  # noqa: PLR2004  OK
                return False
    return True


async def _opened(stack: AsyncExitStack, subject: Subject, way: Way, url: str) -> Fetch:
    if subject.aopen is not None:
        return await stack.enter_async_context(subject.aopen(way, url))
    assert subject.open is not None  # noqa: S101  it has one of the two
    return stack.enter_context(subject.open(way, url))


def _measured(subject: Subject, ways: list[Way], url: str, rounds: int) -> list[float]:
    """Return the seconds for a request in each way, measured in turns."""
    # One loop for all: to it their connections belong.
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        fetches = [runner.run(_opened(stack, subject, way, url)) for way in ways]
        made = _alap(runner) if subject.aopen else _lap
        times = best([made(fetch) for fetch in fetches], rounds)
        runner.run(stack.aclose())
    return times


def _lap(fetch: Fetch) -> Lap:
    return Timer(fetch).timeit


def _alap(runner: asyncio.Runner) -> Callable[[Fetch], Lap]:
    async def fetched(fetch: Callable[[], Any], number: int) -> float:
        start = perf_counter()
        for _ in range(number):
            await fetch()
        return perf_counter() - start

    return lambda fetch: lambda number: runner.run(fetched(fetch, number))


def _row(cost: Cost, bare: Cost) -> list[str]:
    cells = [
        f"{time * 1e6:,.1f}"
        if cost is bare
        else f"{time * 1e6:,.1f} ({(time - than) * 1e6:+.1f}, {time / than:.2f})"
        for time, than in zip(cost[2:], bare[2:], strict=True)
    ]
    return [cost.client, cost.way, *cells]


def main() -> None:
    """Print a line for each way of each client."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http")
    parser.add_argument("--rounds", type=int, default=15, help="laps of each (15)")
    rounds = parser.parse_args().rounds
    subjects = [each for each in SUBJECTS if importable(each.module)]
    if importable("grpc"):
        # Imported here: who measures HTTP may not have it.
        from benchmarks.ways_of_grpc import GRPC  # noqa: PLC0415  see above

        subjects += GRPC
    for subject in subjects:
        print(f"proving that {subject.name} is sent again", file=sys.stderr)
        with Faulty(every=2, module=subject.server) as server:
            proven(subject, server)
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
