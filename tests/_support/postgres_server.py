"""A private PostgreSQL server, which can be killed and restarted."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import weakref
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
        self.binaries = Path(program("postgres")).parent
        # Not in pytest's folder, to which another run may revoke access.
        home = Path(tempfile.mkdtemp(prefix="retrykit-"))
        weakref.finalize(self, shutil.rmtree, home, ignore_errors=True)
        self.folder = home / "postgres"
        self.log = folder / "postgres.log"
        self.port = free_port()
        self.url = f"postgresql://retrykit@127.0.0.1:{self.port}/postgres"
        self.user = _user()
        self._prepare()

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

    def _prepare(self):
        self.folder.mkdir()
        if self.user is not None:
            # Its user must own the folder and be able to reach it.
            shutil.chown(self.folder, self.user)
            self.folder.parent.chmod(0o711)
        initdb = self._run(
            "initdb", "-D", str(self.folder), "-U", "retrykit", "-A", "trust",
            "--no-sync", "--locale=C", "-E", "UTF8",
        )  # fmt: skip
        if initdb.wait(120):
            pytest.fail(f"initdb failed: {self.log.read_text()}")

    def _run(self, command, *arguments):
        with self.log.open("a") as log:
            return subprocess.Popen(  # noqa: S603  a fixed command
                [str(self.binaries / command), *arguments],
                stdout=log, stderr=log, user=self.user, cwd="/",
            )  # fmt: skip


def _user():
    """Return the user to run as, as PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return "nobody"
