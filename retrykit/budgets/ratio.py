"""A budget that allows a part of the recent calls to be retried."""

import math
from collections import deque
from typing import Any, final

from retrykit._internal.clocks import sync_clock
from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.fast_path import blockers
from retrykit._internal.validation import check_number, invalid_setting
from retrykit.budgets.exact import fraction
from retrykit.budgets.scoped import ScopedBudget

__all__ = ["RatioBudget"]

# As many as tower has; beside them is the one that is being filled.
_SLOTS = 10
_DAY = 86_400

# More retries in a second than one process can make.
_MOST = 1e6


@final
class RatioBudget(ScopedBudget):
    """Retries for a part of the requests of the last seconds, and a reserve.

    A call is a request once, when it succeeds or first fails. In the window
    there may be *ratio* retries for each request, and *reserve* for each second:
    load grows by no more than that, however much fails. Choose it to bound the
    load on a service; the reserve is for callers that make few calls.

    >>> budget = RatioBudget(0.5, reserve=0)
    >>> budget.deposit(None)  # a call that was never retried
    >>> budget.withdraw(OSError()) is None, budget.balance
    (True, 0.5)
    >>> budget.failed(first=True, retryable=True)
    >>> budget.withdraw(OSError()), budget.balance
    (1.0, 0.0)

    What happened counts for a window, and for up to a tenth of it longer. The
    ratio is the decimal that is written, so 0.75 is three retries for four
    requests. The defaults are those of Finagle and tower; the SRE book of Google
    has ``RatioBudget(0.1, reserve=0)``.

    Args:
        ratio: Retries for each request. Dimensionless, 0 <= ratio <= 1000.
        reserve: Retries for each second of the window. Dimensionless,
            0 <= reserve <= 1,000,000.
        window: How long requests and retries count. A duration, from 1 s to
            1 d.

    Raises:
        ConfigError: A parameter is none of these.

    Source:
        `RetryBudget` of Finagle; `TpsBudget` of tower; "Handling Overload", in
        "Site Reliability Engineering", 2016, for 10 %.
    """

    kind = "ratio_budget"

    def __init__(
        self,
        ratio: float = 0.2,
        *,
        reserve: float = 10,
        window: Duration = "10s",
    ) -> None:
        self.ratio = check_number(
            "ratio", ratio, at_most=1000, suggestion="0.2 is 20 %"
        )
        self.reserve = check_number("reserve", reserve, at_most=_MOST)
        self.window = parse_duration("window", window)
        if not 1 <= self.window <= _DAY:
            raise invalid_setting("window", "a duration from 1s to 1d", window)
        self._count_in_parts()
        # Each slot holds what was gained and spent in its tenth of the window.
        self._width = self.window / _SLOTS
        self._slots = deque([0] * _SLOTS, _SLOTS)
        self._filled = 0
        self._past = self._least
        self._place = 0.0
        super().__init__()

    def _count_in_parts(self) -> None:
        """Find the parts of a retry in which everything is an integer."""
        gain, of_gain = fraction(self.ratio)
        reserve, of_reserve = fraction(self.reserve)
        window, of_window = fraction(self.window)
        self._retry = math.lcm(of_gain, of_reserve * of_window)
        self._gain = gain * self._retry // of_gain
        self._least = reserve * window * self._retry // (of_reserve * of_window)

    @property
    def settings(self) -> dict[str, Any]:
        """What it was made with, by the names of the parameters."""
        return {"ratio": self.ratio, "reserve": self.reserve, "window": self.window}

    @property
    def balance(self) -> float:
        """Retries that may be made now, >= 0; a part of one is not enough."""
        with self._lock:
            self._turn()
            return max(self._past + self._filled, 0) / self._retry

    def failed(self, *, first: bool, retryable: bool) -> None:  # noqa: ARG002
        """Count a request at its first failure, whatever that was."""
        if first:
            self.deposit(None)

    def withdraw(self, error: Exception | None, /) -> float | None:  # noqa: ARG002
        """Return 1.0 if one more retry may be made in this window, else None."""
        with self._lock:
            self._turn()
            if self._past + self._filled < self._retry:
                return None
            self._filled -= self._retry
        return 1.0

    def deposit(self, cost: float | None, /) -> None:
        """Count a request that succeeded at once; others are counted already."""
        if cost is None:
            with self._lock:
                self._turn()
                self._filled += self._gain

    def _turn(self) -> None:
        """Forget what is older than the window."""
        # Read with the lock held, so that no thread brings an older time.
        now = sync_clock.now() if blockers else sync_clock.real.now()
        place = now // self._width
        if place == self._place:
            return
        # Where time goes back, another clock is read: then nothing is forgotten.
        for _ in range(int(min(max(place - self._place, 0), _SLOTS + 1))):
            # The oldest slot falls out at the other end.
            self._slots.append(self._filled)
            self._filled = 0
        # Added up anew, so that nothing goes wrong for longer than a window.
        self._past = self._least + sum(self._slots)
        self._place = place
