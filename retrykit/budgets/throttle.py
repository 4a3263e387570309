"""A budget that stops retries while failures are many, as in gRPC."""

from typing import Any, final

from retrykit._internal.validation import check_integer, check_number
from retrykit.budgets.exact import fraction
from retrykit.budgets.scoped import ScopedBudget

__all__ = ["Throttle"]

# A6 keeps three decimals, so all is counted in thousandths.
_TOKEN = 1000


@final
class Throttle(ScopedBudget):
    """Tokens that failures take, and half of which must be there for a retry.

    Each failed attempt that may be retried takes a token, each success gives
    *token_ratio* of one; retries are made while more than half of the tokens
    are there, and cost nothing themselves. So retries stop when failures are
    to successes about as *token_ratio* is to 1, and start again by successes
    only. Choose it where other clients of the same server run gRPC.

    >>> throttle = Throttle()
    >>> for attempt in range(5):
    ...     throttle.failed(first=True, retryable=True)
    ...     print(throttle.balance, throttle.withdraw(OSError()))
    9.0 0.0
    8.0 0.0
    7.0 0.0
    6.0 0.0
    5.0 None

    Args:
        max_tokens: Most tokens there are; it starts with all. Count, 1 to 2**53 - 1.
        token_ratio: What a success gives. Tokens, >= 0.001; further decimals
            are ignored, as in gRPC.

    Raises:
        ConfigError: A parameter is none of these.

    Source:
        "gRPC Retry Design", proposal A6, section on throttling, 2017.
    """

    kind = "throttle"

    def __init__(self, max_tokens: int = 10, token_ratio: float = 0.1) -> None:
        self.max_tokens = check_integer("max_tokens", max_tokens, at_least=1)
        self.token_ratio = check_number("token_ratio", token_ratio, at_least=1 / _TOKEN)
        digits, denominator = fraction(self.token_ratio)
        self._gain = digits * _TOKEN // denominator
        self._full = self.max_tokens * _TOKEN
        self._left = self._full
        super().__init__()

    @property
    def settings(self) -> dict[str, Any]:
        """What it was made with, by the names of the parameters."""
        return {"max_tokens": self.max_tokens, "token_ratio": self.token_ratio}

    @property
    def balance(self) -> float:
        """Tokens that are left, from 0 to *max_tokens*, to three decimals."""
        return self._left / _TOKEN

    def failed(self, *, first: bool, retryable: bool) -> None:  # noqa: ARG002
        """Take a token for a failure, if its outcome is one to retry."""
        if retryable:
            with self._lock:
                self._left = max(self._left - _TOKEN, 0)

    def withdraw(self, error: Exception | None, /) -> float | None:  # noqa: ARG002
        """Return 0.0 if more than half of the tokens are there, else None."""
        return 0.0 if 2 * self._left > self._full else None

    def deposit(self, cost: float | None, /) -> None:  # noqa: ARG002
        """Add what a success gives, retried or not."""
        # To all tokens nothing is added, so calls that never fail never wait.
        if self._left < self._full:
            with self._lock:
                self._left = min(self._left + self._gain, self._full)
