"""Checks that a contender retries correctly before it is timed, sync and async.

They count attempts and sleeps. A contender that skips work is an error, not a winner.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple, final

from benchmarks.contenders import ATTEMPTS, USUAL, Contender

__all__ = ["FAILURES", "aflaky", "flaky", "prove"]

FAILURES = ATTEMPTS - 1
"""Failed attempts of a call before one succeeds."""


@final
class Run(NamedTuple):
    """The history of one call.

    Attributes:
        result: Its result; None if it gave up.
        calls: The number of attempts.
        sleeps: Its delays, in seconds.
    """

    result: int | None
    calls: int
    sleeps: list[float]


def flaky(fails: Iterator[bool]) -> Callable[[int], int]:
    """Return a function that fails in those calls for which *fails* yields True."""

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
    """Check that a contender retries, waits, jitters its delays and gives up.

    Raises:
        RuntimeError: It does not.
    """
    for run in (_run, _arun):
        smooth, rough, again = (run(contender, n) for n in (0, FAILURES, FAILURES))
        claims = {
            "call once if nothing fails": smooth == Run(7, 1, []),
            "call again after each failure": rough[:2] == (7, FAILURES + 1),
            "wait after each failure": len(rough.sleeps) == FAILURES,
            "wait longer than 0 s": min(rough.sleeps, default=0) > 0,
            "jitter its delays": rough.sleeps != again.sleeps,
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
