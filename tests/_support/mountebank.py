"""A private mountebank, a third-party server of scripted HTTP responses.

`npm install mountebank@2.9.1` installs it; its command `mb` must be on the PATH.
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
"""Used in a script in place of a status: the connection closes without an answer.

In spite of the name, mountebank 2.9.1 closes with FIN, not RST.
"""

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Mountebank:
    """A running mountebank, which makes servers that follow a script."""

    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}"

    @contextlib.contextmanager
    def imposter(self, *script):
        """Run a server that repeats a script; yield its URL.

        A script has statuses, pairs of a status and headers, and DROPPED.
        """
        stub = {"responses": [_response(each) for each in script]}
        imposter = self.request(
            "POST",
            "/imposters",
            {"protocol": "http", "host": "127.0.0.1", "stubs": [stub]},
        )
        try:
            yield f"http://127.0.0.1:{imposter['port']}"
        finally:
            self.request("DELETE", f"/imposters/{imposter['port']}")

    def request(self, method, path, content=None):
        request = urllib.request.Request(  # noqa: S310  of 127.0.0.1
            self.url + path,
            None if content is None else json.dumps(content).encode(),
            {"Content-Type": "application/json"},
            method=method,
        )
        with _DIRECT.open(request, timeout=10) as response:
            return json.load(response)


def _response(each):
    if each is DROPPED:
        return {"fault": DROPPED}
    status, headers = each if isinstance(each, tuple) else (each, {})
    return {"is": {"statusCode": status, "headers": headers, "body": str(status)}}


@contextlib.contextmanager
def started(folder):
    """Run mountebank with its files in a folder."""
    with reserved_port() as port, _process(port, folder) as process:
        try:
            yield _ready(process, Mountebank(port))
        finally:
            process.kill()


def _process(port, folder):
    settings = f"start --port {port} --host 127.0.0.1 --localOnly --nologfile"
    return subprocess.Popen(  # noqa: S603  a fixed command
        [program("mb"), *settings.split(), "--pidfile", str(folder / "mb.pid")],
        cwd=folder,
        stdout=subprocess.DEVNULL,
    )


def _ready(process, server):
    """Return the server once it answers, within 20 s."""
    for _ in range(1000):
        with contextlib.suppress(OSError):
            server.request("GET", "/")
            return server
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
            break
    return pytest.fail("mountebank did not start")


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with started(tmp_path_factory.mktemp("mountebank")) as server:
        yield server
