"""Cost of closed circuit breakers: ``python -m benchmarks.breakers``.

What a closed breaker adds to a call that succeeds, to the library's own retried call,
or to a bare function where a library has no retries. All run in one process, in turns.
"""

# ruff: noqa: PLC0415  a library is imported only if it is measured

from collections.abc import Callable
from time import thread_time
from typing import Any, NamedTuple, final

from benchmarks.contenders import importable
from benchmarks.table import markdown, versions
from retrykit import retry
from retrykit.limits import CircuitBreaker

__all__ = ["main"]

_ROUNDS = 60
_CALLS = 2_000
_NOPANIC = "nopanic"

Function = Callable[[], Any]


@final
class Pair(NamedTuple):
    """A function of a library, without a breaker and with one.

    Attributes:
        name: The name of the library, and of its way.
        module: The module to import.
        make: Decorates a function without a breaker and with one.
    """

    name: str
    module: str
    make: Callable[[Function], tuple[Function, Function]]


def main() -> None:
    """Print nanoseconds per call: without, with, the difference, and its ratio."""
    pairs = [pair for pair in PAIRS if importable(pair.module)]
    made = [pair.make(_return_one) for pair in pairs]
    best = [[float("inf")] * 2 for _ in pairs]
    for _ in range(_ROUNDS):
        for functions, times in zip(made, best, strict=True):
            for index, fn in enumerate(functions):
                times[index] = min(times[index], _time(fn))
    added = {
        pair.name: after - before
        for pair, (before, after) in zip(pairs, best, strict=True)
    }
    rows = [
        [
            pair.name,
            f"{before:.0f}",
            f"{after:.0f}",
            f"{added[pair.name]:.0f}",
            f"{added[pair.name] / added[_NOPANIC]:.2f}" if _NOPANIC in added else "",
        ]
        for pair, (before, after) in zip(pairs, best, strict=True)
    ]
    heads = ["ns per call", "without", "with", "added", "of nopanic's"]
    print(markdown(heads, rows))
    print(versions([*dict.fromkeys(pair.module for pair in pairs)]))


def _return_one() -> int:
    return 1


def _time(fn: Function) -> float:
    """Return the nanoseconds of a call, in one lap."""
    begun = thread_time()
    for _ in range(_CALLS):
        fn()
    return (thread_time() - begun) / _CALLS * 1e9


def _in_policy(**settings: Any) -> Callable[[Function], tuple[Function, Function]]:
    def make(fn: Function) -> tuple[Function, Function]:
        return retry(fn), retry(admission=[CircuitBreaker(**settings)])(fn)

    return make


def _alone(**settings: Any) -> Callable[[Function], tuple[Function, Function]]:
    return lambda fn: (fn, CircuitBreaker(**settings)(fn))


def _nopanic(fn: Function) -> tuple[Function, Function]:
    import nopanic as library

    return library.retry(5)(fn), library.retry(5)(library.circuit_breaker()(fn))


def _redress(fn: Function) -> tuple[Function, Function]:
    import redress as library

    retries = library.Retry(
        classifier=library.default_classifier,
        strategy=library.decorrelated_jitter(1.0, 60.0),
    )
    bare = library.Policy(retry=retries)
    guarded = library.Policy(retry=retries, circuit_breaker=library.CircuitBreaker())
    return lambda: bare.call(fn), lambda: guarded.call(fn)


def _resilix(fn: Function) -> tuple[Function, Function]:
    import resilix as library

    return fn, library.CircuitBreaker()(fn)


def _pybreaker(fn: Function) -> tuple[Function, Function]:
    import pybreaker as library

    return fn, library.CircuitBreaker()(fn)


def _circuitbreaker(fn: Function) -> tuple[Function, Function]:
    import circuitbreaker as library  # type: ignore[import-untyped]

    return fn, library.circuit(name="benchmark")(fn)


def _purgatory(fn: Function) -> tuple[Function, Function]:
    import purgatory as library

    return fn, library.SyncCircuitBreakerFactory()("benchmark")(fn)


PAIRS = (
    Pair("retrykit, in a policy", "retrykit", _in_policy()),
    Pair("retrykit, in a policy, of 100 calls", "retrykit", _in_policy(window=100)),
    Pair("retrykit, alone", "retrykit", _alone()),
    Pair("retrykit, alone, of 100 calls", "retrykit", _alone(window=100)),
    Pair(_NOPANIC, "nopanic", _nopanic),
    Pair("redress", "redress", _redress),
    Pair("resilix, alone", "resilix", _resilix),
    Pair("pybreaker, alone", "pybreaker", _pybreaker),
    Pair("circuitbreaker, alone", "circuitbreaker", _circuitbreaker),
    Pair("purgatory, alone", "purgatory", _purgatory),
)
"""Every library that has a breaker for functions."""


if __name__ == "__main__":
    main()
