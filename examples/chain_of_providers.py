"""Providers that follow each other; one that is known to be down is left out.

The first provider is down. Its circuit breaker opens after two failures, so that the
third question is not sent there any more. When the second one is down as well, the
default is returned.

Prints::

    sunny (by the second provider)
    sunny (by the second provider)
    sunny (by the second provider)
    The first provider was asked 2 times.
    yesterday it was sunny, after CircuitOpenError, TimeoutError
"""

from retrykit import RetryState, chain, retry
from retrykit.limits import CircuitBreaker

ASKED: list[str] = []
DOWN = {"first"}
BREAKER = CircuitBreaker(consecutive_failures=2, open_for="1m")


@retry(max_attempts=2, schedule=["10ms"], admission=[BREAKER])
def first(city: str) -> str:
    """Ask the first provider."""
    ASKED.append(city)
    raise ConnectionError(city)


def second(city: str) -> str:
    """Ask the second provider."""
    if "second" in DOWN:
        raise TimeoutError(city)
    return "sunny (by the second provider)"


def cached(state: RetryState) -> str:
    """Return an old answer, and tell why."""
    errors = ", ".join(type(each).__name__ for each in state.errors)
    return f"yesterday it was sunny, after {errors}"


forecast = chain(first, second, default=cached, max_elapsed="5s")


def main() -> None:
    """Ask for a forecast four times."""
    for _ in range(3):
        print(forecast("Oslo"))
    print(f"The first provider was asked {len(ASKED)} times.")
    DOWN.add("second")
    print(forecast("Oslo"))


if __name__ == "__main__":
    main()
