"""Budget that allows retries for a fraction of the recent requests."""

import math
from collections import deque
from collections.abc import Callable
from fractions import Fraction
from itertools import count
from typing import Any, final

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.validation import check_number, invalid_setting, user_facing
from retrykit.budgets._shared_budgets import SerializableBudget, check_clock

__all__ = ["RatioBudget"]

# As in tower; the slot that is being filled comes on top.
_SLOTS = 10
_DAY = 86_400


# More retries per second than one process can make.
_MAX_RESERVE = 1e6


@final
class RatioBudget(SerializableBudget):
    """Retries for a fraction of the requests in a sliding window, plus a reserve.

    A call counts as one request, when it succeeds or first fails. The window
    allows *ratio* retries for each request and *reserve* for each second, so
    retries never add more load than that. Choose this budget to bound the load on a
    service; the reserve serves callers that make few calls. Each process has its own
    reserve: ten processes may retry ten times as often.

    >>> budget = RatioBudget(0.5, reserve=0)
    >>> budget.deposit(None)  # a call succeeded at its first attempt
    >>> budget.withdraw(OSError()) is None, budget.balance
    (True, 0.5)
    >>> budget.failed(first=True, retryable=True)
    >>> budget.withdraw(OSError()), budget.balance
    (1.0, 0.0)

    Requests and retries count for one window, and for up to a tenth of it longer. The
    ratio is the decimal as written: 0.75 is three retries for four requests. The
    default reserve is one retry in a window of 10 s. Finagle and tower have
    ``reserve=10``, with which a server may never recover if ten processes call it;
    Google's SRE book has ``RatioBudget(0.1, reserve=0)``.

    Args:
        ratio: Retries per request. Dimensionless, 0 <= ratio <= 1000.
        reserve: Retries that each second of the window allows. Retries, 0 to 1,000,000.
        window: How long requests and retries count. A duration, 1 s to 1 d.
        clock: Returns the time in seconds, >= 0, which never decreases; for simulations
            and replays. By default the clock of calls. It is not a setting: a budget
            that is copied, pickled or read back has the clock of calls.

    Source:
        `RetryBudget` of Finagle; `TpsBudget` of tower; "Handling Overload", in
        "Site Reliability Engineering", 2016, for a ratio of 10 %.
    """

    kind = "ratio_budget"

    @user_facing
    def __init__(
        self,
        ratio: float = 0.2,
        *,
        reserve: float = 0.1,
        window: Duration = "10s",
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.ratio: float = check_number(
            "ratio", ratio, at_most=1000, suggestion="0.2 is 20 %"
        )
        self.reserve: float = check_number("reserve", reserve, at_most=_MAX_RESERVE)
        self.window: float = parse_duration("window", window)
        if not 1 <= self.window <= _DAY:
            raise invalid_setting(
                "window", "a duration from 1s to 1d", window, code="out-of-range"
            )
        # The decimals as written, counted in parts of a retry small enough that
        # every count is an integer.
        gain = Fraction(repr(self.ratio))
        least = Fraction(repr(self.reserve)) * Fraction(repr(self.window))
        self._retry = math.lcm(gain.denominator, least.denominator)
        self._gain = int(gain * self._retry)
        self._least = int(least * self._retry)
        # Each slot holds the balance of its tenth of the window.
        self._width = self.window / _SLOTS
        self._slots = deque([0] * _SLOTS, _SLOTS)
        self._filled = 0
        self._past = self._least
        self._index = 0.0
        self._now = check_clock(clock)
        # Counts requests in one step, so that threads need no lock.
        self._requests = count()
        self._readings = self._counted = 0
        super().__init__()

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of the budget, except the clock, keyed by name."""
        return {"ratio": self.ratio, "reserve": self.reserve, "window": self.window}

    @property
    def balance(self) -> float:
        """Retries allowed now, >= 0; a retry needs at least 1."""
        with self._lock:
            self._turn()
            return max(self._past + self._filled, 0) / self._retry

    def failed(self, *, first: bool, retryable: bool) -> None:  # noqa: ARG002
        """Count a request at its first failure, of any kind."""
        if first:
            self.deposit(None)

    def withdraw(self, error: Exception | None, /) -> float | None:  # noqa: ARG002
        """Take a retry and return 1.0 if the window allows one, else return None."""
        with self._lock:
            self._turn()
            if self._past + self._filled < self._retry:
                return None
            self._filled -= self._retry
        return 1.0

    def deposit(self, cost: float | None, /) -> None:
        """Count a request that succeeded at once.

        Others were counted when they first failed.
        """
        if cost is None:
            # Without the lock, which all successes of all threads would wait for.
            if self._now() // self._width != self._index:
                with self._lock:
                    self._turn()
            next(self._requests)

    def refund(self, cost: float, /) -> None:  # noqa: ARG002  it is always the same
        """Refund a retry that was not made."""
        with self._lock:
            self._turn()
            self._filled += self._retry

    def _turn(self) -> None:
        """Count the requests since the previous turn, and drop past slots."""
        # Read with the lock held, so that time never goes back between threads.
        index = self._now() // self._width
        # This reading also counts as a request, and is subtracted again.
        requests = next(self._requests) - self._readings
        self._readings += 1
        self._filled += (requests - self._counted) * self._gain
        self._counted = requests
        if index == self._index:
            return
        # Time goes back if the clock was replaced: then nothing is dropped.
        for _ in range(int(min(max(index - self._index, 0), _SLOTS + 1))):
            self._slots.append(self._filled)
            self._filled = 0
        # Summed afresh, so that no error lasts longer than a window.
        self._past = self._least + sum(self._slots)
        self._index = index
