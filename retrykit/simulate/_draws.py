"""Random draws of a simulation: streams that give the same numbers on any machine."""

import math
import random
from collections.abc import Iterator
from typing import Final, final

__all__ = ["LOG_2", "TERMS", "Stream", "logarithm", "normal_quantile"]

LOG_2: Final = 0.6931471805599453
"""The natural logarithm of 2."""

TERMS: Final = tuple(range(23, 0, -2))
"""The divisors in the series for a logarithm, the highest first."""


@final
class Stream:
    """Random numbers for one purpose, independent of the numbers for other purposes.

    `random.Random` gives the same numbers in every Python. The logarithms of two
    machines may differ in their last digit; where that matters, they are computed here,
    by additions, multiplications and divisions alone, which IEEE 754 defines to the
    bit.

    Args:
        seed: The seed of the simulation. Integer, >= 0.
        purpose: The name of the stream.

    Attributes:
        random: Returns the next number, 0 <= number < 1.
    """

    __slots__ = ("_generator", "random")

    def __init__(self, seed: int, purpose: str) -> None:
        generator = random.Random(f"{seed} {purpose}")  # noqa: S311
        self.random: Final = generator.random
        self._generator: Final = generator

    def state(self) -> tuple[int, ...]:
        """Return the state of the generator, a Mersenne Twister, and its position."""
        found: tuple[int, ...] = self._generator.getstate()[1]
        return found

    def below(self, most: int) -> int:
        """Return an integer, 0 <= integer < *most*."""
        return int(self.random() * most)

    def exponential(self, mean: int) -> int:
        """Return an exponentially distributed time, in nanoseconds, >= 0.

        Args:
            mean: The mean of the distribution, in nanoseconds.
        """
        return next(self.exponentials(mean))

    def exponentials(self, mean: int) -> Iterator[int]:
        """Yield exponentially distributed times, in nanoseconds, endlessly."""
        draw, log = self.random, math.log
        while True:
            number = 1.0 - draw()
            time = -log(number) * mean
            whole = round(time)
            # Most often, both logarithms are rounded to the same integer.
            if abs(time - whole) + time * _UNSURE >= _HALF:
                whole = round(-logarithm(number) * mean)
            yield whole


_HALF: Final = 0.5
# Far more than the relative error of logarithms.
_UNSURE: Final = 1e-13


def logarithm(number: float) -> float:
    """Return the natural logarithm of a number > 0, the same on any machine.

    >>> logarithm(1.0), round(logarithm(0.1), 12)
    (0.0, -2.302585092994)
    """
    fraction, exponent = math.frexp(number)
    if fraction < math.sqrt(0.5):
        fraction, exponent = fraction * 2, exponent - 1
    # ln f = 2 (s + s**3/3 + s**5/5 + ...), where s = (f - 1) / (f + 1) < 0.172.
    s = (fraction - 1.0) / (fraction + 1.0)
    square, total = s * s, 0.0
    for term in TERMS:
        total = total * square + 1.0 / term
    return exponent * LOG_2 + 2.0 * s * total


def normal_quantile(share: float) -> float:
    """Return the number below which a share of a standard normal distribution lies.

    The relative error is less than 1 part in 10**15.

    >>> normal_quantile(0.5), round(normal_quantile(0.975), 12)
    (0.0, 1.95996398454)

    Args:
        share: Dimensionless, 0 < share < 1.

    Source:
        M. J. Wichura, "Algorithm AS 241: The Percentage Points of the Normal
        Distribution", Applied Statistics 37, 1988.
    """
    distance = share - 0.5
    if abs(distance) <= _CENTRAL:
        return distance * _ratio(_CENTRAL**2 - distance * distance, _MIDDLE)
    root = math.sqrt(-logarithm(min(share, 1 - share)))
    found = _ratio(root - 1.6, _SIDES) if root <= _NEAR else _ratio(root - 5, _TAILS)
    return -found if distance < 0 else found


def _ratio(number: float, coefficients: tuple[tuple[float, ...], ...]) -> float:
    """Return the ratio of two polynomials at a number.

    Args:
        number: The number.
        coefficients: Those of the numerator and of the denominator, each from the
            highest power down.
    """
    above = below = 0.0
    for numerator, denominator in zip(*coefficients, strict=True):
        above = above * number + numerator
        below = below * number + denominator
    return above / below


_CENTRAL: Final = 0.425
_NEAR: Final = 5.0
_MIDDLE: Final = (
    (
        2509.0809287301227,
        33430.57558358813,
        67265.7709270087,
        45921.95393154987,
        13731.69376550946,
        1971.5909503065513,
        133.14166789178438,
        3.3871328727963665,
    ),
    (
        5226.495278852854,
        28729.085735721943,
        39307.89580009271,
        21213.794301586597,
        5394.196021424751,
        687.1870074920579,
        42.31333070160091,
        1.0,
    ),
)
_SIDES: Final = (
    (
        0.0007745450142783414,
        0.022723844989269184,
        0.2417807251774506,
        1.2704582524523684,
        3.6478483247632045,
        5.769497221460691,
        4.630337846156546,
        1.4234371107496835,
    ),
    (
        1.0507500716444169e-09,
        0.0005475938084995345,
        0.015198666563616457,
        0.14810397642748008,
        0.6897673349851,
        1.6763848301838038,
        2.053191626637759,
        1.0,
    ),
)
_TAILS: Final = (
    (
        2.0103343992922881e-07,
        2.7115555687434876e-05,
        0.0012426609473880784,
        0.026532189526576124,
        0.29656057182850487,
        1.7848265399172913,
        5.463784911164114,
        6.657904643501103,
    ),
    (
        2.0442631033899397e-15,
        1.421511758316446e-07,
        1.8463183175100548e-05,
        0.0007868691311456133,
        0.014875361290850615,
        0.1369298809227358,
        0.599832206555888,
        1.0,
    ),
)
