"""Random numbers for delays.

The numbers of a call are a function of its seed and of the number of the retry, so a
replay draws the same ones.
"""

import os
import random
import sys
from functools import partial
from typing import Protocol, final

__all__ = [
    "MAX_DELAY",
    "CallRandom",
    "Random",
    "call_random",
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


new_seed = partial(_entropy.getrandbits, 53)
"""Returns a fresh seed, 0 <= seed < 2**53, which JSON readers keep exact."""


_MASK = 2**64 - 1
_STEP = 0x9E3779B97F4A7C15


@final
class CallRandom:
    """The random numbers of one retry: a function of the call's seed and its number.

    To seed a `random.Random` for each retry would take ten times as long. `call_random`
    makes one; a decision, which is part of every failure, sets the attributes itself.

    Attributes:
        seed: The seed of the call. Integer.
        draw: The number of the last draw: those of a retry follow ``retry << 32``.

    Source:
        SplitMix64: G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom
        Number Generators", OOPSLA 2014.
    """

    __slots__ = ("draw", "seed")

    seed: int
    draw: int

    def random(self) -> float:
        """Return the next draw, a float in [0, 1)."""
        draw = self.draw = self.draw + 1
        z = (self.seed + draw * _STEP) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((z ^ (z >> 31)) >> 11) * 2.0**-53

    def previous_retry(self) -> "CallRandom":
        """Return the random numbers of the retry before, after as many draws."""
        before = CallRandom()
        before.seed, before.draw = self.seed, self.draw - (1 << 32)
        return before


def call_random(seed: int, retry: int) -> CallRandom:
    """Return the random numbers of one retry.

    >>> call_random(seed=7, retry=1).random() == call_random(seed=7, retry=1).random()
    True

    Args:
        seed: The seed of the call. Integer.
        retry: The number of the retry, from 1. It has up to 2**32 draws.
    """
    random = CallRandom()
    random.seed, random.draw = seed, retry << 32
    return random


def previous_draw(chance: Random) -> Random:
    """Return the chance that the retry before had, where it can be known again.

    >>> first, second = call_random(seed=7, retry=1), call_random(seed=7, retry=2)
    >>> previous_draw(second).random() == first.random()
    True

    Args:
        chance: That of a retry. What is no `CallRandom` is given back: its next
            draw is as good as one that was forgotten.
    """
    return chance.previous_retry() if isinstance(chance, CallRandom) else chance
