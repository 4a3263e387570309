"""Verify hostnames for a week, even if the worker is killed.

A hostname is verified when a name server returns its address. Until then the check is
retried, on a schedule of a week that is thirty times faster here and ends after two
retries. Between attempts, a job is a row in a file. The worker is killed during its
attempts. The next worker repeats them under the same keys; nothing else is lost.

Prints, where ``...`` stands for an error number, a duration or a time of day::

    No name server answers: each job has failed once, and waits
    A name server has the questions; now the worker is killed
    Another worker has finished the jobs
      asked twice: blog.example:2, gone.example:2, shop.example:2
    blog.example: succeeded after 2 attempts in ...: '203.0.113.1'
      ended ... UTC
      1 x ConnectionRefusedError
          1. ... UTC, ConnectionRefusedError: [Errno ...] Connection refused
    shop.example: succeeded after 2 attempts in ...: '203.0.113.2'
      ended ... UTC
      1 x ConnectionRefusedError
          1. ... UTC, ConnectionRefusedError: [Errno ...] Connection refused
    gone.example: dead, gave up after 3 attempts in ...: the schedule has ended
      ended ... UTC
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

LOCALHOST = "127.0.0.1"
ADDRESSES = {"blog.example": "203.0.113.1", "shop.example": "203.0.113.2"}
HOSTS = [*ADDRESSES, "gone.example"]

WEEK = presets.hostname_verification()
POLICY = WEEK.replace(schedule=(WEEK.schedule * (1 / 30)).take(2), name="hostnames")


@durable.job(POLICY, name="verify")
def verify(host: str, port: int) -> str:
    """Ask the name server on this port for the address of a host."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(10)
        sock.connect((LOCALHOST, port))
        sock.send(f"{idempotency_key()} {host}".encode())
        address = sock.recv(512).decode()
    if not address:
        msg = "no such name"
        raise LookupError(msg)
    return address


class NameServer:
    """Counts questions by their key, and answers them if `answering` is set."""

    def __init__(self, port: int) -> None:
        self.questions: Counter[str] = Counter()
        self.answering = False
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind((LOCALHOST, port))
        Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        """Answer with the address of a host, or with nothing if it has none."""
        while True:
            question, sender = self.sock.recvfrom(512)
            key, host = question.decode().split()
            self.questions[key] += 1
            if self.answering:
                self.sock.sendto(ADDRESSES.get(host, "").encode(), sender)


def work(database: str) -> None:
    """Run jobs until the parent process ends."""
    durable.listen(settings(database), polling=0.1)
    sys.stdin.read()


def settings(database: str) -> DBOSConfig:
    """Return the settings, which are the same in every process."""
    return durable.config("hostnames", database=database, log_level="CRITICAL")


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition is true, for at most a minute."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def statuses() -> set[str]:
    """Return the statuses of the jobs."""
    return {durable.status(host).status for host in HOSTS}


def start_worker(database: str) -> Popen[bytes]:
    """Start a worker process."""
    command = [sys.executable, __file__, database]
    return Popen(command, stdin=PIPE)  # noqa: S603  this interpreter, and this file


def kill_worker(worker: Popen[bytes]) -> None:
    """Kill a worker, as a power failure would."""
    worker.kill()
    worker.communicate()


def free_port() -> int:
    """Return a port on which nothing listens."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((LOCALHOST, 0))
        port: int = sock.getsockname()[1]
        return port


def main(database: str) -> None:
    """Start the jobs, kill their worker, and print their reports."""
    durable.connect(settings(database))
    port = free_port()
    for host in HOSTS:
        verify.start_as(host, host, port)
    worker = start_worker(database)
    try:
        wait_until(lambda: all(durable.status(host).failures for host in HOSTS))
        print("No name server answers: each job has failed once, and waits")
        server = NameServer(port)
        wait_until(lambda: len(server.questions) == len(HOSTS))
        print("A name server has the questions; now the worker is killed")
        kill_worker(worker)
        server.answering = True
        worker = start_worker(database)
        wait_until(lambda: statuses() <= {"succeeded", "dead"})
    finally:
        kill_worker(worker)
    repeated = sorted(key for key, count in server.questions.items() if count > 1)
    print("Another worker has finished the jobs")
    print("  asked twice:", ", ".join(repeated))
    for host in HOSTS:
        print(durable.status(host).describe())


if __name__ == "__main__":
    if sys.argv[1:]:
        work(sys.argv[1])
    else:
        with TemporaryDirectory() as folder:
            main(f"sqlite:///{folder}/jobs.sqlite")
