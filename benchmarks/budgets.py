"""What a budget costs a call that succeeds at its first attempt."""

from timeit import repeat

from retrykit.budgets import Budget, RatioBudget, Throttle, TokenBucket

__all__ = ["main"]

_ROUNDS = 200
_CALLS = 10_000


def main() -> None:
    """Print the nanoseconds of ``deposit(None)`` for each budget."""
    for title, budget in _cases().items():
        print(f"{title:<34} {_nanoseconds(budget):6.0f} ns")


def _cases() -> dict[str, Budget]:
    # To a full one nothing is added; these are not full before the last call.
    bucket = TokenBucket(_ROUNDS * _CALLS, cost=_ROUNDS * _CALLS)
    bucket.withdraw(None)
    throttle = Throttle(_ROUNDS * _CALLS, token_ratio=0.001)
    for _ in range(_ROUNDS * _CALLS // 1000):
        throttle.failed(first=True, retryable=True)
    return {
        "TokenBucket": TokenBucket(),
        "TokenBucket that is not full": bucket,
        "Throttle": Throttle(),
        "Throttle that is not full": throttle,
        "RatioBudget": RatioBudget(),
    }


def _nanoseconds(budget: Budget) -> float:
    statement, names = "deposit(None)", {"deposit": budget.deposit}
    laps = repeat(statement, globals=names, number=_CALLS, repeat=_ROUNDS)
    return min(laps) / _CALLS * 1e9


if __name__ == "__main__":
    main()
