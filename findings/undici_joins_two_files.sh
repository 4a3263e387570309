#!/usr/bin/env bash
# undici's RetryAgent joins the halves of two files and reports success
#
# Seen with: undici 7.30.2 as the client, Express 5.3.0 (express.static) as the server, both from
# npm.
#
# Expected: a retry in the middle of a body continues with the same file or fails.
#
# Seen: the connection is cut while a file of 1,000,000 x "a" is on its way, and the file is
# replaced by 1,000,000 x "b" before the retry. The agent asks for the rest with Range, but without
# If-Range or If-Match, is sent the end of the new file with status 206, and hands out one body:
# status 200, 1,000,000 characters, "a" first and "b" last, no error.
#
# The cause is where the two meet: undici sends If-Match only for a strong ETag and never uses a
# date, and the ETags of Express are weak (W/"...") by default. With a strong ETag the same retry
# ends in an error, as it should.
#
# Why it matters: resuming needs a validator that is good enough for it. Without one the only right
# answers are to begin again, if nothing was handed out yet, or to fail.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm init --yes >npm.log
npm install --silent --no-audit --no-fund --ignore-scripts undici@7.30.2 express@5.3.0 >>npm.log
mkdir files

cat > probe.mjs <<'NODE'
import fs from 'node:fs';
import net from 'node:net';
import express from 'express';
import { Agent, RetryAgent, request } from 'undici';

const size = 1_000_000;
const write = (letter) => fs.writeFileSync('files/x.txt', letter.repeat(size));
const asked = [];
async function download(etag) {
  write('a');
  const app = express();
  app.use((request, response, next) => {
    const { range, 'if-range': ifRange, 'if-match': ifMatch } = request.headers;
    asked.push(`range ${range ? 'yes' : 'no'}, if-range ${ifRange ?? 'none'}, if-match ${ifMatch ?? 'none'}`);
    next();
  });
  app.use(express.static('files', etag ? { etag: false, setHeaders: etag } : {}));
  app.use((error, request, response, next) => response.status(error.status).end());
  const back = await new Promise((resolve) => {
    const server = app.listen(0, '127.0.0.1', () => resolve(server));
  });
  let connections = 0;
  const front = net.createServer((client) => {
    const server = net.connect(back.address().port, '127.0.0.1');
    let left = connections++ === 0 ? size / 2 : Infinity;
    client.on('error', () => {}).pipe(server).on('error', () => {});
    server.on('data', (chunk) => {
      if (left <= 0) return;
      if (chunk.length < left) client.write(chunk);
      else {
        write('b');
        client.end(chunk.subarray(0, left));
        server.destroy();
      }
      left -= chunk.length;
    });
  });
  await new Promise((resolve) => front.listen(0, '127.0.0.1', resolve));
  const dispatcher = new RetryAgent(new Agent(), { minTimeout: 100 });
  try {
    const { statusCode, body } = await request(`http://127.0.0.1:${front.address().port}/x.txt`, { dispatcher });
    const text = await body.text();
    console.log(`status ${statusCode}, ${text.length} characters, first ${text.at(0)}, last ${text.at(-1)}`);
  } catch (error) {
    console.log(`error ${error.code}`);
  }
  console.log(asked.splice(0).join('\n'));
}
console.log('-- the weak ETag of Express');
await download();
console.log('-- a strong ETag');
let version = 0;
await download((response) => response.setHeader('ETag', `"v${++version}"`));
process.exit();
NODE
seen=$(node probe.mjs)

expected='-- the weak ETag of Express
status 200, 1000000 characters, first a, last b
range no, if-range none, if-match none
range yes, if-range none, if-match none
-- a strong ETag
error UND_ERR_REQ_RETRY
range no, if-range none, if-match none
range yes, if-range none, if-match "v1"'
if [[ "$seen" != "$expected" ]]; then
  printf 'This has changed.\nExpected:\n%s\nSeen:\n%s\n' "$expected" "$seen"
  exit 1
fi
printf '%s\n' "$seen"
