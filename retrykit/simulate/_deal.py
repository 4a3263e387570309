"""The assignment of calls to processes, and the random draws of their delays."""

from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain, count, repeat
from typing import TypeVar

from retrykit.schedules._randomness import SHARED_CALLS, SharedDraws
from retrykit.simulate._draws import Stream

__all__ = ["call_draws", "deal", "draw_makers", "first_seed"]


def draw_makers(
    shares: Sequence[float], sizes: Sequence[int], seed: int
) -> Iterator[tuple[int, int]]:
    """Yield the population and the process that makes each call, endlessly.

    Args:
        shares: The weight of each population of clients.
        sizes: The number of processes of each.
        seed: The seed of the simulation.
    """
    ends, last = [*accumulate(shares)], len(shares) - 1
    begins, random = [0.0, *ends], Stream(seed, "processes").random
    while True:
        drawn = random() * ends[-1]
        index = bisect(ends, drawn, 0, last)
        below, size = begins[index], sizes[index]
        process = int((drawn - below) / (ends[index] - below) * size)
        yield index, process if process < size else size - 1


Maker = TypeVar("Maker")
"""What makes calls: a process."""


def deal(
    processes: Sequence[Sequence[Maker]],
    shares: Sequence[float],
    seed: int,
    made_by: Sequence[int] | None,
) -> Callable[[], Maker]:
    """Return a function that returns the process that makes the next call.

    Args:
        processes: The processes of each population of clients.
        shares: The weights of the populations.
        seed: The seed of the simulation.
        made_by: The process of each call, an index into all of them; None if each is
            drawn.
    """
    if made_by is not None:
        every = [process for each in processes for process in each]
        return map(every.__getitem__, made_by).__next__
    drawn = draw_makers(shares, [*map(len, processes)], seed)
    found = {
        (population, index): process
        for population, each in enumerate(processes)
        for index, process in enumerate(each)
    }
    return map(found.__getitem__, drawn).__next__


def call_draws(seed: int) -> Iterator[tuple[SharedDraws, int]]:
    """Yield the draws for the delays of each call, and its number in them, endlessly.

    Args:
        seed: The seed of the first call.
    """
    first = count(seed, SHARED_CALLS)
    return chain.from_iterable(
        zip(repeat(SharedDraws(each)), range(SHARED_CALLS)) for each in first
    )


def first_seed(seed: int) -> int:
    """Return the seed of the first call; the seeds of the next calls follow it.

    It is below 2**53, as the seeds of calls are.
    """
    return Stream(seed, "delays").below(2**46) * SHARED_CALLS
