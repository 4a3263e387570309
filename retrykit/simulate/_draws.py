"""Random draws of a simulation: streams that give the same numbers on any machine."""

import math
import random
from typing import Final, final

__all__ = ["Stream"]

_LOG_2: Final = 0.6931471805599453
_TERMS: Final = tuple(range(23, 0, -2))


@final
class Stream:
    """Draws for one purpose: those for another one do not change them.

    `random.Random` is the same on each Python. The logarithms of two machines may
    differ in their last digit, so they are computed here, by additions,
    multiplications and divisions alone, which IEEE 754 defines to the bit.

    Args:
        seed: The seed of the simulation. Integer, >= 0.
        purpose: The name of the stream.
    """

    __slots__ = ("random",)

    def __init__(self, seed: int, purpose: str) -> None:
        self.random: Final = random.Random(f"{seed} {purpose}").random  # noqa: S311

    def below(self, most: int) -> int:
        """Return an integer, 0 <= integer < *most*."""
        return int(self.random() * most)

    def exponential(self, mean: int) -> int:
        """Return a time that is exponentially distributed, in nanoseconds, >= 0.

        Args:
            mean: Its mean, in nanoseconds.
        """
        return round(-logarithm(1.0 - self.random()) * mean)


def logarithm(number: float) -> float:
    """Return the natural logarithm of a number > 0.

    >>> logarithm(1.0), round(logarithm(0.1), 12)
    (0.0, -2.302585092994)
    """
    fraction, exponent = math.frexp(number)
    if fraction < math.sqrt(0.5):
        fraction, exponent = fraction * 2, exponent - 1
    # ln f = 2 (s + s**3/3 + s**5/5 + ...), where s = (f - 1) / (f + 1) < 0.172.
    s = (fraction - 1.0) / (fraction + 1.0)
    square, total = s * s, 0.0
    for term in _TERMS:
        total = total * square + 1.0 / term
    return exponent * _LOG_2 + 2.0 * s * total
