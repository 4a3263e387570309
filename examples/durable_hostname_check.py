"""Verify hostnames for a week, though the process that does it is killed.

A hostname is verified when a name server tells its address. Until then it is
asked by the schedule of a week, here thirty times faster and cut to two retries.
In between, a job is a row in a file. The worker is killed while it asks; the next
one asks again, under the same key, and everything else was kept.

Prints, where ``...`` is a number of an error, a length of time or a time of day::

    Nobody answers: each job has failed once, and waits
    A name server is up, and asked; now the worker is killed
    Another worker has gone on
      asked twice: blog.example:2, gone.example:2, shop.example:2
    blog.example: succeeded after 2 attempts in ...: '203.0.113.1'
      1 x ConnectionRefusedError
          1. ... UTC, ConnectionRefusedError: [Errno ...] Connection refused
    shop.example: succeeded after 2 attempts in ...: '203.0.113.2'
      1 x ConnectionRefusedError
          1. ... UTC, ConnectionRefusedError: [Errno ...] Connection refused
    gone.example: dead, gave up after 3 attempts in ...: the schedule has ended
      2 x LookupError, 1 x ConnectionRefusedError
          1. ... UTC, ConnectionRefusedError: [Errno ...] Connection refused
          2. ... UTC, LookupError: no such name
          3. ... UTC, LookupError: no such name
"""

import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory
from threading import Thread

from dbos import DBOSConfig

from retrykit import presets
from retrykit.durable import idempotency_key
from retrykit.integrations import dbos as durable

HERE = "127.0.0.1"
ADDRESSES = {"blog.example": "203.0.113.1", "shop.example": "203.0.113.2"}
HOSTS = [*ADDRESSES, "gone.example"]

WEEK = presets.hostname_verification()
POLICY = WEEK.replace(schedule=(WEEK.schedule * (1 / 30)).take(2), name="hostnames")


@durable.job(POLICY, name="verify")
def verify(host: str, port: int) -> str:
    """Return the address of a host, as the name server on a port tells it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.settimeout(10)
        line.connect((HERE, port))
        line.send(f"{idempotency_key()} {host}".encode())
        address = line.recv(512).decode()
    if not address:
        msg = "no such name"
        raise LookupError(msg)
    return address


class NameServer:
    """Hears questions, and answers them when it is told to."""

    def __init__(self, port: int) -> None:
        self.heard: Counter[str] = Counter()
        self.answers = False
        self.line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.line.bind((HERE, port))
        Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        """Answer with the address of a host; with nothing if it has none."""
        while True:
            question, sender = self.line.recvfrom(512)
            key, host = question.decode().split()
            self.heard[key] += 1
            if self.answers:
                self.line.sendto(ADDRESSES.get(host, "").encode(), sender)


def work(database: str) -> None:
    """Attempt jobs, for as long as the process lives that has started this one."""
    durable.listen(settings(database), polling=0.1)
    sys.stdin.read()


def settings(database: str) -> DBOSConfig:
    """Return what each process is set up with, in the same way."""
    return durable.config("hostnames", database=database, log_level="CRITICAL")


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds, for half a minute at most."""
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def standings() -> set[str]:
    """Return how the jobs stand."""
    return {durable.status(host).status for host in HOSTS}


def start(database: str) -> Popen[bytes]:
    """Start a worker."""
    command = [sys.executable, __file__, database]
    return Popen(command, stdin=PIPE)  # noqa: S603  this interpreter, and this file


def end(worker: Popen[bytes]) -> None:
    """Kill a worker as a power cut would, at whatever it is."""
    worker.kill()
    worker.communicate()


def free_port() -> int:
    """Return the number of a port on which nobody answers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.bind((HERE, 0))
        port: int = line.getsockname()[1]
        return port


def main(database: str) -> None:
    """Start the jobs, let their worker be killed, and print how they stand."""
    durable.connect(settings(database))
    port = free_port()
    for host in HOSTS:
        verify.start_as(host, host, port)
    worker = start(database)
    try:
        until(lambda: all(durable.status(host).failures for host in HOSTS))
        print("Nobody answers: each job has failed once, and waits")
        server = NameServer(port)
        until(lambda: len(server.heard) == len(HOSTS))
        print("A name server is up, and asked; now the worker is killed")
        end(worker)
        server.answers = True
        worker = start(database)
        until(lambda: standings() <= {"succeeded", "dead"})
    finally:
        end(worker)
    twice = sorted(key for key, times in server.heard.items() if times > 1)
    print("Another worker has gone on")
    print("  asked twice:", ", ".join(twice))
    for host in HOSTS:
        print(durable.status(host).describe())


if __name__ == "__main__":
    if sys.argv[1:]:
        work(sys.argv[1])
    else:
        with TemporaryDirectory() as folder:
            main(f"sqlite:///{folder}/jobs.sqlite")
