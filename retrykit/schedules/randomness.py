"""Chance applied to a delay; the only module that knows of chance.

The draws of a call are a function of its seed and the number of the retry: a
replay sees the same ones.
"""

import os
import random
import sys
from typing import Protocol, final

__all__ = [
    "MAX_DELAY",
    "CallRandom",
    "Random",
    "new_seed",
    "previous_draw",
    "uniform_between",
]

MAX_DELAY = sys.float_info.max
"""Where delays saturate, in seconds: the largest float, never infinity."""


class Random(Protocol):
    """A source of chance: `random.Random`, or anything with its `random`."""

    def random(self) -> float:
        """Return a float in [0, 1)."""
        ...


def uniform_between(low: float, high: float, chance: Random) -> float:
    """Draw a delay from a range, in seconds, and never outside of it."""
    drawn = low + (high - low) * chance.random()
    # Rounding can carry the sum past the end by one step of the float.
    return drawn if drawn < high else high


# An instance of its own, so that a program that seeds the global generator
# neither steers its retries nor sees its own numbers move.
_entropy = random.Random()  # noqa: S311  spreads callers out, keeps no secret
if hasattr(os, "register_at_fork"):  # pragma: no branch  (Windows has no fork)
    # Without this, forked workers would all draw the same seeds.
    os.register_at_fork(after_in_child=_entropy.seed)


def new_seed() -> int:
    """Return a fresh seed, 0 <= seed < 2**53: JSON readers keep it whole."""
    return _entropy.getrandbits(53)


_MASK = 2**64 - 1
_STEP = 0x9E3779B97F4A7C15


@final
class CallRandom:
    """The chance of one retry: a function of the call's seed and its number.

    >>> CallRandom(seed=7, retry=1).random() == CallRandom(seed=7, retry=1).random()
    True

    Making a `random.Random` for each retry would cost ten times as much.

    Args:
        seed: The seed of the call. Integer.
        retry: The number of the retry, from 1. Up to 2**32 draws belong to it.

    Source:
        SplitMix64: G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom
        Number Generators", OOPSLA 2014.
    """

    __slots__ = ("_drawn", "_seed")

    def __init__(self, seed: int, retry: int) -> None:
        self._seed = seed
        self._drawn = retry << 32

    def random(self) -> float:
        """Return the next draw, a float in [0, 1)."""
        drawn = self._drawn = self._drawn + 1
        z = (self._seed + drawn * _STEP) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((z ^ (z >> 31)) >> 11) * 2.0**-53

    def previous_retry(self) -> "CallRandom":
        """Return the chance of the retry before, as many draws into it."""
        earlier = CallRandom(self._seed, 0)
        earlier._drawn = self._drawn - (1 << 32)
        return earlier


def previous_draw(chance: Random) -> Random:
    """Return the chance that the retry before had, where it can be known again.

    >>> first, second = CallRandom(seed=7, retry=1), CallRandom(seed=7, retry=2)
    >>> previous_draw(second).random() == first.random()
    True

    Args:
        chance: That of a retry. What is no `CallRandom` is given back: its next
            draw is as good as one that was forgotten.
    """
    return chance.previous_retry() if isinstance(chance, CallRandom) else chance
