"""Cost of observers for telemetry: ``python -m benchmarks.telemetry``.

Calls of a decorated function with each observer, compared with the same calls without
one: that succeed at once, that succeed after one or three failures, and that give up.
The default log is off, so that only the observer costs something.
The last column is the cost of one event, of the 11 of a call with three failures.
Nothing is exported: spans go to a batch processor, whose thread drops them.

The second table compares observers of a policy with loops that record the same by hand:
the six metrics of Prometheus, and a span of OpenTelemetry for each attempt.
``python -m benchmarks.telemetry by-hand`` prints it alone.
"""

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler
from prometheus_client import CollectorRegistry

from benchmarks.calls import Row, measure
from benchmarks.contenders import RETRYKIT, Contender, Sleep
from benchmarks.makers import Maker, retrykit, retrykit_prometheus
from benchmarks.observed_by_hand import counted, traced
from benchmarks.table import machine, markdown, number, versions
from retrykit import observe
from retrykit.events import Observer
from retrykit.integrations import logging as retry_logging, opentelemetry, prometheus

__all__ = ["main"]

_ROUNDS = 15
_EVENTS = 11
_TITLES = ("success", "1 failure", "3 failures", "gives up")


def main() -> None:
    """Print a row for each observer."""
    logging.getLogger("retrykit.retries").setLevel("ERROR")
    if "by-hand" not in sys.argv:
        print(_by_observer() + "\n")
    print(_beside_hand())
    libraries = ["opentelemetry-sdk", "prometheus-client"]
    print(f"\n{machine()}\n\n{versions(libraries)}")


def _by_observer() -> str:
    plain = Contender(
        name="without", module="", make=RETRYKIT.make, amake=RETRYKIT.amake
    )
    contenders = [plain, *(_with(name, make()) for name, make in _OBSERVERS.items())]
    contenders.append(_with("prometheus, failures_only", _counting(), only=True))
    columns: list[Row] = []
    for title in _TITLES:
        print(f"measuring {title}", file=sys.stderr)
        columns += measure(contenders, _ROUNDS, f"function, {title}")
    rows = []
    for index, contender in enumerate(contenders):
        cells = [_cell(row.figures[index], row.figures[0]) for row in columns]
        failing = columns[2].figures
        extra = (failing[index] - failing[0]) / _EVENTS
        rows.append([contender.name, *cells, f"{extra:.3f}" if index else ""])
    return markdown(["observer, no other log (us)", *_TITLES, "event"], rows)


def _beside_hand() -> str:
    tracer = _tracers(ALWAYS_ON).get_tracer("by hand")
    spans = _opentelemetry(ALWAYS_ON, metrics=False)
    pairs: dict[str, tuple[Maker, Maker]] = {
        "Prometheus, six metrics": (counted, retrykit_prometheus),
        "OpenTelemetry, a span per attempt": (
            traced(tracer),
            lambda terms: retrykit(terms, observers=[spans]),
        ),
    }
    rows = []
    for title, makers in pairs.items():
        contenders = [
            Contender(name=name, module="", make=make, amake=RETRYKIT.amake)
            for name, make in zip(["by hand", "retrykit"], makers, strict=True)
        ]
        for row in (f"function, {x}" for x in ("success", "3 failures", "gives up")):
            print(f"measuring {title}, {row}", file=sys.stderr)
            [measured] = measure(contenders, _ROUNDS, row)
            hand, own = measured.figures
            rows.append([title, row, number(hand), _cell(own, hand)])
    return markdown(["observer (us)", "call", "by hand", "retrykit"], rows)


def _cell(figure: float, reference: float) -> str:
    return f"{number(figure)} ({figure / reference:.1f})"


def _with(name: str, observer: Observer, *, only: bool = False) -> Contender:
    @contextmanager
    def stub(sleep: Sleep) -> Iterator[None]:
        # Around each lap, so that the other contenders are not observed.
        with RETRYKIT.stub(sleep), observe(observer, failures_only=only):
            yield

    return Contender(
        name=name,
        module="retrykit",
        make=RETRYKIT.make,
        amake=RETRYKIT.amake,
        stub=stub,
    )


def _logging() -> Observer:
    log = logging.getLogger("benchmarks.telemetry")
    log.addHandler(logging.NullHandler())
    log.propagate = False
    log.setLevel("INFO")
    return retry_logging.observer(log)


def _counting() -> Observer:
    return prometheus.observer(registry=CollectorRegistry())


class _Nowhere(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002
        return SpanExportResult.SUCCESS


def _opentelemetry(sampler: Sampler | None, *, metrics: bool) -> Observer:
    meters = MeterProvider([InMemoryMetricReader()]) if metrics else NoOpMeterProvider()
    return opentelemetry.observer(
        spans="span" if sampler else None,
        tracer_provider=_tracers(sampler),
        meter_provider=meters,
    )


def _tracers(sampler: Sampler | None) -> TracerProvider:
    tracers = TracerProvider(sampler=sampler)
    tracers.add_span_processor(BatchSpanProcessor(_Nowhere()))
    return tracers


def _nothing(_event: Any) -> None:
    """Ignore an event."""


_OBSERVERS: dict[str, Callable[[], Observer]] = {
    "a function that does nothing": lambda: _nothing,
    "logging": _logging,
    "prometheus": _counting,
    "opentelemetry, metrics": partial(_opentelemetry, None, metrics=True),
    "opentelemetry, spans": partial(_opentelemetry, ALWAYS_ON, metrics=False),
    "opentelemetry, spans not sampled": partial(
        _opentelemetry, ALWAYS_OFF, metrics=False
    ),
    "opentelemetry, both": partial(_opentelemetry, ALWAYS_ON, metrics=True),
}


if __name__ == "__main__":
    main()
