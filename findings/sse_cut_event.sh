#!/usr/bin/env bash
# A stream of events is cut inside an event: two of four Python clients deliver what was never sent
#
# Seen with: sseclient-py 1.9.0 and aiohttp-sse-client2 0.3.0 (httpx-sse 0.4.3 and requests-sse
# 0.5.3 are right).
#
# Expected: the format of server-sent events (WHATWG HTML, 9.2) ends an event with an empty line.
# What has begun when the stream ends is discarded, and the client resumes after the last complete
# event.
#
# Seen: the server sends event 1 and the first of the two lines of event 2, is cut, and sends on the
# next connection what comes after Last-Event-ID.
# - sseclient-py delivers the first line as event 2, with its id, so the program resumes after 2:
#   the second line is lost.
# - aiohttp-sse-client2 resumes after 1 but keeps the first line, so event 2 has it twice.
#
# Why it matters: a restart of a proxy or of the server is the usual way in which a stream ends. A
# client that resumes has to throw away the unfinished event and its id, or what was to happen
# exactly once happens half, or one and a half times.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv --without-pip venv
python3 -m pip --python venv/bin/python install --quiet --disable-pip-version-check \
  sseclient-py==1.9.0 aiohttp-sse-client2==0.3.0 httpx-sse==0.4.3 requests-sse==0.5.3 httpx==0.28.1 requests==2.34.2

cat > probe.py <<'PYTHON'
import asyncio
import contextlib
import logging
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import aiohttp_sse_client2.client
import httpx
import httpx_sse
import requests
import requests_sse
import sseclient

EVENTS = {
    1: "id: 1\ndata: one\n\n",
    2: "id: 2\ndata: two a\ndata: two b\n\n",
    3: "id: 3\ndata: three\n\n",
}
SOON = timedelta(milliseconds=10)
resumed_after = []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        after = int(self.headers.get("Last-Event-ID") or 0)
        resumed_after.append(after)
        self.send_response(204 if after == 3 else 200)  # 204 tells a client not to come back
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        text = "".join(event for number, event in EVENTS.items() if number > after)
        if after == 0:
            text = text[: text.index("data: two b")]
        self.wfile.write(text.encode())

    def log_message(self, *args):
        pass


def with_httpx_sse(url):
    last = "0"
    with httpx.Client(trust_env=False) as client:
        while last != "3":
            with httpx_sse.connect_sse(client, "GET", url, headers={"Last-Event-ID": last}) as source:
                for event in source.iter_sse():
                    last = event.id or last
                    yield event.data


def with_sseclient_py(url):
    last = "0"
    while last != "3":
        response = requests.get(url, stream=True, headers={"Last-Event-ID": last})
        for event in sseclient.SSEClient(response).events():
            last = event.id or last
            yield event.data


def with_requests_sse(url):
    with contextlib.suppress(requests_sse.InvalidStatusCodeError):
        with requests_sse.EventSource(url, reconnection_time=SOON) as source:
            for event in source:
                yield event.data


def with_aiohttp_sse_client2(url):
    async def read():
        data = []
        with contextlib.suppress(ConnectionError):
            async with aiohttp_sse_client2.client.EventSource(url, reconnection_time=SOON) as source:
                async for event in source:
                    data.append(event.data)
        return data

    return asyncio.run(read())


logging.disable()
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
for read in with_httpx_sse, with_requests_sse, with_sseclient_py, with_aiohttp_sse_client2:
    resumed_after.clear()
    events = list(read(f"http://127.0.0.1:{server.server_port}/"))
    print(f"{read.__name__}: {events}, resumed after {resumed_after[1]}")
server.shutdown()
PYTHON
seen=$(venv/bin/python probe.py)

expected="with_httpx_sse: ['one', 'two a\ntwo b', 'three'], resumed after 1
with_requests_sse: ['one', 'two a\ntwo b', 'three'], resumed after 1
with_sseclient_py: ['one', 'two a', 'three'], resumed after 2
with_aiohttp_sse_client2: ['one', 'two a\ntwo a\ntwo b', 'three'], resumed after 1"
if [[ "$seen" != "$expected" ]]; then
  printf 'This has changed.\nExpected:\n%s\nSeen:\n%s\n' "$expected" "$seen"
  exit 1
fi
printf '%s\n' "$seen"
