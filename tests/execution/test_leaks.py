"""4. Nothing leaks: with the collector off, failed attempts die by themselves."""

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
from retrykit.schedules import constant
from retrykit.state.events import AttemptStarted


class Local:
    """Something that a failed attempt keeps in a local variable."""


@pytest.fixture
def attempts():
    gc.disable()
    yield Attempts()
    gc.enable()


class Attempts:
    def __init__(self):
        self.locals = []

    def __call__(self, failures, kind=OSError):
        """Fail so many times, each time holding on to a local variable."""
        local = Local()
        self.locals.append(weakref.ref(local))
        if len(self.locals) <= failures:
            raise kind(f"attempt {len(self.locals)}")
        return "value"

    async def awaited(self, failures, kind=OSError):
        await asyncio.sleep(0)
        return self(failures, kind)

    @property
    def alive(self):
        return [i for i, local in enumerate(self.locals, 1) if local() is not None]


BLOCKING = ["blocking", "method", "call", "run", "block"]
AWAITED = ["awaited", "acall", "arun", "ablock"]
WAYS = BLOCKING + AWAITED
RAISES = ["last", "retry_error", "group"]


def perform(way, policy, attempts, *args):
    """Make a call in one of the blocking ways, and return its value."""
    if way == "blocking":
        return retry(policy)(attempts)(*args)
    if way == "call":
        return policy.call(attempts, *args)
    if way == "block":
        return in_a_block(policy, attempts, args)
    if way == "run":
        return value_of(policy.run(attempts, *args))

    class Client:
        @retry(policy)
        def fetch(self):
            return attempts(*args)

    return Client().fetch()


async def await_(way, policy, attempts, *args):
    """Make a call in one of the awaited ways, and return its value."""
    if way == "awaited":
        return await aretry(policy)(attempts.awaited)(*args)
    if way == "acall":
        return await policy.acall(attempts.awaited, *args)
    if way == "arun":
        return value_of(await policy.arun(attempts.awaited, *args))
    async for attempt in aretrying(policy):
        with attempt:
            return await attempts.awaited(*args)


def value_of(outcome):
    # Who keeps an outcome keeps its errors: this frame must not.
    try:
        if outcome.error:
            raise outcome.error
        return outcome.value
    finally:
        del outcome


def handled(way, policy, attempts, *args, by):
    """Make a call in any way, and hand what it raises to a handler."""
    if way in BLOCKING:
        try:
            return perform(way, policy, attempts, *args)
        except BaseException as error:  # noqa: BLE001
            return by(error)

    # asyncio.run itself keeps what goes out of it: the handler is inside.
    async def main():
        try:
            return await await_(way, policy, attempts, *args)
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


@pytest.mark.parametrize("way", WAYS)
def test_locals_die_when_the_call_succeeds(clock, attempts, way):
    policy = Policy(schedule=[1, 1, 1])
    assert handled(way, policy, attempts, 3, by=unexpected) == "value"
    assert len(attempts.locals) == 4
    assert attempts.alive == []


@pytest.mark.parametrize("raises", RAISES)
@pytest.mark.parametrize("way", WAYS)
def test_locals_die_when_the_handler_lets_the_error_go(clock, attempts, way, raises):
    def handler(error):
        assert len(state_of(error).errors) == 3
        assert 3 in attempts.alive

    handled(way, Policy(schedule=[1, 1], raises=raises), attempts, 9, by=handler)
    assert len(attempts.locals) == 3
    assert attempts.alive == []


@pytest.mark.parametrize("way", WAYS)
def test_locals_die_when_the_call_gives_up_with_a_cause(clock, attempts, way):
    def give_up(text):
        try:
            raise OSError(text)
        except OSError as error:
            return GiveUp(error)

    def handler(error):
        assert state_of(error).errors == (error,)

    handled(way, Policy(schedule=[1]), attempts, 9, give_up, by=handler)
    assert attempts.alive == []


@pytest.mark.parametrize("way", BLOCKING)
def test_locals_die_when_the_call_is_interrupted(clock, attempts, way):
    def kind(text):
        return KeyboardInterrupt() if text == "attempt 2" else OSError(text)

    def handler(error):
        assert len(state_of(error).errors) == 1

    handled(way, Policy(schedule=[1]), attempts, 9, kind, by=handler)
    assert attempts.alive == []


@pytest.mark.parametrize("way", AWAITED)
def test_locals_die_when_the_call_is_cancelled(clock, attempts, way):
    def kind(text):
        second = text == "attempt 2"
        return asyncio.CancelledError() if second else OSError(text)

    def handler(error):
        assert len(state_of(error).errors) == 1

    handled(way, Policy(schedule=[1]), attempts, 9, kind, by=handler)
    assert attempts.alive == []


def test_locals_die_when_results_are_refused_to_the_end(clock, attempts):
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


@pytest.mark.parametrize("way", WAYS)
def test_an_error_does_not_hang_on_the_one_before(clock, attempts, way):
    def handler(error):
        assert error.__context__ is None
        assert "attempt 1" not in "".join(traceback.format_exception(error))

    handled(way, Policy(schedule=[1, 1]), attempts, 9, by=handler)
    assert len(attempts.locals) == 3


def test_a_context_of_the_users_stays(clock):
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


def test_a_cause_of_the_users_stays(clock, flaky):
    cause = KeyError("cause")
    error = OSError("error")
    error.__cause__ = cause
    with pytest.raises(OSError) as caught:
        retry(schedule=[1])(flaky(OSError(), error))()
    assert caught.value.__cause__ is cause
    assert clock.sleeps == [1.0]


def test_an_endless_retry_keeps_a_bounded_history(clock):
    kept = []

    @retry(schedule=constant(1), max_attempts=5000, max_elapsed=None, max_failures=6)
    def fetch():
        error = OSError()
        kept.append(1)
        raise error

    with pytest.raises(OSError) as caught:
        fetch()
    state = state_of(caught.value)
    assert [f.attempt for f in state.failures] == [1, 2, 3, 4998, 4999, 5000]
    assert state.dropped_failures == 4994
    assert {*dict(state.frame_locations)} == {1, 2, 3, 4998, 4999}
    assert len(kept) == 5000
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


def test_one_error_object_that_compiled_code_raises_is_let_out_as_it_is(clock):
    error = OSError("the same")

    async def main():
        future = asyncio.get_running_loop().create_future()
        future.set_exception(error)
        return retry(schedule=[1, 1])(future.result)

    with pytest.raises(OSError) as caught:
        asyncio.run(main())()
    assert caught.value is error
    assert clock.sleeps == [1.0, 1.0]


@pytest.mark.parametrize("way", ["call", "run", "acall", "arun"])
def test_no_more_failures_are_kept_than_the_policy_allows(clock, attempts, way):
    policy = Policy(schedule=constant(0), max_failures=2, max_attempts=30)
    alive = []
    policy = policy.replace(observers=[lambda _event: alive.append(attempts.alive)])
    whole = policy.replace(keep_tracebacks=True)
    handled(way, whole, attempts, 99, by=lambda _error: None)
    assert max(map(len, alive)) == 2
    alive.clear()
    handled(way, policy, attempts, 99, by=lambda _error: None)
    assert max(map(len, alive)) == 1
    assert attempts.locals[28]() is None


def test_what_a_block_names_as_its_result_dies_with_the_block(clock, attempts):
    def perform():
        for attempt in retrying(schedule=[1], on_result=lambda found: found is None):
            with attempt:
                local = Local()
                attempts.locals.append(weakref.ref(local))
                attempt.set_result(local if attempt.number == 2 else None)

    perform()
    assert attempts.alive == []


@pytest.mark.parametrize("way", WAYS)
def test_while_a_call_fails_only_its_last_error_has_locals(clock, attempts, way):
    alive = []

    def hear(event):
        if isinstance(event, AttemptStarted):
            alive.append(attempts.alive)

    policy = Policy(schedule=constant(0), max_attempts=9, observers=[hear])
    handled(way, policy, attempts, 99, by=lambda _error: alive.append(attempts.alive))
    # In the handler it is the one that came out.
    assert alive == [[], *([number] for number in range(1, 9)), [9]]


def caused(attempts):
    """Fail with an error that came from others, whose frames have the locals."""
    try:
        try:
            attempts(99)
        except OSError as error:
            raise KeyError("while it was handled") from error
    except KeyError as error:
        raise ExceptionGroup("several", [ValueError("one"), error]) from None


def test_no_locals_live_in_what_earlier_errors_came_from(clock, attempts):
    alive = []
    policy = Policy(schedule=constant(0), max_attempts=5)
    policy = policy.replace(observers=[lambda _event: alive.append(attempts.alive)])
    with contextlib.suppress(ExceptionGroup):
        policy.call(caused, attempts)
    assert max(map(len, alive)) == 1


def test_what_the_last_error_came_from_is_whole(clock):
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


@pytest.mark.parametrize("whole", [{"keep_tracebacks": True}, {"raises": "group"}])
def test_earlier_errors_are_whole_where_the_policy_says_so(clock, attempts, whole):
    policy = Policy(schedule=constant(0), max_attempts=3, **whole)

    def look(error):
        assert all(each.__traceback__ for each in state_of(error).errors)
        assert attempts.alive == [1, 2, 3]

    handled("call", policy, attempts, 99, by=look)


@pytest.mark.parametrize("fail", [Attempts.__call__, caused])
def test_the_history_tells_where_earlier_errors_were_raised(clock, attempts, fail):
    def texts(**changes):
        policy = Policy(schedule=constant(0), max_attempts=3, **changes)
        call = functools.partial(fail, attempts, 99) if fail is not caused else caused
        args = () if fail is not caused else (attempts,)
        state = policy.run(call, *args).state
        told = [each["error"]["traceback"] for each in state.to_dict()["failures"]]
        attempts.locals.clear()
        return told

    assert texts() == texts(keep_tracebacks=True)
    assert all("in __call__" in text for text in texts())


def test_the_history_tells_where_an_error_was_raised_that_others_came_from(clock):
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
    told = [each["error"]["traceback"] for each in state.to_dict()["failures"]]
    assert all("in fetch" in text.rpartition("Traceback")[2] for text in told)


def test_a_long_chain_of_causes_is_told_whole(clock):
    def fetch():
        last = None
        for number in range(1_500):
            error = ValueError(f"number {number}")
            error.__cause__, last = last, error
        raise last

    state = Policy(schedule=constant(0), max_attempts=2).run(fetch).state
    told = [each["error"]["traceback"] for each in state.to_dict()["failures"]]
    assert [text.count("ValueError: number") for text in told] == [1_500, 1_500]
    assert all("in fetch" in text for text in told)


def test_a_large_group_of_errors_costs_linearly(clock):
    def calls(size):
        def fetch():
            raise ExceptionGroup("several", [ValueError(k) for k in range(size)])

        made = itertools.count()
        sys.setprofile(lambda *_: next(made))
        try:
            Policy(schedule=constant(0), max_attempts=3).run(fetch)
        finally:
            sys.setprofile(None)
        return next(made)

    assert calls(2_000) < 12 * calls(200)
