"""Thousands of streams that are cancelled, interrupted or shared leave nothing."""

import asyncio
import gc
import random
import sys
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from retrykit import current_state, limits, observe, retry, state_of, streams
from tests._support.concurrency import switching_often
from tests._support.optional_trio import trio


async def behind(last, _state):
    await asyncio.sleep(0)
    return {"start": last + 1}


def sync_behind(last, _state):
    return {"start": last + 1}


MODES = {
    "until-first-item": "until-first-item",
    "restart": "restart",
    "skip": streams.restart(skip_seen=True),
    "resume": streams.resume(behind),
}
# Seconds each: the others are thorough.
ONE_QUICK = [
    pytest.param(name, id=name, marks=[] if name == "resume" else pytest.mark.thorough)
    for name in MODES
]


def open_generators(apart_from=()):
    """Return the async generators that wait somewhere.

    Args:
        apart_from: Those that are not returned. Other tests may have left some.
    """
    gc.collect()
    known = {id(each) for each in apart_from}
    return [
        each
        for each in gc.get_objects()
        if type(each).__name__ == "async_generator"
        and each.ag_frame is not None
        and id(each) not in known
    ]


class Sources:
    """Async generators of three items that fail at drawn places, and count.

    Args:
        pause: An async function that lets other tasks run.
        seed: What the drawing begins with.
    """

    def __init__(self, pause, seed):
        self.pause, self.rng = pause, random.Random(seed)  # noqa: S311
        self.opened = self.closed = self.items = 0
        self.limit = limits.Concurrency(100)
        self.open_before = open_generators()

    def decorate(self, mode):
        async def source(start=0):
            self.opened += 1
            cut = self.rng.randrange(8)
            try:
                for number in range(start, 3):
                    await self.pause()
                    if number == cut:
                        raise ConnectionError
                    self.items += 1
                    yield number
                await self.pause()
            finally:
                try:
                    await self.pause()
                finally:
                    self.closed += 1

        settings = {"schedule": [0] * 3, "on": OSError, "admission": [self.limit]}
        return retry(stream=mode, **settings)(source)

    async def consume(self, stream):
        with suppress(ConnectionError):
            async with stream:
                async for _ in stream:
                    with pytest.raises(LookupError):
                        current_state()
                    await self.pause()

    def open(self):
        """Return the generators that were opened since then, and wait somewhere."""
        return open_generators(apart_from=self.open_before)

    def check(self, begun):
        """Check that nothing of streams is left, most of which were cancelled."""
        assert self.closed == self.opened > begun / 2
        assert self.items > begun / 2
        assert self.limit.metrics.running == 0
        with pytest.raises(LookupError):
            current_state()


@pytest.mark.needs("speed")
@pytest.mark.parametrize("name", ONE_QUICK)
@pytest.mark.parametrize("hundreds", [3, pytest.param(25, marks=pytest.mark.thorough)])
def test_streams_cancelled_at_any_await_leave_nothing(name, hundreds):
    """So many of each mode, 100 at a time."""
    mode = MODES[name]
    sources = Sources(lambda: asyncio.sleep(0), seed=str(mode))
    decorated, reports, ended = sources.decorate(mode), [], {}

    async def cancel_later(ticks):
        stream = decorated()
        task = asyncio.create_task(sources.consume(stream))
        for _ in range(ticks):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        with suppress(LookupError):
            status = stream.state.status
            ended[status] = ended.get(status, 0) + 1

    async def main():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reports.append(context))
        for _ in range(hundreds):
            async with asyncio.TaskGroup() as group:
                for _ in range(100):
                    group.create_task(cancel_later(sources.rng.randrange(25)))
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert sources.open() == []

    asyncio.run(main())
    sources.check(hundreds * 100)
    assert reports == []
    assert {*ended} == {"succeeded", "dead"}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ONE_QUICK)
def test_streams_cancelled_at_any_checkpoint_of_trio_leave_nothing(name):
    mode = MODES[name]
    sources = Sources(trio.lowlevel.checkpoint, seed=str(mode))
    decorated = sources.decorate(
        streams.resume(sync_behind) if "resume" in str(mode) else mode
    )

    async def cancel_later(ticks):
        stream, scope = decorated(), trio.CancelScope()

        async def cancel():
            for _ in range(ticks):
                await trio.lowlevel.checkpoint()
            scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel)
            with scope:
                await sources.consume(stream)
        with suppress(LookupError):
            assert stream.state.status != "running"

    async def main():
        for _ in range(5):
            async with trio.open_nursery() as nursery:
                for _ in range(50):
                    nursery.start_soon(cancel_later, sources.rng.randrange(25))
        assert sources.open() == []

    trio.run(main)
    sources.check(250)


@pytest.mark.thorough
def test_streams_that_loops_drop_leave_nothing():
    """The event loop closes them, in another task."""
    sources = Sources(lambda: asyncio.sleep(0), seed="dropped")
    decorated = sources.decorate("restart")

    async def main():
        for _ in range(500):
            with suppress(ConnectionError):
                async for item in decorated():
                    if item == sources.rng.randrange(3):
                        break
        for _ in range(5):
            gc.collect()
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert sources.open() == []

    asyncio.run(main())
    sources.check(500)


class Lines:
    """A server that sends lines from a number on, and hangs up behind each third.

    Attributes:
        port: Its port.
        opened: Number of its connections.
        open: Number of those that nobody has closed.
    """

    port = 0

    def __init__(self):
        self.opened = self.open = 0

    async def answer(self, reader, writer):
        self.opened += 1
        self.open += 1
        try:
            first = int(await reader.readline() or 0)
            for number in range(first, first + 3):
                writer.write(b"%d\n" % number)
                await writer.drain()
                await asyncio.sleep(0)
            writer.write_eof()
            # Until the client hangs up as well.
            await reader.read()
        except OSError:
            # It has, before it had read all.
            pass
        finally:
            self.open -= 1
            writer.close()

    async def read(self, start=0):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(b"%d\n" % start)
            async for line in reader:
                yield int(line)
            raise ConnectionError
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


@pytest.mark.needs("sockets")
@pytest.mark.thorough
def test_ten_thousand_cancelled_streams_leave_no_connection():
    """100 at a time, each cancelled after a drawn number of steps."""
    server, rng, seen = Lines(), random.Random(7), []  # noqa: S311  the same each time
    open_before, mode = open_generators(), streams.resume(behind)
    read = retry(stream=mode, on=OSError, schedule=[0] * 9)(server.read)

    async def consume():
        async with read() as stream:
            async for number in stream:
                seen.append(number)  # noqa: PERF401  kept if it is cancelled

    async def cancel_later(steps):
        task = asyncio.create_task(consume())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def main():
        async with await asyncio.start_server(server.answer, "127.0.0.1", 0) as opened:
            server.port = opened.sockets[0].getsockname()[1]
            for _ in range(100):
                await asyncio.gather(
                    *(cancel_later(rng.randrange(60)) for _ in range(100))
                )
            for _ in range(1000):
                if not server.open:
                    break
                await asyncio.sleep(0.01)
        return asyncio.all_tasks() - {asyncio.current_task()}

    left = asyncio.run(main())
    assert (server.open, open_generators(open_before)) == (0, [])
    assert {task for task in left if not task.done()} == set()
    assert server.opened > 5_000
    assert len(seen) > 10_000
    # Beyond the first three, since streams have continued.
    assert max(seen) > 3


def traced(read):
    """Return the most bytes that reading a stream takes at once, and its items."""
    count = 0
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in read():
            count += 1
            if count == 1000:
                # What is allocated once, such as caches, is not counted.
                gc.collect()
                before = tracemalloc.get_traced_memory()[0]
                tracemalloc.reset_peak()
        return tracemalloc.get_traced_memory()[1] - before, count
    finally:
        tracemalloc.stop()


def chunks(end, cut=0):
    """Return a generator function of new objects, that fails after each *cut*."""

    def source(start=0):
        for number in range(start, end):
            yield bytearray(number.to_bytes(8, "big"))
            if cut and not (number + 1) % cut:
                raise ConnectionError

    return source


def behind_chunk(last, _state):
    return {"start": int.from_bytes(last, "big") + 1}


@pytest.mark.needs("speed")
@pytest.mark.thorough
@pytest.mark.parametrize("name", ONE_QUICK)
def test_the_memory_of_a_long_stream_is_flat(name):
    mode = streams.resume(behind_chunk) if name == "resume" else MODES[name]
    read = retry(stream=mode, on=OSError)(chunks(20_000))
    # The least of some: threads of other tests may allocate, too.
    measured = [traced(read) for _ in range(3)]
    assert {count for _, count in measured} == {20_000}
    assert min(peak for peak, _ in measured) < 2_000


@pytest.mark.thorough
@pytest.mark.needs("speed")
def test_the_memory_of_a_stream_of_a_million_items_is_flat():
    """Counted in blocks, since tracing each allocation would take a minute."""
    mode = streams.resume(behind_chunk)
    blocks = []
    read = retry(stream=mode, on=OSError)(chunks(1_000_000))
    for count, _ in enumerate(read(), 1):
        if not count % 50_000:
            blocks.append(sys.getallocatedblocks())
    assert count == 1_000_000
    assert max(blocks) - blocks[0] < 100


@pytest.mark.needs("speed")
@pytest.mark.thorough
def test_the_memory_of_a_stream_that_is_resumed_a_thousand_times_is_flat(quiet):
    def peak_of(resumes):
        settings = {"schedule": [0], "max_attempts": 2, "max_failures": 4}
        mode = streams.resume(behind_chunk)
        read = retry(stream=mode, on=OSError, **settings)(chunks(resumes * 20, 20))
        peak, count = traced(read)
        assert count == resumes * 20
        return peak

    assert peak_of(1000) < peak_of(200) + 3_000


class Pressed(KeyboardInterrupt):
    """Ctrl-C, as a test presses it."""


def interrupted(place):
    """Return a generator function that is interrupted at a place, and its log."""
    log = []

    def source(start=0):
        log.append("begun")
        try:
            if place == "before the first item":
                raise Pressed
            for number in range(start, 3):
                yield number
                if place == "behind an item" and number:
                    raise Pressed
        finally:
            log.append("closed")
            if place == "in its end":
                raise Pressed

    return source, log


@pytest.mark.parametrize(
    "place", ["before the first item", "behind an item", "in its end"]
)
@pytest.mark.parametrize("mode", ["until-first-item", "restart", "resume"])
def test_an_interrupt_in_the_source_ends_the_stream(place, mode):
    mode = streams.resume(sync_behind) if mode == "resume" else mode
    limit = limits.Concurrency(1)
    source, log = interrupted(place)
    stream = retry(schedule=[0], on=OSError, stream=mode, admission=[limit])(source)()
    with pytest.raises(Pressed) as caught:
        list(stream)
    assert log == ["begun", "closed"]
    assert limit.metrics.running == 0
    assert stream.state.status == "dead"
    assert state_of(caught.value) is None or state_of(caught.value).attempt == 1
    with pytest.raises(LookupError):
        current_state()


def test_an_interrupt_between_two_items_ends_the_stream_when_it_is_closed():
    limit, source = limits.Concurrency(1), interrupted("nowhere")
    decorate = retry(schedule=[0], stream="restart", admission=[limit])
    with pytest.raises(Pressed), decorate(source[0])() as stream:
        for _ in stream:
            raise Pressed
    assert source[1] == ["begun", "closed"]
    assert limit.metrics.running == 0
    assert stream.state.status == "succeeded"
    with pytest.raises(LookupError):
        current_state()


def test_an_interrupt_that_is_thrown_into_a_stream_is_not_retried():
    source, log = interrupted("nowhere")
    stream = retry(schedule=[0], on=Exception, stream="restart")(source)()
    next(stream)
    with pytest.raises(Pressed):
        stream.throw(Pressed())
    assert log == ["begun", "closed"]
    assert stream.state.status == "dead"


def test_an_interrupt_in_the_delay_ends_the_stream():
    starts, got = [], []

    def read():
        starts.append(1)
        yield 1
        raise ConnectionError

    def press(event):
        if event.kind == "retry_scheduled":
            raise Pressed

    stream = retry(schedule=[0], on=OSError, stream="restart")(read)()
    with pytest.raises(Pressed), observe(press):
        got.extend(stream)
    assert (starts, got, stream.state.status) == ([1], [1], "dead")


@pytest.mark.needs("threads")
def test_threads_that_iterate_own_streams_of_one_function_are_independent():
    """Also without the global interpreter lock."""
    limit = limits.Concurrency(8)
    barrier = threading.Barrier(8)

    @retry(
        schedule=[0] * 3,
        on=OSError,
        stream=streams.resume(sync_behind),
        admission=[limit],
    )
    def read(start, *, caller):
        for number in range(start, 300):
            assert current_state().stream.items == number
            assert caller in range(8)
            if number and not number % 50 and number == start + 50:
                raise ConnectionError
            yield number

    def consume(caller):
        barrier.wait()
        stream = read(0, caller=caller)
        got = [*stream]
        with pytest.raises(LookupError):
            current_state()
        return got, stream.state.attempt, stream.state.stream.items

    with switching_often(), ThreadPoolExecutor(8) as pool:
        results = list(pool.map(consume, range(8)))
    assert results == [([*range(300)], 6, 300)] * 8
    assert limit.metrics.running == 0


@pytest.mark.needs("threads")
def test_a_stream_that_threads_share_raises_what_a_generator_raises():
    limit = limits.Concurrency(1)

    @retry(schedule=[0] * 3, on=OSError, stream="restart", admission=[limit])
    def read():
        yield from range(20_000)

    stream, errors, barrier = read(), [], threading.Barrier(8)

    def consume(_):
        got, fails = [], 0
        barrier.wait()
        while fails < 100:
            try:
                got.append(next(stream))
            except StopIteration:
                break
            except ValueError as error:
                errors.append(str(error))
                fails += 1
        return got

    with switching_often(), ThreadPoolExecutor(8) as pool:
        got = [each for part in pool.map(consume, range(8)) for each in part]
    # What is left, if all threads have given up.
    got += iter(stream.__next__, None) if stream.state.status == "running" else []
    assert sorted(got) == [*range(20_000)]
    assert {*errors} <= {"generator already executing"}
    assert (stream.state.status, limit.metrics.running) == ("succeeded", 0)
    with pytest.raises(LookupError):
        current_state()
