"""Schedules: what makes them, and the class that says what can be made of them.

A name is looked for here, and written where its idea is: the formulas in
`retrykit.schedules.basic` and `retrykit.schedules.randomized`, the methods on
`Schedule`.

>>> constant("15s") + exponential(1).cap("1h").full_jitter()
constant(15.0) + exponential(1.0, factor=2.0).cap(3600.0).full_jitter()
"""

from collections.abc import Callable, Iterable, Iterator

from retrykit._internal.durations import Duration
from retrykit.schedules.base import Schedule
from retrykit.schedules.basic import (
    constant,
    exponential,
    fibonacci,
    linear,
    polynomial,
)
from retrykit.schedules.randomized import decorrelated, google_interval, polly_interval
from retrykit.schedules.sequences import sequence

__all__ = ["Schedule", "ScheduleLike", "constant", "decorrelated", "exponential"]
__all__ += ["fibonacci", "google_interval", "linear", "polly_interval"]
__all__ += ["polynomial", "sequence"]

ScheduleLike = Schedule | Iterable[Duration] | Callable[[], Iterator[Duration]]
"""A schedule, a re-iterable of durations, or a generator function."""
