"""Private SQL servers, and a proxy that loses the answer to a COMMIT."""

import contextlib
import os
import re
import selectors
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from tests._support.ports import free_port
from tests._support.postgres_server import PostgresServer
from tests._support.required import program
from tests._support.socket_server import TIMEOUT, SocketServer

__all__ = ["CommitProxy", "MariaServer", "mariadb", "postgres"]


class MariaServer:
    """A MariaDB server on a free port of loopback, whose user root has no password."""

    def __init__(self, folder):
        self.log = folder / "mariadb.log"
        # The path of a socket must be short.
        self._home = tempfile.TemporaryDirectory(prefix="retrykit-")
        self._data = Path(self._home.name) / "data"
        self.port = free_port()
        self._run(
            *("mariadb-install-db", "--no-defaults", f"--datadir={self._data}"),
            *("--auth-root-authentication-method=normal", "--skip-test-db"),
            *("--innodb-log-file-size=4M", "--innodb-doublewrite=0"),
        ).wait(120)

    def start(self):
        self._process = self._run(
            *("mariadbd", "--no-defaults", f"--datadir={self._data}"),
            *(f"--port={self.port}", "--bind-address=127.0.0.1"),
            *(f"--socket={self._home.name}/socket", "--skip-name-resolve"),
            *("--innodb-flush-log-at-trx-commit=2", "--innodb-doublewrite=0"),
        )
        end = time.monotonic() + 90
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            if time.monotonic() > end or self._process.poll() is not None:
                pytest.fail(f"mariadbd did not start: {self.log.read_text()}")
            time.sleep(0.05)

    def stop(self, number=signal.SIGKILL):
        self._process.send_signal(number)
        self._process.wait(60)

    def restart(self):
        """Kill it, and start it again."""
        self.stop()
        self.start()

    def close(self):
        self.stop()
        self._home.cleanup()

    def _run(self, command, *arguments):
        user = ["--user=root"] if os.getuid() == 0 else []
        with self.log.open("a") as log:
            return subprocess.Popen(  # noqa: S603  a fixed command
                [program(command), *arguments, *user], stdout=log, stderr=log
            )


@pytest.fixture(scope="module")
def mariadb(tmp_path_factory):
    server = MariaServer(tmp_path_factory.mktemp("mariadb"))
    server.start()
    yield server
    server.close()


@pytest.fixture(scope="module")
def postgres(tmp_path_factory):
    server = PostgresServer(tmp_path_factory.mktemp("postgres"))
    server.start()
    yield server
    server.stop()


class CommitProxy(SocketServer):
    """A proxy that cuts connections after COMMIT, before its answer.

    Args:
        port: The port of the server.
        cuts: So many connections are cut; later ones go through.
        forward: Whether the server gets the COMMIT.
    """

    def __init__(self, port, *, cuts=1, forward=True):
        super().__init__()
        self._target = port
        self._cuts = cuts
        self._forward = forward
        self.listen()

    def handler_for(self, connection):
        return lambda: self._serve_client(connection)

    def _serve_client(self, connection):
        far = socket.create_connection(("127.0.0.1", self._target), TIMEOUT)
        connection.others.append(far)
        with far, selectors.DefaultSelector() as sides:
            sides.register(connection.sock, selectors.EVENT_READ, far)
            sides.register(far, selectors.EVENT_READ, connection.sock)
            while True:
                for key, _ in sides.select(TIMEOUT):
                    data = key.fileobj.recv(65536)
                    if not data:
                        return
                    cut = self._cuts and _COMMIT.search(data)
                    if not cut or self._forward:
                        key.data.sendall(data)
                    if cut:
                        self._cuts -= 1
                        if self._forward:
                            # The server answers when it has committed.
                            far.recv(65536)
                        return


# And not SET AUTOCOMMIT, or READ COMMITTED.
_COMMIT = re.compile(rb"\bCOMMIT\b")
