"""Budgets of fleets after an outage: ``python -m benchmarks.fleet_budgets``.

Prints the tables of docs/avoiding_retry_storms.md: how long a server of 100 requests
per second takes to recover from an outage of 10 s, by the number of processes that
share the load, each with a budget of its own. With 8 seeds it takes about ten minutes
on one processor; ``--seeds 2`` takes three, and differs by a second or two.
"""

import argparse
import math
from collections.abc import Iterable
from typing import Final, Literal, cast

from retrykit import Policy
from retrykit.budgets import Budget, FleetBudget, RatioBudget, Throttle, TokenBucket
from retrykit.schedules import exponential
from retrykit.simulate import Clients, Outage, simulate

__all__ = ["BUDGETS", "FLEETS", "LOADS", "NO_RETRY", "QUICK"]
__all__ += ["least_recovery", "lone_success", "main", "recovery", "success"]

FLEETS: Final = (1, 10, 100, 1_000, 10_000)
LOADS: Final = ("60%", "73%")
NO_RETRY: Final = Policy(max_attempts=1)
QUICK: Final = Policy(schedule=exponential(0.1).cap(20).full_jitter(), max_attempts=4)

OutageKind = Literal["hang", "refuse", "error"]

_CAPACITY, _TIMEOUT, _OUTAGE = 100.0, 1.0, 10.0
_HORIZON = "2m"
_SEEDS = 8


def _with(budget: Budget, attempts: int = 4) -> Policy:
    return QUICK.replace(budget=budget, max_attempts=attempts)


BUDGETS: Final[dict[str, Policy]] = {
    "no retries": NO_RETRY,
    "3 retries, no budget": QUICK,
    "Finagle, tower, Linkerd: `RatioBudget(0.2, reserve=10)`": _with(
        RatioBudget(0.2, reserve=10)
    ),
    "`RatioBudget()`, reserve 0.1": _with(RatioBudget()),
    "`RatioBudget(0.2, reserve=0)`": _with(RatioBudget(0.2, reserve=0)),
    "SRE book: `RatioBudget(0.1, reserve=0, window=120)`": _with(
        RatioBudget(0.1, reserve=0, window=120), 3
    ),
    "gRPC: `Throttle()`": _with(Throttle()),
    "AWS until 2026: `TokenBucket(costs=())`": _with(TokenBucket(costs=()), 3),
    "AWS since 2026: `TokenBucket(cost=14, costs=())`": _with(
        TokenBucket(cost=14, costs=()), 3
    ),
    "Brooker: `TokenBucket(100, cost=10, costs=(), refunds=False)`": _with(
        TokenBucket(100, cost=10, costs=(), refunds=False)
    ),
    "one retry: `TokenBucket(1, cost=1, costs=())`": _with(
        TokenBucket(1, cost=1, costs=()), 2
    ),
    "`FleetBudget()`": _with(FleetBudget()),
}
"""The policies of the rows: three retries, or two where the original has them."""


def recovery(
    policy: Policy,
    processes: int,
    load: str,
    kind: OutageKind = "hang",
    seeds: Iterable[int] = range(1, _SEEDS + 1),
) -> float | None:
    """Return the mean time to recovery, in seconds; None if one seed has none."""
    times: list[float] = []
    for seed in seeds:
        found = simulate(
            Clients(policy, processes=processes, timeout=_TIMEOUT),
            load=load,
            outage=Outage(_OUTAGE, kind),
            horizon=_HORIZON if kind == "hang" else "40s",
            seed=seed,
        ).recovery
        if found is None:
            return None
        times.append(found)
    return math.fsum(times) / len(times)


def success(policy: Policy, processes: int, kind: OutageKind) -> float:
    """Return the share of calls that succeed if 10 % of the requests fail."""
    failing = Outage("330s", kind, begin=0, share=0.1)
    clients = Clients(policy, processes=processes, timeout=_TIMEOUT)
    result = simulate(clients, load="60%", outage=failing, horizon="10s")
    return result.succeeded / result.calls


def lone_success(policy: Policy, kind: OutageKind) -> float:
    """Return the same of a caller that makes one call a minute."""
    calls = [60.0 * minute for minute in range(1, 3001)]
    failing = Outage("180000s", kind, begin=0, share=0.1)
    clients = Clients(policy, processes=1, timeout=_TIMEOUT)
    result = simulate(clients, load=calls, outage=failing, horizon="10s")
    return result.succeeded / result.calls


def least_recovery(processes: int, load: str, retried: float = 1.0) -> float:
    """Return how long a hang lasts on if each process retries its first timeout.

    A process that makes few calls cannot know whether one timeout is its own or that of
    all. The server has to work off the calls of the outage, and one retry of each
    process that has made a call since it began.

    Args:
        processes: Number of processes. Count, >= 1.
        load: A share of the capacity, such as ``"60%"``.
        retried: The share of first timeouts that are retried.
    """
    rate = float(load.rstrip("%")) / 100 * _CAPACITY
    # Until then, fewer processes have made a call.
    recovered = 0.0
    while True:
        called = 1 - math.exp(-rate * (_OUTAGE + recovered) / processes)
        work = rate * _OUTAGE + retried * processes * called - _CAPACITY * _TIMEOUT
        following = work / (_CAPACITY - rate)
        if following - recovered < 1e-3:  # noqa: PLR2004  it rises towards its limit
            return following
        recovered = following


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fleet_budgets", description=__doc__
    )
    parser.add_argument("--seeds", type=int, default=_SEEDS, help="runs of each cell")
    seeds = range(1, cast("int", parser.parse_args().seeds) + 1)
    _print_row("seconds after a hang of 10 s", _columns("{} at {}"))
    _print_row("---", ["---"] * 10)
    for name, policy in BUDGETS.items():
        cells = [recovery(policy, n, load, seeds=seeds) for load, n in _cells()]
        _print_row(name, map(_seconds, cells))
    least = [least_recovery(n, load) for load, n in _cells()]
    _print_row("one retry, by the formula", map(_seconds, least))
    print()
    titles = ["at once", "503, slow", "errors", "timeouts"]
    titles += ["lone, errors", "lone, timeouts"]
    _print_row("", titles)
    _print_row("---", ["---"] * len(titles))
    for name, policy in BUDGETS.items():
        # They vary little.
        _print_row(name, _other_cells(policy, seeds[:3]))


def _cells() -> list[tuple[str, int]]:
    return [(load, processes) for load in LOADS for processes in FLEETS]


def _columns(text: str) -> list[str]:
    return [text.format(f"{n:,}", load) for load, n in _cells()]


def _other_cells(policy: Policy, seeds: Iterable[int]) -> list[str]:
    """Return what is alike for all fleets, and what a caller gets in return."""
    kinds: tuple[OutageKind, ...] = ("refuse", "error")
    at_once = [
        recovery(policy, n, "73%", kind, seeds) for kind in kinds for n in FLEETS
    ]
    slow = policy.replace(schedule=Policy().schedule)
    late = [recovery(slow, n, "73%", "error", seeds) for n in FLEETS]
    ends: tuple[OutageKind, ...] = ("error", "hang")
    shares = [
        " / ".join(f"{success(policy, n, kind):.1%}" for n in (1, 10, 100))
        for kind in ends
    ]
    lone = [f"{lone_success(policy, kind):.1%}" for kind in ends]
    return [_seconds(_worst(at_once)), " / ".join(map(_seconds, late)), *shares, *lone]


def _worst(times: Iterable[float | None]) -> float | None:
    found = [*times]
    return None if None in found else max(cast("list[float]", found))


def _seconds(time: float | None) -> str:
    return "-" if time is None else f"{time:.1f}"


def _print_row(name: str, cells: Iterable[str]) -> None:
    print(f"| {' | '.join([name, *cells])} |", flush=True)


if __name__ == "__main__":
    main()
