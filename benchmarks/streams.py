"""Retried streams beside other libraries: ``python -m benchmarks.streams``.

Each way reads the same streams, from a source whose connection breaks after any item
with the same chance: the n-th request for a stream breaks after the same number of
items, whichever way makes it. Counted are the items that the consumer got twice, those
that it never got, the requests, the items that the source has sent, and the streams
that ended with an error. All make at most five attempts, without delays; that of
google-api-core has no limit but time. Then the time of an item of a stream that does
not break, in one process, in turns. Logs are off in all.
"""

# ruff: noqa: PLC0415  a library is imported only if it is measured

import argparse
import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from time import thread_time
from typing import Any, NamedTuple, final

from benchmarks.contenders import importable, in_state
from benchmarks.table import machine, markdown, versions
from retrykit import retry, streams

__all__ = ["Reading", "cells_of_cuts", "main", "read_all", "ways"]

ITEMS = 100
STREAMS = 1_000
ATTEMPTS = 5
SHARE_BROKEN = 0.01

TIMED_ITEMS = 10_000
ROUNDS = 40

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


@final
class Way(NamedTuple):
    """A way to retry a generator function.

    Attributes:
        name: The library and its mode.
        module: The module to import; empty if none is needed.
        sync: Decorates a generator function.
        awaited: Decorates an async generator function.
    """

    name: str
    module: str
    sync: Callable[[], Decorator]
    awaited: Callable[[], Decorator]


def _retrykit(mode: Any) -> Callable[[], Decorator]:
    def make() -> Decorator:
        return retry(
            stream=mode, on=ConnectionError, schedule=[0] * 9, max_attempts=ATTEMPTS
        )

    return make


def _stamina() -> Decorator:
    import stamina
    from stamina.instrumentation import set_on_retry_hooks

    set_on_retry_hooks([])
    decorate: Decorator = stamina.retry(
        on=ConnectionError,
        attempts=ATTEMPTS,
        wait_initial=0,
        wait_max=0,
        wait_jitter=0,
    )
    return decorate


def _nopanic() -> Decorator:
    import nopanic

    no_delays = [0.0] * ATTEMPTS
    decorate: Decorator = nopanic.retry(ATTEMPTS, ConnectionError, no_delays)
    return decorate


def _google(kind: str) -> Callable[[], Decorator]:
    def make() -> Decorator:
        from google.api_core import retry as library

        predicate = library.if_exception_type(ConnectionError)
        decorate: Decorator = getattr(library, kind)(
            predicate=predicate, initial=0, maximum=0
        )
        if kind == "StreamingRetry":
            return decorate
        # It returns a coroutine that returns the stream.
        return lambda fn: _awaiting(decorate(fn))

    return make


def _awaiting(fn: Callable[..., Any]) -> Callable[..., Any]:
    async def read() -> AsyncIterator[int]:
        return await fn()  # type: ignore[no-any-return]

    return read


def _behind(last_item: int, _state: object) -> dict[str, int]:
    return {"start": last_item + 1}


def _bare() -> Decorator:
    return lambda fn: fn


def _handed_on() -> Decorator:
    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        def hand_on(*args: Any) -> Iterator[Any]:
            yield from fn(*args)

        return hand_on

    return decorate


def _handed_on_async() -> Decorator:
    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        async def hand_on(*args: Any) -> AsyncIterator[Any]:
            async for item in fn(*args):
                yield item

        return hand_on

    return decorate


def _alike(name: str, module: str, make: Callable[[], Decorator]) -> Way:
    return Way(name, module, make, make)


WAYS = [
    _alike("not retried", "", _bare),
    # The least that a generator around another one can cost.
    Way("handed on by another generator", "", _handed_on, _handed_on_async),
    _alike('retrykit, "until-first-item"', "", _retrykit("until-first-item")),
    _alike('retrykit, "restart"', "", _retrykit("restart")),
    _alike(
        "retrykit, restart(skip_seen=True)",
        "",
        _retrykit(streams.restart(skip_seen=True)),
    ),
    _alike("retrykit, resume(function)", "", _retrykit(streams.resume(_behind))),
    _alike("stamina", "stamina", _stamina),
    _alike("nopanic", "nopanic", _nopanic),
    Way(
        "google-api-core",
        "google.api_core.retry",
        _google("StreamingRetry"),
        _google("AsyncStreamingRetry"),
    ),
]
"""The ways that are compared; the first one is not retried."""


def ways() -> list[Way]:
    """Return the ways whose libraries are installed."""
    return [way for way in WAYS if not way.module or importable(way.module)]


@dataclass
class Reading:
    """What came of reading all streams in a way.

    Attributes:
        twice: How often the consumer got an item again.
        lost: How many items it never got.
        requests: How many requests the source has got.
        sent: How many items the source has sent.
        errors: How many streams ended with an error.
    """

    twice: int = 0
    lost: int = 0
    requests: int = 0
    sent: int = 0
    errors: int = 0


def _breaks(stream: int) -> Iterator[int]:
    """Return after how many items each request for a stream breaks, endlessly."""
    rng = random.Random(stream)  # noqa: S311  the same for each way
    while True:
        count = 0
        while rng.random() >= SHARE_BROKEN:
            count += 1
        yield count


def read_all(decorate: Decorator, count: int = STREAMS) -> Reading:
    """Read so many streams, and return what came of it."""
    reading = Reading()
    for stream in range(count):
        breaks = _breaks(stream)

        @decorate
        def read(start: int = 0, breaks: Iterator[int] = breaks) -> Iterator[int]:
            reading.requests += 1
            broken_at = start + next(breaks)
            for number in range(start, ITEMS):
                if number == broken_at:
                    raise ConnectionError
                reading.sent += 1
                yield number

        got: list[int] = []
        try:
            for item in read():
                got.append(item)  # noqa: PERF402  kept if there is an error
        except ConnectionError:
            reading.errors += 1
        reading.lost += ITEMS - len({*got})
        reading.twice += len(got) - len({*got})
    return reading


def cells_of_cuts(reading: Reading) -> list[str]:
    """Return the cells of a row of the first table."""
    counts = (reading.twice, reading.lost, reading.requests, reading.sent)
    return [f"{each:,}" for each in (*counts, reading.errors)]


def _items(end: int) -> Callable[[], Iterator[None]]:
    def items() -> Iterator[None]:
        for _ in range(end):
            yield None

    return items


def _async_items(end: int) -> Callable[[], AsyncIterator[None]]:
    async def items() -> AsyncIterator[None]:
        for _ in range(end):
            yield None

    return items


def _time(fn: Callable[..., Any]) -> float:
    """Return the processor time of reading a stream, in seconds."""
    begun = thread_time()
    for _ in fn():
        pass
    return thread_time() - begun


async def _atime(fn: Callable[..., Any]) -> float:
    stream = fn()
    begun = thread_time()
    if not hasattr(stream, "__aiter__"):
        stream = await stream
    async for _ in stream:
        pass
    return thread_time() - begun


def nanoseconds(end: int, rounds: int) -> dict[str, list[float]]:
    """Return the time of an item in each way, sync and async: the best round."""
    found = {way.name: [float("inf")] * 2 for way in ways()}
    sync = {way.name: way.sync()(_items(end)) for way in ways()}
    awaited = {way.name: way.awaited()(_async_items(end)) for way in ways()}

    async def measure() -> None:
        for _ in range(rounds):
            for name, times in found.items():
                times[0] = min(times[0], _time(sync[name]) / end * 1e9)
                times[1] = min(times[1], await _atime(awaited[name]) / end * 1e9)

    asyncio.run(measure())
    return found


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streams")
    parser.add_argument("--streams", type=int, default=STREAMS)
    parser.add_argument("--items", type=int, default=TIMED_ITEMS, help="of each timing")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    with in_state("quiet"):
        rows = [
            [way.name, *cells_of_cuts(read_all(way.sync(), given.streams))]
            for way in ways()
        ]
        times = nanoseconds(given.items, given.rounds)
    heads = ["", "items twice", "items lost", "requests", "items sent", "errors"]
    print(markdown(heads, rows))
    print(f"\n{given.streams:,} streams of {ITEMS} items; after each item, ", end="")
    print(f"{SHARE_BROKEN:.0%} of the connections break.\n")
    bare = next(iter(times.values()))
    heads = ["", "item (ns)", "over bare", "ratio"]
    heads += ["async item (ns)", "over bare", "ratio"]
    print(
        markdown(heads, [[name, *_cells(each, bare)] for name, each in times.items()])
    )
    print(
        f"\nBest of {given.rounds} laps of {given.items:,} items. {machine()}; ", end=""
    )
    print(f"{versions([way.name for way in ways() if way.module])}.")


def _cells(times: list[float], bare: list[float]) -> Iterator[str]:
    for each, reference in zip(times, bare, strict=True):
        yield from (f"{each:.0f}", f"{each - reference:.0f}", f"{each / reference:.1f}")


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        main()
