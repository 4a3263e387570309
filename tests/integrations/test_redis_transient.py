"""Transient errors of redis-py, on a server that is restarted and reconfigured."""

import asyncio
import errno
import re
import ssl
import threading

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from retrykit import Policy, retry, state_of
from retrykit.integrations import redis as retries
from tests._support import redis_server
from tests._support.documents import ROOT
from tests._support.fault_proxy import proxy, reset_at_once

served, server = redis_server.served, redis_server.server
live_backend, PATIENT = redis_server.live_backend, redis_server.PATIENT

QUICK = retries.policy(schedule=[0, 0, 0])


def test_the_example_of_the_page_sends_each_attempt_once(clock, monkeypatch):
    page = (ROOT / "docs" / "transient_errors.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    [example] = [block for block in blocks if "import redis\n" in block]
    names, connections = {}, []
    exec(compile(example, "transient_errors.md", "exec"), names)  # noqa: S102  our own

    def refuse(_):
        connections.append(None)
        raise ConnectionRefusedError(errno.ECONNREFUSED, "refused")

    monkeypatch.setattr(redis.Connection, "_connect", refuse)
    with pytest.raises(redis.ConnectionError):
        names["store"]("name", "one")
    assert len(connections) == 3


def call(backend, policy, fn):
    """Return what a function returns; under asyncio it returns coroutines."""

    async def awaited():
        result = fn()
        return await result if asyncio.iscoroutine(result) else result

    return backend(policy.acall(awaited) if backend.awaited else policy.call(fn))


def test_a_restart_of_the_server_is_survived(live_backend, server):
    client = live_backend.client(**PATIENT)
    live_backend(client.set("name", "one"))
    server.kill()
    attempts = []

    def store():
        attempts.append(None)
        if len(attempts) == 3:
            server.start()
        return client.set("name", "two")

    assert call(live_backend, QUICK, store)
    assert len(attempts) == 3
    assert live_backend(client.get("name")) == b"two"


def become_replica(client):
    client.replicaof("127.0.0.1", 1)


def become_stale_replica(client):
    client.config_set("replica-serve-stale-data", "no")
    client.replicaof("127.0.0.1", 1)


def become_primary(client):
    client.replicaof("NO", "ONE")
    client.config_set("replica-serve-stale-data", "yes")


@pytest.mark.parametrize(
    ("fault", "command", "error"),
    [
        (become_replica, "INCR", "You can't write against a read only replica."),
        (become_stale_replica, "EXISTS", "Link with MASTER is down"),
    ],
    ids=["READONLY", "MASTERDOWN"],
)
def test_a_failover_is_survived(live_backend, server, fault, command, error):
    client = live_backend.client(**PATIENT)
    with server.client as control:
        fault(control)
        failures = []

        def end_failover(event):
            failures.append(str(event.failure.error))
            become_primary(control)

        policy = QUICK.replace(observers={"attempt_failed": end_failover})
        try:
            call(live_backend, policy, lambda: client.execute_command(command, "name"))
        finally:
            become_primary(control)
    [failure] = failures
    assert error in failure


TRANSIENT = [
    *("LOADING Redis is loading the dataset in memory", "READONLY You can't write"),
    *("CLUSTERDOWN Hash slot not served", "MASTERDOWN Link with MASTER is down"),
    *("TRYAGAIN Multiple keys request during rehashing of slot",),
    *("NOREPLICAS Not enough good replicas", "ERR max number of clients reached"),
]
PERMANENT = [
    *("OOM command not allowed when used memory > 'maxmemory'", "ERR unknown command"),
    *("WRONGTYPE Operation against a key", "NOAUTH Authentication required."),
    *("WRONGPASS invalid username-password pair", "NOPERM No permissions"),
    *("NOSCRIPT No matching script", "CROSSSLOT Keys in request", "MOVED 1 [::1]:1"),
    *("MISCONF Errors writing to the AOF file", "EXECABORT Transaction discarded"),
]


@pytest.mark.parametrize("reply", TRANSIENT + PERMANENT, ids=lambda x: x.split()[0])
def test_replies_of_the_server(live_backend, reply):
    client = live_backend.client(**PATIENT)
    script = "return redis.error_reply(ARGV[1])"
    with pytest.raises(redis.RedisError) as caught:
        live_backend(client.eval(script, 0, reply))
    assert retries.transient(caught.value) is (reply in TRANSIENT)


def test_a_write_between_watch_and_exec_is_survived(server):
    client = server.client

    @retry(retries.policy(schedule=[0] * 99, max_elapsed="10s"))
    def increment():
        with client.pipeline() as pipe:
            pipe.watch("count")
            count = int(pipe.get("count") or 0)
            pipe.multi()
            pipe.set("count", count + 1)
            pipe.execute()

    def increment_often():
        for _ in range(10):
            increment()

    threads = [threading.Thread(target=increment_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.get("count") == "40"
    client.close()


def test_a_command_whose_reply_was_lost_may_be_executed_twice(live_backend):
    script = """
        local count, start = redis.call("INCR", KEYS[1]), redis.call("TIME")
        repeat
            local now = redis.call("TIME")
            local us = (now[1] - start[1]) * 1000000 + now[2] - start[2]
        until count > 1 or us > 400000
        return count
    """
    client = live_backend.client(socket_timeout=0.2, socket_connect_timeout=5)
    live_backend(client.ping())
    attempts = []

    def increment():
        attempts.append(None)
        return client.eval(script, 1, "count")

    policy = QUICK.replace(schedule=[0.4, 0.4])
    assert call(live_backend, policy, increment) == len(attempts) > 1


def test_no_server_is_transient(live_backend):
    with proxy(1, reset_at_once()) as faults:
        client = live_backend.client(port=faults.port)
        with pytest.raises(redis.ConnectionError) as caught:
            call(live_backend, QUICK, lambda: client.get("name"))
        # Without retries of redis-py itself, attempts do not multiply.
        assert faults.accepted == state_of(caught.value).attempt == 4


def test_the_linter_says_how_to_switch_off_the_retries_of_the_client():
    written = retries.transient.own_retries.text.replace("0))", "0), port=port)")
    names = {"redis": redis, "Retry": Retry, "NoBackoff": NoBackoff}
    with proxy(1, reset_at_once()) as faults:
        client = eval(written, names | {"port": faults.port})  # noqa: S307  ours
        with pytest.raises(redis.ConnectionError):
            client.get("name")
        assert faults.accepted == 1


def test_an_exhausted_pool_is_transient(server):
    pool = redis.ConnectionPool(port=server.port, max_connections=1)
    with redis.Redis(connection_pool=pool) as client, client.monitor():
        with pytest.raises(redis.ConnectionError) as caught:
            client.ping()
    assert retries.transient(caught.value)
    pool.disconnect()


def test_a_wrong_password_is_not_retried(live_backend, server):
    with server.client as control:
        control.config_set("requirepass", "secret")
    client = live_backend.client(password="wrong", **PATIENT)  # noqa: S106
    try:
        with pytest.raises(redis.AuthenticationError) as caught:
            call(live_backend, QUICK, client.ping)
    finally:
        with redis.Redis(port=server.port, password="secret") as control:  # noqa: S106
            control.config_set("requirepass", "")
    assert state_of(caught.value).attempt == 1


def test_a_rejected_certificate_is_not_transient():
    error = redis.ConnectionError("certificate verify failed")
    assert retries.transient(error)
    error.__context__ = ssl.SSLCertVerificationError("self-signed")
    assert not retries.transient(error)


@pytest.mark.parametrize(
    "error",
    [
        redis.exceptions.AuthorizationError(),
        redis.DataError(),
        redis.exceptions.LockError(),
        ConnectionError(),
        TimeoutError(),
        None,
        "LOADING",
    ],
    ids=repr,
)
def test_other_errors_are_not_transient(error):
    assert not retries.transient(error)


def test_a_slot_that_no_node_serves_is_transient():
    assert retries.transient(redis.exceptions.SlotNotCoveredError())


def test_a_policy_keeps_its_own_condition():
    assert retries.policy(Policy(max_attempts=2)) == Policy(
        max_attempts=2, on=retries.transient
    )
    assert retries.policy(on=redis.TimeoutError).on is redis.TimeoutError
