"""Binary search among integers of any size."""

from collections.abc import Callable

__all__ = ["first_where"]


def first_where(condition: Callable[[int], bool], first: int, end: int) -> int:
    """Return the first integer, from *first* on, that satisfies a condition.

    The search by `bisect` in a range fails if the range has more numbers than a list
    could have items: 2**31 of them in a 32-bit Python, such as in a browser.

    >>> first_where(lambda n: n * n >= 10**40, 0, 10**40)
    100000000000000000000

    Args:
        condition: If an integer satisfies it, all greater ones do as well.
        first: The least possible result.
        end: The result if no integer below it satisfies the condition.
    """
    while first < end:
        middle = (first + end) // 2
        if condition(middle):
            end = middle
        else:
            first = middle + 1
    return first
