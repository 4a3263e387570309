"""Retries without an effect are errors where they are written, or warned of once."""

import asyncio
import contextlib
import functools
import importlib
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace

import pytest

from retrykit import (
    ConfigError,
    Policy,
    Rule,
    aretry,
    aretrying,
    retry,
    retrying,
    with_policy,
)
from retrykit._core.ineffective import warned
from retrykit.testing import virtual_time
from tests._support.optional_trio import trio

# Only these warnings are counted.
pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture(autouse=True)
def _no_warnings():
    before = dict(warned)
    warned.clear()
    yield
    warned.clear()
    warned.update(before)


POLICY = Policy()


def object_of(module, name):
    """Return a callable whose type has a name and a module, as that of a library."""
    base = type(name, (), {"__module__": module, "__call__": lambda self: None})
    return type("Own", (base,), {})()


OTHERS = {
    "a Dramatiq actor": ("dramatiq.actor", "Actor"),
    "a Huey task": ("huey.api", "TaskWrapper"),
    "a Taskiq task": ("taskiq.decor", "AsyncTaskiqDecoratedTask"),
    "a Prefect flow": ("prefect.flows", "Flow"),
    "a Prefect task": ("prefect.tasks", "Task"),
    "a Django task": ("django.tasks.base", "Task"),
}


@pytest.mark.parametrize("noun", OTHERS)
def test_a_task_is_rejected_by_the_name_of_its_type(noun):
    rejects(object_of(*OTHERS[noun]), noun)


def rejects(task, noun):
    for decorate in (retry, retry(Policy()), aretry, retry(policy=lambda: POLICY)):
        with pytest.raises(ConfigError) as caught:
            decorate(task)
        message = caught.value.message
        assert f"a function, not {noun}, which would run without retries" in message
        assert message.endswith("; put retry below the other decorator")


DECORATORS = {
    "tenacity": "tenacity.retry",
    "tenacity, with arguments": "tenacity.retry(reraise=True)",
    "backoff": "backoff.on_exception(backoff.expo, OSError)",
    "backoff, of results": "backoff.on_predicate(backoff.fibo)",
    "stamina": "stamina.retry(on=OSError)",
    "retrying": "retrying.retry",
    "retrying, with arguments": "retrying.retry(wait_fixed=1)",
}


@pytest.mark.needs("tenacity", "backoff", "stamina", "retrying")
@pytest.mark.parametrize("name", DECORATORS)
def test_a_function_that_another_library_retries_is_rejected(name):
    library = name.partition(",")[0]
    decorate = eval(DECORATORS[name], {library: importlib.import_module(library)})  # noqa: S307

    def fetch(): ...

    async def find(): ...

    class Client:
        get = decorate(fetch)

    retried = decorate(fetch)
    around = functools.update_wrapper(lambda: retried(), retried)  # noqa: PLW0108
    functions = [retried, Client().get, around]
    if library != "retrying":
        functions.append(decorate(find))
    for function in functions:
        for ours in (retry, retry(Policy()), with_policy):
            with pytest.raises(ConfigError, match=f"that {library} does not") as caught:
                ours(function)
            assert caught.value.code == "other-library"
        assert retry(nested="retry")(function) is not function
        # It makes one call: what it adds is a limiter, or a log.
        assert retry(max_attempts=1)(function) is not function
    assert retry(fetch) is not fetch


@pytest.mark.needs("tenacity")
def test_a_function_of_such_a_library_is_not_rejected_for_its_home():
    import tenacity

    assert retry(tenacity.stop_after_attempt.__init__)
    assert retry(tenacity.after_log)


@pytest.mark.needs("celery")
def test_a_task_of_celery_is_rejected():
    import celery
    from celery._state import _on_app_finalizers

    app = celery.Celery("shop", broker="memory://", set_as_current=False)

    @app.task(shared=False)
    def late(): ...

    @app.task(lazy=False, shared=False)
    def early(): ...

    # A task of each app, and so of all tests, until it is forgotten.
    before = _on_app_finalizers.copy()

    @celery.shared_task
    def shared(): ...

    for task in (late, early, shared):
        rejects(task, "a Celery task")
    _on_app_finalizers.intersection_update(before)


@pytest.mark.needs("celery")
def test_a_retried_function_can_become_a_task_of_celery():
    import celery

    app = celery.Celery("shop", broker="memory://", set_as_current=False)
    attempts = []

    @app.task(lazy=False, shared=False)
    @retry(schedule=[0], on=OSError)
    def send():
        attempts.append(1)
        raise OSError

    assert isinstance(send.apply().result, OSError)
    assert len(attempts) == 2


@pytest.mark.needs("rq", "redis")
def test_a_job_of_rq_is_rejected():
    import redis
    from rq.decorators import job

    @job("default", connection=redis.Redis())
    def send(): ...

    rejects(send, "an RQ job")


@pytest.mark.needs("temporalio")
def test_an_activity_of_temporal_is_rejected():
    from temporalio import activity

    @activity.defn
    def send(): ...

    rejects(send, "a Temporal activity")


@pytest.mark.needs("procrastinate")
def test_a_task_of_procrastinate_is_rejected():
    import procrastinate
    from procrastinate.testing import InMemoryConnector

    app = procrastinate.App(connector=InMemoryConnector())

    @app.task
    def send(): ...

    rejects(send, "a Procrastinate task")


@pytest.mark.needs("click")
def test_a_command_of_click_is_rejected():
    import click

    @click.command
    def main(): ...

    rejects(main, "a click command")


def test_a_function_with_an_attribute_of_its_own_is_no_task():
    @retry
    def send(): ...

    send.delay = 5

    def other(): ...

    other.delay = functools.partial(print)
    assert retry(send)() is None
    assert retry(other)() is None


def test_a_policy_can_call_a_task():
    assert Policy().call(object_of("huey.api", "TaskWrapper")) is None


def returning(make):
    def fetch():
        return make()

    return fetch


def numbers():
    yield 1


async def anumbers():
    yield 1


@contextlib.contextmanager
def opened():
    yield


LAZY = {
    "generator": (numbers, "generator", "it is iterated"),
    "async generator": (anumbers, "async_generator", "it is iterated"),
    "map": (lambda: map(str, [1]), "map", "it is iterated"),
    "filter": (lambda: filter(str, [1]), "filter", "it is iterated"),
    "context manager": (opened, "GeneratorContextManager", "it is entered"),
}


@pytest.mark.parametrize("kind", LAZY)
def test_a_function_that_returns_before_its_code_runs_is_warned_of_once(
    backend, caplog, kind
):
    make, name, where = LAZY[kind]
    fetch = backend(schedule=[0], name="fetch")(returning(make))
    fetch(), fetch()
    [message] = caplog.messages
    assert message == (
        f"fetch: its errors are not retried, since it returned a {name}, and they are "
        f"raised where {where}: retry the code that does so"
    )


@pytest.mark.needs("threads")
def test_a_future_of_a_pool_is_warned_of(caplog):
    with ThreadPoolExecutor(1) as pool:
        retry(name="fetch")(lambda: pool.submit(int))()
    [message] = caplog.messages
    assert (
        "it returned a Future, and they are raised where its result is read" in message
    )


def test_a_lazy_result_of_a_watched_call_is_warned_of(clock, caplog):
    fetch = retry(name="fetch", on_result=lambda result: False)(returning(numbers))
    fetch()
    assert len(caplog.messages) == 1


def test_a_lazy_result_after_others_is_warned_of(caplog):
    results = iter([1, numbers(), 2, numbers()])
    fetch = retry(name="fetch")(lambda: next(results))
    for _ in range(4):
        fetch()
    assert len(caplog.messages) == 1


def test_each_function_of_a_policy_is_warned_of_a_lazy_result(caplog):
    def fetch():
        return numbers()

    def load():
        return numbers()

    policy = Policy()
    for fn in (fetch, load, fetch, load):
        policy.call(fn)
    assert len(caplog.messages) == 2


def test_a_list_is_no_lazy_result(backend, caplog):
    backend(schedule=[0])(lambda: [*numbers()])()
    assert caplog.messages == []


BLOCKS = "its delay blocks the event loop of this thread, with all other tasks"


def flaky():
    outcomes = [OSError(), OSError(), 1]

    def fetch():
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return fetch


SHORT = Policy(schedule=[1e-4, 1e-4], on=OSError, name="fetch")
SYNC = {
    "a common failure": SHORT,
    "a watched call": SHORT.replace(observers=[id]),
    "a rule": SHORT.replace(rules=[Rule(on=OSError, max_attempts=3)]),
}


def block():
    fetch = flaky()
    for attempt in retrying(SHORT):
        with attempt:
            return fetch()
    raise AssertionError


@pytest.mark.parametrize("kind", [*SYNC, "a block"])
def test_a_delay_of_sync_code_in_an_event_loop_is_warned_of_once(caplog, kind):
    def call():
        return block() if kind == "a block" else retry(SYNC[kind])(flaky())()

    async def main():
        return call() + call()

    assert asyncio.run(main()) == 2
    assert len(caplog.messages) == 1
    assert f"fetch: {BLOCKS}" in caplog.messages[0] or BLOCKS in caplog.messages[0]


@pytest.mark.needs("trio")
def test_a_delay_of_sync_code_in_a_loop_of_trio_is_warned_of(caplog):
    async def main():
        return retry(SHORT)(flaky())()

    assert trio.run(main) == 1
    assert len(caplog.messages) == 1


@pytest.mark.needs("threads")
def test_a_delay_outside_of_event_loops_is_not_warned_of(caplog):
    async def main():
        fetch = retry(SHORT)(flaky())
        assert await asyncio.to_thread(fetch) == 1
        assert await aretry(SHORT)(in_a_coroutine(flaky()))() == 1
        assert retry(SHORT, schedule=[0, 0])(flaky())() == 1
        with virtual_time():
            assert retry(SHORT)(flaky())() == 1
        assert retry(SHORT, schedule=unknown)(flaky())() == 1

    def unknown():
        yield 0
        yield 0

    retry(SHORT)(flaky())()
    asyncio.run(main())
    assert caplog.messages == []


def in_a_coroutine(fn):
    async def fetch():
        return fn()

    return fetch


def test_a_schedule_that_fails_is_not_judged(caplog):
    def broken():
        raise LookupError
        yield

    async def main():
        retry(SHORT, schedule=broken, max_attempts=3)(flaky())()

    with pytest.raises(OSError, match="policy failed"):
        asyncio.run(main())
    assert not any(BLOCKS in each for each in caplog.messages)


@pytest.fixture
def notebook():
    """Pretend that this process is the kernel of a notebook."""
    sys.modules["ipykernel"] = ModuleType("ipykernel")
    yield
    del sys.modules["ipykernel"]


@pytest.mark.usefixtures("notebook")
def test_a_cell_of_a_notebook_may_wait(caplog):
    async def main():
        return retry(SHORT)(flaky())()

    assert asyncio.run(main()) == 1
    assert caplog.messages == []


SLEEPS = {
    "time.sleep": time.sleep,
    "a partial of it": functools.partial(time.sleep),
    "the wait of an event": threading.Event().wait,
}


@pytest.mark.parametrize("kind", SLEEPS)
def test_a_sleep_that_blocks_is_rejected_under_aretry(kind):
    async def fetch(): ...

    message = "sleep must be an async function under aretry, got .*; it would block"
    for decorate in (aretry(sleep=SLEEPS[kind]), retry(sleep=SLEEPS[kind])):
        with pytest.raises(ConfigError, match=message):
            decorate(fetch)
    with pytest.raises(ConfigError, match=message):
        aretrying(sleep=SLEEPS[kind])
    assert retry(sleep=SLEEPS[kind])(lambda: 1)() == 1
    assert [attempt.number for attempt in entered(retrying(sleep=SLEEPS[kind]))] == [1]


def entered(attempts):
    for attempt in attempts:
        with attempt:
            yield attempt


def test_a_sync_sleep_that_takes_its_time_is_warned_of_once(caplog):
    def nap(delay):
        end = time.monotonic() + delay
        while time.monotonic() < end:
            pass

    # A busy machine may hold up the lambda for a moment.
    longer = SHORT.replace(schedule=[0.05, 0.05])

    async def main():
        for _ in range(2):
            await aretry(longer, sleep=nap)(in_a_coroutine(flaky()))()
            await aretry(longer, sleep=lambda _: None)(in_a_coroutine(flaky()))()
            await aretry(longer, sleep=asyncio.sleep)(in_a_coroutine(flaky()))()

    asyncio.run(main())
    [message] = caplog.messages
    assert message.endswith("nap: its sleep blocks the event loop; make it async")


JUDGED = Policy(schedule=[0, 0], on_result=lambda result: result is None, name="poll")
NO_RESULT = (
    "poll: on_result had no result to judge; hand it over by attempt.set_result(...)"
)


def test_a_block_without_a_result_to_judge_is_warned_of_once(caplog):
    for _ in range(2):
        for attempt in retrying(JUDGED):
            with attempt:
                pass
    assert caplog.messages == [NO_RESULT]


def test_an_async_block_without_a_result_to_judge_is_warned_of(caplog):
    async def main():
        async for attempt in aretrying(
            schedule=[0], name="poll", rules=[Rule(on_result=id, max_attempts=2)]
        ):
            with attempt:
                pass

    asyncio.run(main())
    assert caplog.messages == [NO_RESULT]


def test_a_block_that_has_set_a_result_is_not_warned_of(caplog):
    numbers = iter([None, 2])
    for attempt in retrying(JUDGED):
        with attempt:
            attempt.set_result(next(numbers))
    for attempt in retrying(JUDGED):
        with attempt:
            if attempt.number == 1:
                attempt.set_result(None)
    for attempt in retrying(schedule=[0]):
        with attempt:
            pass
    # As the policies of HTTP clients: the errors that the block raises are judged.
    transient = SimpleNamespace(judge=lambda outcome: False).judge
    for attempt in retrying(on=transient, on_result=transient):
        with attempt:
            pass
    assert caplog.messages == []


def test_only_so_many_warnings_are_remembered(caplog):
    for number in range(1_001):
        retry(name=f"fetch {number}")(returning(numbers))()
    assert len(caplog.messages) == len(warned) == 1_000
