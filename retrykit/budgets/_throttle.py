"""Throttle that stops retries while many attempts fail, as in gRPC."""

from fractions import Fraction
from typing import Any, final

from retrykit._internal.validation import check_integer, check_number, user_facing
from retrykit.budgets._shared_budgets import SerializableBudget

__all__ = ["Throttle"]

# A6 keeps three decimals, so everything is counted in thousandths.
_TOKEN = 1000


@final
class Throttle(SerializableBudget):
    """Tokens that failures take; retries need more than half of them.

    Each retryable failed attempt takes a token, and each success adds *token_ratio* of
    one. Retries are allowed while more than half of the tokens are left, and cost
    nothing themselves: they stop when the ratio of failures to successes exceeds about
    *token_ratio*, and only successes restart them.
    Choose a throttle where other clients of the same server use gRPC.

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
        max_tokens: Number of tokens at the start, which is also the maximum. Count, 1
            to 2**53 - 1.
        token_ratio: Tokens that a success adds, >= 0.001; decimals after the
            third are ignored, as in gRPC.

    Source:
        "gRPC Retry Design", proposal A6, section on throttling, 2017.
    """

    kind = "throttle"

    @user_facing
    def __init__(self, max_tokens: int = 10, token_ratio: float = 0.1) -> None:
        self.max_tokens: int = check_integer("max_tokens", max_tokens, at_least=1)
        self.token_ratio: float = check_number(
            "token_ratio", token_ratio, at_least=1 / _TOKEN
        )
        # The decimal as written, not the binary float nearest to it.
        self._gain = int(Fraction(repr(self.token_ratio)) * _TOKEN)
        self._full = self.max_tokens * _TOKEN
        self._left = self._full
        super().__init__()

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that the budget was made with, keyed by name."""
        return {"max_tokens": self.max_tokens, "token_ratio": self.token_ratio}

    @property
    def balance(self) -> float:
        """Tokens left, from 0 to *max_tokens*, to three decimals."""
        return self._left / _TOKEN

    def failed(self, *, first: bool, retryable: bool) -> None:  # noqa: ARG002
        """Take a token for a retryable failure."""
        if retryable:
            with self._lock:
                self._left = max(self._left - _TOKEN, 0)

    def withdraw(self, error: Exception | None, /) -> float | None:  # noqa: ARG002
        """Return 0.0 if more than half of the tokens are left, else None."""
        return 0.0 if 2 * self._left > self._full else None

    def deposit(self, cost: float | None, /) -> None:  # noqa: ARG002
        """Add the tokens that a successful call earns, retried or not."""
        # A full throttle takes no lock, so calls that never fail never wait.
        if self._left < self._full:
            with self._lock:
                self._left = min(self._left + self._gain, self._full)
