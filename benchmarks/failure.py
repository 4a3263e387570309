"""Where the time of a failing call goes: ``python -m benchmarks.failure``.

Profiles calls with three failures, then success: under a plain policy, under one with
rules, and calls that give up, as installed and with the logs off. Prints each
function's share of the time. The profiler makes each call of a function slower, so that
functions with many calls have too large a share.
"""

import cProfile
import pstats
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any

from benchmarks.contenders import RETRYKIT, STATES, USUAL, in_state
from benchmarks.makers import retrykit_rules
from benchmarks.proofs import FAILURES, flaky
from benchmarks.table import markdown

__all__ = ["main"]

_CALLS = 5_000
_ROWS = 12


def main() -> None:
    """Print a table for each kind of call, in each state of the logs."""
    fails = [True] * FAILURES + [False]
    for state in STATES:
        with in_state(state), RETRYKIT.stub(lambda _delay: None):
            plain, rules = RETRYKIT.make(USUAL), retrykit_rules(USUAL)
            _print(f"failures, {state}", plain(flaky(cycle(fails))))
            _print(f"with rules, {state}", rules(flaky(cycle(fails))))
            _print(f"gives up, {state}", plain(flaky(cycle([True]))))


def _print(title: str, fetch: Callable[[int], Any]) -> None:
    def run(number: int) -> None:
        for _ in range(number):
            with suppress(ConnectionError):
                fetch(1)

    # The first call imports modules.
    run(1)
    profile = cProfile.Profile()
    profile.runcall(run, _CALLS)
    rows = sorted(_functions(profile), reverse=True)
    total = sum(seconds for seconds, *_ in rows)
    cells = [
        [
            name,
            f"{calls / _CALLS:.0f}",
            f"{seconds / _CALLS * 1e9:,.0f}",
            f"{seconds / total:.0%}",
        ]
        for seconds, calls, name in rows[:_ROWS]
    ]
    heads = [title, "calls", "time (ns)", "share"]
    print(f"{markdown(heads, cells)}\n")


def _functions(profile: cProfile.Profile) -> Iterator[tuple[float, int, str]]:
    """Yield the seconds, the number of calls and the name of each function."""
    stats: dict[Any, Any] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    for (file, _, name), (_, calls, seconds, *_) in stats.items():
        yield seconds, calls, name if file == "~" else f"{Path(file).stem}.{name}"


if __name__ == "__main__":
    main()
