#!/usr/bin/env bash
# responses retries the statuses that a test asks for, but not its lost connections
#
# Seen with: responses 0.26.3, requests 2.34.2, urllib3 2.8.0.
#
# Expected: responses takes the retries of the session into account, and has a chapter on testing
# them. A session with Retry(total=3) that meets a lost connection and then a good answer returns the
# good answer, as it does with a real server.
#
# Seen: of "503, then 200" the session gets the 200 in a test, after two calls, as with a real server.
# Of "ConnectionError, then 200" it gets the error in a test, after one call, and the second answer is
# never used. A real server that drops the first connection is asked again, and answers 200. responses
# acts on the retries for a status, but hands out an exception from above the place where urllib3
# retries.
#
# Why it matters: a test of an outage then shows the loop around the session, and not the retries of
# the session below it. In production there are attempts of the one times attempts of the other; in
# the test only the former. The only test that shows both is one with a server that drops connections.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv --without-pip venv
python3 -m pip --python venv/bin/python install --quiet --disable-pip-version-check \
  responses==0.26.3 requests==2.34.2 urllib3==2.8.0

cat > probe.py <<'PYTHON'
import socket
import threading

import requests
import responses
from requests.adapters import HTTPAdapter
from urllib3.util import Retry


def ask(url):
    """Ask once through a session that retries three times, at once."""
    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", HTTPAdapter(max_retries=Retry(total=3, status_forcelist=[503])))
        try:
            return session.get(url, timeout=5).status_code
        except requests.ConnectionError as error:
            return type(error).__name__


def mocked(**first):
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        mock.get("http://127.0.0.1/", **first)
        mock.get("http://127.0.0.1/", status=200)
        return ask("http://127.0.0.1/"), len(mock.calls)


def real(first):
    """Answer the first connection with these bytes and close it, then do well."""
    connections = 0

    def serve():
        nonlocal connections
        for answer in first, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n":
            connection, _ = server.accept()
            connections += 1
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        result = ask("http://127.0.0.1:{}/".format(server.getsockname()[1]))
        serving.join(5)
        return result, connections


unavailable = b"HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
for name, (result, calls) in {
    "503 then 200, server": real(unavailable),
    "503 then 200, mocked": mocked(status=503),
    "lost then 200, server": real(b""),
    "lost then 200, mocked": mocked(body=requests.ConnectionError("lost")),
}.items():
    print(f"{name}: {result} after {calls}")
PYTHON
seen=$(venv/bin/python probe.py)

expected='503 then 200, server: 200 after 2
503 then 200, mocked: 200 after 2
lost then 200, server: 200 after 2
lost then 200, mocked: ConnectionError after 1'
if [[ "$seen" != "$expected" ]]; then
  printf 'This has changed.\nExpected:\n%s\nSeen:\n%s\n' "$expected" "$seen"
  exit 1
fi
printf '%s\n' "$seen"
