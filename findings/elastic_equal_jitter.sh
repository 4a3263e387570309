#!/usr/bin/env bash
# Elasticsearch's transport speaks of full jitter, and draws from the upper half of half the bound
#
# Seen with: elastic-transport 9.4.2.
#
# Expected: the documentation of retry_backoff_base and retry_backoff_cap speaks of the full jitter
# algorithm. That is a wait from zero up to the bound, and the bound is the base for the first retry
# or, where the first failure counts as one, twice the base.
#
# Seen: with a base of 1 s the first four waits are between 0.25 and 0.5 s, 0.5 and 1 s, 1 and 2 s,
# 2 and 4 s. That is equal jitter, half of the bound fixed and half random, and its bound begins at
# half of the base. With a base as high as the cap of 8 s the first wait is 2 to 4 s and the later
# ones 4 to 8 s. No wait is near zero, and the first never reaches the base.
#
# Why it matters: a thousand clients that were cut off together come back within a quarter of a second,
# from 0.25 to 0.5 s, where full jitter spreads them over a whole one. Whoever takes the base from the
# formula gets a peak four times as high.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv --without-pip venv
python3 -m pip --python venv/bin/python install --quiet --disable-pip-version-check \
  elastic-transport==9.4.2

cat > probe.py <<'PYTHON'
import random
import socket
from unittest import mock

import elastic_transport

with socket.create_server(("127.0.0.1", 0)) as server:
    closed_port = server.getsockname()[1]
node = elastic_transport.NodeConfig("http", "127.0.0.1", closed_port)


def waits(base, cap):
    """Return what one request that is refused five times sleeps."""
    transport = elastic_transport.Transport(
        [node], max_retries=4, retry_backoff_base=base, retry_backoff_cap=cap
    )
    slept = []
    with mock.patch("time.sleep", slept.append):
        try:
            transport.perform_request("GET", "/")
        except elastic_transport.ConnectionError:
            return slept


def quarters(number):
    return round(number * 4) / 4


random.seed(1)
for base, cap in (1, 60), (8, 8):
    columns = zip(*(waits(base, cap) for _ in range(400)), strict=True)
    ranges = (f"{quarters(min(column))} to {quarters(max(column))}" for column in columns)
    print(f"base {base} s, cap {cap} s:", ", ".join(ranges))
PYTHON
seen=$(venv/bin/python probe.py)

expected='base 1 s, cap 60 s: 0.25 to 0.5, 0.5 to 1.0, 1.0 to 2.0, 2.0 to 4.0
base 8 s, cap 8 s: 2.0 to 4.0, 4.0 to 8.0, 4.0 to 8.0, 4.0 to 8.0'
if [[ "$seen" != "$expected" ]]; then
  printf 'This has changed.\nExpected:\n%s\nSeen:\n%s\n' "$expected" "$seen"
  exit 1
fi
printf '%s\n' "$seen"
