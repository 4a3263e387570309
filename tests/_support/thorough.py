"""Parameters of which a few are quick enough for each run of the tests."""

import pytest

__all__ = ["first_are_quick"]


def first_are_quick(number, values):
    """Return the values as parameters; the tests of all but the first are thorough."""
    return [
        value if index < number else pytest.param(value, marks=pytest.mark.thorough)
        for index, value in enumerate(values)
    ]
