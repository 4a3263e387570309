"""Speed of virtual time: ``python -m benchmarks.virtual_time``.

Measures the hostname verification schedule to its end, 76 attempts in 7.06 days, and
a thousand concurrent tasks with four jittered delays each; the best of five runs, as
installed, with each retry logged to nowhere.
"""

import asyncio
import time
from collections.abc import Callable

import trio

from benchmarks.contenders import in_state
from retrykit import Policy, presets
from retrykit.schedules import exponential
from retrykit.testing import AsyncScriptedFunction, ScriptedFunction, virtual_time

LAPS = 5
WEEK = presets.hostname_verification()
CROWD = Policy(schedule=exponential(1).jitter(0.5), max_attempts=5)


async def a_week() -> None:
    """Await one call that always fails."""
    await WEEK.arun(AsyncScriptedFunction([LookupError, ...]))


async def a_crowd() -> None:
    """Await a thousand concurrent calls."""
    calls = (CROWD.arun(AsyncScriptedFunction([LookupError, ...])) for _ in range(1000))
    await asyncio.gather(*calls)


CASES: dict[str, Callable[[], object]] = {
    "hostname verification, sync": lambda: WEEK.run(
        ScriptedFunction([LookupError, ...])
    ),
    "hostname verification, asyncio": lambda: asyncio.run(a_week()),
    "hostname verification, trio": lambda: trio.run(a_week),
    "a thousand tasks, asyncio": lambda: asyncio.run(a_crowd()),
}


def lap(case: Callable[[], object]) -> tuple[float, float]:
    """Return the real and the virtual seconds that a case took."""
    before = time.perf_counter()
    with virtual_time() as clock:
        case()
    return time.perf_counter() - before, clock.now()


def main() -> None:
    """Print a line for each case."""
    for name, case in CASES.items():
        with in_state("as installed"):
            took, passed = min(lap(case) for _ in range(LAPS))
        print(f"{name:32} {passed:>10,.0f} virtual s {took * 1000:>6.0f} ms")


if __name__ == "__main__":
    main()
