"""Labels of telemetry, and the values of its gauges.

The labels are bounded in number, and contain no data of the user.
"""

import logging
import sys
from collections.abc import Mapping
from typing import Any, Final

from retrykit._core.call_record import CallFacts
from retrykit._core.failures import ErrorRecord, Failure, StopReason, status_of
from retrykit._internal.error_texts import log_fault, type_name
from retrykit._internal.introspection import qualified_name
from retrykit._internal.locks import ForkSafe
from retrykit._internal.validation import (
    check_instance,
    check_integer,
    check_text,
    invalid_setting,
)
from retrykit.budgets._base import Budget
from retrykit.budgets._shared_budgets import balances
from retrykit.durable._job_attempt import idempotency_key
from retrykit.errors import RefusedError, RetryError
from retrykit.events import Event
from retrykit.limits._base import Limit
from retrykit.limits._registry import Registry
from retrykit.limits._shared_limits import states

__all__ = ["BUCKETS", "OTHER_ERROR", "BoundedLabels", "EventLabels", "Limits"]
__all__ += ["check_budgets", "check_limits", "outcome_of", "read_balances"]
__all__ += ["read_states", "reason_of", "was_interrupted", "was_never_made"]

OTHER_ERROR: Final = "_OTHER"
"""The label of OpenTelemetry's semantic conventions for any other error type."""

BUCKETS: Final = (
    *(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
    *(10.0, 30.0, 60.0, 300.0, 3600.0, 86400.0),
)
"""Upper bounds of the buckets of delays and elapsed times, in seconds."""


class BoundedLabels(ForkSafe):
    """A bounded number of distinct labels, and one label for all others.

    >>> bounded = BoundedLabels("names of functions", 1, "other")
    >>> bounded("fetch"), bounded("fetch")
    ('fetch', 'fetch')

    When the first label is replaced, a warning is logged. Threads may share the object.

    Args:
        title: A name for the labels in the warning, in the plural.
        most: Maximum number of distinct labels. Count, >= 1.
        other: The label that replaces all further ones.
    """

    def __init__(self, title: str, most: int, other: str) -> None:
        self._title, self._most, self._other = title, most, other
        self._known: set[str] = set()
        self._full = False
        super().__init__()

    def __call__(self, label: str) -> str:
        """Return the label, or the label for all others if it is one too many."""
        if label in self._known:
            return label
        with self._lock:
            if len(self._known) < self._most:
                self._known.add(label)
            if label in self._known:
                return label
            first, self._full = not self._full, True
        if first:
            message = "telemetry has more than %d %s: all further ones are labeled %r"
            logging.getLogger("retrykit").warning(
                message, self._most, self._title, self._other
            )
        return self._other


class EventLabels:
    """The labels of one observer's events.

    Args:
        max_names: Maximum number of distinct names, and of error types. Count, >= 1.
    """

    def __init__(self, max_names: int) -> None:
        most = check_integer("max_names", max_names, at_least=1)
        self._bounded_name = BoundedLabels("names of functions", most, "other")
        self._bounded_error = BoundedLabels("types of errors", most, OTHER_ERROR)

    def function(self, event: Event) -> str:
        """Return the module and the name of the function, as a bounded label.

        A block is labeled with its policy's name or the function around it; a client's
        request with its policy's name, or its method and host; a durable job with
        ``job``.
        """
        function = event.function
        if function is not None:
            return self._bounded_name(qualified_name(function))
        name = event._record.terms.name
        # Every job has another id.
        return self._bounded_name("job" if _is_job(name) else name)

    def error(self, record: CallFacts) -> str:
        """Return the type of the error that ended the last attempt, as a bounded label.

        A rejected response is labeled with its status, any other rejected result with
        ``rejected_result``. A call without an attempt is labeled with `RefusedError` if
        a limit refused it, otherwise with `RetryError`.
        """
        if was_never_made(record):
            refused = record.stop_reason is StopReason.REFUSED
            kind = RefusedError if refused else RetryError
            return self._bounded_error(type_name(kind))
        last = record.last_failure
        if last is None or last.attempt != record.attempt:
            # It is being handled.
            return self._bounded_error(type_name(type(sys.exception())))
        return self._bounded_error(_failure_type(last))


def _failure_type(failure: Failure) -> str:
    error = failure.error
    if error is None:
        status = status_of(failure.result)
        # A status of another kind may be data.
        is_http = status is not None and _HTTP[0] <= status <= _HTTP[1]
        return str(status) if is_http else "rejected_result"
    return error.type if isinstance(error, ErrorRecord) else type_name(type(error))


_HTTP: Final = (100, 599)


def _is_job(name: str) -> bool:
    """Return whether a call is the running attempt of a durable job."""
    try:
        key = idempotency_key()
    except LookupError:
        return False
    return key.rpartition(":")[0].partition("#")[0] == name


def was_never_made(record: CallFacts) -> bool:
    """Return whether a call made no attempt, for example because a limit refused it."""
    return record.attempt == 0


def was_interrupted(record: CallFacts) -> bool:
    """Return whether a call that gave up ended without a failure of its last attempt.

    The attempt was cancelled, for example, or an error was raised within the policy.
    """
    if was_never_made(record):
        return False
    last = record.last_failure
    return last is None or last.attempt != record.attempt


def outcome_of(record: CallFacts) -> str:
    """Return ``succeeded``, ``cancelled`` or ``gave_up`` for a call that has ended."""
    reason = record.stop_reason
    if reason is StopReason.SUCCEEDED or reason is StopReason.CANCELLED:
        return str(reason)
    return "gave_up"


def reason_of(record: CallFacts) -> str:
    """Return the reason why a call has ended; "" while it is running."""
    return "" if record.stop_reason is None else str(record.stop_reason)


def check_budgets(budgets: Mapping[str, Budget] | None) -> dict[str, Budget]:
    """Return a checked copy of a dict of budgets, keyed by name."""
    suggestion = 'write {"payments": budget}'
    given = {} if budgets is None else budgets
    for name, budget in check_instance("budgets", given, dict, suggestion).items():
        check_text("a name in budgets", name)
        if not isinstance(budget, Budget):
            entry = f"budgets[{name!r}]"
            raise invalid_setting(entry, "a Budget", budget)
    return dict(given)


def read_balances(budgets: Mapping[str, Budget], most_shared: int) -> dict[str, float]:
    """Return the balances of budgets, keyed by name, and of shared ones, by scope.

    A budget whose balance cannot be read is left out, and its error is logged.

    Args:
        budgets: Budgets, keyed by name.
        most_shared: Maximum number of shared budgets; the most recently used ones are
            read.
    """
    found = dict(list(balances().items())[-most_shared:])
    for name, budget in budgets.items():
        try:
            found[name] = float(budget.balance)
        except Exception as fault:  # noqa: BLE001  the other balances are wanted
            log_fault(logging.ERROR, fault, "the balance of budget %s failed", name)
    return found


Limits = Mapping[str, Limit | Registry[Any]]
"""Limits, and registries of limits, keyed by name."""


def check_limits(limits: Limits | None) -> dict[str, Limit | Registry[Any]]:
    """Return a checked copy of a dict of limits and registries, keyed by name."""
    suggestion = 'write {"orders": breaker}'
    given = {} if limits is None else limits
    for name, limit in check_instance("limits", given, dict, suggestion).items():
        check_text("a name in limits", name)
        if not isinstance(limit, Limit | Registry):
            entry = f"limits[{name!r}]"
            raise invalid_setting(entry, "a Limit, or a Registry of limits", limit)
    return dict(given)


def read_states(limits: Limits, most: int) -> dict[str, str]:
    """Return the states of limits, keyed by name, and of shared ones, by scope.

    The name of a registry's limit is that registry's name, a colon and the limit's key.
    A limit whose state cannot be read is left out, and its error is logged.

    Args:
        limits: Limits and registries, keyed by name.
        most: Maximum number of shared limits, and of limits of each registry; the most
            recently used ones are read.
    """
    found = dict(list(states().items())[-most:])
    for name, limit in limits.items():
        try:
            if isinstance(limit, Limit):
                found[name] = limit.state
            else:
                recent = list(limit.states().items())[-most:]
                found |= {f"{name}:{key}": state for key, state in recent}
        except Exception as fault:  # noqa: BLE001  the other states are wanted
            log_fault(logging.ERROR, fault, "the state of limit %s failed", name)
    return found
