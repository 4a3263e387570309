"""Proofs that a contender does the work that it is timed for.

They run before anything is timed, in both colours, and count what is called
and what is slept. A contender that skips its work is an error, not a winner.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple, final

from benchmarks.contenders import ATTEMPTS, USUAL, Contender

__all__ = ["FAILURES", "aflaky", "flaky", "prove"]

FAILURES = ATTEMPTS - 1
"""How many attempts of a call fail before one succeeds."""


@final
class Run(NamedTuple):
    """What one call did.

    Attributes:
        result: What it gave; None if it gave up.
        calls: How often the function was called.
        sleeps: What was slept, in seconds.
    """

    result: int | None
    calls: int
    sleeps: list[float]


def flaky(fails: Iterator[bool]) -> Callable[[int], int]:
    """Return a function that fails, or not, as *fails* says of each call."""

    def fetch(number: int) -> int:
        if next(fails):
            raise ConnectionError
        return number

    return fetch


def aflaky(fails: Iterator[bool]) -> Callable[[int], Any]:
    """Return a coroutine function that does the same."""

    async def fetch(number: int) -> int:
        if next(fails):
            raise ConnectionError
        return number

    return fetch


def prove(contender: Contender) -> None:
    """Check that a contender calls, waits, spreads out and gives up.

    Raises:
        RuntimeError: It does not.
    """
    for run in (_run, _arun):
        smooth, rough, again = (run(contender, n) for n in (0, FAILURES, FAILURES))
        claims = {
            "call once where nothing fails": smooth == Run(7, 1, []),
            "call again after each failure": rough[:2] == (7, FAILURES + 1),
            "wait after each failure": len(rough.sleeps) == FAILURES,
            "wait for longer than nothing": min(rough.sleeps, default=0) > 0,
            "draw its delays anew": rough.sleeps != again.sleeps,
        }
        if contender.counts:
            claims["give up in the end"] = run(contender, 99)[:2] == (None, ATTEMPTS)
        for claim, holds in claims.items():
            if not holds:
                msg = f"{contender.name} must {claim}, got {smooth}, {rough}, {again}"
                raise RuntimeError(msg)


def _run(contender: Contender, failures: int) -> Run:
    fails, sleeps, result = _fails(failures), list[float](), None
    with contender.stub(sleeps.append), suppress(ConnectionError):
        result = contender.make(USUAL)(flaky(fails))(7)
    return Run(result, failures + 1 - len(list(fails)), sleeps)


def _arun(contender: Contender, failures: int) -> Run:
    fails, sleeps, result = _fails(failures), list[float](), None
    with contender.stub(sleeps.append), suppress(ConnectionError):
        result = asyncio.run(contender.amake(USUAL)(aflaky(fails))(7))
    return Run(result, failures + 1 - len(list(fails)), sleeps)


def _fails(failures: int) -> Iterator[bool]:
    return iter([True] * failures + [False])
