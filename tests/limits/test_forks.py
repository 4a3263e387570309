"""Limits in a forked child, while other threads used them in the parent."""

import subprocess
import sys

FORKING = """
import os, signal, threading
from contextlib import ExitStack
from retrykit.limits import CircuitBreaker, Concurrency, Registry, Lease, shared, states
from retrykit.limits._shared_limits import _SHARED
from retrykit.testing import virtual_time

def use(breaker):
    lease = breaker.acquire()
    assert isinstance(lease, Lease)
    lease.failed()
    breaker.close()
    breaker.open()
    breaker.isolate()
    breaker.metrics

hosts = Registry(CircuitBreaker)
hosts["old"], shared("key:old", CircuitBreaker)
probed = CircuitBreaker(open_for=[0])
probed.open()

def after_a_lost_probe():
    # The thread that has it is not in this process.
    assert not isinstance(probed.acquire(), Lease)
    with virtual_time(start=probe.started) as clock:
        clock.advance("1m")
        assert isinstance(probed.acquire(), Lease)

bulkhead = Concurrency(2, queue=3)
mine = bulkhead.acquire()

def after_lost_permits():
    # Those that the other thread has, and those for which it waits, are not here.
    assert bulkhead.metrics[:2] == (1, 0)
    second = bulkhead.acquire()
    assert second.delay == 0
    waiting = bulkhead.acquire()
    mine.succeeded()
    assert waiting.wait(at_most=5) is None
    waiting.succeeded()
    second.succeeded()
    assert bulkhead.metrics[:2] == (0, 0)

steps = [lambda: use(CircuitBreaker()), lambda: use(shared("key:old", CircuitBreaker))]
steps += [lambda: use(hosts["old"]), lambda: use(hosts["new"]), hosts.states, states]
steps += [after_a_lost_probe, after_lost_permits]

def hold():
    global probe
    probe = probed.acquire()
    others = [bulkhead.acquire() for _ in range(3)]
    with ExitStack() as held:
        for each in [hosts["old"], shared("key:old", CircuitBreaker), probed, bulkhead]:
            held.enter_context(each._lock)
        for each in [hosts, _SHARED]:
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
over.set()
thread.join()
print(*codes)
"""


def test_a_child_never_waits_for_a_thread_of_its_parent():
    ended = subprocess.run(  # noqa: S603  our own script
        [sys.executable, "-W", "ignore", "-c", FORKING],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.stdout.split(), ended.stderr) == (["7"] * 8, "")
