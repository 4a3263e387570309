"""Random numbers for delays, computed from a call's seed and a retry's number."""

import os
import sys
from itertools import repeat
from typing import Protocol, final

__all__ = [
    "MAX_DELAY",
    "SHARED_CALLS",
    "CallRandom",
    "Random",
    "SharedDraws",
    "call_random",
]
__all__ += [
    "FACTORS",
    "STEP",
    "Draws",
    "first_draw",
    "new_draws",
    "new_seed",
    "previous_random",
]
__all__ += ["seed_of", "uniform_between"]

MAX_DELAY = sys.float_info.max
"""The largest float, in seconds, at which delays saturate."""


class Random(Protocol):
    """A source of random numbers, such as `random.Random`."""

    def random(self) -> float:
        """Return a float in [0, 1)."""
        ...


def uniform_between(low: float, high: float, random: Random) -> float:
    """Return a delay drawn from a range, in seconds."""
    # The sum stays in the range: the largest draw is 1 - 2**-53, which takes as much
    # off the width as its rounding may have added.
    return low + (high - low) * random.random()


_MASK = 2**64 - 1
STEP = 0x9E3779B97F4A7C15
"""The step of SplitMix64's state from one draw to the next."""
FACTORS = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""The factors of SplitMix64's output."""


class CallRandom:
    """Random numbers of one retry.

    Seeding a `random.Random` for each retry would take ten times as long. For speed,
    a decision sets the attributes itself instead of calling `call_random`.

    Attributes:
        seed: The seed of the call. Integer.
        draw: The number of the last draw; a retry starts at ``retry << 32``.

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
        z = (self.seed + draw * STEP) & _MASK
        z = ((z ^ (z >> 30)) * FACTORS[0]) & _MASK
        z = ((z ^ (z >> 27)) * FACTORS[1]) & _MASK
        return ((z ^ (z >> 31)) >> 11) * 2.0**-53

    def previous_retry(self) -> "CallRandom":
        """Return the random numbers of the previous retry, after equally many draws."""
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
    """Return the random numbers of the previous retry, or *random* if they are unknown.

    >>> first, second = call_random(seed=7, retry=1), call_random(seed=7, retry=2)
    >>> previous_random(second).random() == first.random()
    True
    """
    return random.previous_retry() if isinstance(random, CallRandom) else random


SHARED_CALLS = 64
"""Number of calls that share a `SharedDraws`."""
# In bits: room for the product of two numbers of 64 bits.
_WIDTH = 128


@final
class SharedDraws(dict[int, memoryview]):
    """The first draw of each retry, for 64 calls with consecutive seeds.

    The item of a retry has the draw of each call, in units of 2**-53. The draws are
    made together, as one large integer, since the time of a draw depends on how many
    integers are made, and hardly on how long they are.

    Attributes:
        seed: The seed of the first call.
    """

    __slots__ = ("seed",)

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __missing__(self, retry: int) -> memoryview:
        # As `CallRandom`; the masks remove what one number carries into the next.
        z = (self.seed + (retry << 32) * STEP + STEP & _MASK) * _ONES + _NUMBERS
        z &= _MASKS
        z = ((z ^ (z >> 30)) & _MASKS) * FACTORS[0] & _MASKS
        z = ((z ^ (z >> 27)) & _MASKS) * FACTORS[1] & _MASKS
        packed = ((z ^ (z >> 31)) >> 11).to_bytes(
            SHARED_CALLS * _WIDTH // 8, sys.byteorder
        )
        if len(self) > _MOST_RETRIES:
            self.clear()
        halves = memoryview(packed).cast("Q")[_LOWER_HALVES]
        # Of 8 bytes each, where an object would take 40.
        draws = self[retry] = memoryview(halves.tobytes()).cast("Q")
        return draws


_ONES = ((1 << _WIDTH * SHARED_CALLS) - 1) // ((1 << _WIDTH) - 1)
_NUMBERS = sum(call << _WIDTH * call for call in range(SHARED_CALLS))
_MASKS = _ONES * _MASK
# The lower half of each number is its draw, and the last number may come first.
_LOWER_HALVES = slice(None, None, 2 if sys.byteorder == "little" else -2)
_MOST_RETRIES = 32

Draws = tuple[SharedDraws, int]
"""The draws that some calls share, and the number of one of these calls."""

# Each thread takes or adds items in one step.
_prepared: list[Draws] = []
_drawn: list[tuple[SharedDraws, int, int]] = []
if hasattr(os, "register_at_fork"):  # pragma: no branch  (Windows has no fork)
    # Otherwise all forked workers would draw the same.
    os.register_at_fork(after_in_child=_prepared.clear)
    os.register_at_fork(after_in_child=_drawn.clear)


def new_draws() -> Draws:
    """Return the draws of a new call, and its number among the calls that share them.

    >>> draws, number = new_draws()
    >>> third = draws[3][number] * 2.0**-53
    >>> third == call_random(seed_of((draws, number)), 3).random()
    True
    """
    try:
        return _prepared.pop()
    except IndexError:
        first, *others = zip(repeat(_new_shared_draws()), range(SHARED_CALLS))
        _prepared.extend(others)
        return first


def first_draw() -> tuple[SharedDraws, int, int]:
    """Return the same as `new_draws`, and the first retry's draw in units of 2**-53."""
    try:
        return _drawn.pop()
    except IndexError:
        draws = _new_shared_draws()
        first, *others = zip(repeat(draws), range(SHARED_CALLS), draws[1])
        _drawn.extend(others)
        return first


def _new_shared_draws() -> SharedDraws:
    # Independent of the global generator, which programs may seed. All seeds are below
    # 2**53.
    random = int.from_bytes(os.urandom(7), "little")
    return SharedDraws(random % (2**53 // SHARED_CALLS) * SHARED_CALLS)


def seed_of(draws: Draws) -> int:
    """Return the seed of the call that has these draws."""
    shared, number = draws
    return shared.seed + number


def new_seed() -> int:
    """Return a new seed, 0 <= seed < 2**53, which is exact in JSON."""
    return seed_of(new_draws())
