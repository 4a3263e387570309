#!/usr/bin/env bash
# Python SDKs that Fern generates have code for Retry-After-Ms that never has an effect
#
# Seen with: squareup 46.0.0.20260916 (httpx 0.28.1). Known to Fern, and open when this was written:
# fern-api/fern#17100.
#
# Expected: the client looks for Retry-After-Ms, and before Retry-After, so a server that answers 429
# with "Retry-After-Ms: 7000" is left alone for 7 s.
#
# Seen: it is asked again after about 1 s and 2 s, as without any hint. The value is compared with
# zero before it is made a number, text and a number cannot be compared, and the error of that falls
# into an except clause that was written for malformed values. Beside "Retry-After: 5" the
# milliseconds lose, although they are looked at first. Retry-After alone is obeyed.
#
# Why it matters: every malformed and every valid value take the same path, so nothing tells that the
# header is lost, except a test with a good one. Code around input from outside should catch the
# errors of parsing that input, and no others.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv --without-pip venv
python3 -m pip --python venv/bin/python install --quiet --disable-pip-version-check \
  squareup==46.0.0.20260916 httpx==0.28.1

cat > probe.py <<'PYTHON'
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock

import httpx
from square import Square
from square.core.api_error import ApiError

hints = {}


class TooMany(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(429)
        for name, value in hints.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args):
        pass


with ThreadingHTTPServer(("127.0.0.1", 0), TooMany) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    client = Square(token="none", base_url=url, httpx_client=httpx.Client(trust_env=False))
    seconds, milliseconds = {"Retry-After": "5"}, {"Retry-After-Ms": "7000"}
    for hints in {}, seconds, milliseconds, milliseconds | seconds:
        with mock.patch("square.core.http_client.time.sleep") as sleep:
            try:
                client.locations.list()
            except ApiError as error:
                status = error.status_code
        waits = ", ".join(f"{call.args[0]:.0f} s" for call in sleep.call_args_list)
        names = " and ".join(f"{name} {value}" for name, value in hints.items())
        print(f"{status} with {names or 'no hint'}: waits {waits}")
    server.shutdown()
PYTHON
seen=$(venv/bin/python probe.py)

expected='429 with no hint: waits 1 s, 2 s
429 with Retry-After 5: waits 5 s, 5 s
429 with Retry-After-Ms 7000: waits 1 s, 2 s
429 with Retry-After-Ms 7000 and Retry-After 5: waits 5 s, 5 s'
if [[ "$seen" != "$expected" ]]; then
  printf 'This has changed.\nExpected:\n%s\nSeen:\n%s\n' "$expected" "$seen"
  exit 1
fi
printf '%s\n' "$seen"
