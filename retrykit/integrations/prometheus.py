"""Prometheus metrics: an observer of retried calls, and collectors.

The collectors show the balances of budgets and the states of limits.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, final

from retrykit._core.call_record import CallFacts
from retrykit._core.retry_state import StopReason
from retrykit._internal.extras import needs
from retrykit._internal.validation import (
    check_instance,
    check_integer,
    invalid_setting,
    user_facing,
)
from retrykit.budgets._base import Budget
from retrykit.events import (
    AttemptFailed,
    Event,
    GaveUp,
    HedgeStarted,
    Observer,
    Succeeded,
)
from retrykit.integrations._telemetry import (
    BUCKETS,
    EventLabels,
    Limits,
    check_budgets,
    check_limits,
    outcome_of,
    read_balances,
    read_states,
    reason_of,
    was_interrupted,
)

with needs("prometheus"):
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram
    from prometheus_client.core import GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector

__all__ = ["BudgetCollector", "LimitCollector", "observer"]


@user_facing
def observer(
    *,
    registry: CollectorRegistry = REGISTRY,
    prefix: str = "retrykit",
    max_names: int = 200,
) -> Observer:
    """Return an observer that counts attempts and calls, and measures durations.

    The labels are the name of the function, the outcome, the reason, the type of the
    error, and whether a call was retried. Texts of errors, arguments and results are
    never recorded.

    >>> from retrykit import observe
    >>> with observe(observer(registry=CollectorRegistry())):
    ...     pass  # retried calls made here are counted

    Args:
        registry: The registry of the metrics.
        prefix: The first word of the metrics' names.
        max_names: Maximum number of distinct names of functions, and of types of
            errors: further ones become ``other`` and ``_OTHER``. Count, >= 1.

    Raises:
        ConfigError: *registry* is not a registry, or has these metrics already;
            *prefix* cannot begin a name; or *max_names* is not a count.
    """
    labels = EventLabels(max_names)
    check_instance("registry", registry, CollectorRegistry)
    _check_prefix(prefix)
    try:
        return _Metrics(registry, prefix, labels)
    except ValueError as error:
        rule = f"without metrics of the prefix {prefix!r}"
        suggestion = "share one observer, or pass another prefix"
        raise invalid_setting(
            "registry", rule, registry, suggestion, code="other-library"
        ) from error


@final
class _Metrics:
    def __init__(
        self, registry: CollectorRegistry, prefix: str, labels: EventLabels
    ) -> None:
        self._labels = labels

        def children(kind: Any, name: str, text: str, names: str) -> _Children:
            buckets = {"buckets": BUCKETS} if kind is Histogram else {}
            own = {"namespace": prefix, "registry": registry, **buckets}
            return _Children(kind(name, text, names.split(), **own))

        self._attempts = children(
            Counter,
            "attempts",
            "Attempts that have ended.",
            "function outcome error_type",
        )
        self._retries = children(
            Counter, "retries", "Retries that were scheduled.", "function error_type"
        )
        self._hedges = children(
            Counter, "hedges", "Attempts that were sent again.", "function"
        )
        self._calls = children(
            Counter, "calls", "Calls that have ended.", "function outcome retried"
        )
        self._give_ups = children(
            Counter, "give_ups", "Calls that gave up.", "function reason error_type"
        )
        self._delay = children(
            Histogram, "retry_delay_seconds", "Delays before retries.", "function"
        )
        self._elapsed = children(
            Histogram,
            "call_elapsed_seconds",
            "Durations of calls, with their delays.",
            "function outcome",
        )

    def __call__(self, event: Event, /) -> None:
        """Add an event to the metrics."""
        if isinstance(event, AttemptFailed):
            delay = event.failure.delay
            name = self._labels.function(event)
            error = self._labels.error(event._record)
            self._attempts[name, "failed", error].inc()
            if delay is not None:
                self._retries[name, error].inc()
                self._delay[name,].observe(delay)
        elif isinstance(event, HedgeStarted):
            self._hedges[self._labels.function(event),].inc()
        elif isinstance(event, Succeeded):
            name = self._labels.function(event)
            self._attempts[name, "succeeded", ""].inc()
            self._end(name, event._record)
        elif isinstance(event, GaveUp):
            name = self._labels.function(event)
            self._give_up(name, event._record)
            self._end(name, event._record)

    def _give_up(self, name: str, record: CallFacts) -> None:
        error = self._labels.error(record)
        if was_interrupted(record):
            self._attempts[name, "interrupted", error].inc()
        if record.stop_reason is not StopReason.CANCELLED:
            self._give_ups[name, reason_of(record), error].inc()

    def _end(self, name: str, record: CallFacts) -> None:
        outcome, retried = outcome_of(record), record.attempt > 1
        self._calls[name, outcome, "true" if retried else "false"].inc()
        self._elapsed[name, outcome].observe(record.elapsed)


@final
class _Children(dict[tuple[str, ...], Any]):
    """The children of a metric, keyed by labels that are bounded in number.

    The metric itself takes ten times as long to find a child.
    """

    def __init__(self, metric: Any) -> None:
        self._metric = metric

    def __missing__(self, labels: tuple[str, ...]) -> Any:
        # If several threads add one, all get the same child from the metric.
        child = self[labels] = self._metric.labels(*labels)
        return child


@final
class BudgetCollector(Collector):
    """Collector of the balances of budgets, which are read at each scrape.

    It also shows the shared budgets, named after their scopes. A budget whose balance
    cannot be read is left out, and its error is logged.

    >>> from retrykit.budgets import TokenBucket
    >>> registry = CollectorRegistry()
    >>> registry.register(BudgetCollector({"payments": TokenBucket(100)}))
    >>> registry.get_sample_value("retrykit_budget_balance", {"budget": "payments"})
    100.0

    Args:
        budgets: Budgets, keyed by name.
        prefix: The first word of the gauge's name.
        max_shared: Maximum number of shared budgets; the most recently used ones are
            shown. Count, >= 1.

    Raises:
        ConfigError: *budgets* is not a dict of budgets, *prefix* cannot begin a name,
            or *max_shared* is not a count.
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
        """Return the gauge with the current balances."""
        gauge = self._gauge()
        for name, balance in read_balances(self._budgets, self._most).items():
            gauge.add_metric([name], balance)
        return [gauge]


@final
class LimitCollector(Collector):
    """Collector of the states of limits, which are read at each scrape.

    Each limit has one sample, whose value is 1 and whose label ``state`` is the current
    state of the limit. The shared limits are shown as well, named after their scopes. A
    limit whose state cannot be read is left out, and its error is logged.

    >>> from retrykit.limits import CircuitBreaker
    >>> registry = CollectorRegistry()
    >>> registry.register(LimitCollector({"orders": CircuitBreaker()}))
    >>> labels = {"limit": "orders", "state": "closed"}
    >>> registry.get_sample_value("retrykit_limit_state", labels)
    1.0

    Args:
        limits: Limits and registries of limits, keyed by name. A limit of a registry is
            labeled with the registry's name, a colon and the limit's key.
        prefix: The first word of the gauge's name.
        max_shared: Maximum number of shared limits, and of limits of each registry; the
            most recently used ones are shown. Count, >= 1.

    Raises:
        ConfigError: *limits* is not a dict of limits, *prefix* cannot begin a name, or
            *max_shared* is not a count.
    """

    @user_facing
    def __init__(
        self,
        limits: Limits | None = None,
        *,
        prefix: str = "retrykit",
        max_shared: int = 200,
    ) -> None:
        self._limits = check_limits(limits)
        self._name = f"{_check_prefix(prefix)}_limit_state"
        self._most = check_integer("max_shared", max_shared, at_least=1)

    def describe(self) -> Iterable[Metric]:
        """Return the gauge without states."""
        return [self._gauge()]

    def _gauge(self) -> GaugeMetricFamily:
        title = "States of limits: 1 for the present one."
        return GaugeMetricFamily(self._name, title, labels=["limit", "state"])

    def collect(self) -> Iterable[Metric]:
        """Return the gauge with the current states."""
        gauge = self._gauge()
        for name, state in read_states(self._limits, self._most).items():
            gauge.add_metric([name, state], 1.0)
        return [gauge]


def _check_prefix(prefix: object) -> str:
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
        rule = "a word of letters, digits and underscores, such as 'retrykit'"
        raise invalid_setting("prefix", rule, prefix)
    return prefix


_PREFIX: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
