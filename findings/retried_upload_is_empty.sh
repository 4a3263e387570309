#!/usr/bin/env bash
# A retried upload is empty and succeeds: urllib3 with a generator, aiohttp-retry also with a file
#
# Seen with: urllib3 2.8.0, requests 2.34.2; aiohttp-retry 2.9.1, aiohttp 3.14.5.
#
# Expected: a retry sends the same body again, or the call fails because that is no longer possible.
# urllib3 has UnrewindableBodyError for the second.
#
# Seen: PUT of 10,000 bytes, answered with 503, then with 200.
# - requests with urllib3's Retry sends bytes and file objects in full both times. A generator is
#   sent in full to the attempt that fails, and as a body without a byte to the one that succeeds.
# - aiohttp-retry does that with an asynchronous generator and with a file object, too. For the file
#   the second request even says "Content-Length: 0".
# The caller is told 200 each time, without an error or a warning.
#
# The cause is where the two meet. requests hands an iterator on, and urllib3 notes a position only
# for what has tell(), so it sees nothing that it could not rewind. aiohttp-retry passes the same
# object to aiohttp again, and aiohttp reads a file from where it is.
#
# Why it matters: the server stores an empty object in place of the right one, and both sides have
# recorded a success. What retries must make a body anew for each attempt, or refuse one that was
# already read.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv --without-pip venv
python3 -m pip --python venv/bin/python install --quiet --disable-pip-version-check \
  urllib3==2.8.0 requests==2.34.2 aiohttp-retry==2.9.1 aiohttp==3.14.5

cat > probe.py <<'PYTHON'
import asyncio
import io
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests
from aiohttp_retry import ExponentialRetry, RetryClient
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

content = b"x" * 10_000
uploads = []


class Flaky(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        size = 0
        if "Content-Length" in self.headers:
            size = len(self.rfile.read(int(self.headers["Content-Length"])))
        else:
            while chunk := int(self.rfile.readline(), 16):
                size += len(self.rfile.read(chunk))
                self.rfile.readline()
            self.rfile.readline()
        uploads.append(size)
        self.send_response(503 if len(uploads) == 1 else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


def with_requests(data):
    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", HTTPAdapter(max_retries=Retry(total=3, status_forcelist=[503])))
        return session.put(url, data=data, timeout=5).status_code


def with_aiohttp(data):
    async def put():
        options = ExponentialRetry(attempts=3, start_timeout=0.01)
        async with RetryClient(retry_options=options) as client:
            async with client.put(url, data=data) as response:
                return response.status

    return asyncio.run(put())


def generator():
    yield content


async def asynchronous():
    yield content


with ThreadingHTTPServer(("127.0.0.1", 0), Flaky) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/object"
    for name, send, data in (
        ("requests, bytes", with_requests, content),
        ("requests, file", with_requests, io.BytesIO(content)),
        ("requests, generator", with_requests, generator()),
        ("aiohttp-retry, bytes", with_aiohttp, content),
        ("aiohttp-retry, file", with_aiohttp, io.BytesIO(content)),
        ("aiohttp-retry, generator", with_aiohttp, asynchronous()),
    ):
        uploads.clear()
        status = send(data)
        print(f"{name}: {status} after", " and ".join(f"{size} bytes" for size in uploads))
    server.shutdown()
PYTHON
seen=$(venv/bin/python probe.py)

expected='requests, bytes: 200 after 10000 bytes and 10000 bytes
requests, file: 200 after 10000 bytes and 10000 bytes
requests, generator: 200 after 10000 bytes and 0 bytes
aiohttp-retry, bytes: 200 after 10000 bytes and 10000 bytes
aiohttp-retry, file: 200 after 10000 bytes and 0 bytes
aiohttp-retry, generator: 200 after 10000 bytes and 0 bytes'
if [[ "$seen" != "$expected" ]]; then
  printf 'This has changed.\nExpected:\n%s\nSeen:\n%s\n' "$expected" "$seen"
  exit 1
fi
printf '%s\n' "$seen"
