#!/usr/bin/env bash
# requests-ratelimiter counts calls, not requests: the retries of its own adapter pass it
#
# Seen with: requests-ratelimiter 0.10.0, requests 2.34.2, urllib3 2.8.0.
#
# Expected: LimiterAdapter is requests' HTTPAdapter with a limit, takes max_retries as that one
# does, and sends no more requests than the limit allows.
#
# Seen: with a limit of one request per second
# - three calls that succeed reach the server in 2 s, and so does one call with two redirects;
# - one call that is answered with 503 and retried five times reaches it six times at once. The
#   limit is asked once for each send() of the adapter, and urllib3 retries below it.
#
# Why it matters: the limit is kept while all is well, and broken by a factor of attempts in an
# outage, when it counts. A rate limit belongs around the single attempt, inside of the retries. The
# same is true of any limiter around a client that retries by itself.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv --without-pip venv
python3 -m pip --python venv/bin/python install --quiet --disable-pip-version-check \
  requests-ratelimiter==0.10.0 requests==2.34.2 urllib3==2.8.0

cat > probe.py <<'PYTHON'
import contextlib
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests
from requests_ratelimiter import LimiterAdapter
from urllib3 import Retry

seen = []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        seen.append(time.monotonic())
        status, target = {"/fine": (200, None), "/out": (503, None), "/a": (302, "/b"), "/b": (302, "/fine")}[self.path]
        self.send_response(status)
        if target:
            self.send_header("Location", target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
for name, paths in ("calls", ["/fine"] * 3), ("redirects", ["/a"]), ("retries", ["/out"]):
    seen.clear()
    session = requests.Session()
    session.trust_env = False
    retries = Retry(5, status_forcelist=[503], backoff_factor=0)
    session.mount("http://", LimiterAdapter(per_second=1, max_retries=retries))
    for path in paths:
        with contextlib.suppress(requests.exceptions.RetryError):
            session.get(f"http://127.0.0.1:{server.server_port}{path}")
    took = seen[-1] - seen[0]
    print(f"{name}: {len(seen)} requests,", "at least a second apart" if took >= len(seen) - 1.1 else "faster")
server.shutdown()
PYTHON
seen=$(venv/bin/python probe.py)

expected='calls: 3 requests, at least a second apart
redirects: 3 requests, at least a second apart
retries: 6 requests, faster'
if [[ "$seen" != "$expected" ]]; then
  printf 'This has changed.\nExpected:\n%s\nSeen:\n%s\n' "$expected" "$seen"
  exit 1
fi
printf '%s\n' "$seen"
