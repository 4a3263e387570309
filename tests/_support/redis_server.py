"""A private Redis server, which can be killed, stopped and restarted."""

import asyncio
import contextlib
import os
import signal
import subprocess

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from retrykit.budgets import TokenBucket
from retrykit.integrations.redis import AsyncRedisBudget, RedisBudget
from retrykit.integrations.redis._budgets import SCRIPT
from tests._support.ports import free_port
from tests._support.required import program

__all__ = ["KEY", "PATIENT", "Backend", "RedisServer"]
__all__ += ["backend", "live_backend", "served", "server"]

KEY = "retrykit:tests"


def timeouts(seconds, kind=Retry):
    """Return settings of a client that waits so long, and does not retry."""
    retry = kind(NoBackoff(), 0)
    return {
        "socket_timeout": seconds,
        "socket_connect_timeout": seconds,
        "retry": retry,
    }


# For servers that answer; others make a client wait.
PATIENT = {"socket_timeout": 5, "socket_connect_timeout": 5}


class RedisServer:
    """A Redis server on a free port.

    Args:
        folder: Its working folder.
        persistent: Whether each write is on disk before it is acknowledged.
    """

    def __init__(self, folder, *, persistent=False):
        self.append_only = "yes --appendfsync always" if persistent else "no"
        self.command = program("redis-server")
        self.folder = folder
        self.port = free_port()

    def start(self):
        settings = f"--port {self.port} --bind 127.0.0.1"
        settings += f" --appendonly {self.append_only} --save"
        self.process = subprocess.Popen(  # noqa: S603  a fixed command
            [self.command, *settings.split(), "", "--dir", str(self.folder)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for line in self.process.stdout:
            if "Ready to accept connections" in line:
                return
        pytest.fail("redis-server ended before it was ready")

    def send(self, number):
        self.process.send_signal(number)
        if number == signal.SIGSTOP:
            # Until then it may still answer.
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    @property
    def client(self):
        return redis.Redis(port=self.port, decode_responses=True, **timeouts(5))

    def scripts(self):
        """Return the number of scripts run since the last call of this method."""
        with self.client as client:
            ran = client.info("commandstats").get("cmdstat_evalsha", {"calls": 0})
            client.config_resetstat()
        return ran["calls"]


class Backend:
    """Sync or async use of budgets on Redis, with one interface for tests."""

    def __init__(self, name, port, stack):
        self.awaited = name == "asyncio"
        self.port = port
        self.stack = stack
        # Coroutines see the test's clock: it is set before this runner is made.
        self.runner = stack.enter_context(asyncio.Runner())

    def client(self, **settings):
        module, kind = redis, Retry
        if self.awaited:
            module, kind = redis.asyncio, redis.asyncio.retry.Retry
        client = module.Redis(**{"port": self.port, **timeouts(0.1, kind), **settings})
        self.stack.callback(self.close, client)
        return client

    def close(self, client):
        self(client.aclose() if self.awaited else client.close())

    def budget(self, bucket=None, client=None, **settings):
        make = AsyncRedisBudget if self.awaited else RedisBudget
        settings = {"key": KEY} | settings
        return make(client or self.client(), bucket or TokenBucket(), **settings)

    def __call__(self, result):
        """Return a result; a coroutine is awaited."""
        return self.runner.run(result) if asyncio.iscoroutine(result) else result

    def run(self, policy, fn):
        """Return the outcome of a sync function under a policy."""

        async def awaited():
            return fn()

        return self(policy.arun(awaited) if self.awaited else policy.run(fn))


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def server(served):
    # A failed test must not fail the next one.
    served.send(signal.SIGCONT)
    if served.process.poll() is not None:
        served.start()
    with served.client as client:
        client.flushall()
        # A client sends an unknown script twice, which would be counted.
        client.script_load(SCRIPT)
    served.scripts()
    return served


@pytest.fixture(params=["blocking", "asyncio"])
def live_backend(request, server):
    """Sync and async use, in real time."""
    with contextlib.ExitStack() as stack:
        yield Backend(request.param, server.port, stack)


@pytest.fixture
def backend(clock, live_backend):
    """Sync and async use, in virtual time."""
    return live_backend
