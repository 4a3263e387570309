"""Circuit breakers as decorators and as blocks."""

import asyncio
import functools
import inspect
import math
import pickle

import pytest

from retrykit import CircuitOpenError, ConfigError, GiveUp, RetryAfter, hints, retry
from retrykit.errors import NestingError
from retrykit.limits import CircuitBreaker, Lease, Limit
from retrykit.testing import virtual_time
from tests._support.optional_trio import trio


def run(coroutine):
    return asyncio.run(coroutine)


def raise_(error):
    raise error


def double(value: int, /, *, more: int = 0) -> int:
    """Return twice the value."""
    return 2 * value + more


guarded = CircuitBreaker()(double)


def in_decorator(breaker, fn, *args):
    return breaker(fn)(*args)


def in_block(breaker, fn, *args):
    with breaker.guard():
        return fn(*args)


def in_coroutine(breaker, fn, *args):
    @breaker
    async def call():
        await asyncio.sleep(0)
        return fn(*args)

    return run(call())


def in_async_block(breaker, fn, *args):
    async def call():
        async with breaker.guard():
            await asyncio.sleep(0)
            return fn(*args)

    return run(call())


@pytest.fixture(params=[in_decorator, in_block, in_coroutine, in_async_block])
def form(request):
    return request.param


def test_a_success_counts(form):
    breaker = CircuitBreaker()
    assert form(breaker, double, 4) == 8
    assert breaker.metrics[:2] == (1, 0)


def test_a_failure_counts_and_is_raised_unchanged(form):
    breaker, error = CircuitBreaker(), OSError("gone")
    with pytest.raises(OSError, match="gone") as caught:
        form(breaker, raise_, error)
    assert caught.value is error
    assert not hasattr(error, "__notes__")
    assert breaker.metrics[:2] == (1, 1)


@pytest.mark.parametrize(
    "error",
    [TypeError(), CircuitOpenError(None, "open", 1.0), GiveUp(TypeError())],
    ids=["a mistake", "another breaker", "a signal"],
)
def test_what_is_no_failure_is_ignored(form, error):
    breaker = CircuitBreaker()
    with pytest.raises(type(error)):
        form(breaker, raise_, error)
    assert breaker.metrics.calls == 0
    assert breaker.metrics.total_ignored == 1


class StopNow(BaseException):
    """No Exception."""


def test_what_ends_the_program_is_ignored(form):
    breaker = CircuitBreaker(on=lambda _: True)
    with pytest.raises(StopNow):
        form(breaker, raise_, StopNow())
    assert breaker.metrics.total_ignored == 1


def test_a_signal_is_judged_by_its_cause(form):
    breaker = CircuitBreaker(on=OSError)
    for signal in [RetryAfter(1, OSError()), RetryAfter(1, ValueError())]:
        with pytest.raises(RetryAfter):
            form(breaker, raise_, signal)
    assert breaker.metrics.failures == breaker.metrics.total_ignored == 1


def test_conditions_are_types_or_predicates(form):
    breaker = CircuitBreaker(on=lambda error: "busy" in str(error))
    for text in ["busy", "gone"]:
        with pytest.raises(OSError, match=text):
            form(breaker, raise_, OSError(text))
    assert breaker.metrics[:2] == (1, 1)


def test_a_condition_that_fails_does_not_hide_the_error(form, caplog):
    breaker = CircuitBreaker(on=lambda _: 1 / 0)
    with pytest.raises(OSError, match="gone") as caught:
        form(breaker, raise_, OSError("gone"))
    [note] = caught.value.__notes__
    assert note == (
        "retrykit: ignored, because its limit failed with ZeroDivisionError: "
        "division by zero"
    )
    assert "the condition of its limit failed" in caplog.text
    assert breaker.metrics.total_ignored == 1


def test_a_refused_call_is_not_made(form):
    breaker = CircuitBreaker(name="api", open_for="5s", consecutive_failures=1)
    with virtual_time():
        breaker.open()
        with pytest.raises(CircuitOpenError) as caught:
            form(breaker, raise_, OSError())
    error = caught.value
    assert (error.breaker, error.retry_in) == ("api", 5.0)
    assert error.reason == "open, as it was opened by hand"
    assert str(error) == (
        "circuit breaker 'api' is open, as it was opened by hand; try again in 5 s"
    )
    assert breaker.metrics.total_refused == 1


def test_the_error_of_an_isolated_breaker_says_how_to_end_that():
    breaker = CircuitBreaker()
    breaker.isolate()
    with pytest.raises(CircuitOpenError) as caught:
        in_block(breaker, double, 1)
    text = "circuit breaker is isolated until close() is called"
    assert str(caught.value) == text
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  our own
    assert str(again) == text
    assert caught.value.retry_in is None


@pytest.mark.parametrize("form", [in_decorator, in_coroutine])
def test_results_can_be_failures(form):
    breaker = CircuitBreaker(on_result=lambda result: result == 503)
    assert form(breaker, lambda: 503) == 503
    assert form(breaker, lambda: 200) == 200
    assert breaker.metrics[:2] == (2, 1)


@pytest.mark.parametrize("form", [in_decorator, in_coroutine])
def test_a_predicate_of_results_that_fails_ends_the_call(form):
    breaker = CircuitBreaker(on_result=lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        form(breaker, double, 1)
    assert breaker.metrics.total_ignored == 1


def test_a_block_can_report_a_result():
    breaker = CircuitBreaker()
    with breaker.guard() as lease:
        assert isinstance(lease, Lease)
        lease.failed()
    assert breaker.metrics[:2] == (1, 1)


def test_a_block_is_entered_once():
    breaker = CircuitBreaker()
    guard = breaker.guard()
    with guard, pytest.raises(NestingError, match="for each block"), guard:
        pass
    assert breaker.metrics[:2] == (1, 0)


def test_blocks_nest():
    breaker = CircuitBreaker()
    with breaker.guard(), breaker.guard():
        pass
    assert breaker.metrics.calls == 2


def test_a_breaker_itself_is_no_block():
    with pytest.raises(TypeError), CircuitBreaker():
        pass


def test_a_function_keeps_its_signature():
    assert guarded(3, more=1) == 7
    assert guarded.__wrapped__ is double
    assert inspect.signature(guarded) == inspect.signature(double)
    assert guarded.__doc__ == "Return twice the value."
    assert guarded.__name__ == "double"


def test_a_coroutine_function_stays_one():
    @CircuitBreaker()
    async def fetch(): ...

    assert inspect.iscoroutinefunction(fetch)


def test_a_sync_function_that_returns_a_coroutine_is_an_error():
    breaker = CircuitBreaker()
    with pytest.raises(ConfigError, match="the result must be no coroutine"):
        breaker(lambda: asyncio.sleep(0))()
    assert breaker.metrics.total_ignored == 1


def test_methods_partials_and_objects_are_functions():
    breaker = CircuitBreaker()

    class Client:
        @breaker
        def fetch(self, more):
            return self, more

        @staticmethod
        @breaker
        def static(more):
            return more

        @classmethod
        @breaker
        def of(cls, more):
            return cls, more

        def __call__(self, more):
            return more

    client = Client()
    assert client.fetch(1) == (client, 1)
    assert Client.static(2) == 2
    assert Client.of(3) == (Client, 3)
    assert breaker(client)(4) == 4
    assert breaker(functools.partial(double, 5))() == 10
    assert breaker.metrics.calls == 5


def test_it_works_under_trio():
    breaker = CircuitBreaker()

    @breaker
    async def fetch():
        with trio.move_on_after(0):
            await trio.sleep(9)
        async with breaker.guard():
            return 5

    assert trio.run(fetch) == 5
    assert breaker.metrics.calls == 2


class TestUnderRetry:
    """What docs/circuit_breakers.md says of a breaker within a retried function."""

    def attempts(self, **settings):
        made = []
        breaker = CircuitBreaker(consecutive_failures=2, open_for="20s")

        @retry(schedule=[1] * 9, max_elapsed=None, **settings)
        @breaker
        def fetch():
            made.append(1)
            raise_(OSError("gone"))

        with virtual_time() as clock, pytest.raises((OSError, CircuitOpenError)) as e:
            fetch()
        return len(made), clock.sleeps, e.value

    def test_the_default_condition_repeats_refusals(self):
        made, sleeps, error = self.attempts(max_attempts=5)
        assert (made, sleeps) == (2, [1, 1, 1, 1])
        assert isinstance(error, CircuitOpenError)

    def test_give_up_on_ends_the_call(self):
        made, sleeps, error = self.attempts(give_up_on=CircuitOpenError)
        assert (made, sleeps) == (2, [1, 1])
        assert isinstance(error, CircuitOpenError)

    def test_a_hint_waits_until_the_breaker_allows_a_call(self):
        hint = hints.attribute("retry_in")
        made, sleeps, _ = self.attempts(hint=hint, hint_jitter=0, max_attempts=4)
        assert (made, sleeps) == (3, [1, 1, 19])


def test_one_look_tells_whether_a_call_may_be_made_now():
    breaker = CircuitBreaker()
    assert not breaker.acquire().delay
    breaker.isolate()
    assert breaker.acquire().delay == math.inf


class Pacer(Limit):
    """A limit that lets a call through after two seconds."""

    state = "pacing"

    class Later(Lease):
        delay = 2.0
        generation = 0

        def succeeded(self): ...

        def failed(self, error=None): ...

        ignored = succeeded

    def acquire(self):
        return self.Later()


@pytest.mark.parametrize("form", [in_decorator, in_block, in_coroutine, in_async_block])
def test_a_call_waits_as_long_as_its_limit_says(form):
    with virtual_time() as clock:
        assert form(Pacer(), double, 1) == 2
        assert clock.now() == 2


def test_a_breaker_without_a_condition_leaves_results_to_the_policy():
    assert CircuitBreaker().is_failed_result("any") is None
