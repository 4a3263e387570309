"""Times of single calls: the best of many short laps.

In each round, every contender runs one lap, so that a busy moment of the machine
affects all of them alike. Laps count the processor time of their thread, and the best
lap counts, since noise only makes a lap slower. pyperf would measure one contender
after the other, which distorts their ratios. Who calls has put the logs in their state.
"""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from contextlib import nullcontext, suppress
from itertools import cycle, repeat
from statistics import median
from time import thread_time
from timeit import Timer
from typing import Any, NamedTuple, final

from benchmarks.contenders import PATIENT, USUAL, Contender
from benchmarks.makers import Terms
from benchmarks.proofs import FAILURES, aflaky, flaky

__all__ = ["ROWS", "Lap", "Row", "Times", "best", "measure", "no_sleep"]

_LAP = 0.02
"""Duration of a lap, in seconds."""

Lap = Callable[[int], float]
"""Makes a number of calls, and returns the seconds that they took."""

Prepare = Callable[[Contender], Lap | None]
"""Makes the lap of a contender; None if it has no such call."""


@final
class Row(NamedTuple):
    """One row of the table.

    Attributes:
        title: Its title.
        figures: A number for each contender, in order; 0 where there is none.
        unit: The unit of the numbers.
        spread: The largest difference between the median and the best lap of a
            contender, as a fraction of the best.
    """

    title: str
    figures: list[float]
    unit: str
    spread: float = 0.0


@final
class Times(NamedTuple):
    """The laps of one contender.

    Attributes:
        best: The seconds per call of the best lap.
        spread: How much longer the median lap took, as a fraction of the best.
    """

    best: float
    spread: float


def measure(contenders: list[Contender], rounds: int, *titles: str) -> Iterator[Row]:
    """Yield the rows about calls, in microseconds per call.

    Args:
        contenders: The libraries to measure.
        rounds: Laps of each of them for each row. Count, >= 1.
        *titles: The rows to measure; all by default.
    """
    for title, prepare in ROWS.items():
        if titles and title not in titles:
            continue
        laps = {}
        for contender in contenders:
            # Some look the function that sleeps up when they decorate.
            with contender.stub(no_sleep):
                lap = prepare(contender)
            if lap is not None:
                laps[contender.name] = lap
        stubs = [c.stub for c in contenders if c.name in laps]
        times = dict(zip(laps, best([*laps.values()], rounds, stubs), strict=True))
        figures = [
            times[c.name].best * 1e6 if c.name in laps else 0 for c in contenders
        ]
        yield Row(title, figures, "us", max(each.spread for each in times.values()))


def best(
    laps: list[Lap], rounds: int, stubs: list[Callable[..., Any]] | None = None
) -> list[Times]:
    """Return the times of a call, of each contender.

    Args:
        laps: The laps to run, in turns.
        rounds: Laps of each of them. Count, >= 1.
        stubs: For each of them, a context manager that replaces sleeping.
    """
    runners = list(zip(laps, stubs or [nullcontext] * len(laps), strict=True))
    # So that a lap collects its own garbage, and not what was imported.
    gc.collect()
    gc.freeze()
    sizes = []
    for lap, stub in runners:
        with stub(no_sleep):
            lap(200)
            sizes.append(max(1, int(_LAP / (lap(200) / 200))))
    taken: list[list[float]] = [[] for _ in runners]
    for _ in range(rounds):
        for index, (lap, stub) in enumerate(runners):
            gc.collect()
            with stub(no_sleep):
                taken[index].append(lap(sizes[index]) / sizes[index])
    return [Times(min(x), median(x) / min(x) - 1) for x in taken]


def no_sleep(_delay: float) -> None:
    """Return at once."""


def _lap(call: str, **names: object) -> Lap:
    return Timer(call, timer=thread_time, globals=names).timeit


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
        start = thread_time()
        for _ in calls:
            await fetch(1)
        return thread_time() - start

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
        start = thread_time()
        for _ in calls:
            await client.fetch(1)
        return thread_time() - start

    return _alap(run)


def _failing(failures: int, terms: Terms = USUAL) -> Prepare:
    def prepare(contender: Contender) -> Lap:
        return _lap("fetch(1)", fetch=contender.make(terms)(flaky(_fails(failures))))

    return prepare


def _afailing(failures: int, terms: Terms = USUAL) -> Prepare:
    def prepare(contender: Contender) -> Lap:
        return _awaiting(contender.amake(terms)(aflaky(_fails(failures))))

    return prepare


def _giving_up(contender: Contender) -> Lap | None:
    fetch = contender.make(USUAL)(flaky(repeat(object=True)))
    call = "try:\n    fetch(1)\nexcept ConnectionError:\n    pass"
    return _lap(call, fetch=fetch) if contender.counts else None


def _agiving_up(contender: Contender) -> Lap | None:
    fetch = contender.amake(USUAL)(aflaky(repeat(object=True)))

    async def give_up(number: int) -> None:
        with suppress(ConnectionError):
            await fetch(number)

    return _awaiting(give_up) if contender.counts else None


def _way(name: str, failures: int) -> Prepare:
    def prepare(contender: Contender) -> Lap | None:
        make = contender.way(name)
        return make and _lap("fetch(1)", fetch=make(USUAL)(flaky(_fails(failures))))

    return prepare


def _awith_rules(contender: Contender) -> Lap | None:
    make = contender.way("rules") if contender.module else contender.amake
    return make and _awaiting(make(USUAL)(aflaky(_fails(FAILURES))))


def _fails(failures: int) -> Iterator[bool]:
    return cycle([True] * failures + [False])


ROWS: dict[str, Prepare] = {
    "function, success": _function,
    "method, success": _method,
    "function, 1 failure": _failing(1),
    "function, 3 failures": _failing(3),
    "function, 10 failures": _failing(10, PATIENT),
    "function, gives up": _giving_up,
    "coroutine, success": _afunction,
    "coroutine method, success": _amethod,
    "coroutine, 1 failure": _afailing(1),
    "coroutine, 3 failures": _afailing(3),
    "coroutine, 10 failures": _afailing(10, PATIENT),
    "coroutine, gives up": _agiving_up,
    "hook, success": _way("hook", 0),
    "hook, 3 failures": _way("hook", 3),
    "observer, success": _way("observer", 0),
    "observer, 3 failures": _way("observer", 3),
    "Prometheus, success": _way("prometheus", 0),
    "Prometheus, 3 failures": _way("prometheus", 3),
    "rules, hint, budget, 3 failures": _way("rules", 3),
    "the same in a coroutine": _awith_rules,
    "block, success": _way("block", 0),
    "block, 3 failures": _way("block", 3),
    "call, success": _way("call", 0),
    "call, 3 failures": _way("call", 3),
}
"""The rows of the table, and of `benchmarks.instructions`, by title."""
