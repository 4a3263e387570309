#!/usr/bin/env bash
# OpenTelemetry shows four requests of urllib3 as one that went well
#
# Seen with: opentelemetry-instrumentation-urllib3 and -requests 0.66b1 (opentelemetry-sdk 1.45.1),
# urllib3 2.8.0, requests 2.34.2, with the stable conventions (OTEL_SEMCONV_STABILITY_OPT_IN=http).
# Known there as missing: open-telemetry/opentelemetry-python-contrib#2000.
#
# Expected: the conventions for HTTP clients prefer a span for each time a request is sent, retries
# included, with http.request.resend_count on all but the first. One span for the whole is allowed
# where there is no way to do better; then something should tell that it was more than one request.
#
# Seen: a server answers 503 three times and then 200, and urllib3's Retry hides that from the caller,
# as it should. It hides it from the trace as well: one span, status 200, no resend_count, no error.
# All four requests carry the same traceparent, so the server's four spans are children of one. The
# histogram of durations has one value. The same is true with requests above, and of both
# instrumentations together.
#
# The cause is where the two meet: urllib3 retries inside of the call that is wrapped, and the inner
# calls are kept from making spans of their own.
#
# Why it matters: while retries help, the rate of errors that the client measures is zero, and the
# outage is visible as slowness only. Whoever wants to know how much is retried has to count below the
# retries, or retry above the instrumentation.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv --without-pip venv
python3 -m pip --python venv/bin/python install --quiet --disable-pip-version-check \
  opentelemetry-sdk==1.45.1 opentelemetry-instrumentation-urllib3==0.66b1 \
  opentelemetry-instrumentation-requests==0.66b1 urllib3==2.8.0 requests==2.34.2

cat > probe.py <<'PYTHON'
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "http"

import requests
import urllib3
from opentelemetry.instrumentation.requests import RequestsInstrumentor
from opentelemetry.instrumentation.urllib3 import URLLib3Instrumentor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

attributes = "response.status_code", "request.resend_count"
parents = []


class Flaky(BaseHTTPRequestHandler):
    def do_GET(self):
        parents.append(self.headers["traceparent"])
        self.send_response(503 if len(parents) % 4 else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


def with_urllib3(url):
    return urllib3.PoolManager(retries=retries).request("GET", url).status


def with_requests(url):
    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", HTTPAdapter(max_retries=retries))
        return session.get(url).status_code


def watch(name, ask, *instrumentors):
    parents.clear()
    spans, reader, traces = InMemorySpanExporter(), InMemoryMetricReader(), TracerProvider()
    traces.add_span_processor(SimpleSpanProcessor(spans))
    meters = MeterProvider(metric_readers=[reader])
    for instrumentor in instrumentors:
        instrumentor.instrument(tracer_provider=traces, meter_provider=meters)
    status = ask(f"http://127.0.0.1:{server.server_port}/")
    for instrumentor in instrumentors:
        instrumentor.uninstrument()
    durations = [
        point.count
        for resource in reader.get_metrics_data().resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == "http.client.request.duration"
        for point in metric.data.data_points
    ]
    print(f"{name}: {status}, requests {len(parents)}, of different parents {len(set(parents))}")
    print(f"  durations {sum(durations)}")
    for span in spans.get_finished_spans():
        status, resend = (span.attributes.get(f"http.{name}") for name in attributes)
        print(f"  span: {status}, events {len(span.events)}, resend_count {resend}")


retries = Retry(total=5, status_forcelist=[503])
with ThreadingHTTPServer(("127.0.0.1", 0), Flaky) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    watch("urllib3", with_urllib3, URLLib3Instrumentor())
    watch("requests", with_requests, RequestsInstrumentor())
    watch("both", with_requests, RequestsInstrumentor(), URLLib3Instrumentor())
    server.shutdown()
PYTHON
seen=$(venv/bin/python probe.py)

expected='urllib3: 200, requests 4, of different parents 1
  durations 1
  span: 200, events 0, resend_count None
requests: 200, requests 4, of different parents 1
  durations 1
  span: 200, events 0, resend_count None
both: 200, requests 4, of different parents 1
  durations 1
  span: 200, events 0, resend_count None'
if [[ "$seen" != "$expected" ]]; then
  printf 'This has changed.\nExpected:\n%s\nSeen:\n%s\n' "$expected" "$seen"
  exit 1
fi
printf '%s\n' "$seen"
