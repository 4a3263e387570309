"""Invalid settings of observers for telemetry, by the message of their error."""

from prometheus_client import CollectorRegistry

from retrykit import observe
from retrykit.integrations import opentelemetry, prometheus
from retrykit.integrations.prometheus import BudgetCollector, LimitCollector

__all__ = ["ERRORS"]

REGISTRY = CollectorRegistry()


def register_twice():
    prometheus.observer(registry=REGISTRY, prefix="twice")
    prometheus.observer(registry=REGISTRY, prefix="twice")


UNCALLED = opentelemetry.observer, prometheus.observer
ERRORS = {
    "observer must be a function that takes the event, and nothing else, got "
    f"{each!r}; if it returns an observer, call it": lambda each=each: observe(each)
    for each in UNCALLED
}

ERRORS |= {
    "spans must be one of 'span', 'event', got 'spans'; None records no spans": (
        lambda: opentelemetry.observer(spans="spans")
    ),
    "tracer_provider must be a TracerProvider, or None for the global one, got 5": (
        lambda: opentelemetry.observer(tracer_provider=5)
    ),
    "meter_provider must be a MeterProvider, or None for the global one, got 30": (
        lambda: opentelemetry.observer(meter_provider=30)
    ),
    'budgets must be a dict, got []; write {"payments": budget}': (
        lambda: opentelemetry.observer(budgets=[])
    ),
    "a name in budgets must be a non-empty string, got ''": (
        lambda: BudgetCollector({"": None})
    ),
    "budgets['payments'] must be a Budget, got 100": (
        lambda: BudgetCollector({"payments": 100})
    ),
    'limits must be a dict, got []; write {"orders": breaker}': (
        lambda: opentelemetry.observer(limits=[])
    ),
    "a name in limits must be a non-empty string, got ''": (
        lambda: LimitCollector({"": None})
    ),
    "limits['orders'] must be a Limit, or a Registry of limits, got 100": (
        lambda: LimitCollector({"orders": 100})
    ),
    "max_names must be an integer >= 1, got 0": (
        lambda: prometheus.observer(max_names=0)
    ),
    "max_shared must be an integer >= 1, got 0": lambda: LimitCollector(max_shared=0),
    "max_shared must be an integer >= 1, got 0.5": (
        lambda: BudgetCollector(max_shared=0.5)
    ),
    "registry must be a CollectorRegistry, got None": (
        lambda: prometheus.observer(registry=None)
    ),
    f"registry must be without metrics of the prefix 'twice', got {REGISTRY!r}; share "
    "one observer, or pass another prefix": register_twice,
    "prefix must be a word of letters, digits and underscores, such as 'retrykit', got "
    "'shop.retries'": lambda: prometheus.observer(prefix="shop.retries"),
}
