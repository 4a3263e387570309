"""resilix."""

import asyncio
import contextlib
import time
from typing import Any

import resilix

from benchmarks.comparison.behavior import check_types, give_up
from benchmarks.comparison.claims import YES, Answer, Library, partly_if, yes_if
from benchmarks.comparison.patterns import (
    breaks,
    cuts_coroutines,
    cuts_functions,
    honors_hint,
    limits_concurrency,
)
from benchmarks.makers import Decorator

__all__ = ["LIBRARY"]

protect = resilix.protect


def retry(
    on: type[BaseException] = ConnectionError,
    *,
    attempts: int = 2,
    delay: float = 0.0,
    limit: float = 9.0,
    awaits: bool = False,
) -> Decorator:
    del awaits
    limited: Decorator = protect.limits(deadline=limit)
    again: Decorator = protect.when(on, retry=attempts, delay=delay)
    return lambda function: again(limited(function))


def bare() -> Decorator:
    return protect.when(ConnectionError, retry=resilix.Retry())


def history() -> Answer:
    return yes_if(vars(give_up(LIBRARY)))


def retry_after() -> Answer:
    """`delay` may be a function of the error."""
    decorate = protect.when(ConnectionError, retry=2, delay=lambda e: float(e.args[0]))
    answer = honors_hint(decorate, ConnectionError(0.2))
    return partly_if(answer is YES, "your function reads it")


def timeout(seconds: float) -> Decorator:
    once: Decorator = protect.timeout(seconds, allow_sync=True)
    again: Decorator = protect.when(TimeoutError, retry=2)
    return lambda function: again(once(function))


# Seconds after which a function of a minute must have been killed.
KILLED = 30


def single_flight() -> Answer:
    calls = 0

    @protect.single_flight()
    async def fetch() -> None:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0.01)

    async def together() -> None:
        await asyncio.gather(fetch(), fetch())

    asyncio.run(together())
    return yes_if(calls == 1)


def isolation() -> Answer:
    """The process of a function that takes a minute is killed."""
    isolated: Any = protect.isolate(timeout=0.2)(time.sleep)
    begin = time.monotonic()
    with contextlib.suppress(Exception):
        asyncio.run(isolated(60))
    return yes_if(time.monotonic() - begin < KILLED)


LIBRARY = Library(
    name="resilix",
    module="resilix",
    retry=retry,
    bare=bare,
    programs={
        "blocks": lambda: yes_if(hasattr(resilix.Policy, "__iter__")),
        "attempt_timeout": lambda: cuts_coroutines(timeout(0.05)),
        "sync_timeout": lambda: cuts_functions(timeout(0.05)),
        "history": history,
        "retry_after": retry_after,
        "single_flight": single_flight,
        "isolation": isolation,
        "breaker": lambda: breaks(protect.circuit(failures=2)),
        "concurrency": lambda: limits_concurrency(protect.bulkhead(1)),
        "typed": lambda: check_types(
            "resilix",
            "from resilix import protect",
            "protect.when(OSError, retry=3)",
        ),
    },
)
