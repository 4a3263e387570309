#!/usr/bin/env bash
# Four file servers answer a resumed download with the end of another file
#
# Seen with: aiohttp 3.14.5 (Python); sirv 3.0.2, serve-handler 6.1.8 and @hono/node-server 2.1.9
# (npm). Express 5.3.0 does it right.
#
# Expected: who continues a download sends Range and, in If-Range, the ETag or the date of the part
# that is there. If the file has changed since, the server ignores the Range and sends all of the
# new file with status 200 (RFC 9110, 13.1.5).
#
# Seen: the file of 1000 x "a" is replaced by one of 1000 x "b" that is 100 s younger. All four
# answer the request for the second half with 206 and 500 x "b", so the file on the client's disk is
# half "a" and half "b", of the right length. aiohttp compares a date in If-Range, and ignores an
# ETag; the others ignore If-Range whatever it holds.
#
# Why it matters: If-Range alone proves nothing. A client that resumes has to compare the validator
# of the 206 with the one that it sent (aiohttp and sirv send the new ETag with the wrong half), and
# to begin again if there is none.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv --without-pip venv
python3 -m pip --python venv/bin/python install --quiet --disable-pip-version-check aiohttp==3.14.5
npm init --yes >npm.log
npm install --silent --no-audit --no-fund --ignore-scripts express@5.3.0 sirv@3.0.2 serve-handler@6.1.8 \
  hono@4.13.19 @hono/node-server@2.1.9 >>npm.log
mkdir files

cat > probe.py <<'PYTHON'
import asyncio
import os

from aiohttp import ClientSession, web


def write(letter, age):
    with open("files/x.bin", "w") as file:
        file.write(letter * 1000)
    os.utime("files/x.bin", (1_700_000_000 + age,) * 2)


async def main():
    app = web.Application()

    async def serve(request):
        return web.FileResponse("files/x.bin")

    app.router.add_get("/x.bin", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = "http://127.0.0.1:{}/x.bin".format(runner.addresses[0][1])
    async with ClientSession() as session:
        for header in "ETag", "Last-Modified":
            write("a", 0)
            async with session.get(url) as response:
                validator = response.headers[header]
            write("b", 100)
            headers = {"Range": "bytes=500-", "If-Range": validator}
            async with session.get(url, headers=headers) as response:
                text = await response.text()
            print(f"aiohttp, {header}: {response.status}, {len(text)} x {text[0]}")
    await runner.cleanup()


asyncio.run(main())
PYTHON

cat > probe.mjs <<'NODE'
import fs from 'node:fs';
import http from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { serveStatic } from '@hono/node-server/serve-static';
import express from 'express';
import { Hono } from 'hono';
import serve from 'serve-handler';
import sirv from 'sirv';

const write = (letter, age) => {
  fs.writeFileSync('files/x.bin', letter.repeat(1000));
  fs.utimesSync('files/x.bin', 1_700_000_000 + age, 1_700_000_000 + age);
};
const servers = { // sirv reads the folder only once, unless dev is set
  express: express().use(express.static('files')),
  sirv: sirv('files', { dev: true, etag: true }),
  'serve-handler': (request, response) => serve(request, response, { public: 'files' }),
  hono: getRequestListener(new Hono().use('/*', serveStatic({ root: './files' })).fetch),
};
for (const [name, listener] of Object.entries(servers)) {
  const server = http.createServer(listener);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const get = (headers) =>
    new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port: server.address().port, path: '/x.bin', headers, agent: false };
      http.get(options, async (response) => {
        resolve([response, (await response.setEncoding('utf8').toArray()).join('')]);
      }).on('error', reject);
    });
  write('a', 0);
  const [first] = await get({});
  const validator = first.headers['last-modified'];
  write('b', 100);
  const [second, body] = await get({ range: 'bytes=500-', 'if-range': validator });
  console.log(`${name}, Last-Modified: ${second.statusCode}, ${body.length} x ${body[0]}`);
  server.close();
}
NODE
seen=$(venv/bin/python probe.py && node probe.mjs)

expected='aiohttp, ETag: 206, 500 x b
aiohttp, Last-Modified: 200, 1000 x b
express, Last-Modified: 200, 1000 x b
sirv, Last-Modified: 206, 500 x b
serve-handler, Last-Modified: 206, 500 x b
hono, Last-Modified: 206, 500 x b'
if [[ "$seen" != "$expected" ]]; then
  printf 'This has changed.\nExpected:\n%s\nSeen:\n%s\n' "$expected" "$seen"
  exit 1
fi
printf '%s\n' "$seen"
