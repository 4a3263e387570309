"""Types of limits; checked, never run."""

from typing import assert_type

from retrykit.limits import (
    AdaptiveRateLimit,
    AdaptiveRateMetrics,
    CircuitBreaker,
    CircuitMetrics,
    Concurrency,
    ConcurrencyMetrics,
    Lease,
    Refusal,
    Registry,
    shared,
)

RATE = AdaptiveRateLimit(on=(OSError, EOFError), max_wait="30s")
BREAKER = CircuitBreaker(window=50, open_for=[1, "5s"], on=(OSError, EOFError))


class Fixed:
    """An algorithm."""

    limit = 5

    def sample(self, *, rtt: float, in_flight: int, dropped: bool) -> int:
        """Learn nothing."""
        return self.limit + in_flight if dropped else int(rtt)


BULKHEAD = Concurrency(5, queue=5, max_wait="2s", order="lifo")
ADAPTIVE = Concurrency(Fixed())


@BULKHEAD
async def query(table: str) -> list[str]:
    """Return rows."""
    return [table]


@BREAKER
def fetch(url: str, *, timeout: float = 5) -> bytes:
    """Return a response."""
    return f"{url} {timeout}".encode()


@BREAKER
async def afetch(url: str) -> bytes:
    """Return a response."""
    return url.encode()


@RATE
def send(url: str) -> bytes:
    """Return a response."""
    return url.encode()


class Client:
    """Has a guarded method."""

    @BREAKER
    def get(self, url: str) -> bytes:
        """Return a response."""
        return fetch(url)


def call() -> Lease | Refusal:
    """Use a breaker."""
    assert_type(fetch("/", timeout=1), bytes)
    assert_type(Client().get("/"), bytes)
    fetch(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with BREAKER.guard() as lease:
        assert_type(lease, Lease)
    assert_type(shared("process", make=CircuitBreaker), CircuitBreaker)
    assert_type(Registry(CircuitBreaker)["a"], CircuitBreaker)
    assert_type(BREAKER.metrics, CircuitMetrics)
    assert_type(send("/"), bytes)
    assert_type(RATE.metrics, AdaptiveRateMetrics)
    assert_type(RATE.acquire(), Lease | Refusal)
    assert_type(shared("process", make=AdaptiveRateLimit), AdaptiveRateLimit)
    assert_type(BULKHEAD.metrics, ConcurrencyMetrics)
    assert_type(Registry(lambda: Concurrency(5))["a"], Concurrency)
    Concurrency(5, order="newest")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Concurrency("5")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return BREAKER.acquire()


async def acall() -> bytes:
    """Use a breaker in a coroutine."""
    async with BREAKER.guard() as lease:
        lease.failed(OSError())
    assert_type(await query("users"), list[str])
    return await afetch("/")
