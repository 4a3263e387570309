#!/usr/bin/env bash
# Flask-Limiter rounds Retry-After down, and ends with "Retry-After: 0"
#
# Seen with: Flask-Limiter 4.1.1 (limits 5.8.0, Flask 3.1.3), headers enabled, default strategy
# (fixed window).
#
# Expected: RFC 9110 has whole seconds in Retry-After, so a limiter rounds the time that is left up.
# Who waits that long is let in.
#
# Seen: one request in three seconds is allowed, and the first came 0.6 s after a full second. The
# refusal 0.5 s later says 2 although 2.5 s are left. After exactly 2 s the client is refused again,
# now with 0, and with 0 for each further request until the half second is over. X-RateLimit-Reset
# in the same answers is rounded up. The hint is too early whenever the first request came later
# within its second than the refused one, which is every other time.
#
# Why it matters: a client that obeys to the letter spends all of its retries at once, on the server
# that asked for patience. A hint of a server needs a margin, and a hint of zero is still a reason
# to back off.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv --without-pip venv
python3 -m pip --python venv/bin/python install --quiet --disable-pip-version-check \
  Flask-Limiter==4.1.1 limits==5.8.0 Flask==3.1.3 time-machine==2.16.0

cat > probe.py <<'PYTHON'
import time

import time_machine
from flask import Flask
from flask_limiter import Limiter

with time_machine.travel("2026-01-01 12:00:00.6Z", tick=False) as clock:
    app = Flask(__name__)
    Limiter(
        lambda: "everybody",
        app=app,
        default_limits=["1 per 3 seconds"],
        headers_enabled=True,
        storage_uri="memory://",
    )
    app.get("/")(lambda: "fine")
    client = app.test_client()

    def ask():
        response = client.get("/")
        seconds = f"{time.time() % 60:.1f}"
        reset = int(response.headers["X-RateLimit-Reset"]) % 60
        hint = response.headers["Retry-After"]
        print(f"{seconds} s: {response.status_code}, Retry-After {hint}, reset at {reset} s")
        return float(hint)

    ask()
    clock.shift(0.5)
    for _ in range(5):
        clock.shift(ask())
    clock.shift(0.5)
    ask()
PYTHON
seen=$(venv/bin/python probe.py)

expected='0.6 s: 200, Retry-After 3, reset at 4 s
1.1 s: 429, Retry-After 2, reset at 4 s
3.1 s: 429, Retry-After 0, reset at 4 s
3.1 s: 429, Retry-After 0, reset at 4 s
3.1 s: 429, Retry-After 0, reset at 4 s
3.1 s: 429, Retry-After 0, reset at 4 s
3.6 s: 200, Retry-After 3, reset at 7 s'
if [[ "$seen" != "$expected" ]]; then
  printf 'This has changed.\nExpected:\n%s\nSeen:\n%s\n' "$expected" "$seen"
  exit 1
fi
printf '%s\n' "$seen"
