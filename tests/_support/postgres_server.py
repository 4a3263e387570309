"""A private PostgreSQL server, which can be killed and restarted."""

import atexit
import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import weakref
from functools import cache
from pathlib import Path

import pytest

from tests._support.ports import free_port
from tests._support.required import program

__all__ = ["PostgresServer"]


class PostgresServer:
    """A server on a free port of loopback, with its log in a folder.

    Attributes:
        url: The URL for clients.
    """

    def __init__(self, folder):
        # Not in pytest's folder, to which another run may revoke access.
        home = Path(tempfile.mkdtemp(prefix="retrykit-"))
        weakref.finalize(self, shutil.rmtree, home, ignore_errors=True)
        self.folder = home / "postgres"
        self.log = folder / "postgres.log"
        self.port = free_port()
        self.url = f"postgresql://retrykit@127.0.0.1:{self.port}/postgres"
        # `shutil.copytree` would not keep the user.
        copy = ["cp", "-a", str(_empty_cluster()), str(self.folder)]
        subprocess.run(copy, check=True)  # noqa: S603  a fixed command
        home.chmod(0o711)

    def start(self):
        """Start it, and wait until it accepts connections."""
        settings = ["-h", "127.0.0.1", "-p", str(self.port), "-F", "-k", ""]
        self.process = self._run("postgres", "-D", str(self.folder), *settings)
        end = time.monotonic() + 90
        while self._run("pg_isready", "-h", "127.0.0.1", "-p", str(self.port)).wait():
            if time.monotonic() > end or self.process.poll() is not None:
                pytest.fail(f"postgres did not start: {self.log.read_text()}")
            time.sleep(0.1)

    def stop(self, number=signal.SIGQUIT):
        """Stop it, by default immediately and without cleanup."""
        for _ in range(60):
            # Again: the first signal may have come too early.
            self.process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(2)
                return
        pytest.fail(f"postgres did not end: {self.log.read_text()}")

    def send_to_all(self, number):
        """Send a signal to the server and its processes, one for each connection."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in (pid, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, number)

    def _run(self, command, *arguments):
        with self.log.open("a") as log:
            return _run([_binaries() / command, *arguments], log)


@cache
def _empty_cluster():
    """Return the folder of an empty cluster, which is copied: to make one is slow."""
    home = Path(tempfile.mkdtemp(prefix="retrykit-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    folder = home / "postgres"
    folder.mkdir()
    if user := _user():
        # Its user must own the folder and be able to reach it.
        shutil.chown(folder, user)
        home.chmod(0o711)
    initdb = _run(
        [_binaries() / "initdb", "-D", folder, "-U", "retrykit", "-A", "trust",
         "--no-sync", "--locale=C", "-E", "UTF8"],
        subprocess.DEVNULL,
    )  # fmt: skip
    assert initdb.wait(120) == 0
    return folder


def _run(command, log):
    return subprocess.Popen(  # noqa: S603  a fixed command
        [*map(str, command)], stdout=log, stderr=log, user=_user(), cwd="/"
    )


def _binaries():
    return Path(program("postgres")).parent


@cache
def _user():
    """Return the user to run as, as PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return "nobody"
