"""Functions that follow each other until one succeeds."""

import asyncio
import inspect
import traceback

import pytest

from retrykit import (
    CircuitOpenError,
    ConfigError,
    GiveUp,
    Policy,
    RetryAfter,
    StopReason,
    chain,
    current_state,
    limits,
    observe,
    policy_of,
    retry,
    state_of,
    with_policy,
)
from retrykit.streams import AsyncStream, Stream
from tests._support.optional_trio import trio

QUICK = Policy(schedule=[0, 0], on=OSError)


class Provider:
    """A function that raises the errors that it is given, and then answers."""

    def __init__(self, name, *errors):
        self.name, self.errors, self.calls = name, [*errors], []
        self.__qualname__ = name
        self.__module__ = "__main__"

    def __call__(self, city, unit="C"):
        self.calls.append((city, unit))
        if self.errors:
            raise self.errors.pop(0)
        return f"{self.name} {city} {unit}"


def down(name):
    return Provider(name, *(ConnectionError(f"{name} is down") for _ in range(9)))


class Kind:
    def __init__(self, name):
        self.name = name

    def function(self, fn):
        """Return a sync function as one of this kind."""
        if self.name == "sync":
            return fn

        async def coroutine(*args, **kwargs):
            return fn(*args, **kwargs)

        coroutine.__qualname__, coroutine.__module__ = fn.__qualname__, "__main__"
        return coroutine

    def call(self, fn, *args, **kwargs):
        if self.name == "sync":
            return fn(*args, **kwargs)
        if self.name == "trio":
            return trio.run(lambda: fn(*args, **kwargs))
        return asyncio.run(fn(*args, **kwargs))


@pytest.fixture(params=["sync", "asyncio", "trio"])
def kind(request):
    return Kind(request.param)


def test_the_first_that_succeeds_answers(kind):
    first, second, third = down("a"), Provider("b"), Provider("c")
    forecast = chain(*map(kind.function, (first, second, third)))
    assert kind.call(forecast, "Oslo", unit="F") == "b Oslo F"
    assert (first.calls, second.calls) == ([("Oslo", "F")], [("Oslo", "F")])
    assert third.calls == []


def test_each_has_its_own_policy(kind):
    first, second = down("a"), Provider("b", TimeoutError())
    forecast = chain(*(retry(QUICK)(kind.function(x)) for x in (first, second)))
    assert kind.call(forecast, "Oslo") == "b Oslo C"
    assert (len(first.calls), len(second.calls)) == (3, 2)


def test_the_last_error_is_raised_with_the_others_in_its_notes(kind):
    functions = [kind.function(down(name)) for name in "abc"]
    functions[0] = retry(QUICK)(functions[0])
    with pytest.raises(ConnectionError, match="c is down") as caught:
        kind.call(chain(*functions), "Oslo")
    state = state_of(caught.value)
    assert [str(each) for each in state.errors] == [f"{x} is down" for x in "abc"]
    assert state_of(state.errors[0]).attempt == 3
    assert state.name == "chain(a, b, c)"
    assert caught.value.__notes__[0] == (
        "retrykit: before that, a failed with ConnectionError: a is down; b failed "
        "with ConnectionError: b is down"
    )
    assert state.stop_reason is StopReason.ATTEMPTS


def test_a_default_stands_in_for_all(kind):
    functions = [kind.function(down(name)) for name in "ab"]
    assert kind.call(chain(*functions, default="cached"), "Oslo") == "cached"
    seen = lambda state: (state.args, len(state.errors))  # noqa: E731
    assert kind.call(chain(*functions, default=seen), "Oslo") == (("Oslo",), 2)
    assert kind.call(chain(*functions, default=None), "Oslo") is None


def test_one_time_limit_is_for_all(kind, clock):
    def slow(city):
        clock.advance(4)
        raise TimeoutError

    third = Provider("c")
    slow = kind.function(slow)
    forecast = chain(slow, slow, kind.function(third), max_elapsed=8)
    with pytest.raises(TimeoutError) as caught:
        kind.call(forecast, "Oslo")
    assert third.calls == []
    assert state_of(caught.value).stop_detail == "max_elapsed=8s reached"


def test_the_time_limit_is_that_of_the_calls_in_it(clock):
    left = []

    @retry(schedule=[5] * 9, on=OSError)
    def patient():
        left.append(current_state().remaining)
        raise OSError

    with pytest.raises(OSError):
        chain(patient, patient, max_elapsed=12)()
    assert left == [12, 7, 2, 2]


def test_a_provider_that_is_known_to_be_down_is_left_out(kind):
    breaker = limits.CircuitBreaker(consecutive_failures=1, open_for=60)
    first, second = down("a"), Provider("b")
    decorated = retry(QUICK, admission=[breaker])(kind.function(first))
    forecast = chain(decorated, kind.function(second))
    for _ in range(3):
        assert kind.call(forecast, "Oslo") == "b Oslo C"
    assert len(first.calls) == 1


def test_an_open_breaker_is_in_the_notes():
    breaker = limits.CircuitBreaker(consecutive_failures=1, open_for=60)
    first = retry(QUICK, admission=[breaker])(down("a"))
    forecast = chain(first, down("b"))
    for _ in range(2):
        with pytest.raises(ConnectionError) as caught:
            forecast("Oslo")
    assert isinstance(state_of(caught.value).errors[0], CircuitOpenError)
    assert "circuit breaker" in caught.value.__notes__[0]


def test_programming_errors_end_a_chain_unless_on_includes_them(kind):
    first, second = (Provider(name, TypeError("wrong")) for name in "ab")
    functions = kind.function(first), kind.function(second)
    with pytest.raises(TypeError, match="wrong"):
        kind.call(chain(*functions), "Oslo")
    assert second.calls == []
    first.errors.append(TypeError())
    with pytest.raises(TypeError):
        kind.call(chain(*functions, on=Exception), "Oslo")
    assert len(second.calls) == 1


def test_give_up_ends_a_chain(kind):
    first, second = Provider("a", GiveUp()), Provider("b")
    with pytest.raises(GiveUp):
        kind.call(chain(kind.function(first), kind.function(second)), "Oslo")
    assert second.calls == []


def test_a_delay_that_a_function_asks_for_is_not_waited_for(kind, clock):
    first = Provider("a", RetryAfter("2h", OSError("busy")))
    functions = kind.function(first), kind.function(Provider("b"))
    assert kind.call(chain(*functions, max_elapsed=20), "Oslo") == "b Oslo C"
    assert clock.sleeps in ([], [0.0])
    first.errors.append(OSError())
    last = Provider("b", RetryAfter("2h"))
    with pytest.raises(RetryAfter, match="after 2 h"):
        kind.call(chain(kind.function(first), kind.function(last)), "Oslo")


def test_functions_of_one_name_are_told_apart_by_their_policies():
    first, second = (retry(QUICK, name=name)(down("ask")) for name in "ab")
    with pytest.raises(ConnectionError) as caught:
        chain(first, second, down("ask"), down("ask"))("Oslo")
    assert caught.value.__notes__[0].count("failed with") == 3
    assert state_of(caught.value).name == "chain(a, b, ask, ask)"


def test_another_policy_may_have_more_attempts_than_there_are_functions(caplog):
    first, second = down("a"), Provider("b", *[OSError()] * 2)
    forecast = with_policy(chain(first, second), max_attempts=9, schedule=[0] * 8)
    assert forecast("Oslo") == "b Oslo C"
    assert (len(first.calls), len(second.calls)) == (3, 3)


def test_nobody_is_warned_of_multiplied_retries(kind, caplog):
    functions = [retry(QUICK)(kind.function(down(name))) for name in "ab"]
    with pytest.raises(ConnectionError):
        kind.call(chain(*functions), "Oslo")
    assert {each.name for each in caplog.records} <= {"retrykit.retries", "asyncio"}


def test_the_log_names_the_function_that_follows(kind, caplog):
    functions = [kind.function(down(name)) for name in "abc"]
    # A common failure, and one that is not.
    functions[1] = retry(QUICK)(functions[1])
    with pytest.raises(ConnectionError):
        kind.call(chain(*functions), "Oslo")
    texts = [x.getMessage() for x in caplog.records if x.name == "retrykit.retries"]
    following = [x.partition(" (") for x in texts if "going" in x]
    assert [x for x, _, _ in following] == [
        "going on with b after ConnectionError: a is down",
        "going on with c after ConnectionError: b is down",
    ]
    assert following[0][2] == "chain(a, b, c), attempt 2 of 3)"


def test_a_call_around_a_chain_does_not_repeat_it(caplog):
    first = down("a")
    with pytest.raises(ConnectionError) as caught:
        retry(QUICK)(lambda: chain(first, down("b"))("Oslo"))()
    assert len(first.calls) == 1
    assert state_of(caught.value).stop_reason is StopReason.NESTED


def test_observers_are_told_of_a_chain():
    seen = []
    with observe(lambda event: seen.append((event.kind, event.state.name))):
        chain(down("a"), Provider("b"), name="forecast")("Oslo")
    assert seen[0] == ("attempt_started", "forecast")
    assert seen[-1] == ("succeeded", "forecast")


def test_a_chain_looks_like_its_first_function():
    def first(city: str, *, unit: str = "C") -> str: ...

    forecast = chain(first, first)
    assert inspect.signature(forecast) == inspect.signature(first)
    assert policy_of(forecast).max_attempts == 2
    assert forecast.__name__ == "chain"


def test_tracebacks_have_no_frame_of_a_chain(kind):
    def failing():
        raise ConnectionError

    with pytest.raises(ConnectionError) as caught:
        kind.call(chain(*[kind.function(failing)] * 2))
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert not [
        each
        for each in frames
        if each.name == "call" and "_core/chains" in each.filename
    ]


def test_methods_are_chained():
    class Client:
        def primary(self, city):
            raise ConnectionError

        def secondary(self, city):
            return f"sunny in {city}"

        forecast = chain(primary, secondary)

    assert Client().forecast("Oslo") == "sunny in Oslo"


def failing_pages(*before):
    yield from before
    raise ConnectionError("cut off")


def pages():
    yield 1
    yield 2


def test_generators_follow_each_other_until_the_first_item():
    stream = chain(failing_pages, pages)()
    assert isinstance(stream, Stream)
    assert [*stream] == [1, 2]
    assert stream.state.attempt == 2
    stream = chain(lambda: (yield from failing_pages(7)), pages)()
    assert next(stream) == 7
    with pytest.raises(ConnectionError, match="cut off"):
        next(stream)


def test_values_are_sent_through_a_chain():
    def echo():
        heard = []
        while True:
            try:
                heard.append((yield [*heard]))
            except KeyError as error:
                heard.append(str(error))

    stream = chain(failing_pages, echo)()
    assert next(stream) == []
    assert stream.send("one") == ["one"]
    assert stream.throw(KeyError("two")) == ["one", "'two'"]
    stream.close()


def test_async_generators_follow_each_other_too():
    closed = []

    async def failing():
        raise ConnectionError("down")
        yield

    async def echo():
        heard = []
        try:
            while True:
                try:
                    heard.append((yield [*heard]))
                except KeyError as error:
                    heard.append(str(error))
                if heard[-1:] == ["end"]:
                    return
        finally:
            closed.append(1)

    async def main():
        stream = chain(retry(QUICK, stream="restart")(failing), echo)()
        assert isinstance(stream, AsyncStream)
        async with stream:
            assert await anext(stream) == []
            assert await stream.asend("one") == ["one"]
            assert await stream.athrow(KeyError("two")) == ["one", "'two'"]
        assert closed == [1]
        stream = chain(failing, echo)()
        await anext(stream)
        with pytest.raises(StopAsyncIteration):
            await stream.asend("end")
        with pytest.raises(ConnectionError) as caught:
            await anext(chain(failing, failing)())
        assert "before that, " in caught.value.__notes__[0]

    asyncio.run(main())


def test_errors_of_generators_are_in_the_notes():
    with pytest.raises(ConnectionError) as caught:
        next(chain(failing_pages, retry(QUICK, stream="restart")(failing_pages))())
    assert "failing_pages failed with" in caught.value.__notes__[-2]


async def coroutine(city): ...


async def apages():
    yield 1


INVALID = {
    "not callable": (lambda: chain(down("a"), 5), "chain must be functions, got 5"),
    "mixed": (
        lambda: chain(coroutine, down),
        "functions of one kind: coroutine is a coroutine function, .* a sync function",
    ),
    "streams": (
        lambda: chain(pages, apages),
        "is a generator function, got .*; it is an async generator function",
    ),
    "retried": (
        lambda: chain(retry(stream="restart")(pages), retry(coroutine)),
        "it is a coroutine function",
    ),
    "default": (lambda: chain(pages, pages, default=[]), "default must be left out"),
    "type": (lambda: chain(down("a"), down("b"), default=dict), "default must be a v"),
    "time": (lambda: chain(pages, pages, max_elapsed=-1), "max_elapsed must be"),
}


@pytest.mark.parametrize(("write", "text"), INVALID.values(), ids=INVALID)
def test_what_cannot_be_chained_is_told(write, text):
    with pytest.raises(ConfigError, match=text):
        write()
