"""A fuzz target: how its inputs are drawn, read and used."""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

__all__ = ["Target", "use_nothing"]


def use_nothing(_value, _random):
    """Use nothing of the value."""


class Target(NamedTuple):
    """A parser of untrusted data in retrykit.

    Attributes:
        name: Its name on the command line and in the table.
        share: Its part of the inputs of a run, relative to the other targets. With
            0 it runs only if it is named.
        draw: Returns an input.
        read: Parses an input, and returns the value. A `ConfigError` is its
            documented answer to an invalid input; any other error is a fault.
        use: Uses the value in every way that a user may. Any error is a fault.
    """

    name: str
    share: int
    draw: Callable[[Random], Any]
    read: Callable[[Any], Any]
    use: Callable[[Any, Random], None] = use_nothing
