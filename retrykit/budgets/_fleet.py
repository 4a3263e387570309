"""Budget for processes that do not know how many others call the same server."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, cast, final

from retrykit._conditions import (
    Condition,
    check_condition,
    find_members,
    format_value,
    matches_condition,
)
from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.error_texts import type_from_name, type_to_name
from retrykit._internal.introspection import is_coroutine_function
from retrykit._internal.validation import (
    check_integer,
    check_number,
    invalid_setting,
    user_facing,
)
from retrykit.budgets._shared_budgets import SerializableBudget, check_clock

__all__ = ["FleetBudget", "read_timeouts"]


@final
class FleetBudget(SerializableBudget):
    """Allows retries that successes earn; after a timeout, only while calls succeed.

    A small bank holds retries: each retry takes one, and each call that succeeds adds
    *ratio* of one. After a timeout, a call of this process must also have succeeded in
    the last *recent* seconds: a server that hangs answers nobody, and a retry only
    makes its queue longer. So a server recovers from a hang as fast as without retries,
    however many processes call it. Choose this budget if you do not know how many
    processes there are.

    >>> budget = FleetBudget()
    >>> budget.withdraw(ConnectionRefusedError()), budget.balance
    (1.0, 9.0)
    >>> budget.withdraw(TimeoutError()) is None  # nothing has succeeded yet
    True
    >>> budget.deposit(None)  # a call succeeded
    >>> budget.withdraw(TimeoutError())
    1.0

    The price: a process that makes fewer than about five calls in *recent* often does
    not retry a timeout. To such a process, its own timeout and a hang of the server
    look the same.

    Args:
        ratio: Retries that each success earns. Dimensionless, 0 <= ratio <= 1000.
        capacity: Size of the bank, which starts full. Retries, 0 to 2**53 - 1.
        recent: How long a success shows that the server answers. A duration, which
            should not exceed the timeout of an attempt; 0 never retries a timeout.
        timeouts: What a timeout is: an Exception type, a tuple of them, or a predicate
            of the error. By default a `TimeoutError`, or an error of a type with
            ``Timeout`` in its name or in a base class's name, as httpx, requests,
            urllib3 and botocore have. An ExceptionGroup is a timeout if it contains
            one.
        clock: Returns the time in seconds, as in `RatioBudget`.

    Source:
        The bank is the token bucket of M. Brooker, "Fixing retries with token buckets
        and circuit breakers", 2022.
    """

    kind = "fleet_budget"

    @user_facing
    def __init__(
        self,
        ratio: float = 0.2,
        *,
        capacity: int = 10,
        recent: Duration = "1s",
        timeouts: Condition = TimeoutError,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.ratio: float = check_number(
            "ratio", ratio, at_most=1000, suggestion="0.2 is one for five successes"
        )
        self.capacity: int = check_integer("capacity", capacity, at_least=0)
        self.recent: float = parse_duration("recent", recent)
        if is_coroutine_function(check_condition("timeouts", timeouts)):
            raise invalid_setting(
                "timeouts", "a sync predicate", timeouts, code="async-mismatch"
            )
        self.timeouts: Condition = timeouts
        # The decimal as written, counted in parts of a retry, so that every count is
        # an integer.
        gain = Fraction(repr(self.ratio))
        self._retry, self._gain = gain.denominator, gain.numerator
        self._full = self._left = self.capacity * self._retry
        self._last_success = -math.inf
        self._now = check_clock(clock)
        super().__init__()

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of the budget, except the clock, keyed by name."""
        names = ("ratio", "capacity", "recent", "timeouts")
        return {name: getattr(self, name) for name in names}

    @property
    def balance(self) -> float:
        """Retries left, from 0 to *capacity*; a retry needs at least 1."""
        return self._left / self._retry

    def withdraw(self, error: Exception | None, /) -> float | None:
        """Take a retry from the bank and return 1.0, or return None.

        The result is None if no retry is left, or if the error is a timeout and no call
        of this process has succeeded recently.
        """
        # A predicate is the user's code: it may fail, and runs outside the lock.
        if error is not None and self.is_timeout(error):
            # Read before the clock, so that no success of another thread is later.
            last = self._last_success
            # A clock that goes back makes no success recent.
            if not 0 <= self._now() - last < self.recent:
                return None
        with self._lock:
            if self._left < self._retry:
                return None
            self._left -= self._retry
        return 1.0

    def deposit(self, cost: float | None, /) -> None:  # noqa: ARG002
        """Add what a successful call earns, retried or not, and note its time."""
        self._last_success = self._now()
        # A full bank takes no lock, so calls that never fail never wait.
        if self._left < self._full:
            self._add(self._gain)

    def refund(self, cost: float, /) -> None:  # noqa: ARG002  it is always the same
        """Refund a retry that was not made."""
        self._add(self._retry)

    @user_facing
    def to_dict(self) -> dict[str, Any]:
        """Return the budget as plain data, with its timeouts as type names.

        Raises:
            ConfigError: *timeouts* has a predicate, or a type that is not importable.
        """
        kinds, names = self.timeouts, partial(type_to_name, "timeouts")
        written = [*map(names, kinds)] if isinstance(kinds, tuple) else names(kinds)
        return super().to_dict() | {"timeouts": written}

    def format_setting(self, value: object) -> str:
        """Return the value of a setting as an expression."""
        return format_value(value)

    def is_timeout(self, error: Exception) -> bool:
        """Return whether an error is one of the *timeouts*."""
        if self._is_late(error):
            return True
        return isinstance(error, ExceptionGroup) and any(
            self._is_late(each) for each in find_members(error)
        )

    def _is_late(self, error: Exception) -> bool:
        if matches_condition("timeouts", self.timeouts, error):
            return True
        return self.timeouts is TimeoutError and any(
            "Timeout" in each.__name__ for each in type(error).__mro__
        )

    def _add(self, gain: int) -> None:
        with self._lock:
            self._left = min(self._left + gain, self._full)


def read_timeouts(data: object) -> Condition:
    """Return the types of timeouts that `FleetBudget.to_dict` wrote."""
    kinds: Any
    if isinstance(data, list | tuple):
        kinds = tuple(type_from_name("timeouts", each) for each in data)
    else:
        kinds = type_from_name("timeouts", data)
    return cast("Condition", kinds)
