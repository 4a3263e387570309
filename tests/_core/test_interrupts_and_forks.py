"""Interrupts and forks at any moment leave nothing behind."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from retrykit import Policy, RetryState, current_state, retry, retrying, state_of
from retrykit._core import events, sync_driver
from retrykit._core.call import current_entry, innermost_running
from retrykit._core.controller import RetryController
from retrykit._internal.clocks import sync_clock
from retrykit.durable import Job, idempotency_key
from retrykit.durable._job_attempt import RunningAttempt
from retrykit.events import AttemptStarted
from retrykit.testing import FakeClock, ScriptedFunction
from retrykit.testing.pytest_plugin import _Histories
from tests._support import interrupts_and_forks, leftovers

TWICE = Policy(schedule=[0, 0], on=OSError)


@pytest.mark.needs("processes")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGALRM")
@pytest.mark.parametrize(
    ("interrupts", "forks"),
    [("200", "40"), pytest.param("800", "150", marks=pytest.mark.thorough)],
)
def test_interrupts_and_forks_leave_nothing_behind(interrupts, forks):
    # In a new process, in which no other tool uses threads and signals.
    counts = ["--interrupts", interrupts, "--forks", forks]
    result = subprocess.run(  # noqa: S603  a fixed command
        [sys.executable, "-m", "tests._support.interrupts_and_forks", *counts],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    lines = result.stdout.splitlines()
    assert len(lines) == len(interrupts_and_forks.CALLS) + 1, result.stderr
    assert all(line.endswith(": nothing is wrong") for line in lines), result.stdout


@pytest.fixture(autouse=True)
def _restored_context():
    """Clean up after these tests, which leave what an interrupt leaves behind."""
    before = leftovers.snapshot()
    yield
    leftovers.restore(before)


def leave_a_block_without_exit():
    """Act like an interrupt between the end of a block and its ``__exit__``."""
    for attempt in retrying(TWICE):
        attempt.__enter__()
        break


def test_a_block_left_by_an_interrupt_is_no_longer_current():
    leave_a_block_without_exit()
    with pytest.raises(LookupError):
        current_state()
    failing = retry(schedule=[0], max_elapsed=60)(current_state)
    assert (failing().depth, failing()._record.outer_deadline) == (0, None)


def count_steps():
    """Return how many functions of retrykit a call with one failure calls."""
    steps, errors = [], [OSError()]

    @retry(TWICE)
    def fetch():
        if errors:
            raise errors.pop()

    def count(frame, event, _):
        # Not the callbacks of a garbage collection.
        module = frame.f_globals["__name__"]
        steps.append(event == "call" and module.startswith("retrykit."))

    sys.setprofile(count)
    try:
        fetch()
    finally:
        sys.setprofile(None)
    return sum(steps)


@pytest.mark.usefixtures("quiet")
def test_a_block_left_by_an_interrupt_makes_later_failures_no_slower():
    count_steps()
    before = count_steps()
    steps = []
    # Of two, since one call in many also renews the numbers that calls share.
    for _ in range(2):
        leave_a_block_without_exit()
        steps.append(count_steps())
    # The block is looked at once, to find that it has ended.
    assert min(steps) <= before + 3


def test_the_outer_call_of_an_interrupted_block_stays_current():
    @retry(TWICE, name="outer")
    def outer():
        leave_a_block_without_exit()
        leave_a_block_without_exit()
        inner = retry(TWICE)(current_state)()
        return current_state().name, inner.depth

    assert outer() == ("outer", 1)


def test_blocks_left_by_interrupts_do_not_accumulate():
    leave_a_block_without_exit()
    leave_a_block_without_exit()
    assert innermost_running(current_entry.get()) is None
    assert current_entry.get()[2] is None


def test_a_durable_attempt_left_by_an_interrupt_is_no_longer_current():
    job = Job(int, TWICE.replace(schedule=["1h"]), "parse")
    RunningAttempt(job.policy, job.envelope("parse-7"), sync_clock).__enter__()
    with pytest.raises(LookupError):
        current_state()
    with pytest.raises(LookupError):
        idempotency_key()


def test_an_interrupt_after_the_end_of_a_call_is_unchanged():
    controller = RetryController(TWICE, "fetch", sync_clock, None)
    call = controller.ensure_call([controller, 0.0, None, 0])
    controller.record_success(call, 0)
    interrupt = KeyboardInterrupt()
    controller.record_interruption(call, interrupt)
    assert state_of(interrupt) is None


class Interrupt(BaseException):
    """Raised by a signal handler."""


class InterruptedSet:
    """A context variable whose `set` is interrupted before it returns the token."""

    def __init__(self, variable):
        self.variable = variable

    def set(self, value):
        self.variable.set(value)
        raise Interrupt

    def __getattr__(self, name):
        return getattr(self.variable, name)


def test_a_call_interrupted_while_it_starts_is_no_longer_current(monkeypatch):
    fetch = retry(TWICE)(lambda: 0)
    with monkeypatch.context() as patched, pytest.raises(Interrupt):
        patched.setattr(sync_driver, "_enter", InterruptedSet(current_entry).set)
        fetch()
    with pytest.raises(LookupError):
        current_state()
    assert fetch() == 0


def test_an_interrupted_observer_is_notified_of_the_next_call(
    monkeypatch,
):
    received = []
    fetch = retry(TWICE, observers=[received.append])(lambda: 0)
    with monkeypatch.context() as patched, pytest.raises(Interrupt):
        patched.setattr(events, "_active", InterruptedSet(events._active))  # noqa: SLF001
        fetch()
    received.clear()
    assert fetch() == 0
    assert len(received) == 2


def virtual_time_lock():
    clock = FakeClock()
    return clock._scheduler, lambda: clock.advance(5)  # noqa: SLF001  the owner of the lock


def script_lock():
    script = ScriptedFunction([1])
    return script, script


def plugin_lock():
    seen = _Histories()
    state = RetryState("fetch", seed=7, epoch=0.0)
    return seen, lambda: seen.on_event(AttemptStarted(state))


@pytest.mark.needs("processes")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("make", [virtual_time_lock, script_lock, plugin_lock])
def test_a_forked_child_can_take_a_lock_that_another_thread_held(make):
    owner, use = make()
    locked_by_thread, over = threading.Event(), threading.Event()

    def hold():
        with owner._lock:  # noqa: SLF001  like its own methods
            locked_by_thread.set()
            over.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    locked_by_thread.wait()
    child = os.fork()
    if not child:
        signal.alarm(10)
        use()
        os._exit(7)
    over.set()
    holder.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


class InterruptedReset:
    """A context variable whose `reset` is interrupted."""

    def reset(self, token):
        raise Interrupt


@pytest.mark.parametrize("patched", ["_enter", "_leave"])
@pytest.mark.parametrize("fails", [False, True])
def test_the_outer_call_of_an_interrupted_call_stays_current(
    monkeypatch, patched, fails
):
    interrupted = {
        "_enter": InterruptedSet(current_entry).set,
        "_leave": InterruptedReset().reset,
    }
    inner = retry(TWICE)(lambda: 1 / 0 if fails else 0)

    @retry(TWICE, name="outer", max_elapsed=60)
    def outer():
        with monkeypatch.context() as patch, pytest.raises(Interrupt):
            patch.setattr(sync_driver, patched, interrupted[patched])
            inner()
        assert current_state().name == "outer"
        return retry(TWICE)(current_state)()

    state = outer()
    assert (state.depth, state._record.outer_deadline) == (1, pytest.approx(60, abs=5))
