"""The processes that make calls, and the seeds of the calls' delays."""

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, final

from retrykit.schedules._randomness import SHARED_CALLS
from retrykit.simulate._draws import Stream

__all__ = ["Deal", "first_seed"]


@final
class Deal:
    """Deals the calls among processes.

    Args:
        shares: The weight of each population of clients.
        sizes: The number of its processes.
        seed: The seed of the simulation.
    """

    def __init__(
        self, shares: Sequence[float], sizes: Sequence[int], seed: int
    ) -> None:
        self._ends: Final = [*accumulate(shares)]
        self._sizes: Final = sizes
        self._random: Final = Stream(seed, "processes").random

    def next(self) -> tuple[int, int]:
        """Return the population and the process that makes the next call, from 0."""
        ends = self._ends
        drawn = self._random() * ends[-1]
        index = bisect(ends, drawn, hi=len(ends) - 1)
        below = ends[index - 1] if index else 0.0
        part = (drawn - below) / (ends[index] - below)
        size = self._sizes[index]
        return index, min(int(part * size), size - 1)


def first_seed(seed: int) -> int:
    """Return the seed of the first call; those of the next ones follow it.

    It is below 2**53, as those of calls.
    """
    return Stream(seed, "delays").below(2**46) * SHARED_CALLS
