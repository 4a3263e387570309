"""A rate limit that processes share on Redis."""

import asyncio
import logging
import pickle
import signal
import subprocess
import sys
from contextlib import ExitStack

import pytest
import redis

from retrykit import Policy, RefusedError
from retrykit.integrations.redis import AsyncRedisRateLimit, RedisRateLimit
from retrykit.integrations.redis._availability import Availability
from retrykit.integrations.redis._rate_limits import RATE_SCRIPT
from retrykit.limits import RateLimit, Refusal
from retrykit.testing import virtual_time
from tests._support import redis_server
from tests._support.ports import free_port
from tests._support.redis_server import Backend

served, server = redis_server.served, redis_server.server
live_backend, backend = redis_server.live_backend, redis_server.backend

KEY = "retrykit:rate:api"


@pytest.fixture(autouse=True)
def _prepare(server, caplog):
    caplog.set_level(logging.INFO, "retrykit")
    # A client sends an unknown script twice, which would be counted.
    server.client.script_load(RATE_SCRIPT)
    server.scripts()


def levels(caplog):
    return [record.levelname for record in caplog.records]


def shared(backend, calls=2, per="100s", local=None, **settings):
    make = AsyncRedisRateLimit if backend.awaited else RedisRateLimit
    limit = RateLimit(calls, per, **{"max_wait": "1h", **settings})
    return make(backend.client(), "api", limit, local=local)


def wait(backend, limit, at_most=None):
    """Wait for the time of a call; return its refusal, if there is one."""
    lease = limit.acquire()
    if isinstance(lease, Refusal):
        return lease
    if backend.awaited:
        return backend(lease.wait_async(at_most))
    return lease.wait(at_most)


def delays(backend, clock, limit, count):
    """Return how long calls wait for Redis, which does not see them wait, in tens."""
    found = []
    for _ in range(count):
        before = clock.now()
        assert wait(backend, limit) is None
        found.append(round(clock.now() - before, -1))
    return found


def test_a_call_waits_for_its_time(backend, clock, server):
    one, other = shared(backend), shared(backend)
    assert delays(backend, clock, one, 1) == delays(backend, clock, other, 1) == [0]
    assert other.state == "free"
    assert delays(backend, clock, one, 3) == [100, 100, 200]
    assert delays(backend, clock, other, 2) == [200, 300]
    assert (one.state, server.scripts()) == ("busy", 7)
    assert server.client.llen(KEY) == 2
    assert 390_000 < server.client.pttl(KEY) <= 400_000


def test_calls_can_be_spread(backend, clock):
    limit = shared(backend, spread=True)
    assert delays(backend, clock, limit, 4) == [0, 50, 100, 150]


@pytest.mark.parametrize("at_most", [None, 250])
def test_a_call_that_would_wait_for_too_long_takes_no_time(backend, clock, at_most):
    limit = shared(backend, calls=1, max_wait="1h" if at_most else 250)
    assert delays(backend, clock, limit, 3) == [0, 100, 200]
    for _ in range(2):
        refusal = wait(backend, limit, at_most)
        assert refusal.reason == "busy: 1 call per 1 min 40 s"
        assert 299 < refusal.retry_in <= 300
    assert limit.state == "busy"
    error = limit.error_of(refusal)
    assert str(error).startswith("limit 'api' is busy: 1 call per 1 min 40 s; try ")


def test_a_period_that_is_over_is_forgotten(live_backend, server):
    limit = shared(live_backend, calls=1, per="5ms", max_wait=1)
    for _ in range(10):
        assert wait(live_backend, limit) is None
    while server.client.exists(KEY):
        pass
    assert wait(live_backend, limit, 0) is None


def test_no_call_is_made_while_it_is_asked(backend, server):
    limit = shared(backend)
    lease = limit.acquire()
    assert (lease.delay, lease.generation, server.scripts()) == (float("inf"), 0, 0)
    lease.succeeded()
    lease.failed()
    lease.ignored()
    assert repr(lease) == f"<lease of {limit!r}>"


def test_policies_wait_for_it_as_long_as_they_may(backend, clock):
    limit = shared(backend, calls=1)
    policy = Policy(max_elapsed=150, admission=[limit])
    assert [backend.run(policy, bool).value for _ in range(2)] == [False, False]
    assert 99 < clock.now() <= 100
    assert isinstance(backend.run(policy, bool).error, RefusedError)


def test_a_clock_of_the_server_that_was_set_back_is_no_endless_wait(
    backend, clock, server
):
    seconds, _ = server.client.time()
    server.client.rpush(KEY, (seconds + 86_400) * 1_000_000)
    limit = shared(backend)
    assert delays(backend, clock, limit, 3) == [0, 0, 100]


def test_clocks_of_processes_need_not_agree(server):
    for start in (10**9, 5):
        with virtual_time(start) as clock, ExitStack() as stack:
            backend = Backend("blocking", server.port, stack)
            waited = delays(backend, clock, shared(backend, calls=1), 1)
    assert waited == [100]


def test_without_redis_each_process_counts_its_own_calls(clock, caplog):
    for name in ("blocking", "asyncio"):
        caplog.clear()
        with ExitStack() as stack:
            backend = Backend(name, free_port(), stack)
            local = RateLimit(1, per=40, max_wait=50)
            limit = shared(backend, local=local)
            start = clock.now()
            waited = []
            for _ in range(3):
                assert wait(backend, limit) is None
                waited.append(clock.now() - start)
            # It was asked at first, and after 40 s.
            assert (waited, limit.state) == ([0, 40, 80], "busy")
            held = local.acquire()
            assert held.delay == 40
            assert wait(backend, limit) == ("busy: 1 call per 40 s", 80)
            # Now it is not asked.
            assert limit.acquire() == ("busy: 1 call per 40 s", 80)
            held.succeeded()
        [record] = caplog.records
        assert record.levelname == "WARNING"
        assert record.getMessage().startswith(
            f"{limit!r}: Redis is unavailable, so each process counts its own calls: "
            "ConnectionError: "
        )


def test_a_killed_redis_is_used_again_when_it_is_back(backend, server, clock, caplog):
    limit = shared(backend)
    assert wait(backend, limit) is None
    server.kill()
    assert wait(backend, limit) is None
    server.start()
    assert limit.acquire().delay == 0
    clock.advance(1)
    assert wait(backend, limit) is None
    assert (server.client.llen(KEY), limit.state) == (1, "free")
    assert levels(caplog) == ["WARNING", "INFO"]


def test_another_type_under_its_key_is_an_outage(backend, server, caplog):
    server.client.set(KEY, "text")
    limit = shared(backend)
    assert wait(backend, limit) is None
    assert levels(caplog) == ["WARNING"]


def test_a_cancelled_call_keeps_no_other_from_its_time(server, clock, caplog):
    async def main(backend):
        limit = shared(backend, calls=1)
        server.send(signal.SIGSTOP)
        try:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await limit.acquire().wait_async()
        finally:
            server.send(signal.SIGCONT)
        before = clock.now()
        assert await limit.acquire().wait_async() is None
        # The server may have run what was sent before that was cancelled.
        assert round(clock.now() - before, -1) in {0, 100}

    with ExitStack() as stack:
        backend = Backend("asyncio", server.port, stack)
        backend(main(backend))
    assert caplog.records == []


def test_the_wrong_kind_of_call_is_an_error(backend):
    limit = shared(backend)
    if backend.awaited:
        with pytest.raises(TypeError, match="not for sync functions; use RedisRateL"):
            limit(print)()
    else:
        with pytest.raises(TypeError, match="not for coroutines; use AsyncRedisRate"):
            asyncio.run(limit.acquire().wait_async())


def test_its_repr_shows_no_client():
    client = redis.Redis(host="nowhere.example", password="secret")  # noqa: S106  none
    limit = RedisRateLimit(client, "api", RateLimit(5))
    assert repr(limit) == "<RedisRateLimit 'api' of RateLimit(5)>"
    with pytest.raises(TypeError, match="create one in each process, with the same"):
        pickle.dumps(limit)


@pytest.fixture
def availability(clock):
    return Availability("a limit", "it is alone")


def test_an_outage_is_probed_after_growing_pauses(availability, clock, caplog):
    availability.fail(availability.begin(), OSError())
    pauses = []
    for _ in range(7):
        start = clock.now()
        while (request := availability.begin()) is None:
            clock.advance(0.5)
        pauses.append(clock.now() - start)
        # Only one caller probes at a time.
        assert availability.begin() is None
        availability.fail(request, OSError())
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    assert levels(caplog) == ["WARNING"]
    with virtual_time(start=clock.now() - 5):
        assert availability.begin() is not None


def test_concurrent_requests_that_fail_are_one_outage(availability, clock, caplog):
    first, second, third = (availability.begin() for _ in range(3))
    availability.fail(first, OSError())
    availability.fail(second, OSError())
    # A reply to a request from before the failure does not end the outage.
    availability.reply(third)
    assert (availability.failures, levels(caplog)) == (1, ["WARNING"])
    clock.advance(1)
    availability.reply(availability.begin())
    assert (availability.failures, levels(caplog)) == (0, ["WARNING", "INFO"])


WORKER = """
import sys, threading, time
import redis
from retrykit.integrations.redis import RedisRateLimit
from retrykit.limits import RateLimit

client = redis.Redis(port=int(sys.argv[1]))
limit = RedisRateLimit(client, "api", RateLimit(10, per="100ms"))

@limit
def call():
    sys.stdout.write(f"{time.monotonic()}\\n")

threads = [threading.Thread(target=lambda: [call() for _ in range(4)]) for _ in "12"]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_processes_and_threads_share_it_to_the_last_call(server):
    workers = [
        subprocess.Popen(  # noqa: S603  this interpreter, and what is above
            [sys.executable, "-W", "error", "-c", WORKER, str(server.port)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    answers = [worker.communicate()[0].split() for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 8
    times = sorted(float(time) for answer in answers for time in answer)
    assert (len(times), server.scripts()) == (64, 64)
    # It takes six periods, whoever is late.
    assert times[-1] - times[0] > 0.5
