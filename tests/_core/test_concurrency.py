"""3. A call's state belongs to that call."""

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from retrykit import (
    Policy,
    RetryState,
    Rule,
    aretry,
    current_state,
    retry,
    state_of,
)
from retrykit._core.call import current_entry, outer_calls, running_call
from retrykit._core.controller import RetryController
from retrykit._internal.clocks import sync_clock
from retrykit.schedules import constant
from tests._support.concurrency import switching_often
from tests._support.optional_trio import trio

FOUR = Policy(schedule=constant(0), max_attempts=4)


def numbers_of(error):
    return [failure.error.args for failure in state_of(error).failures]


@pytest.mark.needs("threads")
def test_threads_that_call_one_function_are_independent():
    barrier = threading.Barrier(8)

    @retry(FOUR)
    def fetch(caller):
        attempt = current_state().attempt
        barrier.wait()
        assert current_state().attempt == attempt
        raise OSError(caller, attempt)

    def call(caller):
        with pytest.raises(OSError) as caught:
            fetch(caller)
        return numbers_of(caught.value)

    with switching_often(), ThreadPoolExecutor(8) as pool:
        results = list(pool.map(call, range(8)))
    assert results == [[(caller, n) for n in (1, 2, 3, 4)] for caller in range(8)]


def test_tasks_that_call_one_function_are_independent():
    @aretry(FOUR)
    async def fetch(caller):
        attempt = current_state().attempt
        await asyncio.sleep(0)
        assert current_state().attempt == attempt
        raise OSError(caller, attempt)

    async def call(caller):
        with pytest.raises(OSError) as caught:
            await fetch(caller)
        return numbers_of(caught.value)

    async def main():
        return await asyncio.gather(*map(call, range(20)))

    results = asyncio.run(main())
    assert results == [[(caller, n) for n in (1, 2, 3, 4)] for caller in range(20)]


def test_trio_tasks_that_call_one_function_are_independent():
    results = {}

    @aretry(FOUR)
    async def fetch(caller):
        attempt = current_state().attempt
        await trio.lowlevel.checkpoint()
        raise OSError(caller, attempt)

    async def call(caller):
        with pytest.raises(OSError) as caught:
            await fetch(caller)
        results[caller] = numbers_of(caught.value)

    async def main():
        async with trio.open_nursery() as nursery:
            for caller in range(20):
                nursery.start_soon(call, caller)

    trio.run(main)
    assert results == {c: [(c, n) for n in (1, 2, 3, 4)] for c in range(20)}


def test_recursive_calls_have_a_state_at_each_level(clock):
    seen = []

    @retry(schedule=[1])
    def descend(level):
        seen.append((level, current_state().attempt))
        if current_state().attempt == 1:
            raise OSError
        if level:
            descend(level - 1)
        assert current_state().attempt == 2

    descend(2)
    assert seen == [(2, 1), (2, 2), (1, 1), (1, 2), (0, 1), (0, 2)]
    assert clock.sleeps == [1.0, 1.0, 1.0]


@pytest.mark.needs("threads")
def test_a_thread_started_by_an_attempt_sees_its_state():
    @aretry(FOUR)
    async def fetch():
        inside = await asyncio.to_thread(current_state)
        assert inside is current_state()
        if inside.attempt < 3:
            raise OSError
        return inside.attempt, inside.elapsed >= 0

    assert asyncio.run(fetch()) == (3, True)


@pytest.mark.thorough
@pytest.mark.needs("threads")
def test_data_of_a_running_call_is_of_one_moment(monkeypatch):
    """What another thread writes can be read, and no failure is of a later attempt."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    rule = Rule(on=ConnectionError, schedule=constant(0))
    policy = Policy(schedule=constant(0), max_attempts=9, rules=[rule])
    states, found, ended = [], [], threading.Event()

    def look():
        while not ended.is_set():
            for state in states[-1:]:
                data = state.to_dict()
                RetryState.from_dict(data)
                found.extend(
                    (each["attempt"], data["attempt"]) for each in data["failures"][-1:]
                )

    def fetch():
        states.append(current_state())
        raise ConnectionError

    with switching_often(), ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(look) for _ in range(2)]
        for _ in range(200):
            with pytest.raises(ConnectionError):
                policy.call(fetch)
            states.clear()
        ended.set()
        for reader in readers:
            reader.result()
    assert found
    assert [pair for pair in found if pair[0] > pair[1]] == []


def test_a_coroutine_function_can_be_called_twice():
    @aretry(FOUR)
    async def fetch():
        return "value"

    async def main():
        return [await fetch(), await fetch()]

    assert asyncio.run(main()) == ["value", "value"]


@pytest.mark.needs("threads")
def test_concurrent_threads_of_an_attempt_get_one_state():
    barrier = threading.Barrier(8)

    def get_state():
        barrier.wait()
        return current_state()

    @retry(FOUR)
    def fetch():
        contexts = [contextvars.copy_context() for _ in range(8)]
        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(lambda context: context.run(get_state), contexts))

    fetch()
    with switching_often():
        results = [{id(state) for state in fetch()} for _ in range(100)]
    assert {len(states) for states in results} == {1}


def test_a_task_that_outlives_its_call_has_no_state():
    async def later(over):
        await over.wait()
        with pytest.raises(LookupError):
            current_state()
        return "looked"

    @aretry(FOUR)
    async def fetch(over):
        task = asyncio.create_task(later(over))
        if current_state().attempt < 2:
            tasks.append(task)
            raise OSError
        return task

    tasks = []

    async def main():
        over = asyncio.Event()
        tasks.append(await fetch(over))
        over.set()
        return await asyncio.gather(*tasks)

    assert asyncio.run(main()) == ["looked", "looked"]


def test_every_call_draws_its_own_seed_and_a_set_seed_is_kept():
    def fetch():
        return current_state().seed

    assert len({Policy().call(fetch) for _ in range(50)}) == 50
    assert {Policy(seed=7).call(fetch) for _ in range(50)} == {7}


@pytest.mark.needs("threads")
def test_a_custom_clock_applies_only_in_its_own_thread():
    class Frozen:
        def now(self):
            return 5.0

        def sleep(self, delay):
            raise AssertionError

    def elapsed():
        return Policy().call(lambda: current_state()._record.started)

    with sync_clock.use(Frozen()), ThreadPoolExecutor(1) as pool:
        assert elapsed() == 5.0
        assert pool.submit(elapsed).result() != 5.0
    assert elapsed() != 5.0


@pytest.mark.parametrize("first", [True, False], ids=["first call", "later call"])
def test_a_context_that_outlives_its_call_has_no_state(first):
    def keep():
        return contextvars.copy_context()

    fetch = retry(keep)
    if not first:
        fetch()
    context = fetch()
    with pytest.raises(LookupError):
        context.run(current_state)


def test_a_context_that_outlives_a_cancelled_call_has_no_state():
    contexts = []

    @retry
    def fetch():
        contexts.append(contextvars.copy_context())
        if len(contexts) > 1:
            raise KeyboardInterrupt

    fetch()
    with pytest.raises(KeyboardInterrupt):
        fetch()
    with pytest.raises(LookupError):
        contexts[1].run(current_state)


def test_a_call_may_start_while_the_state_of_another_is_created(clock):
    """As in a signal handler or a finalizer, which must not wait for a lock."""

    class InterruptedClock:
        inside = False

        def now(self):
            if not self.inside:
                self.inside = True
                Policy(schedule=[0]).run(int, "text")
                self.inside = False
            return clock.now()

        sleep = staticmethod(clock.sleep)

    with sync_clock.use(InterruptedClock()):
        assert Policy(schedule=[0, 0]).run(int, "text").state.attempt == 3


def test_a_clock_is_first_read_before_the_call_is_current(clock):
    answers = []

    class AskingClock:
        def now(self):
            try:
                answers.append(current_state().attempt)
            except LookupError:
                answers.append(None)
            return clock.now()

        sleep = staticmethod(clock.sleep)

    with sync_clock.use(AskingClock()):
        assert Policy().call(lambda: current_state().elapsed) == 0
    assert answers == [None, None, 1, None]


@pytest.mark.needs("threads")
def test_a_thread_that_asks_while_the_call_ends_leaves_no_state_behind():
    answers = []

    def get_state(over):
        while not over.is_set():
            try:
                answers.append(current_state().name)
            except LookupError as error:
                answers.append(str(error))
                return

    @retry(name="payments")
    def pay(over):
        context = contextvars.copy_context()
        asking_thread = threading.Thread(target=context.run, args=(get_state, over))
        asking_thread.start()
        return asking_thread

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(100):
            over = threading.Event()
            asking_thread = pay(over)
            asking_thread.join(0.01)
            over.set()
            asking_thread.join()
    finally:
        sys.setswitchinterval(interval)
    none = "current_state() was called outside a retried call"
    assert set(answers) <= {"payments", none}
    assert none in answers
    names = [
        Policy(name="search").call(lambda: current_state().name) for _ in range(300)
    ]
    assert set(names) == {"search"}


FORKING = """
import logging, os, signal, threading
from retrykit import Policy
from retrykit._internal.clocks import sync_clock
from tests._support.concurrency import switching_often

# A thread that writes to stderr may hold its lock in a fork.
logging.getLogger("retrykit.retries").setLevel("ERROR")

def fail():
    return Policy(schedule=[0]).run(int, "text").state.attempt

class Slow:
    def now(self):
        return float(sum(range(2000)) and 0)

    def sleep(self, _delay):
        pass

def keep_failing():
    with sync_clock.use(Slow()):
        while not over.is_set():
            fail()

over = threading.Event()
workers = [threading.Thread(target=keep_failing) for _ in range(3)]
for worker in workers:
    worker.start()
codes = []
for _ in range(20):
    child = os.fork()
    if not child:
        signal.alarm(10)
        os._exit(fail())
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    if codes[-1] != 2:
        break
over.set()
for worker in workers:
    worker.join()
print(codes == [2] * 20)
"""


@pytest.mark.thorough
@pytest.mark.needs("processes")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_states_are_created_leaves_no_lock_behind():
    # In a new process, in which no other tool holds locks.
    result = subprocess.run(  # noqa: S603  a fixed command
        [sys.executable, "-c", FORKING], capture_output=True, text=True, check=True
    )
    assert result.stdout == "True\n"


def test_a_call_that_another_thread_is_ending_is_no_outer_call():
    results = []

    def fetch():
        outer = running_call(current_entry.get())
        controller, outer.controller = outer.controller, None
        # The state of the outer call while another thread ends it.
        results.append(FOUR.run(current_state).value.depth)
        with pytest.raises(LookupError):
            current_state()
        outer.controller = controller
        return outer_calls(outer)

    assert FOUR.call(fetch) == []
    assert results == [0]


def test_an_outer_call_that_ends_while_it_is_read_is_ignored(monkeypatch):
    # Another thread ends the outer call between two reads of it.
    monkeypatch.setattr("retrykit._core.call.running_call", lambda _: None)
    inner = RetryController(FOUR, "inner", sync_clock, None)
    outer = [RetryController(FOUR, "outer", sync_clock, None), 0.0, None, 0]
    state = inner.ensure_call([inner, 0.0, outer, 0]).state
    assert (state.depth, state._record.outer_deadline) == (0, None)
