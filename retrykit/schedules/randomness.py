"""Random numbers for delays: a function of the seed of a call and of the retry."""

import os
import sys
from functools import partial
from random import Random as Generator
from typing import Protocol

__all__ = ["MAX_DELAY", "CallRandom", "Random", "call_random", "mix", "new_seed"]
__all__ += ["step_to"]
__all__ += ["previous_random", "uniform_between"]

MAX_DELAY = sys.float_info.max
"""Delays saturate here, in seconds: the largest float."""


class Random(Protocol):
    """A source of random numbers, such as `random.Random`."""

    def random(self) -> float:
        """Return a float in [0, 1)."""
        ...


def uniform_between(low: float, high: float, random: Random) -> float:
    """Return a delay drawn from a range, in seconds."""
    drawn = low + (high - low) * random.random()
    # The sum may be rounded up to a float beyond the range.
    return drawn if drawn < high else high


# Independent of the global generator, which programs may seed.
_entropy = Generator()  # noqa: S311  no secrets
if hasattr(os, "register_at_fork"):  # pragma: no branch  (Windows has no fork)
    # Otherwise all forked workers would draw the same seeds.
    os.register_at_fork(after_in_child=_entropy.seed)


new_seed = partial(_entropy.getrandbits, 53)
"""Returns a new seed, 0 <= seed < 2**53, which is exact in JSON."""


_MASK = 2**64 - 1
_STEP = 0x9E3779B97F4A7C15


def step_to(draw: int) -> int:
    """Return what `mix` adds to the seed for the draw of this number."""
    return draw * _STEP & _MASK


def mix(number: int) -> float:
    """Return the draw that belongs to the sum of a seed and a step, in [0, 1).

    Source:
        SplitMix64: G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom
        Number Generators", OOPSLA 2014.
    """
    z = number & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return ((z ^ (z >> 31)) >> 11) * 2.0**-53


class CallRandom:
    """Random numbers of one retry.

    Seeding a `random.Random` for each retry would take ten times as long. For speed,
    a decision sets the attributes itself instead of calling `call_random`.

    Attributes:
        seed: The seed of the call. Integer.
        draw: The number of the last draw; a retry starts at ``retry << 32``.
    """

    __slots__ = ("draw", "seed")

    seed: int
    draw: int

    def random(self) -> float:
        """Return the next draw, a float in [0, 1)."""
        draw = self.draw = self.draw + 1
        return mix(self.seed + draw * _STEP)

    def previous_retry(self) -> "CallRandom":
        """Return the random numbers of the previous retry, after as many draws."""
        previous = CallRandom()
        previous.seed, previous.draw = self.seed, self.draw - (1 << 32)
        return previous


def call_random(seed: int, retry: int) -> CallRandom:
    """Return the random numbers of one retry.

    >>> call_random(seed=7, retry=1).random() == call_random(seed=7, retry=1).random()
    True
    """
    random = CallRandom()
    random.seed, random.draw = seed, retry << 32
    return random


def previous_random(random: Random) -> Random:
    """Return the random numbers of the previous retry, or *random* if not known.

    >>> first, second = call_random(seed=7, retry=1), call_random(seed=7, retry=2)
    >>> previous_random(second).random() == first.random()
    True
    """
    return random.previous_retry() if isinstance(random, CallRandom) else random
