"""Checks that a contender retries correctly before it is timed, sync and async.

They count attempts, sleeps, and the lines on stderr. A contender that skips work is an
error, not a winner.
"""

import asyncio
import io
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, suppress
from typing import Any, NamedTuple, final

from benchmarks.contenders import ATTEMPTS, USUAL, Contender, State

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
        lines: The number of lines on stderr.
    """

    result: int | None
    calls: int
    sleeps: list[float]
    lines: int


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


def prove(contender: Contender, state: State) -> None:
    """Check that a contender retries, waits, jitters its delays, logs and gives up.

    Args:
        contender: A library.
        state: The state of the logs in which it is called.

    Raises:
        RuntimeError: It does not.
    """
    makers = [contender.make, *contender.ways.values()]
    runs = [*((_run, each) for each in makers), (_arun, contender.amake)]
    lines = FAILURES if contender.lines and state == "as installed" else 0
    for run, make in runs:
        smooth, rough, again = (
            run(contender, make, number) for number in (0, FAILURES, FAILURES)
        )
        claims = {
            "call once if nothing fails": smooth == Run(7, 1, [], 0),
            "call again after each failure": rough[:2] == (7, FAILURES + 1),
            "wait after each failure": len(rough.sleeps) == FAILURES,
            "wait longer than 0 s": min(rough.sleeps, default=0) > 0,
            "jitter its delays": rough.sleeps != again.sleeps,
            f"write {lines} lines": rough.lines == lines,
        }
        if contender.counts:
            ended = run(contender, make, 99)
            claims["give up in the end"] = ended[:2] == (None, ATTEMPTS)
        for claim, holds in claims.items():
            if not holds:
                msg = f"{contender.name} must {claim}, got {smooth}, {rough}, {again}"
                raise RuntimeError(msg)


def _run(contender: Contender, make: Any, failures: int) -> Run:
    fails, sleeps, result = _fails(failures), list[float](), None
    text, stub = io.StringIO(), contender.stub(sleeps.append)
    with redirect_stderr(text), stub, suppress(ConnectionError):
        result = make(USUAL)(flaky(fails))(7)
    return _made(result, failures, fails, sleeps, text)


def _arun(contender: Contender, make: Any, failures: int) -> Run:
    fails, sleeps, result = _fails(failures), list[float](), None
    text, stub = io.StringIO(), contender.stub(sleeps.append)
    with redirect_stderr(text), stub, suppress(ConnectionError):
        result = asyncio.run(make(USUAL)(aflaky(fails))(7))
    return _made(result, failures, fails, sleeps, text)


def _made(
    result: int | None,
    failures: int,
    fails: Iterator[bool],
    sleeps: list[float],
    text: io.StringIO,
) -> Run:
    calls = failures + 1 - len(list(fails))
    return Run(result, calls, sleeps, len(text.getvalue().splitlines()))


def _fails(failures: int) -> Iterator[bool]:
    return iter([True] * failures + [False])
