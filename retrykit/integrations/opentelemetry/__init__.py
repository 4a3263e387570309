"""Observer that records retried calls as OpenTelemetry spans and metrics."""

from collections.abc import Mapping
from typing import Literal

from retrykit import __version__
from retrykit._internal.extras import needs
from retrykit._internal.validation import check_choice, invalid_setting, user_facing
from retrykit.budgets._base import Budget
from retrykit.events import Event, Observer
from retrykit.integrations._telemetry import (
    EventLabels,
    Limits,
    check_budgets,
    check_limits,
)

with needs("opentelemetry"):
    from opentelemetry.metrics import MeterProvider, get_meter
    from opentelemetry.trace import TracerProvider, get_tracer

    from retrykit.integrations.opentelemetry._metrics import (
        Metrics,
        observe_budgets,
        observe_limits,
    )
    from retrykit.integrations.opentelemetry._spans import AttemptSpans, SpanEvents

__all__ = ["observer"]


@user_facing
def observer(  # noqa: PLR0913  independent options
    *,
    spans: Literal["span", "event"] | None = "span",
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    budgets: Mapping[str, Budget] | None = None,
    limits: Limits | None = None,
    max_names: int = 200,
) -> Observer:
    """Return an observer that records calls as spans and metrics.

    Each attempt is a span, whose parent is the span that is current where the call is
    made. Except in a stream, the attempt's span is current during the attempt, so that
    the spans of clients and databases are its children. It links to the span of the
    previous attempt. A failed attempt has the status ERROR and an ``error.type``. Texts
    of errors, arguments and results are never recorded. The metrics count all calls,
    whether their spans are sampled or not.

    >>> from retrykit import observe
    >>> with observe(observer()):
    ...     pass  # retried calls made here are recorded

    Args:
        spans: ``span`` for a span per attempt; ``event`` for events of the caller's
            span instead: for failed attempts, retries, hedges and the end of the call,
            unless it succeeds at once; None for metrics only.
        tracer_provider: The provider of the spans; by default the global one.
        meter_provider: The provider of the metrics; by default the global one.
            OpenTelemetry's `NoOpMeterProvider` records none.
        budgets: Budgets, keyed by name, whose balances a gauge shows. It also shows the
            shared budgets, named after their scopes.
        limits: Limits, such as circuit breakers, or registries of them, keyed by name,
            whose states a gauge shows. It also shows the shared limits, named after
            their scopes.
        max_names: Maximum number of distinct names of functions, and of types of
            errors: further ones become ``other`` and ``_OTHER``. The gauges show at
            most this number of shared budgets, of shared limits and of limits in each
            registry, the most recently used ones. Count, >= 1.

    Raises:
        ConfigError: *spans* is unknown, a provider has another type, *budgets* is not a
            dict of budgets, *limits* is not a dict of limits, or *max_names* is not a
            count.
    """
    if spans is not None:
        check_choice("spans", spans, ["span", "event"], "None records no spans")
    if not isinstance(tracer_provider, TracerProvider | None):
        rule = "a TracerProvider, or None for the global one"
        raise invalid_setting("tracer_provider", rule, tracer_provider)
    if not isinstance(meter_provider, MeterProvider | None):
        rule = "a MeterProvider, or None for the global one"
        raise invalid_setting("meter_provider", rule, meter_provider)
    labels, named = EventLabels(max_names), check_budgets(budgets)
    named_limits = check_limits(limits)
    meter = get_meter("retrykit", __version__, meter_provider)
    observe_budgets(meter, named, max_names)
    observe_limits(meter, named_limits, max_names)
    metrics = Metrics(meter, labels)
    if spans is None:
        return metrics
    if spans == "event":
        return _both(metrics, SpanEvents(labels))
    tracer = get_tracer("retrykit", __version__, tracer_provider)
    return _both(metrics, AttemptSpans(tracer, labels))


def _both(metrics: Observer, spans: Observer) -> Observer:
    def observe_event(event: Event, /) -> None:
        # Metrics first: while the span of the attempt is current, it is their exemplar.
        try:
            metrics(event)
        finally:
            spans(event)

    return observe_event
