"""4. Nothing leaks: failed attempts are freed without the garbage collector."""

import asyncio
import contextlib
import functools
import gc
import itertools
import sys
import traceback
import weakref

import pytest

from retrykit import GiveUp, Policy, aretry, aretrying, retry, retrying, state_of
from retrykit.events import AttemptStarted
from retrykit.schedules import constant


class Local:
    """The value of a local variable of a failed attempt."""


@pytest.fixture
def attempts():
    gc.disable()
    yield Attempts()
    gc.enable()


class Attempts:
    def __init__(self):
        self.locals = []

    def __call__(self, failures, kind=OSError):
        """Fail so many times, each time with a local variable."""
        local = Local()
        self.locals.append(weakref.ref(local))
        if len(self.locals) <= failures:
            raise kind(f"attempt {len(self.locals)}")
        return "value"

    async def async_call(self, failures, kind=OSError):
        await asyncio.sleep(0)
        return self(failures, kind)

    @property
    def alive(self):
        return [i for i, local in enumerate(self.locals, 1) if local() is not None]


SYNC_FORMS = ["blocking", "method", "call", "run", "block"]
ASYNC_FORMS = ["awaited", "acall", "arun", "ablock"]
FORMS = SYNC_FORMS + ASYNC_FORMS
RAISES = ["last", "retry_error", "group"]


def call_sync(form, policy, attempts, *args):
    """Make a call in one of the sync forms, and return its value."""
    if form == "blocking":
        return retry(policy)(attempts)(*args)
    if form == "call":
        return policy.call(attempts, *args)
    if form == "block":
        return in_a_block(policy, attempts, args)
    if form == "run":
        return value_of(policy.run(attempts, *args))

    class Client:
        @retry(policy)
        def fetch(self):
            return attempts(*args)

    return Client().fetch()


async def call_async(form, policy, attempts, *args):
    """Make a call in one of the async forms, and return its value."""
    if form == "awaited":
        return await aretry(policy)(attempts.async_call)(*args)
    if form == "acall":
        return await policy.acall(attempts.async_call, *args)
    if form == "arun":
        return value_of(await policy.arun(attempts.async_call, *args))
    async for attempt in aretrying(policy):
        with attempt:
            return await attempts.async_call(*args)


def value_of(outcome):
    # An outcome keeps its error alive, and must not be kept by this frame.
    try:
        if outcome.error:
            raise outcome.error
        return outcome.value
    finally:
        del outcome


def call_and_handle(form, policy, attempts, *args, by):
    """Make a call in any form, and pass the error that it raises to a handler."""
    if form in SYNC_FORMS:
        try:
            return call_sync(form, policy, attempts, *args)
        except BaseException as error:  # noqa: BLE001
            return by(error)

    # asyncio.run itself keeps the error alive, so the handler is inside.
    async def main():
        try:
            return await call_async(form, policy, attempts, *args)
        except BaseException as error:  # noqa: BLE001
            by(error)

    return asyncio.run(main())


def unexpected(error):
    raise AssertionError(error)


def in_a_block(policy, attempts, args):
    for attempt in retrying(policy):
        with attempt:
            value = attempts(*args)
            attempt.set_result(value)
    return value


@pytest.mark.parametrize("form", FORMS)
def test_locals_are_freed_when_the_call_succeeds(clock, attempts, form):
    policy = Policy(schedule=[1, 1, 1])
    assert call_and_handle(form, policy, attempts, 3, by=unexpected) == "value"
    assert len(attempts.locals) == 4
    assert attempts.alive == []


@pytest.mark.parametrize("raises", RAISES)
@pytest.mark.parametrize("form", FORMS)
def test_locals_are_freed_when_the_handler_releases_the_error(
    clock, attempts, form, raises
):
    def handler(error):
        assert len(state_of(error).errors) == 3
        assert 3 in attempts.alive

    call_and_handle(
        form, Policy(schedule=[1, 1], raises=raises), attempts, 9, by=handler
    )
    assert len(attempts.locals) == 3
    assert attempts.alive == []


@pytest.mark.parametrize("form", FORMS)
def test_locals_are_freed_when_the_call_gives_up_with_a_cause(clock, attempts, form):
    def give_up(text):
        try:
            raise OSError(text)
        except OSError as error:
            return GiveUp(error)

    def handler(error):
        assert state_of(error).errors == (error,)

    call_and_handle(form, Policy(schedule=[1]), attempts, 9, give_up, by=handler)
    assert attempts.alive == []


@pytest.mark.parametrize("form", SYNC_FORMS)
def test_locals_are_freed_when_the_call_is_interrupted(clock, attempts, form):
    def kind(text):
        return KeyboardInterrupt() if text == "attempt 2" else OSError(text)

    def handler(error):
        assert len(state_of(error).errors) == 1

    call_and_handle(form, Policy(schedule=[1]), attempts, 9, kind, by=handler)
    assert attempts.alive == []


@pytest.mark.parametrize("form", ASYNC_FORMS)
def test_locals_are_freed_when_the_call_is_cancelled(clock, attempts, form):
    def kind(text):
        second = text == "attempt 2"
        return asyncio.CancelledError() if second else OSError(text)

    def handler(error):
        assert len(state_of(error).errors) == 1

    call_and_handle(form, Policy(schedule=[1]), attempts, 9, kind, by=handler)
    assert attempts.alive == []


def test_rejected_results_are_freed(clock, attempts):
    class Result:
        pass

    results = []

    @retry(schedule=[1, 1], on_result=lambda _: True)
    def fetch():
        attempts(0)
        results.append(weakref.ref(result := Result()))
        return result

    def handle():
        try:
            fetch()
        except Exception as error:  # noqa: BLE001
            assert len(state_of(error).failures) == 3

    handle()
    assert [result() for result in results] == [None] * 3


@pytest.mark.parametrize("form", FORMS)
def test_an_error_is_not_chained_to_the_one_before(clock, attempts, form):
    def handler(error):
        assert error.__context__ is None
        assert "attempt 1" not in "".join(traceback.format_exception(error))

    call_and_handle(form, Policy(schedule=[1, 1]), attempts, 9, by=handler)
    assert len(attempts.locals) == 3


def test_the_context_of_the_users_error_is_kept(clock):
    @retry(schedule=[1])
    def fetch():
        try:
            raise KeyError("inner")
        except KeyError:
            raise OSError("outer")  # noqa: B904

    with pytest.raises(OSError) as caught:
        try:
            raise ValueError("around")
        except ValueError:
            fetch()
    inner = caught.value.__context__
    assert isinstance(inner, KeyError)
    assert isinstance(inner.__context__, ValueError)
    assert clock.sleeps == [1.0]


def test_the_cause_of_the_users_error_is_kept(clock, flaky):
    cause = KeyError("cause")
    error = OSError("error")
    error.__cause__ = cause
    with pytest.raises(OSError) as caught:
        retry(schedule=[1])(flaky(OSError(), error))()
    assert caught.value.__cause__ is cause
    assert clock.sleeps == [1.0]


@pytest.mark.thorough
@pytest.mark.needs("speed")
def test_an_endless_retry_has_a_bounded_history(clock):
    calls = []

    @retry(schedule=constant(1), max_attempts=5000, max_failures=6)
    def fetch():
        error = OSError()
        calls.append(1)
        raise error

    with pytest.raises(OSError) as caught:
        fetch()
    state = state_of(caught.value)
    assert [f.attempt for f in state.failures] == [1, 2, 3, 4998, 4999, 5000]
    assert state.dropped_failures == 4994
    assert {*state._record.locations()} == {1, 2, 3, 4998, 4999}
    assert len(calls) == 5000
    assert len(clock.sleeps) == 4999


def test_one_error_object_does_not_collect_tracebacks(clock):
    error = OSError("the same")

    @retry(schedule=[0] * 50, max_attempts=None)
    def fetch():
        raise error

    lengths = []
    for _ in range(3):
        with pytest.raises(OSError):
            fetch()
        lengths.append(len(traceback.extract_tb(error.__traceback__)))
    assert lengths[-1] < 20
    assert len(clock.sleeps) == 150


def test_one_error_object_raised_by_compiled_code_is_raised_unchanged(clock):
    error = OSError("the same")

    async def main():
        future = asyncio.get_running_loop().create_future()
        future.set_exception(error)
        return retry(schedule=[1, 1])(future.result)

    with pytest.raises(OSError) as caught:
        asyncio.run(main())()
    assert caught.value is error
    assert clock.sleeps == [1.0, 1.0]


@pytest.mark.parametrize("form", ["call", "run", "acall", "arun"])
def test_no_more_errors_are_alive_than_max_failures(clock, attempts, form):
    policy = Policy(schedule=constant(0), max_failures=2, max_attempts=30)
    alive = []
    policy = policy.replace(observers=[lambda _event: alive.append(attempts.alive)])
    keeping = policy.replace(keep_tracebacks=True)
    call_and_handle(form, keeping, attempts, 99, by=lambda _error: None)
    assert max(map(len, alive)) == 2
    alive.clear()
    call_and_handle(form, policy, attempts, 99, by=lambda _error: None)
    assert max(map(len, alive)) == 1
    assert attempts.locals[28]() is None


def test_the_result_of_a_block_is_freed_with_the_block(clock, attempts):
    def call_sync():
        for attempt in retrying(schedule=[1], on_result=lambda found: found is None):
            with attempt:
                local = Local()
                attempts.locals.append(weakref.ref(local))
                attempt.set_result(local if attempt.number == 2 else None)

    call_sync()
    assert attempts.alive == []


@pytest.mark.parametrize("form", FORMS)
def test_only_the_last_error_of_a_call_has_locals(clock, attempts, form):
    alive = []

    def record_alive(event):
        if isinstance(event, AttemptStarted):
            alive.append(attempts.alive)

    policy = Policy(schedule=constant(0), max_attempts=9, observers=[record_alive])
    call_and_handle(
        form, policy, attempts, 99, by=lambda _error: alive.append(attempts.alive)
    )
    # In the handler, the error that was raised.
    assert alive == [[], *([number] for number in range(1, 9)), [9]]


def fail_with_causes(attempts):
    """Fail with an error whose causes have frames with local variables."""
    try:
        try:
            attempts(99)
        except OSError as error:
            raise KeyError("while it was handled") from error
    except KeyError as error:
        raise ExceptionGroup("several", [ValueError("one"), error]) from None


def test_the_causes_of_earlier_errors_have_no_locals(clock, attempts):
    alive = []
    policy = Policy(schedule=constant(0), max_attempts=5)
    policy = policy.replace(observers=[lambda _event: alive.append(attempts.alive)])
    with contextlib.suppress(ExceptionGroup):
        policy.call(fail_with_causes, attempts)
    assert max(map(len, alive)) == 1


def test_the_cause_of_the_last_error_keeps_its_traceback(clock):
    first = []

    @retry(schedule=[0, 0])
    def fetch():
        if len(first) < 2:
            first.append(OSError(f"attempt {len(first)}"))
            raise first[-1]
        raise KeyError("after the others") from first[1]

    with pytest.raises(KeyError):
        fetch()
    assert [error.__traceback__ is None for error in first] == [True, False]


@pytest.mark.parametrize("keeping", [{"keep_tracebacks": True}, {"raises": "group"}])
def test_keep_tracebacks_keeps_those_of_earlier_errors(clock, attempts, keeping):
    policy = Policy(schedule=constant(0), max_attempts=3, **keeping)

    def check(error):
        assert all(each.__traceback__ for each in state_of(error).errors)
        assert attempts.alive == [1, 2, 3]

    call_and_handle("call", policy, attempts, 99, by=check)


@pytest.mark.parametrize("fail", [Attempts.__call__, fail_with_causes])
def test_the_history_shows_where_earlier_errors_were_raised(clock, attempts, fail):
    def texts(**changes):
        policy = Policy(schedule=constant(0), max_attempts=3, **changes)
        call = (
            functools.partial(fail, attempts, 99)
            if fail is not fail_with_causes
            else fail_with_causes
        )
        args = () if fail is not fail_with_causes else (attempts,)
        state = policy.run(call, *args).state
        tracebacks = [
            each["error"]["traceback"] for each in state.to_dict()["failures"]
        ]
        attempts.locals.clear()
        return tracebacks

    assert texts() == texts(keep_tracebacks=True)
    assert all("in __call__" in text for text in texts())


def test_the_history_shows_where_the_causes_of_errors_were_raised(clock):
    errors = []

    def fetch():
        try:
            if len(errors) == 1:
                raise OSError("from the first") from errors[0]
            raise OSError(f"number {len(errors)}")
        except OSError as error:
            errors.append(error)
            raise

    state = Policy(schedule=constant(0), max_attempts=4).run(fetch).state
    tracebacks = [each["error"]["traceback"] for each in state.to_dict()["failures"]]
    assert all("in fetch" in text.rpartition("Traceback")[2] for text in tracebacks)


def test_a_long_chain_of_causes_is_in_the_history(clock):
    def fetch():
        last = None
        for number in range(1_500):
            error = ValueError(f"number {number}")
            error.__cause__, last = last, error
        raise last

    state = Policy(schedule=constant(0), max_attempts=2).run(fetch).state
    tracebacks = [each["error"]["traceback"] for each in state.to_dict()["failures"]]
    assert [text.count("ValueError: number") for text in tracebacks] == [1_500, 1_500]
    assert all("in fetch" in text for text in tracebacks)


def test_a_large_group_of_errors_costs_linearly(clock):
    def calls(size):
        def fetch():
            raise ExceptionGroup("several", [ValueError(k) for k in range(size)])

        counter = itertools.count()
        sys.setprofile(lambda *_: next(counter))
        try:
            Policy(schedule=constant(0), max_attempts=3).run(fetch)
        finally:
            sys.setprofile(None)
        return next(counter)

    assert calls(2_000) < 12 * calls(200)
