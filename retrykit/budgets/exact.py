"""Numbers as they are written, without the rounding of floats.

What is counted with them is not known here.
"""

__all__ = ["fraction"]


def fraction(value: float) -> tuple[int, int]:
    """Return a float as the decimal that it is written as.

    >>> fraction(0.75), fraction(20.0), fraction(1e-7)
    ((75, 100), (200, 10), (1, 10000000))

    Args:
        value: A finite number >= 0.

    Returns:
        Numerator and denominator, not reduced; the denominator is a power of
        ten.
    """
    digits, _, exponent = repr(value).partition("e")
    whole, _, decimals = digits.partition(".")
    places = len(decimals) - int(exponent or 0)
    return int(whole + decimals) * 10 ** max(-places, 0), 10 ** max(places, 0)
