"""A fuzz target: how its inputs are drawn, read and used."""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

__all__ = ["Target", "use_nothing"]


def use_nothing(_value, _random):
    """Ask nothing of what was read."""


class Target(NamedTuple):
    """One way into retrykit for data that somebody else wrote.

    Attributes:
        name: What it is called on the command line and in the table.
        share: Its part of the inputs of a run, relative to the other targets. With
            0 it runs only where it is named.
        draw: Returns an input.
        read: Takes an input, and returns what was read. A `ConfigError` is its
            documented answer to a wrong input; every other error is a fault.
        use: Asks of what was read what its user may ask. Every error is a fault.
    """

    name: str
    share: int
    draw: Callable[[Random], Any]
    read: Callable[[Any], Any]
    use: Callable[[Any, Random], None] = use_nothing
