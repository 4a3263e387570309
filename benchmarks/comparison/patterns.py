"""Programs that hold a decorator of some library against a claim."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

from benchmarks.comparison.claims import Answer, partly_if, yes_if
from benchmarks.makers import Decorator

__all__ = ["breaks", "cuts_coroutines", "cuts_functions", "hedges", "honors_hint"]
__all__ += ["limits_concurrency", "limits_rate", "repeats_block", "saves_retries"]

# Seconds that a slow attempt takes, and that count as soon.
SLOW, SOON = 1.0, 0.8


def _call(function: Callable[[], Any]) -> None:
    with contextlib.suppress(Exception):
        function()


def repeats_block(
    attempts: Callable[[], Iterable[AbstractContextManager[object]]],
) -> Answer:
    """A block that fails once is entered twice."""
    entered = 0
    for attempt in attempts():
        with attempt:
            entered += 1
            if entered == 1:
                raise ConnectionError
    return yes_if(entered == 2)  # noqa: PLR2004


def cuts_coroutines(decorate: Decorator) -> Answer:
    """A coroutine whose first attempt is slow returns soon."""
    waits = iter([SLOW])

    async def fetch() -> None:
        await asyncio.sleep(next(waits, 0))

    begin = time.monotonic()
    asyncio.run(decorate(fetch)())
    return yes_if(time.monotonic() - begin < SOON)


def cuts_functions(decorate: Decorator) -> Answer:
    """A function whose first attempt is slow returns soon; its thread goes on."""
    waits = iter([SLOW])
    begin = time.monotonic()
    decorate(lambda: time.sleep(next(waits, 0)))()
    soon = time.monotonic() - begin < SOON
    return partly_if(soon, "the thread goes on")


def honors_hint(decorate: Decorator, error: Exception) -> Answer:
    """A call that fails once with a hint of 0.2 s waits that long."""
    errors = iter([error])

    def fetch() -> None:
        if hinted := next(errors, None):
            raise hinted

    begin = time.monotonic()
    decorate(fetch)()
    return yes_if(time.monotonic() - begin > 0.18)  # noqa: PLR2004


def saves_retries(decorate: Decorator) -> Answer:
    """Ten calls of up to three attempts each make fewer than 30."""
    return yes_if(_count(decorate, 10) < 30)  # noqa: PLR2004


def breaks(decorate: Decorator) -> Answer:
    """Not every one of 50 calls that fail reaches the function."""
    return yes_if(_count(decorate, 50) < 50)  # noqa: PLR2004


def _count(decorate: Decorator, calls: int) -> int:
    made = 0

    def fetch() -> None:
        nonlocal made
        made += 1
        raise ConnectionError

    decorated = decorate(fetch)
    for _ in range(calls):
        _call(decorated)
    return made


def hedges(decorate: Decorator) -> Answer:
    """A second attempt begins while the first one hangs, and its answer counts."""
    return cuts_coroutines(decorate)


def limits_rate(decorate: Decorator) -> Answer:
    """Of four calls at once, at a rate of two in 0.2 s, some wait or are refused."""
    made = 0

    def fetch() -> None:
        nonlocal made
        made += 1

    decorated = decorate(fetch)
    begin = time.monotonic()
    for _ in range(4):
        _call(decorated)
    return yes_if(made < 4 or time.monotonic() - begin > 0.1)  # noqa: PLR2004


def limits_concurrency(decorate: Decorator) -> Answer:
    """Of three coroutines at once, never two are running."""
    running = most = 0

    async def fetch() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1

    async def together() -> None:
        decorated = decorate(fetch)
        await asyncio.gather(*(decorated() for _ in range(3)), return_exceptions=True)

    asyncio.run(together())
    return yes_if(most == 1)
