#!/usr/bin/env bash
# hedge-python: the quick refusal of a hedge replaces the answer that was under way
#
# Seen with: hedge-python 0.3.0, httpx 0.28.1, default configuration.
#
# Expected: hedging makes slow answers faster and fails no call that would have succeeded. In gRPC's
# design a hedge that is answered with UNAVAILABLE, if that is listed as not fatal, leaves the
# others running.
#
# Seen: the first answer of either request is the answer of the call, whatever it says, and the
# other one is cancelled. A server that works on one request at a time and refuses the second with
# 503 answers five plain calls with 200. With the hedging transport all five end with 503: the
# server needs 0.5 s, the hedge goes out after 10 ms.
#
# Why it matters: a server that sheds load is where tails are long and hedges are sent, and there
# hedging turns slow successes into failures. A hedge must lose by failing. The budget of 10 % does
# not prevent it, since it starts with 20 tokens and refills by the configured rate of requests (100
# a second by default), not by the real one.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv --without-pip venv
python3 -m pip --python venv/bin/python install --quiet --disable-pip-version-check \
  'hedge-python[httpx]==0.3.0' httpx==0.28.1

cat > probe.py <<'PYTHON'
import asyncio

import httpx
from hedge.transport import HedgedHttpxTransport

busy = False


async def answer(reader, writer):
    """Work on one request at a time, refuse the others at once."""
    global busy
    await reader.readuntil(b"\r\n\r\n")
    if busy:
        status = "503 Service Unavailable"
    else:
        busy = True
        await asyncio.sleep(0.5)
        busy = False
        status = "200 OK"
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
    writer.close()


async def main():
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = "http://127.0.0.1:{}/".format(server.sockets[0].getsockname()[1])
        for name, transport in ("plain", None), ("hedged", HedgedHttpxTransport()):
            statuses = []
            async with httpx.AsyncClient(transport=transport, trust_env=False) as client:
                for _ in range(5):
                    statuses.append((await client.get(url)).status_code)
                    while busy:
                        await asyncio.sleep(0.05)
            print(name, *statuses)
        print("hedges", transport.stats.snapshot().hedged_requests)


asyncio.run(main())
PYTHON
seen=$(venv/bin/python probe.py)

expected='plain 200 200 200 200 200
hedged 503 503 503 503 503
hedges 5'
if [[ "$seen" != "$expected" ]]; then
  printf 'This has changed.\nExpected:\n%s\nSeen:\n%s\n' "$expected" "$seen"
  exit 1
fi
printf '%s\n' "$seen"
