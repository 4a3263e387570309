"""Metrics of retried calls, budgets and limits."""

from collections.abc import Iterable, Mapping
from typing import final

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from retrykit._core.call_record import CallFacts
from retrykit._core.retry_state import StopReason
from retrykit.budgets._base import Budget
from retrykit.events import AttemptFailed, Event, GaveUp, HedgeStarted, Succeeded
from retrykit.integrations._telemetry import (
    BUCKETS,
    EventLabels,
    Limits,
    outcome_of,
    read_balances,
    read_states,
    reason_of,
    was_interrupted,
)

__all__ = ["Metrics", "observe_budgets", "observe_limits"]


@final
class Metrics:
    """An observer that records the metrics of calls."""

    def __init__(self, meter: Meter, labels: EventLabels) -> None:
        self._labels = labels
        self._attempts = meter.create_counter(
            "retrykit.attempts", "{attempt}", "Attempts that have ended."
        )
        self._retries = meter.create_counter(
            "retrykit.retries", "{retry}", "Retries that were scheduled."
        )
        self._hedges = meter.create_counter(
            "retrykit.hedges", "{hedge}", "Attempts that were sent again."
        )
        self._calls = meter.create_counter(
            "retrykit.calls", "{call}", "Calls that have ended."
        )
        self._give_ups = meter.create_counter(
            "retrykit.give_ups", "{call}", "Calls that gave up."
        )
        self._delay = meter.create_histogram(
            "retrykit.retry.delay",
            "s",
            "Delays before retries.",
            explicit_bucket_boundaries_advisory=BUCKETS,
        )
        self._elapsed = meter.create_histogram(
            "retrykit.call.elapsed",
            "s",
            "Durations of calls, with their delays.",
            explicit_bucket_boundaries_advisory=BUCKETS,
        )

    def __call__(self, event: Event, /) -> None:
        """Add an event to the metrics."""
        match event:
            case AttemptFailed(failure=failure):
                name, error = self._name(event), self._labels.error(event._record)
                failed = name | {"error.type": error}
                self._attempts.add(1, failed | {"retrykit.outcome": "failed"})
                if failure.delay is not None:
                    self._retries.add(1, failed)
                    self._delay.record(failure.delay, name)
            case HedgeStarted():
                self._hedges.add(1, self._name(event))
            case Succeeded():
                name = self._name(event)
                self._attempts.add(1, name | {"retrykit.outcome": "succeeded"})
                self._end(name, event._record)
            case GaveUp():
                name, record = self._name(event), event._record
                self._give_up(name, record)
                self._end(name, record)
            case _:
                pass

    def _name(self, event: Event) -> dict[str, str]:
        return {"retrykit.function": self._labels.function(event)}

    def _give_up(self, name: dict[str, str], record: CallFacts) -> None:
        failed = name | {"error.type": self._labels.error(record)}
        if was_interrupted(record):
            self._attempts.add(1, failed | {"retrykit.outcome": "interrupted"})
        if record.stop_reason is not StopReason.CANCELLED:
            self._give_ups.add(1, failed | {"retrykit.reason": reason_of(record)})

    def _end(self, name: dict[str, str], record: CallFacts) -> None:
        ended = name | {"retrykit.outcome": outcome_of(record)}
        self._calls.add(1, ended | {"retrykit.retried": record.attempt > 1})
        self._elapsed.record(record.elapsed, ended)


def observe_budgets(meter: Meter, named: Mapping[str, Budget], most: int) -> None:
    """Add a gauge of the balances of *named* and of at most *most* shared budgets."""

    def observe_balances(_: CallbackOptions) -> Iterable[Observation]:
        return [
            Observation(balance, {"retrykit.budget": name})
            for name, balance in read_balances(named, most).items()
        ]

    meter.create_observable_gauge(
        "retrykit.budget.balance",
        [observe_balances],
        description="Balances of budgets, each in its own unit.",
    )


def observe_limits(meter: Meter, named: Limits, most: int) -> None:
    """Add a gauge of the states of *named* and of at most *most* shared limits.

    At most *most* limits of each registry are shown.
    """

    def observe_states(_: CallbackOptions) -> Iterable[Observation]:
        return [
            Observation(1, {"retrykit.limit": name, "retrykit.state": state})
            for name, state in read_states(named, most).items()
        ]

    meter.create_observable_gauge(
        "retrykit.limit.state",
        [observe_states],
        description="States of limits: 1 for the present one.",
    )
