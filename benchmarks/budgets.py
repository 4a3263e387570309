"""What a budget or a timeout costs: ``python -m benchmarks.budgets``.

Whole calls that succeed at once of a decorated function that returns its argument,
as in the table of all contenders; here all are retrykit, with one setting or
another.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from benchmarks.calls import measure
from benchmarks.contenders import Contender, Terms
from retrykit import retry
from retrykit.budgets import Budget, RatioBudget, Throttle, TokenBucket

__all__ = ["main"]

_ROUNDS = 50

_CALLS = 10_000_000
"""More than are made here of one function."""


def main() -> None:
    """Print the nanoseconds of a call, and how many more a setting makes them."""
    plain = _with("without", budget=None)
    budgets = [_with(name, budget=budget) for name, budget in _budgets().items()]
    timeouts = [_with("attempt_timeout", attempt_timeout=60), _BY_HAND]
    for title, contenders in {
        "function, success": [plain, *budgets],
        "async function, success": [plain, *budgets, *timeouts],
    }.items():
        (row,) = measure(contenders, _ROUNDS, title)
        print(f"{title} ({row.unit})")
        without, *_ = figures = [figure or 0.0 for figure in row.figures]
        for contender, figure in zip(contenders, figures, strict=True):
            print(f"  {contender.name:24}{figure:8,.0f}{figure - without:+8,.0f}")


def _with(name: str, **settings: Any) -> Contender:
    def make(_terms: Terms) -> Callable[..., Any]:
        return retry(**settings)

    return Contender(name=name, module="retrykit", make=make, amake=make)


def _timed_by_hand(_terms: Terms) -> Callable[..., Any]:
    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        @retry
        async def timed(number: int) -> Any:
            async with asyncio.timeout(60):
                return await fn(number)

        return timed

    return decorate


_BY_HAND = Contender(
    name="asyncio.timeout by hand",
    module="retrykit",
    make=_timed_by_hand,
    amake=_timed_by_hand,
)


def _budgets() -> dict[str, Budget]:
    # To a full one nothing is added, which is quicker.
    bucket = TokenBucket(_CALLS, cost=_CALLS)
    bucket.withdraw(None)
    throttle = Throttle(_CALLS // 1000, token_ratio=0.001)
    for _ in range(throttle.max_tokens):
        throttle.failed(first=True, retryable=True)
    return {
        "TokenBucket": TokenBucket(),
        "TokenBucket, not full": bucket,
        "Throttle": Throttle(),
        "Throttle, not full": throttle,
        "RatioBudget": RatioBudget(),
    }


if __name__ == "__main__":
    main()
