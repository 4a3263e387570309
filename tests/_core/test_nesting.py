"""Nested calls: an error that exhausted an inner call is not retried by the outer."""

import asyncio
import contextlib
import contextvars
import functools
import itertools
import json
import os
import pickle
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from retrykit import (
    ConfigError,
    GiveUp,
    Policy,
    RetryAfter,
    RetryError,
    RetryState,
    Rule,
    StopReason,
    aretry,
    aretrying,
    current_state,
    resume,
    retry,
    retrying,
    state_of,
)
from retrykit._core.controller import RetryController
from retrykit._core.nesting import mark_exhausted
from retrykit._internal.clocks import (
    read_together,
    sync_clock,
    wall,
    wall_clock_override,
)
from retrykit.errors import CommitUnknown, NestedRetryError
from retrykit.testing import disable_retries, virtual_time
from tests._support.optional_trio import trio

TWICE = Policy(schedule=[0, 0], on=OSError)


def fails(calls):
    def fetch():
        calls.append(1)
        raise OSError("dead")

    return fetch


@pytest.fixture(params=["blocking", "asyncio", "trio"])
def in_layers(request):
    """Return a function that decorates a function with several policies."""
    runs = {"asyncio": lambda main: asyncio.run(main()), "trio": trio.run}

    def wrap_in_layers(fn, layers, **changes):
        policies = [
            TWICE.replace(name=f"layer {number}", **changes)
            for number in range(1, layers + 1)
        ]
        fn = fn if request.param == "blocking" else coroutine(fn)
        for policy in policies:
            fn = retry(policy)(fn)
        run = runs.get(request.param)
        return functools.partial(run, fn) if run else fn

    return wrap_in_layers


def coroutine(fn):
    async def fetch():
        return fn()

    return fetch


def test_five_layers_of_three_attempts_make_three_calls(in_layers):
    calls = []
    with pytest.raises(OSError, match="dead") as caught:
        in_layers(fails(calls), 5)()
    assert len(calls) == 3
    state = state_of(caught.value)
    assert (state.name, state.attempt) == ("layer 5", 1)
    assert state.stop_reason is StopReason.NESTED
    assert state.innermost.name == "layer 1"
    assert state.innermost.stop_reason is StopReason.SCHEDULE_ENDED
    assert [len(each.failures) for each in (state, state.innermost)] == [1, 3]
    assert state.innermost.failures[-1].error is caught.value
    (note,) = caught.value.__notes__
    assert note.startswith("retrykit: gave up after 1 attempt in ")
    inside = "nested call layer 1 gave up after 3 attempts in "
    assert inside in note


def test_nested_retry_multiplies_the_calls(in_layers):
    calls = []
    with pytest.raises(OSError, match="dead"):
        in_layers(fails(calls), 5, nested="retry")()
    assert len(calls) == 3**5


def test_nested_raise_makes_nesting_an_error(in_layers):
    calls = []
    with pytest.raises(NestedRetryError) as caught:
        in_layers(fails(calls), 2, nested="raise")()
    assert len(calls) == 3
    assert str(caught.value) == "layer 1 is retried inside layer 2"
    assert isinstance(caught.value.__cause__, OSError)
    state = state_of(caught.value)
    assert (state.name, state.nested_state.name) == ("layer 2", "layer 1")
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  pickled here
    assert state_of(again).innermost.name == "layer 1"


@pytest.mark.parametrize("raises", ["last", "retry_error", "group"])
def test_layers_do_not_multiply_whatever_form_of_error_is_raised(in_layers, raises):
    calls = []
    with pytest.raises(Exception, match=r"gave up|dead"):
        in_layers(fails(calls), 3, raises=raises, on=Exception)()
    assert len(calls) == 3


def raise_from_error(inner):
    try:
        inner()
    except OSError as error:
        raise RuntimeError("no page") from error


def raise_in_handler(inner):
    try:
        inner()
    except OSError:
        raise RuntimeError("no page")  # noqa: B904  the context is under test


def raise_in_a_context_manager(inner):
    @contextlib.contextmanager
    def translated():
        try:
            yield
        except OSError:
            raise RuntimeError("no page")  # noqa: B904

    with translated():
        inner()


def raise_in_a_group(inner):
    try:
        inner()
    except OSError as error:
        raise ExceptionGroup("no pages", [ValueError(), error]) from None


@pytest.mark.parametrize(
    "translate",
    [raise_from_error, raise_in_handler, raise_in_a_context_manager, raise_in_a_group],
)
def test_an_error_that_translates_an_exhausted_one_is_not_retried(backend, translate):
    calls = []
    inner = backend(TWICE, name="inner")(fails(calls))
    with pytest.raises(Exception, match="no page") as caught:
        retry(TWICE, on=Exception)(translate)(inner)
    assert len(calls) == 3
    assert state_of(caught.value).nested_state.name == "inner"


def call_in_handler(inner, mirror):
    try:
        inner()
    except OSError:
        return mirror()


def call_in_finally(inner, mirror):
    try:
        inner()
    finally:
        mirror()


def call_while_closing(inner, mirror):
    with contextlib.ExitStack() as stack:
        stack.callback(mirror)
        inner()


def open_in_handler(inner, _mirror):
    try:
        inner()
    except OSError:
        # No function in C has a frame.
        return os.open("a file that is missing", os.O_RDONLY)


@pytest.mark.parametrize(
    "then", [call_in_handler, call_in_finally, call_while_closing, open_in_handler]
)
def test_an_error_of_what_a_handler_calls_is_retried(backend, then):
    """Such as that of a mirror, after the original server was tried in vain."""
    calls = []

    def mirror():
        raise ConnectionError("the mirror is down")

    def fetch():
        calls.append(1)
        return then(backend(TWICE)(fails([])), mirror)

    with pytest.raises(OSError, match=r"mirror|missing"):
        retry(TWICE)(fetch)()
    assert len(calls) == 3


def test_an_exhausted_error_split_by_except_star_is_not_retried():
    calls = []
    fetch = aretry(TWICE)(coroutine(fails(calls)))

    @aretry(TWICE, on=Exception)
    async def page():
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(fetch())
        except* ValueError:
            pass

    with pytest.raises(ExceptionGroup):
        asyncio.run(page())
    assert len(calls) == 3


def test_another_error_after_an_exhausted_one_is_retried(backend):
    """The attempt has handled the exhausted error, and failed for another reason."""
    calls = []
    inner = backend(TWICE)(fails([]))

    def page():
        calls.append(1)
        with contextlib.suppress(OSError):
            inner()
        raise OSError("something else")

    with pytest.raises(OSError, match="something else"):
        retry(TWICE)(page)()
    assert len(calls) == 3


def test_one_error_object_is_retried_if_no_inner_call_gave_up(backend):
    shared, calls = OSError("the one and only"), []

    def raise_shared():
        calls.append(1)
        raise shared

    fetch = backend(TWICE)(raise_shared)
    for times in (3, 6):
        with pytest.raises(OSError, match="only"):
            fetch()
        assert len(calls) == times

    def fail_after_another():
        with pytest.raises(OSError, match="only"):
            fetch()
        raise_shared()

    with pytest.raises(OSError, match="only"):
        retry(TWICE)(fail_after_another)()
    # Only the mark of the first attempt is visible to the outer call.
    assert len(calls) == 6 + 3 + 1


def test_the_mark_of_an_exhausted_error_lasts_for_one_attempt(backend):
    """An inner call that gave up in the first attempt does not affect the second."""
    shared, calls = OSError("shared"), []

    def raise_shared():
        raise shared

    inner = backend(TWICE)(raise_shared)

    def page():
        calls.append(1)
        if len(calls) == 1:
            with contextlib.suppress(OSError):
                inner()
            raise OSError("of its own")
        raise shared

    with pytest.raises(OSError, match="shared"):
        retry(TWICE)(page)()
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("inner", "times"),
    [
        ({"max_attempts": 1}, 3),
        ({"on": ValueError}, 3),
        ({"give_up_on": ConnectionError}, 3),
        ({"rules": [Rule(on=ConnectionError, schedule=[])]}, 3),
        ({"max_attempts": 2}, 2),
        ({"max_elapsed": 0}, 1),
    ],
    ids=str,
)
def test_an_error_that_the_inner_call_did_not_retry_is_retried(backend, inner, times):
    calls = []

    def fetch():
        calls.append(1)
        raise ConnectionError("refused")

    with pytest.raises(ConnectionError):
        retry(TWICE)(backend(TWICE, **inner)(fetch))()
    assert len(calls) == times


def test_signals_raised_by_an_inner_call_do_not_control_the_outer_one(in_layers):
    """RetryAfter addresses the outer call only if the inner one was not retried."""
    calls = []

    def busy():
        calls.append(1)
        raise RetryAfter(0)

    with pytest.raises(RetryAfter):
        in_layers(busy, 3)()
    assert len(calls) == 3

    def stop():
        calls.append(1)
        raise GiveUp

    calls.clear()
    with pytest.raises(GiveUp):
        in_layers(stop, 3)()
    assert len(calls) == 1


def test_retry_after_raised_from_an_exhausted_error_is_obeyed(backend):
    calls = []
    inner = backend(TWICE)(fails(calls))

    def page():
        try:
            inner()
        except OSError as error:
            raise RetryAfter(0) from error

    with pytest.raises(OSError, match="dead"):
        retry(TWICE)(page)()
    assert len(calls) == 9


def test_inner_calls_do_not_wait_beyond_the_outer_deadline(backend):
    with virtual_time() as clock:
        inner = backend(schedule=[4] * 9)(fails([]))
        outer = retry(max_elapsed=10, name="outer")(inner)
        with pytest.raises(OSError, match="dead") as caught:
            outer()
    assert clock.sleeps == [4.0, 4.0]
    state = state_of(caught.value)
    assert state.nested_state.stop_reason is StopReason.ELAPSED


@pytest.mark.parametrize(
    ("outer", "sleeps"),
    [("stop", [4.0, 4.0]), ("clip", [4.0, 4.0]), ("overshoot", [4.0] * 5)],
    ids=str,
)
def test_the_deadline_rule_of_the_outer_call_applies_to_its_limit(outer, sleeps):
    with virtual_time() as clock:
        inner = retry(schedule=[4] * 5, max_attempts=None)(fails([]))
        with pytest.raises(OSError, match="dead"):
            retry(max_elapsed=10, deadline=outer)(inner)()
    assert clock.sleeps == sleeps


@pytest.mark.parametrize("rule", ["stop", "clip", "overshoot"], ids=str)
def test_the_deadline_rule_of_the_inner_call_does_not_exceed_the_outer_limit(rule):
    with virtual_time() as clock:
        inner = retry(
            schedule=[4] * 9, max_attempts=None, max_elapsed=15, deadline=rule
        )(fails([]))
        with pytest.raises(OSError, match="dead"):
            retry(max_elapsed=10)(inner)()
    assert clock.sleeps == [4.0, 4.0]


def test_the_limits_of_all_outer_calls_apply(clock):
    inner = retry(schedule=[4] * 9, max_attempts=None)(fails([]))
    middle = retry(max_elapsed=None)(inner)
    with pytest.raises(OSError, match="dead"):
        retry(max_elapsed=6)(middle)()
    assert clock.sleeps == [4.0]


def test_the_state_has_the_remaining_time_and_the_depth():
    seen = []

    def look():
        state = current_state()
        seen.append((state.depth, state.remaining))

    with virtual_time() as clock:

        @retry(max_elapsed=50)
        def inner():
            look()

        @retry(max_elapsed=None)
        def middle():
            look()
            inner()

        @retry(max_elapsed=30)
        def outer():
            clock.advance(10)
            look()
            middle()

        outer()
    assert seen == [(0, 20.0), (1, 20.0), (2, 20.0)]


@pytest.mark.needs("threads")
def test_calls_in_tasks_and_worker_threads_of_an_attempt_are_nested():
    calls = []
    sync = retry(TWICE, name="in a thread")(fails(calls))
    awaited = aretry(TWICE, name="in a task")(coroutine(fails(calls)))

    @aretry(TWICE, on=Exception)
    async def in_a_thread():
        await asyncio.to_thread(sync)

    @aretry(TWICE, on=Exception)
    async def in_a_task():
        await asyncio.create_task(awaited())

    for outer in (in_a_thread, in_a_task):
        calls.clear()
        with pytest.raises(OSError, match="dead"):
            asyncio.run(outer())
        assert len(calls) == 3, outer


def test_a_task_that_outlives_its_outer_call_is_not_nested():
    """The outer call has ended when the task gives up."""

    async def main():
        tasks = []

        @aretry(TWICE)
        async def outer():
            tasks.append(asyncio.create_task(aretry(TWICE)(fails_later)()))
            await asyncio.sleep(0)

        async def fails_later():
            await asyncio.sleep(0)
            current_state()
            await over.wait()
            raise OSError("too late")

        over = asyncio.Event()
        await outer()
        await asyncio.sleep(0)
        over.set()
        with pytest.raises(OSError, match="too late") as caught:
            await tasks[0]
        return caught.value

    assert state_of(asyncio.run(main())).attempt == 3


def through_a_pool(pool, fn):
    return lambda: pool.submit(fn).result()


def through_an_executor(pool, fn):
    async def main():
        return await asyncio.get_running_loop().run_in_executor(pool, fn)

    return lambda: asyncio.run(main())


def through_a_process(_pool, fn):
    """Raise a copy of the error, as from another process."""

    def fetch():
        try:
            return fn()
        except (OSError, RetryError, ExceptionGroup) as error:
            raise pickle.loads(pickle.dumps(error)) from None  # noqa: S301  pickled here

    return lambda: contextvars.Context().run(fetch)


@pytest.mark.needs("threads")
@pytest.mark.parametrize(
    "across", [through_a_pool, through_an_executor, through_a_process]
)
@pytest.mark.parametrize("raises", ["last", "retry_error", "group"])
@pytest.mark.parametrize("wrap", [False, True], ids=["itself", "as a cause"])
def test_layers_do_not_multiply_across_threads_and_processes(across, raises, wrap):
    calls = []
    inner = retry(TWICE, raises=raises, name="inner")(fails(calls))
    with ThreadPoolExecutor(1) as pool:
        fetch = across(pool, inner)

        @retry(schedule=[0, 0], name="outer")
        def outer():
            try:
                return fetch()
            except Exception as error:
                if wrap:
                    raise ValueError("unavailable") from error
                raise

        with pytest.raises(Exception) as caught:
            outer()
    assert len(calls) == 3
    state = state_of(caught.value)
    assert (state.name, state.stop_reason) == ("outer", StopReason.NESTED)
    assert state.nested_state.name == "inner"


@pytest.fixture(params=[False, True], ids=["at once", "interrupted"])
def _reading(request, monkeypatch):
    """Let the thread be interrupted in every other reading of the wall clock."""
    readings = itertools.count()

    def slow_wall():
        reading = wall()
        if next(readings) % 2 == 0:
            time.sleep(0.02)
        return reading

    if request.param:
        monkeypatch.setattr("retrykit._core.call.wall", slow_wall)


@pytest.mark.usefixtures("_reading")
def test_layers_do_not_multiply_across_a_reused_runner():
    calls = []

    @aretry(TWICE)
    async def inner():
        calls.append(1)
        raise OSError("dead")

    with asyncio.Runner() as runner, pytest.raises(OSError):
        retry(TWICE)(lambda: runner.run(inner()))()
    assert len(calls) == 3


def test_clocks_are_read_together_even_if_every_reading_is_interrupted():
    now, pauses = 0.0, iter([5.0, 2.0, 9.0, 7.0, 3.0])

    def interrupted():
        nonlocal now
        reading = now
        now += next(pauses)
        return reading

    with wall_clock_override.push("a clock", interrupted):
        reading, clock = read_together(lambda: now)
    assert clock - reading == 2.0


def test_an_exhausted_error_of_an_earlier_call_is_retried():
    """As from a cache: it is not about this attempt."""
    calls = []
    with pytest.raises(OSError) as caught:
        retry(TWICE)(fails([]))()

    def fetch():
        calls.append(1)
        raise caught.value

    with pytest.raises(OSError):
        retry(TWICE)(fetch)()
    assert len(calls) == 3


def one_after_another():
    yield contextlib.nullcontext()
    yield contextlib.nullcontext()


def in_frozen_time():
    frozen = wall_clock_override.push("frozen", lambda: 1e9)
    yield frozen
    yield contextlib.nullcontext()


def before_time_is_set_back():
    yield contextlib.nullcontext()
    yield wall_clock_override.push("set back", lambda: time.time() - 3600)


def in_virtual_time():
    yield virtual_time()
    yield virtual_time()


def after_virtual_time():
    yield virtual_time()
    yield contextlib.nullcontext()


@pytest.mark.parametrize(
    "times",
    [
        *(one_after_another, in_frozen_time, before_time_is_set_back),
        *(in_virtual_time, after_virtual_time),
    ],
)
def test_an_error_object_that_later_calls_raise_again_is_retried(backend, times):
    calls, error = [], OSError("no")

    def fetch():
        calls.append(1)
        raise error

    for number, clock in enumerate(times(), 1):
        with clock, pytest.raises(OSError, match="no"):
            backend(TWICE)(fetch)()
        assert len(calls) == 3 * number


def unknown_commit(calls):
    """Return a call that gives up since nobody knows whether it has committed."""

    @retry(TWICE)
    def commit():
        calls.append(1)
        raise GiveUp(CommitUnknown("lost"))

    return commit


def test_an_unknown_commit_of_a_nested_call_is_not_repeated_if_time_is_set_back():
    calls = []
    commit = unknown_commit(calls)

    @retry(schedule=[0, 0], on=Exception)
    def transfer():
        with wall_clock_override.push("set back", lambda: time.time() - 3600):
            commit()

    with pytest.raises(CommitUnknown):
        transfer()
    assert len(calls) == 1


def test_an_error_shared_with_another_call_is_retried():
    """As of a connection for which both have waited."""

    async def main():
        shared, calls = asyncio.get_running_loop().create_future(), []

        @aretry(schedule=[0], name="first")
        async def first():
            if not calls:
                calls.append("first")
                raise OSError("alone")
            await shared

        @aretry(schedule=[0], name="second")
        async def second():
            calls.append("second")
            return await shared if calls.count("second") == 1 else "value"

        first_task = asyncio.create_task(first())
        await asyncio.sleep(0.01)
        second_task = asyncio.create_task(second())
        await asyncio.sleep(0.01)
        shared.set_exception(OSError("shared"))
        with pytest.raises(OSError, match="shared"):
            await first_task
        return await second_task

    assert asyncio.run(main()) == "value"


def count_calls(depth):
    """Return the number of function calls that so many levels of nesting cost."""
    steps, calls = [], []

    @retry(TWICE, max_elapsed=60)
    def dive(level):
        if level:
            return level < 0 or dive(level - 1)
        calls.append(1)
        raise OSError("at the bottom")

    # Calls have a state from the beginning until one has succeeded.
    dive(-1)
    sys.setprofile(
        lambda frame, event, arg: steps.append(event) if event == "call" else None
    )
    try:
        dive(depth)
    except OSError as error:
        caught = error
    finally:
        sys.setprofile(None)
    assert len(calls) == 3
    return len(steps), state_of(caught)


@pytest.mark.needs("speed")
def test_the_cost_of_nesting_is_linear():
    (few, _), (more, _), (most, state) = map(count_calls, (70, 140, 280))
    assert most - more < 2.2 * (more - few)
    # Only some of the states in between are kept, to limit its size.
    assert (state.nested_state.depth, state.innermost.depth) == (1, 280)
    stored = json.loads(json.dumps(state.to_dict()))
    assert RetryState.from_dict(stored).nested_state.depth == 1


def test_two_inner_calls_of_one_attempt_leave_one_mark(backend):
    calls, errors = [], []

    @backend(TWICE)
    def outer():
        for _ in range(2):
            try:
                TWICE.call(fails(calls))
            except OSError as error:
                errors.append(error)
        raise errors[0]

    with pytest.raises(OSError, match="dead"):
        outer()
    assert len(calls) == 2 * 3
    marks = [vars(error)["__retrykit_exhausted__"] for error in errors]
    assert marks[0] is marks[1]


def test_a_call_that_has_ended_does_not_mark_the_error():
    error = OSError()
    controller = RetryController(TWICE, "fetch", sync_clock, None)
    ended = controller.ensure_call([controller, 0.0, None, 0])
    controller.record_success(ended, 0)
    mark_exhausted(error, ended)
    assert vars(error) == {}


@pytest.mark.needs("threads")
def test_a_call_in_a_bare_thread_is_not_nested():
    depths = []
    inner = retry(TWICE)(lambda: depths.append(current_state().depth))

    @retry(TWICE)
    def outer():
        thread = threading.Thread(target=inner)
        thread.start()
        thread.join()

    outer()
    assert depths == [0]


def test_layers_of_blocks_do_not_multiply():
    calls = []
    fetch = retry(TWICE)(fails(calls))
    with pytest.raises(OSError, match="dead"):
        for attempt in retrying(TWICE):
            with attempt:
                fetch()
    assert len(calls) == 3

    def block():
        for attempt in retrying(TWICE):
            with attempt:
                assert attempt.state.depth == 1
                fails(calls)()

    calls.clear()
    with pytest.raises(OSError, match="dead"):
        retry(TWICE)(block)()
    assert len(calls) == 3


def test_layers_of_async_blocks_do_not_multiply():
    calls = []

    async def block():
        async for attempt in aretrying(TWICE):
            with attempt:
                await aretry(TWICE)(coroutine(fails(calls)))()

    with pytest.raises(OSError, match="dead"):
        asyncio.run(aretry(TWICE)(block)())
    assert len(calls) == 3


def test_run_returns_the_outcome_of_the_outer_call(backend):
    inner = backend(TWICE, name="inner")(fails([]))
    outcome = Policy(on=OSError, raises="retry_error").run(inner)
    assert isinstance(outcome.error, RetryError)
    assert outcome.state.stop_reason is StopReason.NESTED
    assert outcome.state.nested_state.name == "inner"


@pytest.mark.parametrize(("nested", "count"), [("respect", 1), ("retry", 3)])
def test_an_unknown_commit_is_not_retried_by_calls_around_it(nested, count):
    calls = []
    commit = unknown_commit(calls)

    @retry(schedule=[0, 0], on=Exception, nested=nested)
    def transfer():
        try:
            commit()
        except CommitUnknown as error:
            raise OSError("wrapped") from error

    with pytest.raises(OSError, match="wrapped") as caught:
        transfer()
    assert len(calls) == count
    assert state_of(caught.value).nested_state is not None or nested == "retry"


def test_a_nested_state_survives_json(in_layers):
    with pytest.raises(OSError, match="dead") as caught:
        in_layers(fails([]), 2)()
    data = json.loads(json.dumps(state_of(caught.value).to_dict()))
    state = RetryState.from_dict(data)
    assert (state.nested_state.name, state.nested_state.depth) == ("layer 1", 1)
    assert state.describe() == state_of(caught.value).describe()
    calls = []
    with pytest.raises(OSError, match="dead") as caught:
        resume(fails(calls), state, TWICE)()
    assert state_of(caught.value).nested_state is None


def test_disable_retries_leaves_no_mark(in_layers):
    calls = []
    with disable_retries(), pytest.raises(OSError, match="dead"):
        in_layers(fails(calls), 3)()
    assert len(calls) == 1


def test_an_unknown_nested_rule_is_rejected():
    with pytest.raises(ConfigError, match="nested must be one of 'respect', 'retry'"):
        Policy(nested="ignore")


def test_a_cycle_of_causes_is_searched_once(in_layers):
    def fetch():
        error, other = OSError("one"), OSError("other")
        error.__cause__, other.__cause__ = other, error
        # Without an exhausted error, nothing would be searched.
        with contextlib.suppress(OSError):
            TWICE.call(fails([]))
        raise error

    with pytest.raises(OSError, match="one") as caught:
        in_layers(fetch, 1)()
    assert state_of(caught.value).attempt == 3


def test_the_inner_state_has_the_error_itself():
    error = OSError("dead")

    @retry(TWICE, name="outer")
    @retry(TWICE, name="inner")
    def fetch():
        raise error

    with pytest.raises(OSError, match="dead"):
        fetch()
    assert state_of(error).nested_state.failures[-1].error is error
