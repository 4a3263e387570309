"""Generators that are retried: modes, counts, what consumers do, and their state."""

import asyncio
import functools
import gc
import inspect
import pickle
import traceback
import weakref
from contextlib import aclosing, closing

import pytest
from hypothesis import given, strategies as st

from retrykit import (
    AsArgument,
    ConfigError,
    GiveUp,
    Hedge,
    Policy,
    RetryAfter,
    RetryError,
    StopReason,
    aretry,
    current_state,
    limits,
    observe,
    policy_of,
    resume,
    retry,
    state_of,
    streams,
    with_policy,
)
from retrykit.budgets import RatioBudget
from retrykit.errors import ItemTimeout, RefusedError
from retrykit.streams import AsyncStream, Position, Stream, StreamChangedError
from retrykit.testing import virtual_time
from tests._support.optional_trio import trio

QUICK = Policy(schedule=[0, 0, 0], on=OSError)


class Source:
    """A generator function that hands out numbers, and fails behind some of them."""

    def __init__(self, *cuts, end=6):
        self.cuts, self.end, self.starts = [*cuts], end, []

    def __call__(self, start=0):
        self.starts.append(start)
        cut = self.cuts.pop(0) if self.cuts else None
        for number in range(start, self.end):
            if number == cut:
                raise ConnectionError(f"cut before {number}")
            yield number
        if cut is not None and cut >= self.end:
            raise ConnectionError("cut at the end")
        return "end"


class Kind:
    """Runs streams: sync, under asyncio, or under trio."""

    def __init__(self, name):
        self.name = name

    def decorate(self, fn, **settings):
        """Return *fn*, a sync generator function, as a stream of this kind."""
        if self.name != "sync":
            fn = _as_async(fn)
        return retry(**({"policy": QUICK} | settings))(fn)

    def collect(self, stream, got=None):
        """Return the items of a stream, which are added to *got*, if it is given."""
        got = [] if got is None else got
        if self.name == "sync":
            got += _each(stream, got)
            return got

        async def collect():
            async for each in stream:
                got.append(each)

        self.run(collect)
        return got

    def run(self, main):
        if self.name == "trio":
            return trio.run(main)
        return asyncio.run(main())


def _each(stream, got):
    for each in stream:
        got.append(each)
    return []


def _as_async(fn):
    @functools.wraps(fn)
    async def agenerator(*args, **kwargs):
        with closing(fn(*args, **kwargs)) as items:
            for each in items:
                yield each

    agenerator.__signature__ = inspect.signature(fn)
    return agenerator


@pytest.fixture(params=["sync", "asyncio", "trio"])
def kind(request):
    return Kind(request.param)


def behind(last, _state):
    return {"start": last + 1}


MODES = {
    "until-first-item": "until-first-item",
    "restart": "restart",
    "skip": streams.restart(skip_seen=True),
    "resume": streams.resume(behind),
}


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_failures_before_the_first_item_are_retried(kind, mode):
    source = Source(0, 0)
    stream = kind.decorate(source, stream=mode)()
    assert kind.collect(stream) == [0, 1, 2, 3, 4, 5]
    assert source.starts == [0, 0, 0]
    assert (stream.state.attempt, stream.state.status) == (3, "succeeded")
    assert stream.state.stream == streams.StreamProgress(6, (), ())


def test_until_the_first_item_ends_with_later_errors(kind):
    got, stream = [], kind.decorate(Source(0, 2), stream="until-first-item")()
    with pytest.raises(ConnectionError, match="cut before 2") as caught:
        kind.collect(stream, got)
    assert got == [0, 1]
    state = state_of(caught.value)
    assert (state.stop_reason, state.stop_detail) == (
        StopReason.NOT_RETRYABLE,
        "2 items had been handed out",
    )
    assert state.attempt == 2
    assert state.describe().endswith("and 2 items: 2 items had been handed out")


def test_a_restart_hands_out_all_items_again(kind):
    stream = kind.decorate(Source(2, 1), stream="restart")()
    assert kind.collect(stream) == [0, 1, 0, *range(6)]
    assert stream.state.stream.items == 9


def test_a_restart_may_leave_out_what_was_seen(kind):
    source = Source(2, 1, 4)
    stream = kind.decorate(source, stream=streams.restart(skip_seen=True))()
    assert kind.collect(stream) == [*range(6)]
    assert (len(source.starts), stream.state.stream.items) == (4, 6)


def test_a_source_that_has_become_shorter_is_an_error(kind):
    source = Source(4)
    settings = {"stream": streams.restart(skip_seen=True), "on": Exception}

    def shrinking():
        try:
            yield from source()
        finally:
            source.end = 2

    got = []
    with pytest.raises(StreamChangedError) as caught:
        kind.collect(kind.decorate(shrinking, **settings)(), got)
    assert got == [0, 1, 2, 3]
    assert (caught.value.expected, caught.value.found) == (4, 2)
    assert state_of(caught.value).attempt == 2
    assert str(caught.value) in state_of(caught.value).describe()
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  our own
    assert str(again) == str(caught.value)


def test_a_resumed_stream_hands_out_each_item_once(kind):
    source = Source(2, 2, 2, 5, end=8)
    stream = kind.decorate(source, stream=streams.resume(behind))()
    assert kind.collect(stream) == [*range(8)]
    # Without new items it continues where it was.
    assert source.starts == [0, 2, 2, 2, 5]
    assert stream.state.stream.positions == ({"start": 2}, {"start": 5})


@given(cuts=st.lists(st.integers(0, 9), max_size=12))
def test_a_resumed_stream_is_exact_wherever_it_is_cut(cuts):
    source = Source(*cuts, end=9)
    read = retry(stream=streams.resume(behind), schedule=[0] * 20, on=OSError)(source)
    assert [*read()] == [*range(9)]


def test_a_resume_function_gets_the_last_item_and_the_state(kind):
    seen = []

    def from_state(last, state):
        seen.append((last, state.attempt, [str(x) for x in state.errors]))
        return Position({"start": last + 2}, gap=last + 1)

    stream = kind.decorate(Source(2), stream=streams.resume(from_state))()
    assert kind.collect(stream) == [0, 1, 3, 4, 5]
    assert seen == [(1, 2, ["cut before 2"])]
    assert stream.state.stream.gaps == (2,)


def test_an_async_stream_may_have_an_async_resume_function():
    async def later(last, _state):
        await asyncio.sleep(0)
        return {"start": last + 1}

    async def main():
        read = retry(QUICK, stream=streams.resume(later))(_as_async(Source(2)))
        return [each async for each in read()]

    assert asyncio.run(main()) == [*range(6)]


def test_errors_of_a_resume_function_are_those_of_the_attempt(kind):
    faults = [OSError("no answer"), GiveUp]

    def failing(_last, _state):
        raise faults.pop(0)

    with pytest.raises(GiveUp) as caught:
        kind.collect(kind.decorate(Source(2), stream=streams.resume(failing))())
    state = state_of(caught.value)
    assert [str(x) for x in state.errors[:2]] == ["cut before 2", "no answer"]
    assert (state.attempt, state.stop_reason) == (3, StopReason.GAVE_UP)


ANSWERS = {
    "no dict": ("tail", "a dict of arguments keyed by name, or a Position"),
    "none": (None, "a dict of arguments keyed by name, or a Position"),
    "unknown": ({"offset": 3}, "it has no 'offset'"),
}


@pytest.mark.parametrize(("answer", "text"), ANSWERS.values(), ids=ANSWERS)
def test_a_resume_function_that_answers_wrongly_is_told(kind, answer, text):
    mode = streams.resume(lambda _last, _state: answer)
    with pytest.raises(ConfigError, match=text):
        kind.collect(kind.decorate(Source(2), stream=mode)())


def test_the_same_position_after_new_items_is_an_error(kind):
    source = Source(2, 3, 3)
    mode = streams.resume(lambda _last, _state: {"start": 1})
    with pytest.raises(ConfigError, match=r"another position .* got \{'start': 1\}"):
        kind.collect(kind.decorate(source, stream=mode)())
    assert source.starts == [0, 1]


def test_positions_fill_parameters_by_their_names():
    calls = []

    @retry(QUICK, stream=streams.resume(lambda last, _: {"page": last, "size": 9}))
    def pages(url, /, page=1, *others, fresh=False, **options):
        calls.append((url, page, others, fresh, options))
        yield len(calls)
        if len(calls) < 3:
            raise OSError

    assert [*pages("u", 7, 8, depth=2)] == [1, 2, 3]
    assert calls == [
        ("u", 7, (8,), False, {"depth": 2}),
        ("u", 1, (8,), False, {"depth": 2, "size": 9}),
        ("u", 2, (8,), False, {"depth": 2, "size": 9}),
    ]


def test_failures_in_a_row_are_counted_from_the_last_item(kind, clock):
    policy = Policy(max_attempts=3, schedule=[5, 7], on=OSError)
    source = Source(0, 0, 2, 2, 4, 4, 4)
    stream = kind.decorate(source, policy=policy, stream=streams.resume(behind))()
    with pytest.raises(ConnectionError) as caught:
        kind.collect(stream)
    state = state_of(caught.value)
    assert state.stop_detail == "max_attempts=3 reached by failures in a row"
    assert [each.delay for each in state.failures] == [5, 7, 5, 7, 5, 7, None]
    assert state.attempt == 7


def test_a_schedule_ends_in_a_row(kind, clock):
    source = Source(0, 2, 2, 2)
    stream = kind.decorate(source, stream=streams.resume(behind), schedule=[5, 5])()
    with pytest.raises(ConnectionError) as caught:
        kind.collect(stream)
    state = state_of(caught.value)
    assert state.stop_detail == "the schedule has ended after failures in a row"


def test_failures_in_all_are_counted_by_name(kind, clock):
    mode = streams.resume(behind, failures="in_all")
    policy = Policy(max_attempts=3, schedule=[5, 7], on=OSError)
    with pytest.raises(ConnectionError) as caught:
        kind.collect(kind.decorate(Source(1, 2, 3), policy=policy, stream=mode)())
    assert state_of(caught.value).stop_detail == "max_attempts=3 reached"


def test_the_time_of_a_row_begins_with_its_first_failure(clock):
    policy = Policy(max_elapsed=10, schedule=[4] * 9, on=OSError)

    @retry(policy, stream=streams.resume(behind))
    def slow(start=0):
        for number in range(start, 4):
            yield number
            # Items flow: nothing is limited.
            clock.advance(60)
            assert current_state().remaining == 10
            if number < 3:
                raise OSError

    assert [*slow()] == [0, 1, 2, 3]

    @retry(policy, stream=streams.resume(behind))
    def stuck(start=0):
        if start:
            assert current_state().remaining < 10
            raise OSError
        yield 0
        clock.advance(60)
        raise OSError

    with pytest.raises(OSError) as caught:
        [*stuck()]
    state = state_of(caught.value)
    assert state.stop_detail == "max_elapsed=10s would be exceeded by failures in a row"
    assert (state.attempt, state.elapsed) == (3, 68)


def test_a_nested_call_has_the_time_of_the_row(clock):
    policy = Policy(max_elapsed=10, schedule=[4] * 9, on=OSError)
    left = []

    @retry(Policy(schedule=[0]))
    def inner():
        left.append(current_state().remaining)

    @retry(policy, stream=streams.resume(behind))
    def outer(start=0):
        inner()
        yield start
        clock.advance(60)
        inner()
        if not start:
            raise OSError

    assert [*outer()] == [0, 1]
    assert left == [10, 10, 6, 10]


def test_rules_count_in_a_row_too(kind, clock):
    from retrykit import Rule

    rule = Rule(OSError, schedule=[1, 2], max_attempts=3)
    source = Source(1, 1, 2, 2, 3)
    stream = kind.decorate(
        source, policy=Policy(rules=[rule], schedule=[9]), stream=streams.resume(behind)
    )()
    assert kind.collect(stream) == [*range(6)]
    assert [each.delay for each in stream.state.failures] == [1, 2, 1, 2, 1]


def test_signals_steer_a_stream(kind, clock):
    signals = [RetryAfter(30), GiveUp]

    def steered():
        yield 1
        raise signals.pop(0)

    got = []
    with pytest.raises(GiveUp) as caught:
        kind.collect(kind.decorate(steered, stream="restart")(), got)
    assert got == [1, 1]
    assert [x.delay for x in state_of(caught.value).failures] == [30, None]


def test_the_final_error_is_that_of_the_policy(kind):
    settings = {"raises": "retry_error", "stream": "restart"}
    with pytest.raises(RetryError) as caught:
        kind.collect(kind.decorate(Source(*[1] * 9), **settings)())
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert caught.value.state.stream.items == 4


def test_a_position_may_set_what_stands_behind_a_default():
    @retry(QUICK, stream=streams.resume(lambda last, _: {"after": last}))
    def numbers(_step=1, after=0, /):
        yield after + 1
        if after < 2:
            raise OSError

    assert [*numbers()] == [1, 2, 3]


def test_a_built_in_may_tell_where_to_continue():
    answers = iter([{"start": 5}]).__next__
    mode = streams.resume(functools.partial(_call, answers))
    assert [*retry(QUICK, stream=mode)(Source(2))()] == [0, 1, 5]
    assert streams.resume(max) == streams.resume(max)


def _call(function, _last, _state):
    return function()


def test_the_log_tells_the_row(kind, caplog):
    mode = streams.resume(behind)
    policy = Policy(max_attempts=3, schedule=[0] * 3, on=OSError)
    kind.collect(kind.decorate(Source(2, 4, 4), policy=policy, stream=mode)())
    texts = [each.getMessage() for each in caplog.records]
    assert [each.partition("(")[2] for each in texts if "retrying" in each] == [
        "attempt 2 of 3)",
        "attempt 3, 2 of 3 in a row)",
        "attempt 4, 3 of 3 in a row)",
    ]


def echo():
    heard = []
    while True:
        try:
            heard.append((yield len(heard)))
        except KeyError as error:
            heard.append(str(error))
        if heard[-1] == "end":
            return heard
        if heard[-1] == "fail":
            raise OSError


def test_values_and_errors_are_sent_to_the_generator():
    stream = retry(QUICK, stream="restart")(echo)()
    assert next(stream) == 0
    assert stream.send("one") == 1
    assert stream.throw(KeyError("two")) == 2
    # It begins anew.
    assert stream.send("fail") == 0
    with pytest.raises(StopIteration) as caught:
        stream.send("end")
    assert caught.value.value == ["end"]


async def aecho():
    heard = []
    while True:
        try:
            heard.append((yield heard[-1:]))
        except KeyError as error:
            heard.append(str(error))
        if heard[-1] == "end":
            return
        if heard[-1] == "fail":
            raise OSError


def test_values_and_errors_are_sent_to_an_async_generator():
    async def main():
        stream = aretry(QUICK, stream="restart")(aecho)()
        assert await anext(stream) == []
        assert await stream.asend("one") == ["one"]
        assert await stream.athrow(KeyError("two")) == ["'two'"]
        assert await stream.asend("fail") == []
        with pytest.raises(StopAsyncIteration):
            await stream.asend("end")

    asyncio.run(main())


def test_errors_of_the_consumer_are_not_retried():
    starts, stream = [], None

    @retry(QUICK, stream="restart")
    def read():
        starts.append(1)
        try:
            yield 1
        except KeyError as error:
            raise ConnectionError from error

    for thrown, raised in ((OSError(), OSError), (KeyError(), ConnectionError)):
        stream = read()
        next(stream)
        with pytest.raises(raised):
            stream.throw(thrown)
        assert stream.state.stop_reason is StopReason.NOT_RETRYABLE
    assert len(starts) == 2


def test_a_closed_stream_is_not_retried(kind):
    closed, source = [], Source(2)

    def read():
        try:
            yield from source()
        finally:
            closed.append(1)

    stream = kind.decorate(read, stream="restart")()
    if kind.name == "sync":
        with stream:
            assert next(stream) == 0
    else:

        async def main():
            async with aclosing(stream):
                assert await anext(stream) == 0

        kind.run(main)
    assert (closed, len(source.starts)) == ([1], 1)
    # The consumer had all that it wanted.
    assert stream.state.status == "succeeded"


def test_an_error_of_closing_is_not_retried(kind):
    starts = []

    def read():
        starts.append(1)
        try:
            yield 1
        finally:
            raise OSError("close")

    stream = kind.decorate(read, stream="restart")()
    with pytest.raises(OSError, match="close"):
        if kind.name == "sync":
            next(stream)
            stream.close()
        else:

            async def main():
                async with stream:
                    await anext(stream)

            kind.run(main)
    assert len(starts) == 1


def test_a_stream_is_iterated_once(kind):
    stream = kind.decorate(Source(), stream="restart")()
    assert len(kind.collect(stream)) == 6
    with pytest.raises(ConfigError, match="iterated once"):
        kind.collect(stream)


def test_a_loop_may_go_on_where_another_has_stopped():
    stream = retry(stream="restart")(Source())()
    for each in stream:
        if each == 2:
            break
    assert [*stream] == [3, 4, 5]


def test_nothing_happens_before_the_first_item_is_asked_for(kind):
    source = Source()
    stream = kind.decorate(source, stream="restart")()
    assert source.starts == []
    with pytest.raises(LookupError, match="before its first item"):
        stream.state  # noqa: B018
    assert repr(stream) == f"<{type(stream).__name__} that has not begun>"
    kind.collect(stream)
    assert "succeeded after 1 attempt" in repr(stream)


def test_the_current_call_is_that_of_the_stream_only_in_the_generator():
    seen = []

    @retry(QUICK, stream="restart")
    def read():
        for number in range(3):
            seen.append(current_state().stream.items)
            yield number

    for _ in read():
        with pytest.raises(LookupError):
            current_state()
    assert seen == [0, 1, 2]


def test_a_stream_in_a_stream_is_nested():
    @retry(QUICK, stream="restart", name="inner")
    def inner():
        yield current_state().depth

    @retry(QUICK, stream="restart", name="outer")
    def outer():
        yield from inner()
        yield current_state().depth

    assert [*outer()] == [1, 0]


def test_exhausted_retries_of_an_inner_stream_are_not_repeated():
    source = Source(*[0] * 9)

    @retry(QUICK, stream="restart")
    def outer():
        yield from retry(QUICK, stream="restart")(source)()

    with pytest.raises(ConnectionError) as caught:
        [*outer()]
    assert len(source.starts) == 4
    assert state_of(caught.value).stop_reason is StopReason.NESTED


def test_limits_and_budgets_are_asked(kind):
    breaker = limits.CircuitBreaker(consecutive_failures=2, open_for=60)
    budget = RatioBudget(1.0)
    settings = {"admission": [breaker], "budget": budget, "stream": "restart"}
    with pytest.raises(ConnectionError) as caught:
        kind.collect(kind.decorate(Source(*[1] * 9), **settings)())
    assert state_of(caught.value).attempt == 2
    with pytest.raises(RefusedError):
        kind.collect(kind.decorate(Source(), **settings)())


def test_a_breaker_counts_streams_that_break_behind_their_first_item(kind):
    breaker = limits.CircuitBreaker(consecutive_failures=2, open_for=60)
    settings = {"admission": [breaker], "stream": "until-first-item"}
    for _ in range(2):
        with pytest.raises(ConnectionError):
            kind.collect(kind.decorate(Source(2), **settings)())
    with pytest.raises(RefusedError):
        kind.collect(kind.decorate(Source(), **settings)())


def test_a_closed_stream_gives_its_leases_back():
    limit = limits.Concurrency(1)
    read = retry(QUICK, stream="restart", admission=[limit])(Source())
    for _ in range(2):
        with read() as stream:
            next(stream)
            with pytest.raises(RefusedError):
                next(read())


def test_observers_hear_of_the_attempts():
    seen = []
    with observe(lambda event: seen.append(event.kind)):
        [*retry(QUICK, stream="restart")(Source(2))()]
    assert seen == [
        "attempt_started",
        "attempt_failed",
        "retry_scheduled",
        "attempt_started",
        "succeeded",
    ]


def test_async_observers_are_awaited():
    seen = []

    async def observer(event):
        await asyncio.sleep(0)
        seen.append(event.kind)

    async def main():
        read = retry(QUICK, stream="restart", observers=[observer])(
            _as_async(Source(2))
        )
        return [each async for each in read()]

    assert len(asyncio.run(main())) == 8
    assert seen[-1] == "succeeded"


def test_a_first_item_has_a_time_limit_and_each_further_one():
    waits = [(99, 0), (0, 99), (0, 0)]

    async def read(start=0):
        first, further = waits.pop(0)
        await asyncio.sleep(first)
        yield start
        await asyncio.sleep(further)
        yield start + 1

    mode = streams.resume(behind, first_item_timeout=5, item_timeout=3)
    # Whatever the policy retries.
    decorated = retry(stream=mode, schedule=[0, 0, 0], on=KeyError)(read)

    async def main():
        stream = decorated()
        assert [each async for each in stream] == [0, 1, 2]
        return stream.state

    with (
        virtual_time() as clock,
        asyncio.Runner(loop_factory=clock.new_event_loop) as runner,
    ):
        state = runner.run(main())
        assert clock.now() == 8
    assert [str(each) for each in state.errors] == [
        "no item came within 5 s",
        "no item came within 3 s",
    ]
    assert all(isinstance(each, ItemTimeout) for each in state.errors)


def test_items_that_are_left_out_have_the_time_limit_too():
    mode = streams.restart(skip_seen=True, first_item_timeout=5, item_timeout=3)
    decorated = retry(QUICK, stream=mode)(_as_async(Source(2)))

    async def main():
        return [each async for each in decorated()]

    assert asyncio.run(main()) == [*range(6)]


def test_values_are_sent_within_the_time_limit():
    async def main():
        mode = streams.restart(item_timeout="3s")
        stream = retry(stream=mode, schedule=[0], on=OSError)(aecho)()
        assert await anext(stream) == []
        assert await stream.asend("one") == ["one"]
        assert await stream.athrow(KeyError("two")) == ["'two'"]
        await stream.aclose()

    asyncio.run(main())


def test_cancellation_ends_a_stream_wherever_it_waits():
    """In the source, in the delay, and between two items."""

    async def main(ticks):
        closed = []

        @retry(schedule=[0.01, 0.01], on=OSError, stream="restart")
        async def read():
            try:
                await asyncio.sleep(0)
                yield 1
                await asyncio.sleep(0)
                raise OSError
            finally:
                closed.append(1)

        stream = read()

        async def consume():
            async with stream:
                async for _ in stream:
                    await asyncio.sleep(0)

        task = asyncio.create_task(consume())
        for _ in range(ticks):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        with pytest.raises(LookupError):
            current_state()
        return stream, len(closed)

    for ticks in range(1, 12):
        stream, closed = asyncio.run(main(ticks))
        assert stream.state.status != "running"
        assert closed == stream.state.attempt


@pytest.mark.parametrize("name", ["sync", "asyncio"])
def test_a_stream_that_is_dropped_is_closed(name):
    closed, kind = [], Kind(name)

    def read():
        try:
            yield 1
        finally:
            closed.append(1)

    stream = kind.decorate(read, stream="restart")
    if kind.name == "sync":
        next(stream())
    else:

        async def main():
            await anext(stream())
            gc.collect()
            for _ in range(3):
                await asyncio.sleep(0)

        asyncio.run(main())
    assert closed == [1]


def test_no_item_is_kept():
    class Chunk:
        pass

    kept = []

    @retry(QUICK, stream="until-first-item")
    def chunks():
        for _ in range(5):
            chunk = Chunk()
            kept.append(weakref.ref(chunk))
            yield chunk
            del chunk

    for each in chunks():
        del each
        assert sum(ref() is not None for ref in kept) <= 2
    assert not any(ref() for ref in kept)


def test_the_error_that_ends_a_stream_is_freed():
    class FreedError(OSError):
        pass

    @retry(QUICK, stream="restart")
    def read():
        yield 1
        raise FreedError

    alive = []
    gc.disable()
    try:
        try:
            for _ in read():
                pass
        except FreedError as error:
            alive.append(weakref.ref(error))
        assert [ref() for ref in alive] == [None]
    finally:
        gc.enable()


def test_tracebacks_have_no_frames_of_earlier_attempts():
    with pytest.raises(ConnectionError) as caught:
        [*retry(QUICK, stream="restart")(Source(2, 2, 2, 2))()]
    trace, names = caught.value.__traceback__, []
    while trace is not None:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert names[1:] in (["__call__"], ["run_stream", "__call__"])


def test_tracebacks_have_no_frames_of_timeouts():
    async def read():
        await asyncio.sleep(0)
        raise ConnectionError
        yield

    mode = streams.until_first_item(first_item_timeout=5)

    async def main():
        return [each async for each in retry(QUICK, stream=mode)(read)()]

    with pytest.raises(ConnectionError) as caught:
        asyncio.run(main())
    frames = traceback.extract_tb(caught.value.__traceback__)
    ours = [each.name for each in frames if "retrykit/_core" in each.filename]
    assert ours in ([], ["run_stream"])


def test_methods_and_other_callables_return_streams():
    class Client:
        base = 10

        @retry(QUICK, stream="restart")
        def numbers(self, end):
            yield from range(self.base, end)

        @classmethod
        @retry(QUICK, stream="restart")
        def more(cls):
            yield cls.base

        @retry(QUICK, stream="restart")
        @staticmethod
        def rest():
            yield 1

    assert [*Client().numbers(12)] == [10, 11]
    assert [*Client.more()] == [10]
    assert [*Client().rest()] == [1]
    partial = retry(QUICK, stream="restart")(functools.partial(Source(), 4))
    assert [*partial()] == [4, 5]
    assert isinstance(partial(), Stream)


def test_another_policy_keeps_the_mode():
    read = retry(QUICK, stream="restart")(plain)
    other = with_policy(read, max_attempts=2)
    assert isinstance(other(), Stream)
    assert policy_of(other).max_attempts == 2
    data = pickle.dumps(with_policy(decorated_plain, max_attempts=2))
    copied = pickle.loads(data)  # noqa: S301  our own
    assert [*copied()] == [1]


def plain():
    yield 1


@retry(QUICK, stream="restart")
def decorated_plain():
    yield 1


def test_a_policy_may_be_asked_for_each_stream():
    policies = [QUICK, Policy(max_attempts=1)]
    read = retry(policy=lambda: policies.pop(0), stream="restart")(Source(1))
    assert len([*read()]) == 7
    source = Source(1, 1)
    with pytest.raises(ConnectionError):
        [*retry(policy=lambda: policies.pop(0), stream="restart")(source)()]

    async def main():
        read = retry(policy=lambda: QUICK, stream="restart")(_as_async(Source(1)))
        stream = read()
        assert isinstance(stream, AsyncStream)
        return [each async for each in stream]

    assert len(asyncio.run(main())) == 7


def test_a_timeout_may_be_an_argument(clock):
    seen = []

    @retry(QUICK, attempt_timeout=AsArgument(5), stream="restart", max_elapsed=7)
    def read(timeout):
        seen.append(timeout)
        yield 1
        if len(seen) == 1:
            clock.advance(4)
            raise OSError

    assert [*read()] == [1, 1]
    assert seen == [5, 3]


def settled(**settings):
    return lambda: retry(**settings)(plain)


async def aplain():
    yield 1


INVALID = {
    "mode": (settled(stream="once"), r"stream must be 'until-first-item', 'restart'"),
    "function": (settled(stream=behind), r"write streams.resume\(behind\)"),
    "resume alone": (settled(stream="resume"), r"write streams.resume\(function\)"),
    "no generator": (lambda: retry(stream="restart")(len), "not a generator function"),
    "coroutine": (
        lambda: aretry(stream="restart")(asyncio.sleep),
        "not a generator function",
    ),
    "sync under aretry": (
        lambda: aretry(stream="restart")(plain),
        "an async generator function under aretry.* decorate it with retry",
    ),
    "timeout of attempts": (
        lambda: retry(stream="restart", attempt_timeout=5)(aplain),
        "attempt_timeout must be None for a stream",
    ),
    "result": (
        settled(stream="restart", on_result=lambda _: True),
        "on_result must be None",
    ),
    "fallback": (settled(stream="restart", fallback=[]), "fallback must be left out"),
    "hedge": (
        settled(stream="restart", hedge=Hedge(1, idempotent=True)),
        "hedge must be None",
    ),
    "timeout of sync items": (
        settled(stream=streams.restart(item_timeout=3)),
        "item_timeout must be None for a sync generator",
    ),
    "above the function": (
        lambda: retry(plain, stream="restart"),
        r"write retry\(\.\.\.\)\(fn\)",
    ),
    "failures": (lambda: streams.restart(failures="all"), "'in_a_row' or 'in_all'"),
    "a row of what comes again": (
        lambda: streams.restart(failures="in_a_row"),
        "failures must be 'in_all' without skip_seen, .* write skip_seen=True",
    ),
    "skip": (lambda: streams.restart(skip_seen=1), "skip_seen must be True or False"),
    "timeout": (lambda: streams.restart(item_timeout=0), "item_timeout must be"),
    "no function": (lambda: streams.resume("page"), "continue_from must be a function"),
    "of one argument": (
        lambda: streams.resume(lambda last: last),
        "write lambda last_item, state",
    ),
    "dict position": (lambda: Position(3), "arguments must be"),
}


@pytest.mark.parametrize(("write", "text"), INVALID.values(), ids=INVALID)
def test_what_does_not_fit_is_told_where_it_is_written(write, text):
    with pytest.raises(ConfigError, match=text):
        write()


def test_a_sync_stream_has_no_async_resume_function():
    async def later(_last, _state): ...

    with pytest.raises(ConfigError, match="a sync function for a sync generator"):
        retry(stream=streams.resume(later))(plain)


@pytest.mark.parametrize("stream", [None, "restart"])
def test_a_stream_is_retried_once(stream):
    with pytest.raises(ConfigError, match="fn must be a function without a stream"):
        retry(stream=stream)(decorated_plain)


def test_a_stream_is_not_resumed_from_a_state():
    with pytest.raises(ConnectionError) as caught:
        [*retry(QUICK, stream="until-first-item")(Source(1))()]
    with pytest.raises(ConfigError, match="a function that returns a result"):
        resume(decorated_plain, state_of(caught.value))


@pytest.mark.parametrize("one_shot", [iter([1]), map(str, [1]), (x for x in [1])])
def test_an_argument_that_can_be_read_once_is_refused(kind, one_shot):
    read = kind.decorate(lambda rows, end=0: (yield rows), stream="restart")
    with pytest.raises(ConfigError, match="argument 1 must be no iterator"):
        read(one_shot)
    with pytest.raises(ConfigError, match="end must be no iterator"):
        read([1], end=one_shot)


def test_an_open_file_is_more_than_its_lines(tmp_path):
    read = retry(stream="restart")(lambda file: (yield file.name))
    with (tmp_path / "rows").open("w") as file:
        assert [*read(file)] == [file.name]


def test_modes_are_values():
    assert streams.restart(skip_seen=True) == streams.restart(skip_seen=True)
    shown = [
        streams.until_first_item(),
        streams.restart(skip_seen=True, failures="in_a_row"),
        streams.resume(behind, failures="in_all", item_timeout=3),
    ]
    assert [repr(each) for each in shown] == [
        "streams.until_first_item()",
        "streams.restart(skip_seen=True, failures='in_a_row')",
        "streams.resume(behind, failures='in_all', item_timeout=3.0)",
    ]
    assert repr(Position({"start": 1})) == "Position({'start': 1})"
    data = pickle.dumps(Position({"start": 1}, gap="two"))
    again = pickle.loads(data)  # noqa: S301  our own
    assert again == Position({"start": 1}, gap="two")
