"""A circuit breaker whose state processes share on Redis."""

import asyncio
import json
import logging
import os
import pickle
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, closing

import pytest
import redis

from retrykit import CircuitOpenError, Policy
from retrykit.integrations.redis import RedisCircuitBreaker
from retrykit.integrations.redis._background_thread import (
    BackgroundThread,
    background_thread,
)
from retrykit.integrations.redis._circuit_breakers import CIRCUIT_SCRIPT
from retrykit.integrations.redis._fleet_view import FleetView
from retrykit.limits import CircuitBreaker, Lease
from retrykit.testing import virtual_time
from tests._support import redis_server
from tests._support.optional_trio import trio
from tests._support.ports import free_port
from tests._support.redis_server import timeouts

served, server = redis_server.served, redis_server.server


@pytest.fixture(autouse=True)
def _prepare(server, caplog):
    caplog.set_level(logging.INFO, "retrykit")
    # A client sends an unknown script twice, which would be counted.
    server.client.script_load(CIRCUIT_SCRIPT)
    server.scripts()


@pytest.fixture
def make(server):
    """Return a factory of breakers, each as of a process of its own."""
    with ExitStack() as stack:

        def make(open_for=60, **settings):
            client = redis.Redis(port=server.port, **timeouts(5))
            stack.enter_context(closing(client))
            own = CircuitBreaker(consecutive_failures=1, open_for=open_for)
            breaker = RedisCircuitBreaker(client, "api", own, **settings)
            stack.callback(end, breaker)
            return breaker

        yield make


def thread_of(breaker):
    return background_thread(breaker._script.registered_client)  # noqa: SLF001  its own


def end(breaker):
    """End the thread of a breaker, so that it counts in no other test."""
    breaker.breaker.observers.clear()
    breaker.breaker.close()
    if breaker.refresh_every < 60:
        until(lambda: not thread_of(breaker)._is_running)  # noqa: SLF001  no other sign


def fail(breaker):
    breaker.acquire().failed()
    breaker.refresh()


def allows(breaker):
    return isinstance(breaker.acquire(), Lease)


def levels(caplog):
    return [record.levelname for record in caplog.records]


def until(condition):
    """Wait for what the background thread does."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "not in 20 s"
        time.sleep(0.005)


@pytest.mark.usefixtures("clock")
class TestInVirtualTime:
    """Without background threads."""

    def test_it_opens_for_all_when_a_quorum_is_open(self, make):
        fleet = [make(quorum=0.6) for _ in range(5)]
        for breaker in fleet:
            assert breaker.refresh().open == 0
        for breaker in fleet[:2]:
            fail(breaker)
        assert fleet[4].refresh() == (5, 2, 3)
        assert allows(fleet[4])
        fail(fleet[2])
        assert fleet[4].refresh() == fleet[4].fleet == (5, 3, 3)
        refusal = fleet[4].acquire()
        assert refusal.reason == "open, as 3 of 5 processes are"
        assert 59 < refusal.retry_in <= 60
        assert str(fleet[4].error_of(refusal)).startswith(
            "circuit breaker 'api' is open, as 3 of 5 processes are; try again in "
        )
        # It does not count itself, as its own calls did not fail.
        assert fleet[4].refresh() == (5, 3, 3)

    def test_one_process_never_opens_it_for_others(self, make):
        bad, good = make(quorum=0.01), make(quorum=0.01)
        fail(bad)
        assert good.refresh() == (2, 1, 2)
        assert allows(good)
        assert not allows(bad)

    def test_it_is_refused_until_enough_of_them_are_over(self, make):
        fleet = [make(open_for=each) for each in (10, 20, 30, 40)]
        for breaker in fleet:
            breaker.refresh()
        for breaker in fleet[:3]:
            fail(breaker)
        # Two of four are enough: it ends with the second-last.
        fleet[3].refresh()
        assert 19 < fleet[3].acquire().retry_in <= 20

    def test_afterwards_it_sends_probes_of_its_own(self, make, clock):
        first, second, third = make(), make(), make()
        fail(first)
        fail(second)
        third.refresh()
        assert not allows(third)
        clock.advance(60)
        probe = third.acquire()
        assert third.state == "half-open"
        assert not allows(third)
        probe.failed()
        assert third.refresh().open == 3
        assert third.acquire().reason == "open, as 1 of 1 probe failed"

    def test_an_opening_by_hand_counts(self, make):
        for breaker in (make(), make()):
            breaker.breaker.open()
            breaker.refresh()
        other = make()
        other.refresh()
        assert not allows(other)

    def test_isolation_does_not_count(self, make):
        breaker = make()
        breaker.breaker.isolate()
        assert breaker.refresh() == (1, 0, 2)
        assert breaker.state == "isolated"

    def test_clocks_of_processes_need_not_agree(self, make):
        with virtual_time(start=10**9):
            first, second = make(), make()
            fail(first)
            fail(second)
        with virtual_time(start=5):
            third = make()
            third.refresh()
            assert 59 < third.acquire().retry_in <= 60

    def test_it_opens_for_all_names_on_their_own(self, make, server):
        fail(make())
        fail(make())
        client = redis.Redis(port=server.port)
        with closing(client):
            other = RedisCircuitBreaker(client, "other")
            assert other.refresh() == (1, 0, 2)

    def test_processes_that_are_silent_no_longer_count(self, make, server):
        dead = [make(refresh_every=0.01, expire_after=0.02) for _ in range(3)]
        for breaker in dead:
            fail(breaker)
        first, other = make(), make()
        until(lambda: first.refresh() == (1, 0, 2))
        assert other.refresh() == (2, 0, 2)
        assert allows(other)
        assert server.client.hlen("{retrykit:circuit:api}:open") == 0

    def test_keys_expire(self, make, server):
        fail(make())
        for each in ("alive", "open"):
            assert 0 < server.client.pttl(f"{{retrykit:circuit:api}}:{each}") <= 5000

    def test_it_asks_no_server_on_its_own(self, make, server):
        breaker = make()
        breaker.acquire().failed()
        breaker.breaker.close()
        assert server.scripts() == 0

    def test_it_is_asked_as_its_own_breaker_is(self, make):
        breaker = make()
        assert breaker.is_failure(OSError()) is None
        assert breaker.is_failed_result(5) is None
        assert breaker.refusal_after(1) is None
        Policy(admission=[breaker]).call(bool)
        fail(breaker)
        assert breaker.refusal_after(1).retry_in == 60
        assert breaker.metrics.total_failed == 1
        assert breaker.label == "api"
        with pytest.raises(CircuitOpenError, match="'api' is open, as the last"):
            breaker(print)()

    def test_without_redis_each_process_decides_alone(self, caplog):
        client = redis.Redis(port=free_port(), **timeouts(0.1))
        own = CircuitBreaker(consecutive_failures=1, open_for=10)
        breaker = RedisCircuitBreaker(client, "api", own)
        pauses = []
        for _ in range(7):
            assert breaker.refresh() is breaker.fleet is None
            breaker.acquire().succeeded()
            pauses.append(breaker.run())
        # Each of them was tried twice.
        assert pauses == [2, 8, 30, 30, 30, 30, 30]
        breaker.acquire().failed()
        assert breaker.acquire() == ("open, as the last call failed", 10)
        [record] = caplog.records
        assert record.levelname == "WARNING"
        assert record.getMessage().startswith(
            f"<RedisCircuitBreaker 'api' of {own!r}>: Redis is unavailable, so each "
            "process decides alone: ConnectionError: "
        )

    def test_a_killed_redis_is_used_again_when_it_is_back(self, make, server, caplog):
        first, second, third = make(), make(), make()
        fail(first)
        server.kill()
        fail(second)
        assert third.refresh() is None
        assert allows(third)
        server.start()
        # What it knew is lost, and told again.
        for breaker in (first, second):
            breaker.refresh()
        assert third.refresh() == (3, 2, 2)
        assert not allows(third)
        assert levels(caplog) == ["WARNING", "WARNING", "INFO", "INFO"]

    def test_another_type_under_its_key_is_an_outage(self, make, server, caplog):
        server.client.set("{retrykit:circuit:api}:open", "text")
        breaker = make()
        fail(breaker)
        assert breaker.fleet is None
        assert levels(caplog) == ["WARNING"]


def test_its_repr_shows_no_client():
    client = redis.Redis(host="nowhere.example", password="secret")  # noqa: S106  none
    breaker = RedisCircuitBreaker(client, "api")
    assert repr(breaker) == "<RedisCircuitBreaker 'api' of CircuitBreaker()>"
    with pytest.raises(TypeError, match="create one in each process, with the same"):
        pickle.dumps(breaker)


def test_one_that_closed_trusts_its_probes_more_than_older_openings(make):
    first, second, third, fourth = (make(refresh_every="1h") for _ in range(4))
    for breaker in (first, second, third):
        fail(breaker)
    fourth.refresh()
    assert not allows(fourth)
    later()
    fourth.breaker.close()
    assert fourth.refresh() == (4, 0, 2)
    assert allows(fourth)
    later()
    first.breaker.close()
    fail(first)
    # The others opened before it closed.
    until(lambda: fourth.refresh() == (4, 1, 2))


def later():
    """Let as much time pass as the server can tell."""
    end = time.monotonic() + 0.02
    until(lambda: time.monotonic() > end)


def test_a_closed_breaker_asks_once_in_a_while(make, server):
    breaker = make(refresh_every="1h")
    for _ in range(1000):
        breaker.acquire().succeeded()
    until(lambda: breaker.fleet == (1, 0, 2))
    for _ in range(1000):
        breaker.acquire().succeeded()
    assert server.scripts() == 1


def test_a_change_is_told_at_once(make, server):
    first, second = make(refresh_every="1h"), make(refresh_every="1h")
    for breaker in (first, second):
        breaker.acquire().failed()
    third = make()
    until(lambda: third.refresh().open == 2)
    assert not allows(third)
    first.breaker.close()
    until(lambda: third.refresh().open == 1)
    del server


def test_the_thread_ends_when_there_are_no_calls(make, server):
    breaker = make(refresh_every=0.01)
    for _ in range(2):
        breaker.acquire().succeeded()
        until(lambda: not thread_of(breaker)._is_running)  # noqa: SLF001  no other sign
    assert server.scripts() >= 2


def test_a_process_that_is_open_is_alive_without_calls(make):
    silent = make(refresh_every=0.01, expire_after=0.05)
    other = make()
    silent.acquire().failed()
    until(lambda: other.refresh().open == 1)
    end = time.monotonic() + 0.2
    until(lambda: time.monotonic() > end)
    # On a busy machine it may be late, but one that is silent does not come back.
    until(lambda: other.refresh() == (2, 1, 2))


def test_a_job_that_is_hurried_while_it_runs_runs_again():
    thread, runs = BackgroundThread(), []

    class Job:
        def run(self):
            runs.append(self)
            if len(runs) < 3:
                thread.hurry(self)

        def give_up(self, fault): ...

    thread.hurry(Job())
    until(lambda: not thread._is_running)  # noqa: SLF001  no other sign
    assert len(runs) == 3


def test_the_breakers_of_a_client_have_one_thread(server):
    with closing(redis.Redis(port=server.port, **timeouts(5))) as client:
        often = RedisCircuitBreaker(client, "often", refresh_every=0.01)
        seldom = RedisCircuitBreaker(client, "seldom", refresh_every="1h")
        for breaker in (often, seldom):
            breaker.acquire().succeeded()
        assert thread_of(often) is thread_of(seldom)
        until(lambda: often.fleet and seldom.fleet)
        for _ in range(3):
            before = often.fleet

            def is_asked(before=before):
                often.acquire().succeeded()
                return often.fleet is not before

            until(is_asked)
        assert server.scripts() >= 5


def test_reports_that_fail_at_once_are_one_outage(clock, caplog):
    view = FleetView(0.5, 2, 1, 0, "a breaker")
    standing = CircuitBreaker().standing()
    first, second, third = (view.next_report(standing, clock.now()) for _ in range(3))
    view.apply_failure(first, OSError("dead"))
    view.apply_failure(second, OSError("dead"))
    assert (view.pause, levels(caplog)) == (1, ["WARNING"])
    # A report from before the failure does not show that Redis is back.
    view.apply_reply(third, 1, [])
    assert levels(caplog) == ["WARNING"]
    view.apply_reply(view.next_report(standing, clock.now()), 1, [])
    assert levels(caplog) == ["WARNING", "INFO"]


def test_a_quorum_is_the_fraction_that_was_meant(clock):
    view = FleetView(0.7, 2, 1, 0, "a breaker")
    report = view.next_report(CircuitBreaker().standing(), clock.now())
    assert view.apply_reply(report, 10, [1000] * 6) is None
    opening = view.apply_reply(report, 10, [1000, 2000, *[9000] * 6])
    assert opening == (2, "8 of 10 processes are")


def test_it_decides_alone_when_no_thread_can_be_started(make, monkeypatch, caplog):
    class Thread:
        def __init__(self, **settings): ...

        def start(self):
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(
        "retrykit.integrations.redis._background_thread.threading.Thread", Thread
    )
    breaker = make()
    for _ in range(3):
        breaker.acquire().succeeded()
    [record] = caplog.records
    assert record.getMessage().endswith("RuntimeError: can't start new thread")


def test_no_call_waits_for_a_hanging_redis(make, server, caplog):
    breaker = make(refresh_every=0.01)
    server.send(signal.SIGSTOP)
    try:
        start = time.monotonic()
        for _ in range(100):
            breaker.acquire().succeeded()
        # The client waits for 5 s.
        assert time.monotonic() - start < 4
    finally:
        server.send(signal.SIGCONT)
    until(lambda: breaker.fleet)
    assert caplog.records == []


@pytest.mark.parametrize("library", [asyncio, trio])
def test_coroutines_share_it(make, library):
    first, second = make(refresh_every=0.01), make(refresh_every=0.01)
    third = make(refresh_every=0.01)

    async def main():
        for breaker in (first, second):
            with pytest.raises(OSError, match="dead"):
                async with breaker.guard():
                    raise OSError("dead")

        @third
        async def call():
            await library.sleep(0.001)

        with pytest.raises(CircuitOpenError, match="as 2 of 3 processes are"):
            while True:
                await call()

    asyncio.run(main()) if library is asyncio else trio.run(main)
    assert third.metrics.total_failed == 0


FORKING = """
import os, signal, sys, time
import redis
from retrykit.integrations.redis import RedisCircuitBreaker
from retrykit.limits import CircuitBreaker

client = redis.Redis(port=int(sys.argv[1]))
own = CircuitBreaker(consecutive_failures=1)
breaker = RedisCircuitBreaker(client, "api", own, refresh_every=0.01, expire_after=60)

def wait_for(*fleet):
    signal.alarm(20)
    while breaker.fleet != fleet:
        breaker.acquire().succeeded() if own.state == "closed" else None
        time.sleep(0.005)

wait_for(1, 0, 2)
child = os.fork()
if not child:
    breaker.acquire().failed()
    wait_for(2, 1, 2)
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
wait_for(2, 1, 2)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_the_child_of_a_fork_is_another_process(server):
    ended = subprocess.run(  # noqa: S603  this interpreter, and what is above
        # Python 3.12 warns of forks of a process with threads.
        [sys.executable, "-W", "ignore", "-c", FORKING, str(server.port)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")


WORKER = """
import json, sys
import redis
from retrykit.integrations.redis import RedisCircuitBreaker
from retrykit.limits import CircuitBreaker, Lease

client = redis.Redis(port=int(sys.argv[1]), socket_timeout=5, socket_connect_timeout=5)
own = CircuitBreaker(window=20, minimum_calls=10, open_for="1h")
breaker = RedisCircuitBreaker(client, "api", own, refresh_every=0.02, expire_after=60)
for line in sys.stdin:
    allowed = 0
    for _ in range(50):
        lease = breaker.acquire()
        if isinstance(lease, Lease):
            allowed += 1
            lease.failed() if line == "fail\\n" else lease.succeeded()
    reason = None if isinstance(lease, Lease) else lease.reason
    print(json.dumps([allowed, reason, breaker.fleet]), flush=True)
"""


@pytest.fixture
def workers(server):
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                subprocess.Popen(  # noqa: S603  this interpreter, and what is above
                    [sys.executable, "-W", "error", "-c", WORKER, str(server.port)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(8)
        ]


def ask(worker, what="work"):
    """Let a process make 50 calls; return [allowed, reason, fleet]."""
    worker.stdin.write(f"{what}\n")
    worker.stdin.flush()
    return json.loads(worker.stdout.readline())


def known(worker, *fleet):
    """Wait until a process knows this of the others; return its last answer."""
    answers = [None]

    def knows():
        answers[0] = ask(worker)
        return answers[0][2] == [*fleet]

    until(knows)
    return answers[0]


def test_eight_processes_open_together_but_not_for_one_in_trouble(workers, server):
    for worker in workers:
        ask(worker)
    for worker in workers:
        assert known(worker, 8, 0, 4)[:2] == [50, None]
    assert ask(workers[0], "fail")[0] < 50
    for worker in workers[1:]:
        assert known(worker, 8, 1, 4)[:2] == [50, None]
    assert known(workers[0], 8, 1, 4)[:2] == [0, "open, as 10 of 20 calls failed"]
    for worker in workers[1:3]:
        ask(worker, "fail")
    for worker in workers[3:]:
        assert known(worker, 8, 3, 4)[:2] == [50, None]
    server.kill()
    # Each decides alone, and the fourth is not heard.
    ask(workers[3], "fail")
    for worker in workers[4:]:
        until(lambda worker=worker: ask(worker)[2] is None)
        assert ask(worker)[:2] == [50, None]
    assert ask(workers[3])[1] == "open, as 10 of 20 calls failed"
    server.start()
    ask(workers[4], "fail")
    for worker in workers[5:]:
        until(lambda worker=worker: ask(worker)[1])
        allowed, reason, _ = ask(worker)
        assert allowed == 0
        assert reason.endswith("processes are")
    assert known(workers[7], 8, 5, 4)[0] == 0
