"""Budgets in a forked child, while other threads used them in the parent."""

import gc
import os
import subprocess
import sys
import weakref

import pytest

from retrykit._internal.locks import renew_locks
from retrykit.budgets import FleetBudget, RatioBudget, Registry, Throttle, TokenBucket
from retrykit.testing import virtual_time

FORKING = """
import os, pickle, signal, threading
from contextlib import ExitStack
from retrykit.budgets import FleetBudget, RatioBudget, Registry, Throttle, TokenBucket
from retrykit.budgets import balances, shared, _shared_budgets

class Equal(TokenBucket):
    def __eq__(self, other):
        return True

def retry(budget):
    budget.failed(first=True, retryable=True)
    budget.withdraw(None)
    budget.deposit(None)
    budget.balance

budgets = [TokenBucket(), Throttle(), RatioBudget(), FleetBudget()]
budgets += [Equal(), Equal()]
budgets += pickle.loads(pickle.dumps(budgets))
hosts = Registry(TokenBucket)
hosts["old"], shared("key:old", TokenBucket)

steps = [lambda budget=budget: retry(budget) for budget in budgets]
steps += [lambda: retry(hosts["old"]), lambda: hosts["new"], hosts.balances]
steps += [lambda: retry(shared("key:old", TokenBucket)), balances]

def hold():
    with ExitStack() as held:
        for each in [*budgets, hosts["old"], shared("key:old", TokenBucket)]:
            held.enter_context(each._lock)
        for each in [hosts, _shared_budgets._SHARED]:
            held.enter_context(each._lock)
        holding.set()
        over.wait()

holding, over = threading.Event(), threading.Event()
thread = threading.Thread(target=hold)
thread.start()
holding.wait()
codes = []
for step in steps:
    child = os.fork()
    if not child:
        signal.alarm(10)
        step()
        os._exit(7)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    if codes[-1] != 7:
        break
over.set()
thread.join()
print(codes == [7] * 17, codes)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_does_not_wait_for_a_lock_of_another_thread():
    # In a new process, without locks of other tools.
    result = subprocess.run(  # noqa: S603  a fixed command
        [sys.executable, "-c", FORKING], capture_output=True, text=True, check=True
    )
    assert result.stdout.startswith("True"), result.stdout


def test_a_forked_child_starts_with_the_parents_balance():
    bucket = TokenBucket(capacity=12)
    bucket.withdraw(OSError())
    renew_locks()
    assert (bucket.withdraw(OSError()), bucket.balance) == (5, 2.0)


@pytest.mark.parametrize(
    "make",
    [TokenBucket, Throttle, RatioBudget, FleetBudget, lambda: Registry(TokenBucket)],
    ids=["bucket", "throttle", "ratio", "fleet", "registry"],
)
def test_an_unreferenced_budget_is_freed_at_once(make):
    gc.disable()
    try:
        reference = weakref.ref(make())
        assert reference() is None
    finally:
        gc.enable()


# CPython 3.12 ignores opcode tracing that is enabled during a call, or crashes.
needs_opcode_tracing = pytest.mark.skipif(
    sys.version_info[:2] == (3, 12), reason="CPython 3.12 cannot be stopped there"
)


def stop_after(name, steps):
    """Return a trace function that stops a named function after so many steps."""
    remaining = iter(range(steps))

    def trace(frame, event, _):
        if frame.f_code.co_name != name:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and next(remaining, None) is None:
            raise InterruptedError
        return trace

    return trace


def stops_midway(name, steps, use):
    """Return whether a call was stopped midway, like a thread by a fork."""
    before = sys.gettrace()
    sys.settrace(stop_after(name, steps))
    try:
        use()
    except InterruptedError:
        return True
    finally:
        sys.settrace(before)
    return False


@needs_opcode_tracing
def test_a_ratio_recovers_from_a_thread_stopped_anywhere_within_a_window():
    steps, again = 0, True
    while again:
        budget = RatioBudget(0.5, reserve=1)
        with virtual_time() as clock:
            budget.deposit(None)
            clock.advance(3)
            again = stops_midway("_turn", steps, lambda budget=budget: budget.balance)
            clock.advance(12)
            budget.deposit(None)
            assert budget.balance == 10.5
            clock.advance(10)
            assert budget.balance == 10.5
            clock.advance(1)
            assert budget.balance == 10
        steps += 1
    assert steps > 50


@needs_opcode_tracing
def test_a_registry_recovers_its_bound_from_a_thread_stopped_anywhere():
    steps, again = 0, True
    while again:
        hosts = Registry(TokenBucket, at_most=2)
        assert hosts["a"] is not hosts["b"]
        again = stops_midway("setdefault", steps, lambda hosts=hosts: hosts["c"])
        assert hosts["d"] is hosts["d"]
        assert len(hosts) == 2
        steps += 1
    assert steps > 20
