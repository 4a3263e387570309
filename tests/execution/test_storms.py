"""Interrupts and forks leave nothing behind, whatever they hit."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from retrykit import Policy, RetryState, current_state, retry, retrying, state_of
from retrykit._internal.clocks import sync_clock
from retrykit.durable import Job, idempotency_key
from retrykit.durable.job_attempt import RunningAttempt
from retrykit.execution import sync_driver
from retrykit.execution.call import current_entry, innermost_running
from retrykit.execution.controller import RetryController
from retrykit.state import events
from retrykit.state.events import AttemptStarted
from retrykit.testing import FakeClock, ScriptedFunction
from retrykit.testing.pytest_plugin import _Histories
from tests._support import storms

TWICE = Policy(schedule=[0, 0], on=OSError)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no such signals here")
def test_a_storm_of_interrupts_and_forks_leaves_nothing_behind():
    # In a process of its own, where no other tool has threads and signals.
    counts = ["--interrupts", "800", "--forks", "150"]
    told = subprocess.run(  # noqa: S603  this interpreter, and the program beside
        [sys.executable, "-m", "tests._support.storms", *counts],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    lines = told.stdout.splitlines()
    assert len(lines) == len(storms.CALLS) + 1, told.stderr
    assert all(line.endswith(": nothing is wrong") for line in lines), told.stdout


@pytest.fixture(autouse=True)
def apart():
    """What a test leaves in its context ends with it."""
    before = current_entry.set([None, 0.0, None])
    yield
    current_entry.reset(before)


def enter_and_leave_without_exit():
    """Do what an interrupt does that comes between a block and its ``__exit__``."""
    for attempt in retrying(TWICE):
        attempt.__enter__()
        break


def test_a_block_that_an_interrupt_has_left_is_over():
    enter_and_leave_without_exit()
    with pytest.raises(LookupError):
        current_state()
    failing = retry(schedule=[0], max_elapsed=60)(current_state)
    assert (failing().depth, failing().outer_deadline) == (0, None)


def test_the_call_around_such_a_block_is_still_around():
    @retry(TWICE, name="outer")
    def outer():
        enter_and_leave_without_exit()
        enter_and_leave_without_exit()
        inner = retry(TWICE)(current_state)()
        return current_state().name, inner.depth

    assert outer() == ("outer", 1)


def test_blocks_that_interrupts_have_left_do_not_pile_up():
    enter_and_leave_without_exit()
    enter_and_leave_without_exit()
    assert innermost_running(current_entry.get()) is None
    assert current_entry.get()[2] is None


def test_a_durable_attempt_that_an_interrupt_has_left_is_over():
    job = Job(int, TWICE.replace(schedule=["1h"]), "parse")
    RunningAttempt(job.policy, job.envelope("parse-7"), sync_clock).__enter__()
    with pytest.raises(LookupError):
        current_state()
    with pytest.raises(LookupError):
        idempotency_key()


def test_an_interrupt_after_a_call_has_given_up_comes_out_as_it_is():
    controller = RetryController(TWICE, "fetch", sync_clock, None)
    call = controller.open_call([controller, 0.0, None])
    controller.record_success(call, 0)
    interrupt = KeyboardInterrupt()
    controller.record_interruption(call, interrupt)
    assert state_of(interrupt) is None


class Interrupt(BaseException):
    """What a signal handler raises."""


class Interrupted:
    """A context variable in which an interrupt comes before its token is there."""

    def __init__(self, variable):
        self.variable = variable

    def set(self, value):
        self.variable.set(value)
        raise Interrupt

    def __getattr__(self, name):
        return getattr(self.variable, name)


def test_a_call_that_ends_before_it_has_a_token_is_over(monkeypatch):
    fetch = retry(TWICE)(lambda: 0)
    with monkeypatch.context() as patched, pytest.raises(Interrupt):
        patched.setattr(sync_driver, "_enter", Interrupted(current_entry).set)
        fetch()
    with pytest.raises(LookupError):
        current_state()
    assert fetch() == 0


def test_an_observer_that_was_interrupted_before_it_was_told_is_told_the_next(
    monkeypatch,
):
    heard = []
    fetch = retry(TWICE, observers=[heard.append])(lambda: 0)
    with monkeypatch.context() as patched, pytest.raises(Interrupt):
        patched.setattr(events, "_active", Interrupted(events._active))  # noqa: SLF001
        fetch()
    heard.clear()
    assert fetch() == 0
    assert len(heard) == 2


def of_virtual_time():
    clock = FakeClock()
    return clock._scheduler, lambda: clock.advance(5)  # noqa: SLF001  it has the lock


def of_a_script():
    script = ScriptedFunction([1])
    return script, script


def of_the_plugin():
    seen = _Histories()
    state = RetryState("fetch", seed=7, epoch=0.0)
    return seen, lambda: seen.on_event(AttemptStarted(state))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("made", [of_virtual_time, of_a_script, of_the_plugin])
def test_a_child_uses_what_another_thread_held_at_the_fork(made):
    locked, use = made()
    held, over = threading.Event(), threading.Event()

    def hold():
        with locked._lock:  # noqa: SLF001  as its own methods do
            held.set()
            over.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    child = os.fork()
    if not child:
        signal.alarm(10)
        use()
        os._exit(7)
    over.set()
    holder.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


class Restored:
    """A context variable in which an interrupt comes before it is reset."""

    def reset(self, token):
        raise Interrupt


@pytest.mark.parametrize("patched", ["_enter", "_leave"])
@pytest.mark.parametrize("fails", [False, True])
def test_the_call_around_one_that_was_interrupted_is_still_around(
    monkeypatch, patched, fails
):
    interrupted = {"_enter": Interrupted(current_entry).set, "_leave": Restored().reset}
    inner = retry(TWICE)(lambda: 1 / 0 if fails else 0)

    @retry(TWICE, name="outer", max_elapsed=60)
    def outer():
        with monkeypatch.context() as patch, pytest.raises(Interrupt):
            patch.setattr(sync_driver, patched, interrupted[patched])
            inner()
        assert current_state().name == "outer"
        return retry(TWICE)(current_state)()

    state = outer()
    assert (state.depth, state.outer_deadline) == (1, pytest.approx(60, abs=5))
