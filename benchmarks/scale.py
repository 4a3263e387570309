"""Many calls at once: ``python -m benchmarks.scale``.

Prints one row for each library: the microseconds of processor time of a call when
100,000 tasks fail once and wait, the nanoseconds of a call that succeeds when threads
share one function, and the microseconds of each level when a function calls itself,
and the innermost call fails once. Each is the best of a few runs, and threads are
measured by the clock on the wall. The logs are off. The last row is retrykit with a
budget.
"""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from threading import Thread
from time import perf_counter, process_time
from typing import Any

from benchmarks.contenders import USUAL, Contender, in_state, installed
from benchmarks.makers import Terms
from benchmarks.table import machine, markdown, versions
from retrykit import retry
from retrykit.budgets import RatioBudget

__all__ = ["main"]

_RUNS = 3
_TASKS = 100_000
_THREADS = (1, 4, 16)
_CALLS = 100_000
_DEEP = 300


def main() -> None:
    """Print the table."""
    sys.setrecursionlimit(20_000)
    libraries = installed("quiet")
    with in_state("quiet"):
        rows = _rows(libraries)
    heads = ["quiet", f"{_TASKS:,} tasks (us)"]
    heads += [f"{number} thread{'s'[: number > 1]} (ns)" for number in _THREADS]
    print(markdown([*heads, f"{_DEEP} deep (us)"], rows))
    print(f"\n{machine()}\n{versions([c.name for c in libraries if c.module])}")


def _rows(libraries: list[Contender]) -> list[list[str]]:
    rows = [
        [
            contender.name,
            f"{_best(_tasks, contender) * 1e6:.0f}",
            *_by_threads(contender),
            f"{_best(_deep, contender) * 1e6:.1f}",
        ]
        for contender in libraries
    ]
    rows.append(["retrykit, RatioBudget", "", *_by_threads(_BUDGETED), ""])
    return rows


def _best(measured: Callable[..., float], *arguments: Any) -> float:
    return min(measured(*arguments) for _ in range(_RUNS))


def _by_threads(contender: Contender) -> list[str]:
    return [f"{_best(_shared, contender, each) * 1e9:,.0f}" for each in _THREADS]


def _tasks(contender: Contender) -> float:
    failed: set[int] = set()

    # Long enough for each task to fail before the first one continues.
    @contender.amake(replace(USUAL, first=4.0))
    async def fetch(number: int) -> None:
        if number not in failed:
            failed.add(number)
            raise ConnectionError

    async def run() -> float:
        started = process_time()
        await asyncio.gather(*(fetch(number) for number in range(_TASKS)))
        return (process_time() - started) / _TASKS

    return asyncio.run(run())


def _shared(contender: Contender, threads: int) -> float:
    @contender.make(USUAL)
    def fetch() -> None:
        pass

    def run() -> None:
        for _ in range(_CALLS // threads):
            fetch()

    running = [Thread(target=run) for _ in range(threads)]
    started = perf_counter()
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return (perf_counter() - started) / _CALLS


def _deep(contender: Contender) -> float:
    failed = False

    @contender.make(USUAL)
    def fetch(level: int) -> None:
        nonlocal failed
        if level:
            fetch(level - 1)
        elif not failed:
            failed = True
            raise ConnectionError

    with contender.stub(lambda _delay: None):
        fetch(1)
        failed = False
        started = process_time()
        fetch(_DEEP)
        return (process_time() - started) / _DEEP


def _with_budget(_terms: Terms) -> Callable[..., Any]:
    return retry(on=ConnectionError, budget=RatioBudget())


_BUDGETED = Contender(
    name="retrykit, RatioBudget",
    module="retrykit",
    make=_with_budget,
    amake=_with_budget,
)


if __name__ == "__main__":
    main()
