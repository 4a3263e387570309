"""Hand-written loops that record what the observers for telemetry record.

They look for the children of metrics once where labels are constant, and take the texts
of errors into no span, as the observers do.
"""

import functools
import random
import time
from collections.abc import Callable
from typing import Any

from opentelemetry.trace import Link, Span, StatusCode, Tracer
from prometheus_client import CollectorRegistry, Counter, Histogram

from benchmarks.makers import Decorator, Maker, Terms
from retrykit.integrations._telemetry import BUCKETS

__all__ = ["counted", "traced"]


def counted(terms: Terms) -> Decorator:
    """Return a decorator of functions: a loop with the six metrics of Prometheus."""
    registry = CollectorRegistry()
    attempts = Counter("a", "-", ["function", "outcome", "error"], registry=registry)
    retries = Counter("r", "-", ["function", "error"], registry=registry)
    calls = Counter("c", "-", ["function", "outcome", "retried"], registry=registry)
    ends = Counter("g", "-", ["function", "reason", "error"], registry=registry)
    delays = Histogram("d", "-", ["function"], registry=registry, buckets=BUCKETS)
    times = Histogram(
        "t", "-", ["function", "outcome"], registry=registry, buckets=BUCKETS
    )

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        name = f"{fn.__module__}.{fn.__qualname__}"
        delayed, succeeded = delays.labels(name), attempts.labels(name, "succeeded", "")
        at_once = calls.labels(name, "succeeded", "false")
        retried = calls.labels(name, "succeeded", "true")
        elapsed = times.labels(name, "succeeded")

        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            failures, began = 0, time.monotonic()
            while True:
                try:
                    result = fn(*args, **kwargs)
                except ConnectionError as error:
                    failures += 1
                    kind = type(error).__name__
                    attempts.labels(name, "failed", kind).inc()
                    if failures == terms.attempts:
                        ends.labels(name, "attempts", kind).inc()
                        calls.labels(name, "gave_up", "true").inc()
                        times.labels(name, "gave_up").observe(time.monotonic() - began)
                        raise
                    retries.labels(name, kind).inc()
                else:
                    succeeded.inc()
                    (retried if failures else at_once).inc()
                    elapsed.observe(time.monotonic() - began)
                    return result
                delay = _delay(terms, failures)
                delayed.observe(delay)
                time.sleep(delay)

        return wrapper

    return decorate


def traced(tracer: Tracer) -> Maker:
    """Return a maker of loops with a span for each attempt."""

    def maker(terms: Terms) -> Decorator:
        def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
            name = f"{fn.__module__}.{fn.__qualname__}"
            title = f"attempt {name}"

            @functools.wraps(fn)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                failures = 0
                last: Span | None = None
                while True:
                    attributes: dict[str, str | int] = {
                        "retrykit.function": name,
                        "retrykit.attempt": failures + 1,
                        "code.function.name": name,
                    }
                    links = [Link(last.get_span_context())] if last else []
                    with tracer.start_as_current_span(
                        title,
                        attributes=attributes,
                        links=links,
                        record_exception=False,
                        set_status_on_exception=False,
                    ) as last:
                        try:
                            return fn(*args, **kwargs)
                        except ConnectionError as error:
                            failures += 1
                            last.set_attribute("error.type", type(error).__name__)
                            last.set_status(StatusCode.ERROR)
                            if failures == terms.attempts:
                                last.set_attribute("retrykit.reason", "attempts")
                                raise
                    time.sleep(_delay(terms, failures))

            return wrapper

        return decorate

    return maker


def _delay(terms: Terms, failures: int) -> float:
    delay: float = min(terms.first * 2 ** (failures - 1), terms.cap)
    return delay * random.uniform(0.5, 1.5)  # noqa: S311  jitter
