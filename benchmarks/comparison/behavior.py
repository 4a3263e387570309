"""Programs that are the same for every library."""

import asyncio
import contextlib
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

import trio

from benchmarks.comparison.claims import (
    NO,
    YES,
    Answer,
    Library,
    folder_of,
    partly,
    yes_if,
)

__all__ = ["PROGRAMS", "Flaky", "check_types", "error_of", "fail", "give_up"]

# Attempts after which a call is taken to have no limit.
ENDLESS = 300


class _EndlessError(BaseException):
    """Ends a call that has no limit."""


class Flaky:
    """A function that fails so many times, and then returns "value"."""

    def __init__(
        self, failures: int, error: type[BaseException] = ConnectionError
    ) -> None:
        self.failures = failures
        self.error = error
        self.calls = 0

    def call(self) -> str:
        """Fail, or return."""
        self.calls += 1
        if self.calls > ENDLESS:
            raise _EndlessError
        if self.calls <= self.failures:
            raise self.error
        return "value"


def fail() -> NoReturn:
    """Raise a ConnectionError."""
    raise ConnectionError


def give_up(library: Library, attempts: int = 3) -> BaseException:
    """Return the exception of a call that gives up."""
    return error_of(library.retry(attempts=attempts, limit=0.5)(fail))


def error_of(function: Callable[[], Any]) -> BaseException:
    """Call a function that fails, and return its exception."""
    try:
        function()
    except BaseException as error:  # noqa: BLE001  whatever a library raises
        return error
    msg = "the call did not fail"
    raise AssertionError(msg)


def calls(library: Library) -> Answer:
    """A function and a coroutine function succeed at their second attempt."""
    flaky, other = Flaky(1), Flaky(1)

    async def fetch() -> str:
        return other.call()

    result = library.retry()(flaky.call)()
    later = asyncio.run(library.retry(awaits=True)(fetch)())
    return yes_if([result, later] == ["value"] * 2)


def trio_works(library: Library) -> Answer:
    """A coroutine succeeds in Trio, after a delay."""
    flaky = Flaky(1)

    async def fetch() -> str:
        return flaky.call()

    try:
        result = trio.run(library.retry(delay=0.01, awaits=True)(fetch))
    except Exception:  # noqa: BLE001  whatever happens without asyncio
        return NO
    return yes_if(result == "value")


def streams(library: Library) -> Answer:
    """A generator that fails once in the middle goes on."""
    opened = 0

    def numbers() -> Iterator[int]:
        nonlocal opened
        opened += 1
        yield 1
        if opened == 1:
            raise ConnectionError
        yield 2

    items: list[int] = []
    # Some refuse generators.
    with contextlib.suppress(Exception):
        items += library.retry()(numbers)()
    if items == [1, 1, 2]:
        return partly("from the start")
    return yes_if(items == [1, 2])


def jitter(library: Library) -> Answer:
    """The delays of two calls differ."""
    return yes_if(_draw_delays(library, 1) != _draw_delays(library, 2))


def _draw_delays(library: Library, seed: int) -> list[float]:
    random.seed(seed)
    with _virtual_time() as delays, contextlib.suppress(BaseException):
        library.bare()(Flaky(ENDLESS + 1).call)()
    return delays


def limit(library: Library) -> Answer:
    """A call that fails every time ends within 300 attempts or an hour."""
    with _virtual_time():
        error = error_of(library.bare()(Flaky(ENDLESS + 1).call))
    return yes_if(not isinstance(error, _EndlessError))


@contextmanager
def _virtual_time() -> Iterator[list[float]]:
    """Collect the delays of functions, which only move the clock."""
    originals = time.sleep, time.monotonic
    delays: list[float] = []

    def sleep(seconds: Any) -> None:
        delays.append(seconds)
        if sum(delays) > 3600:  # noqa: PLR2004
            raise _EndlessError

    time.sleep, time.monotonic = sleep, lambda: originals[1]() + sum(delays)
    try:
        yield delays
    finally:
        time.sleep, time.monotonic = originals


def deadline(library: Library) -> Answer:
    """A call with a limit of 0.4 s and delays of 0.3 s ends before 0.6 s."""
    begin = time.monotonic()
    error_of(library.retry(attempts=99, delay=0.3, limit=0.4)(fail))
    return yes_if(time.monotonic() - begin < 0.58)  # noqa: PLR2004


def original_error(library: Library) -> Answer:
    """The exception is the last one of the function."""
    return yes_if(type(give_up(library)) is ConnectionError)


def nested(library: Library) -> Answer:
    """A function of three attempts in another one is called three times."""
    flaky = Flaky(ENDLESS)
    inner = library.retry(Exception, attempts=3, limit=2)(flaky.call)
    error_of(library.retry(Exception, attempts=3, limit=2)(inner))
    return yes_if(flaky.calls == 3)  # noqa: PLR2004


def cancellation(library: Library) -> Answer:
    """A cancelled task is not started again, even if every exception is retried."""
    flaky = Flaky(1, asyncio.CancelledError)

    async def fetch() -> str:
        return flaky.call()

    try:
        asyncio.run(library.retry(BaseException, awaits=True)(fetch)())
    except (Exception, asyncio.CancelledError):  # noqa: BLE001  or it is refused
        return YES
    return NO


_TYPED = """
{setup}

@{decorator}
def fetch(url: str) -> bytes:
    return url.encode()

good: bytes = fetch("url")
fetch(1)
"""


def check_types(module: str, setup: str, decorator: str) -> Answer:
    """Ask mypy whether a decorated function keeps its signature.

    Args:
        module: The package, which must be marked as typed.
        setup: The imports.
        decorator: The decorator, without its @.
    """
    if not (folder_of(module) / "py.typed").exists():
        return partly("not marked as typed")
    code = _TYPED.format(setup=setup, decorator=decorator)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary"]
    command += ["--follow-imports=silent", "--cache-dir", str(_CACHE), "-c", code]
    done = subprocess.run(  # noqa: S603  this interpreter
        [*command, "--config-file="], check=False, capture_output=True, text=True
    )
    lines = done.stdout.splitlines()
    return yes_if(len(lines) == 1 and "[arg-type]" in lines[0])


_CACHE = Path(tempfile.gettempdir(), "mypy-comparison")


def lacks(words: str) -> Callable[[Library], Answer]:
    """Return a program that answers no if nothing in a package is named so.

    If a new release defines such a name, the answer is unclear, with that name.

    Args:
        words: A regular expression for names of functions, classes and modules.
    """

    def program(library: Library) -> Answer:
        found = [x for x in _names(library) if re.search(words, x, re.IGNORECASE)]
        return Answer("unclear", f"has `{min(found)}`") if found else NO

    return program


def _names(library: Library) -> Iterator[str]:
    for path in folder_of(library.module).rglob("*.py"):
        yield path.stem
        yield from re.findall(r"(?:def|class) (\w+)", path.read_text("utf-8"))


def dependencies(library: Library) -> Answer:
    """It requires no other distribution."""
    required = metadata.requires(library.name) or []
    names = {
        re.split(r"\W", each, maxsplit=1)[0] for each in required if ";" not in each
    }
    if len(names) == 1:
        return partly(names.pop())
    return Answer("no", f"{len(names)}") if names else YES


PROGRAMS: dict[str, Callable[[Library], Answer]] = {
    "calls": calls,
    "trio": trio_works,
    "streams": streams,
    "jitter": jitter,
    "limit": limit,
    "deadline": deadline,
    "original_error": original_error,
    "nested": nested,
    "cancellation": cancellation,
    "dependencies": dependencies,
    "blocks": lacks("__enter__"),
    "attempt_timeout": lacks("attempt_?timeout"),
    "sync_timeout": lacks("attempt_?timeout"),
    "retry_after": lacks("retry_?after|hint"),
    "budget": lacks("budget"),
    "breaker": lacks("circuit|breaker"),
    "hedging": lacks("hedg"),
    "rate_limit": lacks("^rate_?limit$|rate_?limiter$|throttl"),
    "concurrency": lacks("bulkhead|semaphore"),
    "single_flight": lacks("single_?flight"),
    "isolation": lacks("process_?pool|multiprocess"),
    "testing": lacks("^test|instant|fake"),
    "preview": lacks("preview|lint|doctor|^cli$|__main__"),
    "config": lacks("toml|json|yaml|from_dict"),
    "durable": lacks("durable|persist"),
    "metrics": lacks("metric|prometheus|opentelemetry"),
}
"""The programs, by the name of the claim; those of a library go before them."""
