#!/usr/bin/env bash
# Google's storage client repeats a request that nobody made, also where retries are switched off
#
# Seen with: google-cloud-storage 3.17.1. That the request is made at all, and shares the connection
# of uploads, is known: googleapis/google-cloud-python#18116.
#
# Expected: a download with retry=None from a service that answers 503 is one request.
#
# Seen: it is one request for the object. A thread that the client starts asks for the metadata of
# its bucket as well, which it wants for its traces, and repeats that request with the default
# retries of the library, although the download has ended with its error. No argument of the
# download reaches it.
#
# Why it matters: whoever counts the requests to a service that is down, or leaves the retries to one
# place, finds more than were asked for, from a thread that outlives the call. A test against a stub
# that knows the object alone sees a request that it does not expect.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv --without-pip venv
python3 -m pip --python venv/bin/python install --quiet --disable-pip-version-check \
  google-cloud-storage==3.17.1

cat > probe.py <<'PYTHON'
import os
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.api_core.exceptions import ServiceUnavailable
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

asked = Counter()


class Down(BaseHTTPRequestHandler):
    def do_GET(self):
        asked["object" if "/o/" in self.path else "bucket"] += 1
        self.send_response(503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


with ThreadingHTTPServer(("127.0.0.1", 0), Down) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = {"api_endpoint": f"http://127.0.0.1:{server.server_port}"}
    client = storage.Client(
        project="shop", credentials=AnonymousCredentials(), client_options=options
    )
    try:
        client.bucket("orders").blob("first").download_as_bytes(retry=None)
    except ServiceUnavailable:
        print("the download has ended with its error")
    for _ in range(200):
        if asked["bucket"] > 1:
            break
        time.sleep(0.1)
    print(f"requests for the object: {asked['object']}")
    print(f"requests for the bucket: {'more than one' if asked['bucket'] > 1 else asked['bucket']}")
    # The thread would go on for two minutes.
    sys.stdout.flush()
    os._exit(0)
PYTHON
seen=$(env -u HTTP_PROXY -u http_proxy -u ALL_PROXY -u all_proxy venv/bin/python probe.py)

expected='the download has ended with its error
requests for the object: 1
requests for the bucket: more than one'
if [[ "$seen" != "$expected" ]]; then
  printf 'This has changed.\nExpected:\n%s\nSeen:\n%s\n' "$expected" "$seen"
  exit 1
fi
printf '%s\n' "$seen"
