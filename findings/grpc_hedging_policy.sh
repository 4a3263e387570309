#!/usr/bin/env bash
# One gRPC service config, two clients: Python drops hedgingPolicy without a word
#
# Seen with: grpcio 1.85.3 (Python) and @grpc/grpc-js 1.14.7 (npm).
#
# Expected: a service config means the same to all clients of a service, which is why it can be
# published once, in DNS. gRPC's design A6 gives a method a retryPolicy or a hedgingPolicy, and
# forbids both at once.
#
# Seen: with a hedgingPolicy of 2 attempts
# - Node sends the second attempt to a slow server and answers in time; Python waits for the first
#   one. Nothing is logged.
# - if the server is unavailable, Node makes 2 attempts, and Python 1: no hedging means no retries
#   either.
# - with both policies Node refuses the config; Python retries as if hedgingPolicy were not there.
#
# Why it matters: one file doubles the load of one client, takes the retries of the other, and, with
# both policies, stops the one and not the other. Who reads or writes such files has to say for
# which clients they are.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv --without-pip venv
python3 -m pip --python venv/bin/python install --quiet --disable-pip-version-check grpcio==1.85.3
npm init --yes >npm.log
npm install --silent --no-audit --no-fund --ignore-scripts @grpc/grpc-js@1.14.7 >>npm.log

cat > hedging.json <<'JSON'
{"methodConfig": [{"name": [{}], "hedgingPolicy":
  {"maxAttempts": 2, "hedgingDelay": "0.2s", "nonFatalStatusCodes": ["UNAVAILABLE"]}}]}
JSON
cat > both.json <<'JSON'
{"methodConfig": [{"name": [{}], "hedgingPolicy":
  {"maxAttempts": 2, "hedgingDelay": "0.2s", "nonFatalStatusCodes": ["UNAVAILABLE"]}, "retryPolicy":
  {"maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
   "retryableStatusCodes": ["UNAVAILABLE"]}}]}
JSON

cat > probe.py <<'PYTHON'
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

attempts = 0


class Service(grpc.GenericRpcHandler):
    def service(self, details):
        def answer(request, context):
            global attempts
            attempts += 1
            number = attempts
            if details.method == "/probe/Unavailable":
                context.abort(grpc.StatusCode.UNAVAILABLE, "try later")
            if number == 1:
                time.sleep(2)
            return b"%d" % number

        return grpc.unary_unary_rpc_method_handler(answer)


server = grpc.server(ThreadPoolExecutor(8))
server.add_generic_rpc_handlers((Service(),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
for config, method in ("hedging", "Slow"), ("hedging", "Unavailable"), ("both", "Unavailable"):
    attempts = 0
    options = [("grpc.service_config", Path(f"{config}.json").read_text())]
    with grpc.insecure_channel(f"127.0.0.1:{port}", options) as channel:
        try:
            result = "answer of attempt " + channel.unary_unary(f"/probe/{method}")(b"", timeout=20).decode()
        except grpc.RpcError as error:
            result = error.code().name
    print(f"Python, {config}, {method}: {result}, {attempts} sent")
server.stop(None)
PYTHON

cat > probe.mjs <<'NODE'
import fs from 'node:fs';
import grpc from '@grpc/grpc-js';

const same = (value) => value;
const method = (name) => ({
  path: `/probe/${name}`, requestStream: false, responseStream: false, requestSerialize: same,
  requestDeserialize: same, responseSerialize: same, responseDeserialize: same,
});
const service = { Slow: method('Slow'), Unavailable: method('Unavailable') };
let attempts = 0;
const server = new grpc.Server();
server.addService(service, {
  Slow: (call, reply) => {
    const number = ++attempts;
    setTimeout(() => reply(null, Buffer.from(`${number}`)), number === 1 ? 2000 : 0);
  },
  Unavailable: (call, reply) => {
    attempts++;
    reply({ code: grpc.status.UNAVAILABLE, details: 'try later' });
  },
});
const port = await new Promise((resolve, reject) => {
  const done = (error, value) => (error ? reject(error) : resolve(value));
  server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), done);
});
const Client = grpc.makeGenericClientConstructor(service, 'probe');
for (const [config, name] of [['hedging', 'Slow'], ['hedging', 'Unavailable'], ['both', 'Unavailable']]) {
  attempts = 0;
  const options = { 'grpc.service_config': fs.readFileSync(`${config}.json`, 'utf8') };
  let result;
  try {
    const client = new Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure(), options);
    result = await new Promise((resolve) => {
      client[name](Buffer.alloc(0), { deadline: Date.now() + 20_000 }, (error, value) => {
        resolve(error ? grpc.status[error.code] : `answer of attempt ${value}`);
      });
    });
    client.close();
  } catch (error) {
    result = error.message;
  }
  console.log(`Node, ${config}, ${name}: ${result}, ${attempts} sent`);
}
server.forceShutdown();
NODE
seen=$(venv/bin/python probe.py && node probe.mjs)

expected='Python, hedging, Slow: answer of attempt 1, 1 sent
Python, hedging, Unavailable: UNAVAILABLE, 1 sent
Python, both, Unavailable: UNAVAILABLE, 3 sent
Node, hedging, Slow: answer of attempt 2, 2 sent
Node, hedging, Unavailable: UNAVAILABLE, 2 sent
Node, both, Unavailable: Invalid method config: retryPolicy and hedgingPolicy cannot both be specified, 0 sent'
if [[ "$seen" != "$expected" ]]; then
  printf 'This has changed.\nExpected:\n%s\nSeen:\n%s\n' "$expected" "$seen"
  exit 1
fi
printf '%s\n' "$seen"
