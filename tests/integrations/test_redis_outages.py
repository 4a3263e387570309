"""A budget on Redis during and after an outage of Redis."""

import asyncio
import contextlib
import logging
import signal
import socket
import threading

import pytest

from retrykit import Policy, StopReason
from retrykit.budgets import TokenBucket
from retrykit.integrations.redis._local_ledger import LocalLedger
from retrykit.testing import virtual_time
from tests._support import redis_server
from tests._support.ports import free_port
from tests._support.redis_server import KEY, Backend

served, server = redis_server.served, redis_server.server
live_backend, backend = redis_server.live_backend, redis_server.backend


@pytest.fixture(autouse=True)
def _capture_info(caplog):
    caplog.set_level(logging.INFO, "retrykit")


@pytest.fixture(params=["blocking", "asyncio"])
def unreachable(request, clock):
    """Sync and async use of a port on which no server listens."""
    with contextlib.ExitStack() as stack:
        yield Backend(request.param, free_port(), stack)


def levels(caplog):
    return [record.levelname for record in caplog.records]


def fail():
    raise OSError("dead")


@pytest.mark.usefixtures("quiet")
def test_without_redis_calls_use_the_local_bucket(unreachable, caplog):
    policy = Policy(schedule=[0] * 9, max_attempts=4, on=OSError)
    policy = policy.replace(budget=unreachable.budget(TokenBucket(20)))
    outcomes = [unreachable.run(policy, fail) for _ in range(3)]
    assert [outcome.state.attempt for outcome in outcomes] == [4, 2, 1]
    assert {str(outcome.error) for outcome in outcomes} == {"dead"}
    assert outcomes[-1].state.stop_reason is StopReason.BUDGET
    assert unreachable.run(policy, bool).value is False
    assert policy.budget.balance == 1
    name = "AsyncRedisBudget" if unreachable.awaited else "RedisBudget"
    [record] = caplog.records
    assert record.getMessage().startswith(
        f"<{name} of TokenBucket(capacity=20), key='{KEY}'>: Redis is "
        "unavailable, so tokens are counted locally: ConnectionError: "
    )
    assert (record.name, record.levelname) == ("retrykit", "WARNING")


def refuse_writes(client):
    client.replicaof("127.0.0.1", 1)


def accept_writes(client):
    client.replicaof("NO", "ONE")


def fill(client):
    client.config_set("maxmemory", 1)


def clear(client):
    client.config_set("maxmemory", 0)


OUTAGES = {
    "another type under the key": (
        lambda client: client.lpush(KEY, "a"),
        lambda client: client.delete(KEY),
    ),
    "a text under the key": (
        lambda client: client.set(KEY, "1e3"),
        lambda client: client.delete(KEY),
    ),
    "read-only": (refuse_writes, accept_writes),
    "out of memory": (fill, clear),
}


@pytest.mark.parametrize("outage", OUTAGES)
def test_tokens_taken_during_an_outage_are_charged_afterwards(
    backend, server, clock, caplog, outage
):
    begin, end = OUTAGES[outage]
    budget = backend.budget(TokenBucket(100))
    begin(server.client)
    try:
        for _ in range(4):
            assert backend(budget.withdraw(OSError())) == 5
            backend(budget.deposit(None))
        assert (levels(caplog), budget.balance) == (["WARNING"], 84)
    finally:
        end(server.client)
    assert backend(budget.flush()) == 84
    server.client.set(KEY, 50)
    clock.advance(1)
    assert backend(budget.withdraw(OSError())) == 5
    assert (levels(caplog), budget.balance) == (["WARNING", "INFO"], 29)
    assert caplog.messages[1].endswith(
        "Redis is available, the tokens are shared again"
    )
    assert backend(budget.flush()) == 29


@pytest.mark.usefixtures("quiet")
def test_a_server_that_dies_during_a_call_is_an_outage(backend, server, clock, caplog):
    server.client.set(KEY, 40)
    budget = backend.budget()
    assert backend(budget.withdraw(OSError())) == 5
    server.send(signal.SIGSTOP)
    killer = threading.Timer(0.02, server.kill)
    killer.start()
    policy = Policy(schedule=[0], on=OSError, budget=budget)
    outcome = backend.run(policy, fail)
    killer.join()
    assert (outcome.state.attempt, str(outcome.error)) == (2, "dead")
    # It continues with the last balance of Redis, not with a full bucket.
    assert (levels(caplog), budget.balance) == (["WARNING"], 30)
    server.start()
    server.client.set(KEY, 3)
    clock.advance(1)
    # No balance is below zero, even if more was taken.
    assert backend(budget.withdraw(OSError())) is None
    assert (levels(caplog), budget.balance) == (["WARNING", "INFO"], 0)


def test_a_hanging_server_is_waited_for_once_per_pause(backend, server, clock, caplog):
    budget = backend.budget()
    backend(budget.withdraw(OSError()))
    server.send(signal.SIGSTOP)
    try:
        for _ in range(20):
            backend(budget.withdraw(OSError()))
            backend(budget.deposit(None))
        clock.advance(0.999)
        assert (backend(budget.flush()), levels(caplog)) == (415, ["WARNING"])
    finally:
        server.send(signal.SIGCONT)
    clock.advance(0.001)
    # The server ran the first script when it was resumed, so it is paid twice.
    assert backend(budget.flush()) == 410
    assert levels(caplog) == ["WARNING", "INFO"]


def test_cancellation_during_a_script_is_raised(server, clock, caplog):
    async def main(backend):
        budget = backend.budget()
        await budget.withdraw(OSError())
        server.send(signal.SIGSTOP)
        try:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await budget.withdraw(OSError())
        finally:
            server.send(signal.SIGCONT)
        assert await budget.withdraw(OSError()) == 5
        # The server may have run what was sent before that was cancelled.
        assert await budget.flush() in {485, 490}

    with contextlib.ExitStack() as stack:
        backend = Backend("asyncio", server.port, stack)
        backend(main(backend))
    assert caplog.records == []


class FixedReplyServer:
    """A server with the same reply to everything."""

    def __init__(self, answer):
        self.answer = answer
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.server.accept()
                with connection:
                    while connection.recv(4096):
                        connection.sendall(self.answer)

    def close(self):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize(
    "answer",
    [
        b"-LOADING Redis is loading the dataset in memory\r\n",
        b"-NOAUTH Authentication required.\r\n",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"+OK\r\n",
        b"*1\r\n:1\r\n",
    ],
    ids=["loading", "no password", "another protocol", "a text", "too little"],
)
def test_unexpected_replies_are_an_outage(clock, caplog, answer, awaited):
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(contextlib.closing(FixedReplyServer(answer)))
        name = "asyncio" if awaited else "blocking"
        backend = Backend(name, server.port, stack)
        budget = backend.budget()
        assert [backend(budget.withdraw(OSError())) for _ in range(2)] == [5, 5]
        assert (levels(caplog), budget.balance) == (["WARNING"], 490)


@pytest.fixture
def ledger(clock):
    return LocalLedger(TokenBucket(20), 1, "a budget")


def test_an_outage_is_probed_after_growing_pauses(ledger, clock, caplog):
    ledger.apply_failure(ledger.next_request(5), OSError())
    pauses = []
    for _ in range(7):
        start = clock.now()
        while (request := ledger.next_request()) is None:
            clock.advance(0.5)
        pauses.append(clock.now() - start)
        # Only one caller probes at a time.
        assert ledger.next_request() is None
        ledger.apply_failure(request, OSError())
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    assert levels(caplog) == ["WARNING"]
    clock.advance(30)
    ledger.apply_reply(ledger.next_request(), 7)
    ledger.apply_failure(ledger.next_request(), OSError())
    clock.advance(1)
    assert ledger.next_request() is not None


def test_another_caller_probes_if_the_first_gets_no_reply(ledger, clock):
    ledger.apply_failure(ledger.next_request(), OSError())
    clock.advance(1)
    assert ledger.next_request() is not None
    clock.advance(29.9)
    assert ledger.next_request() is None
    clock.advance(0.1)
    assert ledger.next_request() is not None


def test_concurrent_failures_count_as_one_outage(ledger, clock, caplog):
    first, second, third = (ledger.next_request(5) for _ in range(3))
    assert [ledger.apply_failure(each, OSError()) for each in (first, second)] == [5, 5]
    clock.advance(1)
    # A reply to a request from before the failure does not end the outage.
    ledger.apply_reply(third, 3)
    assert (levels(caplog), ledger.tokens) == (["WARNING"], 10)
    ledger.apply_reply(ledger.next_request(), 3)
    assert (levels(caplog), ledger.tokens) == (["WARNING", "INFO"], 3)


def test_after_a_lost_reply_withdrawals_are_charged_and_rewards_dropped(ledger, clock):
    assert ledger.add_reward(None) is None
    ledger.apply_failure(ledger.next_request(5), OSError())
    assert ledger.unsent == -5
    ledger.add_reward(None)
    clock.advance(1)
    probe = ledger.next_request(5)
    assert (probe.cost, probe.change, ledger.unsent) == (5, -4, 0)
    ledger.apply_failure(probe, OSError())
    assert ledger.unsent == -9
    clock.advance(2)
    ledger.apply_reply(ledger.next_request(), 3)
    assert (ledger.unsent, ledger.tokens) == (0, 3)


def test_rewards_are_collected_again_after_an_outage(ledger, clock):
    ledger.apply_failure(ledger.next_request(), OSError())
    clock.advance(1)
    ledger.apply_reply(ledger.next_request(), 3)
    clock.advance(0.9)
    assert ledger.add_reward(None) is None
    clock.advance(0.1)
    assert ledger.add_reward(None).change == 2


def test_nothing_is_added_to_a_full_bucket_during_an_outage(ledger):
    ledger.apply_failure(ledger.next_request(), OSError())
    for _ in range(30):
        ledger.add_reward(None)
    assert (ledger.unsent, ledger.tokens) == (0, 20)
    assert [ledger.pay_locally(5) for _ in range(5)] == [5, 5, 5, 5, None]
    assert (ledger.unsent, ledger.tokens) == (-20, 0)


def test_a_clock_that_goes_back_does_not_prolong_an_outage(ledger, clock):
    clock.advance(100)
    ledger.apply_failure(ledger.next_request(), OSError())
    assert ledger.next_request() is None
    with virtual_time(50):
        assert ledger.next_request() is not None
