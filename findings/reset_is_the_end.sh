#!/usr/bin/env bash
# A connection that is reset in the middle of a body: an error in three clients, the end in one
#
# Seen with: aiohttp 3.14.5; httpx 0.28.1, requests 2.34.2 and urllib3 2.8.0 (Python).
#
# Expected: a body without a Content-Length and without chunks lasts until the connection is closed
# (RFC 9112, 6.3). A reset is no close: the message is incomplete, and a client has to say so
# (RFC 9112, 8).
#
# Seen: the server sends 3,000 of the bytes that it has and resets the connection. httpx raises
# ReadError, requests ConnectionError or ChunkedEncodingError, urllib3 ProtocolError. aiohttp
# returns the 3,000 bytes as if they were all, without an error, in 20 of 20 responses.
#
# Why it matters: with such servers (HTTP/1.0, many proxies and generated downloads) a reset is the
# only sign that a file is incomplete. With aiohttp a retry never happens, and half a file is stored.
# Compare a size or a hash that was told in another way.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv --without-pip venv
python3 -m pip --python venv/bin/python install --quiet --disable-pip-version-check \
  aiohttp==3.14.5 httpx==0.28.1 requests==2.34.2 urllib3==2.8.0

cat > probe.py <<'PYTHON'
import asyncio
import socket
import struct
import threading
import time

import aiohttp
import httpx
import requests
import urllib3

ROUNDS = 20
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"


def serve(listening):
    for _ in range(4 * ROUNDS):
        connection, _ = listening.accept()
        connection.recv(65536)
        connection.sendall(HEAD + b"x" * 3000)
        # So that the bytes arrive before the reset.
        time.sleep(0.05)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()


listening = socket.create_server(("127.0.0.1", 0))
url = "http://127.0.0.1:{}/".format(listening.getsockname()[1])
threading.Thread(target=serve, args=[listening], daemon=True).start()


async def with_aiohttp():
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return len(await response.read())


def with_urllib3():
    with urllib3.PoolManager(retries=False) as pool:
        return len(pool.request("GET", url).data)


ways = {
    "aiohttp": lambda: asyncio.run(with_aiohttp()),
    "httpx": lambda: len(httpx.get(url, trust_env=False).content),
    "requests": lambda: len(requests.get(url).content),
    "urllib3": with_urllib3,
}
for name, read in ways.items():
    seen = []
    for _ in range(ROUNDS):
        try:
            seen.append(f"{read()} bytes")
        except Exception:
            seen.append("error")
    print(name, *(f"{seen.count(each)} x {each}" for each in sorted({*seen})), sep=", ")
PYTHON

env -u http_proxy -u HTTP_PROXY venv/bin/python probe.py | tee seen.txt
cat > expected.txt <<'TEXT'
aiohttp, 20 x 3000 bytes
httpx, 20 x error
requests, 20 x error
urllib3, 20 x error
TEXT
diff expected.txt seen.txt
