"""Exporters of OpenTelemetry's SDK: a real one, and those that fail or block."""

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import NoOpCounter, NoOpMeter, NoOpMeterProvider
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.trace import get_current_span

from retrykit import Policy, observe, retry
from retrykit.integrations.httpx import RetryTransport
from retrykit.integrations.opentelemetry import observer
from tests._support.telemetry_collector import Collected

POLICY = Policy(schedule=[0, 0], on=OSError)


MESSAGES = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
}


class Collector(BaseHTTPRequestHandler):
    """An OTLP receiver: decodes spans and metrics."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.received.append(MESSAGES[self.path].FromString(body))
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args): ...


class Flaky(BaseHTTPRequestHandler):
    """Answers every third request."""

    def do_GET(self):
        self.server.received.append(self.path)
        self.send_response(200 if len(self.server.received) % 3 == 0 else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args): ...


@pytest.fixture
def serve():
    """Return a function that starts a server on loopback."""
    servers = []

    def start(handler):
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.received = []
        server.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        servers.append((server, thread))
        return server

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


def fails(times):
    errors = iter([OSError("secret")] * times)

    def fetch():
        for error in errors:
            raise error
        return "done"

    return fetch


def test_a_collector_receives_spans_and_metrics_over_http(serve):
    collector = serve(Collector)
    tracers = TracerProvider()
    exporter = OTLPSpanExporter(f"{collector.url}/v1/traces")
    tracers.add_span_processor(BatchSpanProcessor(exporter))
    metrics = OTLPMetricExporter(f"{collector.url}/v1/metrics")
    meters = MeterProvider([PeriodicExportingMetricReader(metrics)])
    with observe(observer(tracer_provider=tracers, meter_provider=meters)):
        with tracers.get_tracer("tests").start_as_current_span("request"):
            retry(POLICY)(fails(1))()
    tracers.shutdown()
    meters.shutdown()
    spans = [
        span
        for message in collector.received
        if isinstance(message, ExportTraceServiceRequest)
        for resource in message.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    request = next(span for span in spans if span.name == "request")
    first, second = (span for span in spans if span is not request)
    assert first.parent_span_id == second.parent_span_id == request.span_id
    assert [link.span_id for link in second.links] == [first.span_id]
    types = [each.value.string_value for each in first.attributes]
    assert "OSError" in types
    values = {
        metric.name: [
            *(point.as_int for point in metric.sum.data_points),
            *(point.sum for point in metric.histogram.data_points),
        ]
        for message in collector.received
        if isinstance(message, ExportMetricsServiceRequest)
        for resource in message.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert values["retrykit.attempts"] == [1, 1]
    assert values["retrykit.retries"] == values["retrykit.calls"] == [1]
    assert values["retrykit.retry.delay"] == [0.0]
    assert not any(b"secret" in each.SerializeToString() for each in collector.received)


def test_a_client_that_retries_counts_how_often_it_sends_a_request_again(serve):
    server, collected = serve(Flaky), Collected()
    transport = RetryTransport(schedule=[0, 0])
    with httpx.Client(transport=transport) as client:
        with observe(observer(**collected.providers)):
            assert client.get(f"{server.url}/?token=secret").status_code == 200
    assert [span.name for span in collected.attempts] == ["attempt GET 127.0.0.1"] * 3
    counts = [
        (
            span.attributes.get("http.request.resend_count"),
            span.attributes.get("error.type"),
        )
        for span in collected.attempts
    ]
    assert counts == [(None, "503"), (1, "503"), (2, None)]
    assert "secret" not in "".join(span.to_json() for span in collected.spans)
    collected.close()


class Raising(SpanExporter):
    """Fails to export."""

    def export(self, spans):
        raise RuntimeError


class Blocking(SpanExporter):
    """Blocks until it is released."""

    def __init__(self):
        self.released = threading.Event()
        self.entered = threading.Event()

    def export(self, spans):
        self.entered.set()
        self.released.wait()
        return SpanExportResult.SUCCESS


def run_with(processor):
    """Return the result of a call that is retried, and the attempts counted."""
    collected, tracers = Collected(), TracerProvider()
    tracers.add_span_processor(processor)
    providers = collected.providers | {"tracer_provider": tracers}
    before = get_current_span()
    with observe(observer(**providers)):
        result = retry(POLICY)(fails(2))()
    assert get_current_span() is before
    points = collected.points("retrykit.attempts")
    return result, sum(point.value for point in points), tracers


@pytest.mark.parametrize("kind", [SimpleSpanProcessor, BatchSpanProcessor])
def test_an_exporter_that_raises_does_not_touch_the_call(kind):
    result, attempts, tracers = run_with(kind(Raising()))
    tracers.shutdown()
    assert (result, attempts) == ("done", 3)


def test_an_exporter_that_blocks_does_not_touch_the_call():
    exporter = Blocking()
    processor = BatchSpanProcessor(exporter, max_export_batch_size=1)
    result, attempts, tracers = run_with(processor)
    assert exporter.entered.wait(10)
    # It is still blocked.
    assert not exporter.released.is_set()
    assert (result, attempts) == ("done", 3)
    exporter.released.set()
    tracers.shutdown()


class RaisingProcessor(SpanProcessor):
    """Raises where the methods are called that are named."""

    def __init__(self, *methods):
        self._methods = methods

    def on_start(self, span, parent_context=None):
        self._raise("on_start")

    def on_end(self, span):
        self._raise("on_end")

    def _raise(self, method):
        if method in self._methods:
            raise RuntimeError(method)


@pytest.mark.parametrize("methods", [["on_start"], ["on_end"], ["on_start", "on_end"]])
def test_a_processor_that_raises_does_not_touch_the_call(methods, caplog):
    result, attempts, _ = run_with(RaisingProcessor(*methods))
    assert (result, attempts) == ("done", 3)
    assert "an observer of AttemptFailed failed" in caplog.text


def test_a_processor_that_raises_at_the_end_leaves_the_callers_span_current():
    seen, tracers = [], TracerProvider()
    tracers.add_span_processor(RaisingProcessor("on_end"))
    before = get_current_span()

    def look(event):
        if event.kind != "attempt_started":
            seen.append(get_current_span() is before)

    with observe(observer(tracer_provider=tracers)), observe(look):
        retry(POLICY)(fails(1))()
    assert seen == [True, True, True]


class RaisingCounter(NoOpCounter):
    """Does not count."""

    def add(self, amount, attributes=None, context=None):
        raise RuntimeError


class RaisingMeter(NoOpMeter):
    """Has counters that do not count."""

    def create_counter(self, name, unit="", description=""):
        return RaisingCounter(name)


class RaisingMeterProvider(NoOpMeterProvider):
    """Has such counters."""

    def get_meter(self, name, version=None, schema_url=None, attributes=None):
        return RaisingMeter(name)


def test_metrics_that_raise_do_not_touch_the_call_and_its_spans():
    collected, before = Collected(), get_current_span()
    providers = collected.providers | {"meter_provider": RaisingMeterProvider()}
    with observe(observer(**providers)):
        assert retry(POLICY)(fails(2))() == "done"
    assert get_current_span() is before
    assert len(collected.attempts) == 3
    collected.close()


def test_a_processor_that_raises_at_times_leaves_the_other_spans_right():
    class AtTheSecond(SpanProcessor):
        started = 0

        def on_start(self, span, parent_context=None):
            self.started += 1
            if self.started == 2:
                raise RuntimeError

    collected = Collected()
    collected.tracers.add_span_processor(AtTheSecond())
    with observe(observer(**collected.providers)):
        retry(POLICY)(fails(2))()
    # Attempt 2 has its span as soon as it has failed.
    numbers = [span.attributes["retrykit.attempt"] for span in collected.attempts]
    assert numbers == [1, 2, 3]
    collected.close()
