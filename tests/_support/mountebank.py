"""A real mountebank of the tests' own: an HTTP server that others have written.

It comes from npm, as `npm install mountebank@2.9.1`. Its command `mb` is found on
the PATH.
"""

import contextlib
import json
import subprocess
import urllib.request

import pytest

from tests._support.ports import reserved_port
from tests._support.required import program

__all__ = ["DROPPED", "Mountebank", "running", "started"]

DROPPED = "CONNECTION_RESET_BY_PEER"
"""What a script says in place of a status: the connection ends without a word.

For all its name no RST is sent: mountebank 2.9.1 closes with FIN.
"""

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Mountebank:
    """A server that runs, and makes others that follow a script."""

    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}"

    @contextlib.contextmanager
    def imposter(self, *script):
        """Make a server that does this, over and over; give its URL, and end it.

        A script is of statuses, pairs of a status and headers, and DROPPED.
        """
        stub = {"responses": [_response(each) for each in script]}
        made = self.ask(
            "POST",
            "/imposters",
            {"protocol": "http", "host": "127.0.0.1", "stubs": [stub]},
        )
        try:
            yield f"http://127.0.0.1:{made['port']}"
        finally:
            self.ask("DELETE", f"/imposters/{made['port']}")

    def ask(self, method, path, content=None):
        request = urllib.request.Request(  # noqa: S310  of 127.0.0.1
            self.url + path,
            None if content is None else json.dumps(content).encode(),
            {"Content-Type": "application/json"},
            method=method,
        )
        with _DIRECT.open(request, timeout=10) as answered:
            return json.load(answered)


def _response(each):
    if each is DROPPED:
        return {"fault": DROPPED}
    status, headers = each if isinstance(each, tuple) else (each, {})
    return {"is": {"statusCode": status, "headers": headers, "body": str(status)}}


@contextlib.contextmanager
def started(folder):
    """Start it with nothing of a person's, and end it."""
    with reserved_port() as port, _process(port, folder) as process:
        try:
            yield _ready(process, Mountebank(port))
        finally:
            process.kill()


def _process(port, folder):
    settings = f"start --port {port} --host 127.0.0.1 --localOnly --nologfile"
    return subprocess.Popen(  # noqa: S603  as it is installed
        [program("mb"), *settings.split(), "--pidfile", str(folder / "mb.pid")],
        cwd=folder,
        stdout=subprocess.DEVNULL,
    )


def _ready(process, server):
    """Return what runs once it answers, 20 s from here at most."""
    for _ in range(1000):
        with contextlib.suppress(OSError):
            server.ask("GET", "/")
            return server
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
            break
    return pytest.fail("mountebank did not start")


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with started(tmp_path_factory.mktemp("mountebank")) as server:
        yield server
