"""Watch the retries of a client with OpenTelemetry and Prometheus.

A service on this computer fails twice for the first order, and always for the third.
The client retries its requests, and two observers record them: OpenTelemetry's SDK
keeps the spans in memory, where a collector would get them, and Prometheus reads the
page of metrics, which is printed at the end without comments and buckets.

Prints::

    order 1: 200
    order 2: 200
    order 3: 503

    order 1
      attempt 1 of GET 127.0.0.1, error.type=503
      attempt 2 of GET 127.0.0.1, http.request.resend_count=1, error.type=503
      attempt 3 of GET 127.0.0.1, http.request.resend_count=2
    order 2
      attempt 1 of GET 127.0.0.1
    order 3
      attempt 1 of GET 127.0.0.1, error.type=503
      attempt 2 of GET 127.0.0.1, http.request.resend_count=1, error.type=503
      attempt 3 of GET 127.0.0.1, http.request.resend_count=2, error.type=503, ...

    retrykit_budget_balance{budget="orders"} 71.0
    retrykit_attempts_total{error_type="503",function=...,outcome="failed"} 5.0
    retrykit_attempts_total{error_type="",function=...,outcome="succeeded"} 2.0
    retrykit_retries_total{error_type="503",function="GET 127.0.0.1"} 4.0
    retrykit_calls_total{function=...,outcome="succeeded",retried="true"} 1.0
    retrykit_calls_total{function=...,outcome="succeeded",retried="false"} 1.0
    retrykit_calls_total{function=...,outcome="gave_up",retried="true"} 1.0
    retrykit_give_ups_total{error_type="503",function=...,reason="schedule_ended"} 1.0
    retrykit_retry_delay_seconds_count{function="GET 127.0.0.1"} 4.0
    retrykit_retry_delay_seconds_sum{function="GET 127.0.0.1"} 0.06
    retrykit_call_elapsed_seconds_count{function=...,outcome="succeeded"} 2.0
    retrykit_call_elapsed_seconds_sum{function=...,outcome="succeeded"} ...
    retrykit_call_elapsed_seconds_count{function=...,outcome="gave_up"} 1.0
    retrykit_call_elapsed_seconds_sum{function=...,outcome="gave_up"} ...
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry, start_http_server

from retrykit import observe
from retrykit.budgets import TokenBucket
from retrykit.integrations import opentelemetry, prometheus
from retrykit.integrations.httpx import RetryTransport, policy

BUDGET = TokenBucket(100, cost=10)
POLICY = policy(schedule=["10ms", "20ms"], budget=BUDGET)


@contextmanager
def serve() -> Iterator[str]:
    """Serve orders, and yield the URL."""
    requests: Counter[str] = Counter()
    failures = {"/1": 2, "/2": 0, "/3": 9}

    class Orders(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests[self.path] += 1
            failed = requests[self.path] <= failures[self.path]
            self.send_response(503 if failed else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Keep requests out of the output."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Orders) as server:
        Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def serve_metrics(registry: CollectorRegistry) -> Iterator[str]:
    """Serve the page for Prometheus, and yield its URL."""
    server, thread = start_http_server(0, "127.0.0.1", registry)
    yield f"http://127.0.0.1:{server.server_port}/metrics"
    server.shutdown()
    thread.join()
    server.server_close()


def fetch_orders(client: httpx.Client, tracers: TracerProvider) -> None:
    """Request three orders, each in a span."""
    tracer = tracers.get_tracer("shop")
    for number in range(1, 4):
        with tracer.start_as_current_span(f"order {number}"):
            print(f"order {number}: {client.get(f'/{number}').status_code}")


def print_spans(spans: tuple[ReadableSpan, ...]) -> None:
    """Print each span with its children, which ended before it."""
    for parent in (span for span in spans if span.parent is None):
        print(parent.name)
        for span in spans:
            if span.parent == parent.context:
                print(f"  {describe(dict(span.attributes or {}))}")


def describe(attributes: dict[str, object]) -> str:
    """Return the attributes of the span of an attempt as text."""
    number = attributes.pop("retrykit.attempt")
    title = f"attempt {number} of {attributes.pop('retrykit.function')}"
    return ", ".join([title, *(f"{key}={x}" for key, x in attributes.items())])


def main() -> None:
    """Send the requests, and print what was observed."""
    exporter, tracers = InMemorySpanExporter(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    registry = CollectorRegistry()
    registry.register(prometheus.BudgetCollector({"orders": BUDGET}))
    with ExitStack() as stack:
        stack.enter_context(observe(opentelemetry.observer(tracer_provider=tracers)))
        stack.enter_context(observe(prometheus.observer(registry=registry)))
        url = stack.enter_context(serve())
        transport = RetryTransport(POLICY)
        client = httpx.Client(base_url=url, transport=transport, trust_env=False)
        fetch_orders(stack.enter_context(client), tracers)
    print()
    print_spans(exporter.get_finished_spans())
    print()
    with serve_metrics(registry) as url:
        page = httpx.get(url, trust_env=False).text
    for line in page.splitlines():
        if (
            not line.startswith("#")
            and "_bucket" not in line
            and "_created" not in line
        ):
            print(line)


if __name__ == "__main__":
    main()
