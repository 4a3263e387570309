"""Compare two functions on the same script of failures, in virtual time.

The examples ``coming_from_...`` compare retrykit with other libraries in this way. Here
it replaces a loop such as many programs have.

Prints::

    usage                  library   calls  waits in s       outcome
    a loop                 none          3  1 2              'page'
                           retrykit      3  1 2              'page'
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from itertools import pairwise
from typing import Any, Self
from unittest.mock import patch

from retrykit import retry
from retrykit.testing import FakeClock, ScriptedFunction, virtual_time

Server = Callable[[], Any]


@dataclass(frozen=True)
class Usage:
    """A usage of another library, and the same with retrykit.

    Attributes:
        title: The usage, in a few words.
        script: The outcomes of the server, in order; ``...`` repeats the last one.
        before: Calls the server with the other library; it may be async.
        after: Calls the server with retrykit; it may be async.
    """

    title: str
    script: list[object]
    before: Callable[[Server], Any]
    after: Callable[[Server], Any]


@dataclass(frozen=True)
class Course:
    """The course of a call: its attempts, the waits in seconds, and the outcome."""

    calls: int
    waits: list[float]
    outcome: str

    def __str__(self) -> str:
        waits = " ".join(f"{round(wait, 2):g}" for wait in self.waits)
        return f"{self.calls:>5}  {waits:<15}  {self.outcome}"


def run(function: Callable[[Server], Any], script: list[object]) -> Course:
    """Call a function whose server follows a script."""
    server = ScriptedFunction(script)
    with virtual_time() as clock:
        try:
            outcome = repr(call(function, server, clock))
        except Exception as error:  # noqa: BLE001  it is the outcome
            outcome = type(error).__name__
        *waits, rest = (b - a for a, b in pairwise([*server.times, clock.now()]))
    # Normally nothing waits after the last attempt.
    return Course(len(server.calls), [*waits, rest] if rest else waits, outcome)


def call(function: Callable[[Server], Any], server: Server, clock: FakeClock) -> object:
    """Call a function, sync or async, in the time of a clock."""

    class Datetime(datetime):
        """A type, since a library that is imported now may use it as such."""

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp(clock.now(), tz or UTC)

    # retrykit reads the clock by itself; for other libraries, these are replaced.
    fakes = {
        "time.sleep": clock.sleep,
        "time.monotonic": clock.now,
        "datetime.datetime": Datetime,
    }
    with ExitStack() as patches:
        for name, fake in fakes.items():
            patches.enter_context(patch(name, fake))
        result = function(server)
    if not isinstance(result, Coroutine):
        return result
    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        return runner.run(result)


def show(usages: list[Usage], library: str, *, installed: bool = True) -> None:
    """Print a table; without the library, only the rows of retrykit."""
    # Most libraries log each retry.
    logging.disable(logging.ERROR)
    print(f"{'usage':<21}  library   calls  waits in s       outcome")
    for usage in usages:
        title = usage.title
        if installed:
            print(f"{title:<21}  {library:<8}  {run(usage.before, usage.script)}")
            title = ""
        print(f"{title:<21}  retrykit  {run(usage.after, usage.script)}")
    if not installed:
        print(f"{library} is not installed")


def fetch_loop(server: Server) -> object:
    """Retry in a loop."""
    for attempt in range(2):
        try:
            return server()
        except ConnectionError:
            time.sleep(2**attempt)
    return server()


@retry(on=ConnectionError, schedule=[1, 2])
def fetch_retrykit(server: Server) -> object:
    """Leave that to retrykit."""
    return server()


USAGES = [
    Usage(
        "a loop",
        [ConnectionError, ConnectionError, "page"],
        fetch_loop,
        fetch_retrykit,
    )
]

if __name__ == "__main__":
    show(USAGES, "none")
