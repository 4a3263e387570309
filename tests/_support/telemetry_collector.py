"""OpenTelemetry's SDK with exporters in memory, and what they got."""

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

__all__ = ["Collected", "values_of"]


class Collected:
    """Providers for an observer, and the spans and metrics that it has recorded."""

    def __init__(self):
        self._exporter, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers, self.meters = TracerProvider(), MeterProvider([self._reader])
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.tracers.get_tracer("tests")
        self.providers = {
            "tracer_provider": self.tracers,
            "meter_provider": self.meters,
        }

    @property
    def spans(self):
        """The spans, in the order of their ends."""
        return self._exporter.get_finished_spans()

    @property
    def attempts(self):
        """The spans of attempts."""
        return [span for span in self.spans if span.name.startswith("attempt ")]

    def span(self, name):
        """Return the only span with a name."""
        [found] = [span for span in self.spans if span.name == name]
        return found

    @property
    def metrics(self):
        """The metrics by name."""
        data = self._reader.get_metrics_data()
        return {
            metric.name: metric
            for resource in (data.resource_metrics if data else [])
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def points(self, name):
        """Return the points of a metric."""
        found = self.metrics.get(name)
        return list(found.data.data_points) if found else []

    def close(self):
        self.tracers.shutdown()
        self.meters.shutdown()


def values_of(points):
    """Return the values of points by the values of their attributes.

    Of a histogram, its count and its sum.
    """
    return {
        tuple(point.attributes[key] for key in sorted(point.attributes)): (
            point.value if hasattr(point, "value") else (point.count, point.sum)
        )
        for point in points
    }
