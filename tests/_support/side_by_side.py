"""The examples that compare retrykit with other libraries, and equal random numbers."""

import importlib
import sys
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from retrykit.schedules import _randomness
from retrykit.schedules._randomness import CallRandom, SharedDraws

__all__ = ["FOLDER", "call", "draw", "load", "run"]

FOLDER = Path(__file__).parents[2] / "examples"


def load(name):
    """Return an example as a module; it imports others of its folder."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


run = load("side_by_side").run
call = load("side_by_side").call


@contextmanager
def draw(share):
    """Draw this share of its range, 0 to 1, for every random delay of any library."""

    def uniform(low, high):
        return low + (high - low) * share

    with (
        patch("random.random", lambda: share),
        patch("random.uniform", uniform),
        patch.object(CallRandom, "random", lambda _: share),
        # What other tests have drawn is left to them.
        patch.object(_randomness, "_prepared", []),
        patch.object(_randomness, "_drawn", []),
        patch.object(SharedDraws, "__missing__", lambda *_: [share * 2**53] * 64),
    ):
        yield
