"""Cost of budgets and attempt timeouts: ``python -m benchmarks.budgets``.

Calls of a decorated function that succeed at once, as in the main table, under
different settings of retrykit. Nothing fails, so nothing is logged.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from benchmarks.calls import measure
from benchmarks.contenders import Contender
from benchmarks.makers import Terms
from retrykit import retry
from retrykit.budgets import Budget, FleetBudget, RatioBudget, Throttle, TokenBucket

__all__ = ["main"]

_ROUNDS = 50

_CALLS = 10_000_000
"""Upper bound on the calls of one function here, so that no budget fills up."""


def main() -> None:
    """Print the microseconds of a call, and how many more each setting costs."""
    plain = _with("without", budget=None)
    budgets = [_with(name, budget=budget) for name, budget in _budgets().items()]
    timeouts = [_with("attempt_timeout", attempt_timeout=60), _BY_HAND]
    for title, contenders in {
        "function, success": [plain, *budgets],
        "coroutine, success": [plain, *budgets, *timeouts],
    }.items():
        (row,) = measure(contenders, _ROUNDS, title)
        print(f"{title} ({row.unit})")
        for contender, figure in zip(contenders, row.figures, strict=True):
            extra = figure - row.figures[0]
            print(f"  {contender.name:24}{figure:8,.3f}{extra:+8,.3f}")


def _with(name: str, **settings: Any) -> Contender:
    def make(_terms: Terms) -> Callable[..., Any]:
        decorate: Callable[..., Any] = retry(**settings)
        return decorate

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
    # A full budget is faster, since a success adds nothing to it.
    bucket = TokenBucket(_CALLS, cost=_CALLS)
    bucket.withdraw(None)
    throttle = Throttle(_CALLS // 1000, token_ratio=0.001)
    for _ in range(throttle.max_tokens):
        throttle.failed(first=True, retryable=True)
    fleet = FleetBudget(1e-6, capacity=_CALLS)
    fleet.withdraw(None)
    return {
        "TokenBucket": TokenBucket(),
        "TokenBucket, not full": bucket,
        "Throttle": Throttle(),
        "Throttle, not full": throttle,
        "RatioBudget": RatioBudget(),
        "FleetBudget": FleetBudget(),
        "FleetBudget, not full": fleet,
    }


if __name__ == "__main__":
    main()
