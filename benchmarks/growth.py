"""Whether late failures cost more than early ones: ``python -m benchmarks.growth``.

One call with thousands of failures, under different policies; prints the microseconds
from one attempt to the next, the median of twenty around each number, as installed and
with the logs off. Generators are run again for each delay.
"""

from collections.abc import Iterator
from contextlib import suppress
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.contenders import RETRYKIT, STATES, in_state
from benchmarks.table import markdown
from retrykit import Policy, Rule
from retrykit.schedules import constant, exponential, fibonacci, sequence

__all__ = ["main"]

_NUMBERS = (11, 100, 1_000, 10_000)
_LAST = _NUMBERS[-1] + 10


def main() -> None:
    """Print one row for each policy, in each state of the logs."""
    for state in STATES:
        with in_state(state):
            rows = _rows()
        heads = [state, "built (ms)", *(f"failure {x:,} (us)" for x in _NUMBERS)]
        print(f"{markdown(heads, rows)}\n")


def _rows() -> list[list[str]]:
    rows = []
    for title, settings in _policies().items():
        started = perf_counter()
        if "schedule" not in settings:
            settings |= {"schedule": _chain()}
        policy = Policy(
            on=ConnectionError, max_attempts=_LAST, max_elapsed=None, **settings
        )
        built = (perf_counter() - started) * 1e3
        figures = [f"{each * 1e6:.1f}" for each in _times(policy)]
        rows.append([title, f"{built:.1f}", *figures])
    return rows


def _times(policy: Policy) -> list[float]:
    """Return the seconds from one attempt to the next, at each of the numbers."""
    starts: list[float] = []

    def fail() -> None:
        starts.append(perf_counter())
        raise ConnectionError

    with RETRYKIT.stub(lambda _delay: None), suppress(ConnectionError):
        policy.call(fail)
    return [
        median(starts[n + 1] - starts[n] for n in range(number - 10, number + 9))
        for number in _NUMBERS
    ]


def _chain() -> Any:
    schedule = constant(1).take(201)
    for _ in range(50):
        schedule = schedule.then(constant(1).take(201))
    return schedule


def _halving() -> Iterator[float]:
    delay = 1.0
    while True:
        yield delay
        delay /= 2


def _policies() -> dict[str, dict[str, Any]]:
    rules = [Rule(ConnectionError, schedule=constant(2))]
    every = 10**9
    return {
        "jitter": {"schedule": exponential(0.5).cap(60).jitter(0.5)},
        "all failures kept": {"schedule": constant(1), "max_failures": every},
        "a rule": {"schedule": constant(1), "rules": rules},
        "a rule, all failures kept": {
            "schedule": constant(1),
            "rules": rules,
            "max_failures": every,
        },
        "an observer": {"schedule": constant(1), "observers": [lambda _event: None]},
        "fibonacci": {"schedule": fibonacci().cap(60)},
        "within, then": {"schedule": constant(1).within("1d").then(constant(1))},
        "fifty times then": {},
        "a generator": {"schedule": sequence(_halving)},
    }


if __name__ == "__main__":
    main()
