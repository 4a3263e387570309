"""Times of single calls: the best of many short laps.

In each round, every contender runs one lap, so that a busy moment of the machine
affects all of them alike. The best lap counts, since noise only makes a lap slower.
pyperf would measure one contender after the other, which distorts their ratios.
"""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from contextlib import nullcontext
from itertools import cycle, repeat
from time import perf_counter
from timeit import Timer
from typing import Any, NamedTuple, final

from benchmarks.contenders import USUAL, Contender
from benchmarks.proofs import FAILURES, aflaky, flaky

__all__ = ["Lap", "Row", "best", "measure"]

_LAP = 0.02
"""Duration of a lap, in seconds."""

Lap = Callable[[int], float]
"""Makes a number of calls, and returns the seconds that they took."""


@final
class Row(NamedTuple):
    """One row of the table.

    Attributes:
        title: Its title.
        figures: A number for each contender, in order.
        unit: The unit of the numbers.
    """

    title: str
    figures: list[float]
    unit: str


def measure(contenders: list[Contender], rounds: int, *titles: str) -> Iterator[Row]:
    """Yield the rows about calls, in nanoseconds per call.

    Args:
        contenders: The libraries to measure.
        rounds: Laps of each of them for each row. Count, >= 1.
        *titles: The rows to measure; all by default.
    """
    rows: list[tuple[str, Callable[[Contender], Lap], bool]] = [
        ("function, success", _function, False),
        ("method, success", _method, False),
        ("async function, success", _afunction, False),
        ("async method, success", _amethod, False),
        ("function, three failures, then success", _failing, True),
        ("async function, three failures, then success", _afailing, True),
    ]
    for title, prepare, stubbed in rows:
        if titles and title not in titles:
            continue
        laps = [prepare(contender) for contender in contenders]
        stubs = [c.stub if stubbed else nullcontext for c in contenders]
        fastest = best(laps, rounds, stubs)
        yield Row(title, [lap * 1e9 for lap in fastest], "ns")


def best(
    laps: list[Lap], rounds: int, stubs: list[Callable[..., Any]] | None = None
) -> list[float]:
    """Return the seconds per call of each one's best lap.

    Args:
        laps: The laps to run, in turns.
        rounds: Laps of each of them. Count, >= 1.
        stubs: For each of them, a context manager that replaces sleeping.
    """
    runners = list(zip(laps, stubs or [nullcontext] * len(laps), strict=True))
    sizes = []
    for lap, stub in runners:
        with stub(_no_sleep):
            lap(200)
            sizes.append(max(1, int(_LAP / (lap(200) / 200))))
    fastest = [float("inf")] * len(runners)
    for _ in range(rounds):
        for index, (lap, stub) in enumerate(runners):
            gc.collect()
            with stub(_no_sleep):
                taken = lap(sizes[index]) / sizes[index]
            fastest[index] = min(fastest[index], taken)
    return fastest


def _no_sleep(_delay: float) -> None:
    """Return at once."""


def _lap(call: str, **names: object) -> Lap:
    return Timer(call, globals=names).timeit


def _alap(run: Callable[[int], Coroutine[Any, Any, float]]) -> Lap:
    def lap(number: int) -> float:
        # As timeit does, so that no lap pays for the garbage of another.
        gc.disable()
        try:
            return asyncio.run(run(number))
        finally:
            gc.enable()

    return lap


def _awaiting(fetch: Callable[[int], Any]) -> Lap:
    async def run(number: int) -> float:
        calls = repeat(None, number)
        start = perf_counter()
        for _ in calls:
            await fetch(1)
        return perf_counter() - start

    return _alap(run)


def _function(contender: Contender) -> Lap:
    @contender.make(USUAL)
    def fetch(number: int) -> int:
        return number

    return _lap("fetch(1)", fetch=fetch)


def _method(contender: Contender) -> Lap:
    class Client:
        @contender.make(USUAL)
        def fetch(self, number: int) -> int:
            return number

    return _lap("client.fetch(1)", client=Client())


def _afunction(contender: Contender) -> Lap:
    @contender.amake(USUAL)
    async def fetch(number: int) -> int:
        return number

    return _awaiting(fetch)


def _amethod(contender: Contender) -> Lap:
    class Client:
        @contender.amake(USUAL)
        async def fetch(self, number: int) -> int:
            return number

    client = Client()

    async def run(number: int) -> float:
        calls = repeat(None, number)
        start = perf_counter()
        for _ in calls:
            await client.fetch(1)
        return perf_counter() - start

    return _alap(run)


def _failing(contender: Contender) -> Lap:
    return _lap("fetch(1)", fetch=contender.make(USUAL)(flaky(_fails())))


def _afailing(contender: Contender) -> Lap:
    return _awaiting(contender.amake(USUAL)(aflaky(_fails())))


def _fails() -> Iterator[bool]:
    return cycle([True] * FAILURES + [False])
