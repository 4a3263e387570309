"""Observer that counts retried calls for Prometheus, and a collector of budgets."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, final

from retrykit._core.retry_state import RetryState, StopReason
from retrykit._internal.extras import needs
from retrykit._internal.user_facing import user_facing
from retrykit._internal.validation import (
    check_instance,
    check_integer,
    invalid_setting,
)
from retrykit.budgets._base import Budget
from retrykit.events import AttemptFailed, Event, GaveUp, Observer, Succeeded
from retrykit.integrations._telemetry import (
    BUCKETS,
    EventLabels,
    check_budgets,
    outcome_of,
    read_balances,
    reason_of,
    was_interrupted,
)

with needs("prometheus"):
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram
    from prometheus_client.core import GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector

__all__ = ["BudgetCollector", "observer"]


@user_facing
def observer(
    *,
    registry: CollectorRegistry = REGISTRY,
    prefix: str = "retrykit",
    max_names: int = 200,
) -> Observer:
    """Return an observer that counts attempts, retries and calls, and times them.

    The labels are the name of the function, the outcome, the reason and the type of
    the error. Texts of errors, arguments and results are never recorded.

    >>> from retrykit import observe
    >>> with observe(observer(registry=CollectorRegistry())):
    ...     pass  # retried calls made here are counted

    Args:
        registry: The registry of the metrics.
        prefix: The first word of their names.
        max_names: Maximum number of distinct names of functions, and of types of
            errors: further ones become ``other`` and ``_OTHER``. Count, >= 1.

    Raises:
        ConfigError: *registry* is none, or has these metrics already; or *prefix* is
            not a part of a name.
    """
    labels = EventLabels(max_names)
    check_instance("registry", registry, CollectorRegistry)
    _check_prefix(prefix)
    try:
        return _Metrics(registry, prefix, labels)
    except ValueError as error:
        rule = f"without metrics of the prefix {prefix!r}"
        suggestion = "share one observer, or pass another prefix"
        raise invalid_setting("registry", rule, registry, suggestion) from error


@final
class _Metrics:
    def __init__(
        self, registry: CollectorRegistry, prefix: str, labels: EventLabels
    ) -> None:
        self._labels = labels
        # Each is found, or added, in one step; it takes long to find it by its labels.
        self._children: dict[tuple[Any, tuple[str, ...]], Any] = {}
        self._attempts = Counter(
            "attempts",
            "Attempts that have ended.",
            ["function", "outcome", "error_type"],
            namespace=prefix,
            registry=registry,
        )
        self._retries = Counter(
            "retries",
            "Retries that were scheduled.",
            ["function", "error_type"],
            namespace=prefix,
            registry=registry,
        )
        self._calls = Counter(
            "calls",
            "Calls that have ended.",
            ["function", "outcome", "retried"],
            namespace=prefix,
            registry=registry,
        )
        self._give_ups = Counter(
            "give_ups",
            "Calls that gave up.",
            ["function", "reason", "error_type"],
            namespace=prefix,
            registry=registry,
        )
        self._delay = Histogram(
            "retry_delay_seconds",
            "Delays before retries.",
            ["function"],
            namespace=prefix,
            registry=registry,
            buckets=BUCKETS,
        )
        self._elapsed = Histogram(
            "call_elapsed_seconds",
            "Durations of calls, with their delays.",
            ["function", "outcome"],
            namespace=prefix,
            registry=registry,
            buckets=BUCKETS,
        )

    def __call__(self, event: Event, /) -> None:
        """Count an event."""
        if isinstance(event, AttemptFailed):
            failure = event.failure
            name, error = self._labels.function(event), self._labels.error(event.state)
            self._of(self._attempts, name, "failed", error).inc()
            if failure.delay is not None:
                self._of(self._retries, name, error).inc()
                self._of(self._delay, name).observe(failure.delay)
        elif isinstance(event, Succeeded):
            name = self._labels.function(event)
            self._of(self._attempts, name, "succeeded", "").inc()
            self._end(name, event.state)
        elif isinstance(event, GaveUp):
            name = self._labels.function(event)
            self._give_up(name, event.state)
            self._end(name, event.state)

    def _give_up(self, name: str, state: RetryState) -> None:
        error = self._labels.error(state)
        if was_interrupted(state):
            self._of(self._attempts, name, "interrupted", error).inc()
        if state.stop_reason is not StopReason.CANCELLED:
            self._of(self._give_ups, name, reason_of(state), error).inc()

    def _end(self, name: str, state: RetryState) -> None:
        outcome, retried = outcome_of(state), str(state.attempt > 1).lower()
        self._of(self._calls, name, outcome, retried).inc()
        self._of(self._elapsed, name, outcome).observe(state.elapsed)

    def _of(self, metric: Any, *labels: str) -> Any:
        """Return the child of a metric with these labels, which are bounded."""
        key = metric, labels
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = metric.labels(*labels)
        return child


@final
class BudgetCollector(Collector):
    """Collector of the balances of budgets, which are read at each scrape.

    It also shows the shared budgets, by their scopes. A budget whose balance cannot
    be read is left out, and its error is logged.

    >>> from retrykit.budgets import TokenBucket
    >>> registry = CollectorRegistry()
    >>> registry.register(BudgetCollector({"payments": TokenBucket(100)}))
    >>> registry.get_sample_value("retrykit_budget_balance", {"budget": "payments"})
    100.0

    Args:
        budgets: Budgets by name.
        prefix: The first word of the gauge's name.
        max_shared: Maximum number of shared budgets: those used most recently.
            Count, >= 1.

    Raises:
        ConfigError: *budgets* is not a dict of budgets, or *prefix* is not a part of a
            name.
    """

    @user_facing
    def __init__(
        self,
        budgets: Mapping[str, Budget] | None = None,
        *,
        prefix: str = "retrykit",
        max_shared: int = 200,
    ) -> None:
        self._budgets = check_budgets(budgets)
        self._name = f"{_check_prefix(prefix)}_budget_balance"
        self._most = check_integer("max_shared", max_shared, at_least=1)

    def describe(self) -> Iterable[Metric]:
        """Return the gauge without balances."""
        return [self._gauge()]

    def _gauge(self) -> GaugeMetricFamily:
        title = "Balances of budgets, each in its own unit."
        return GaugeMetricFamily(self._name, title, labels=["budget"])

    def collect(self) -> Iterable[Metric]:
        """Return the gauge with the balances of now."""
        gauge = self._gauge()
        for name, balance in read_balances(self._budgets, self._most).items():
            gauge.add_metric([name], balance)
        return [gauge]


def _check_prefix(prefix: object) -> str:
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
        rule = "a word of letters, digits and underscores, such as 'retrykit'"
        raise invalid_setting("prefix", rule, prefix)
    return prefix


_PREFIX: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
