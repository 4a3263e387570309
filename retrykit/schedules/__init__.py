"""Schedules: their constructors, their base class, and the table of all kinds.

>>> constant("15s") + exponential(1).cap("1h").full_jitter()
constant(15.0) + exponential(1.0, factor=2.0).cap(3600.0).full_jitter()
"""

from collections.abc import Callable, Iterable, Iterator

from retrykit._internal.durations import Duration
from retrykit.schedules.base import Schedule
from retrykit.schedules.basic import (
    Constant,
    Decay,
    Exponential,
    Fibonacci,
    Linear,
    Polynomial,
    constant,
    decay,
    exponential,
    fibonacci,
    linear,
    polynomial,
)
from retrykit.schedules.composition import Intersection, Sum, Switch, Then, Union
from retrykit.schedules.randomized import (
    Decorrelated,
    GoogleInterval,
    PollyInterval,
    Uniform,
    decorrelated,
    google_interval,
    polly_interval,
    uniform,
)
from retrykit.schedules.sequences import Sequence, sequence
from retrykit.schedules.transforms import (
    AtLeast,
    Cap,
    EqualJitter,
    FullJitter,
    Jitter,
    RoundDown,
    Scale,
    Take,
    Within,
)

__all__ = ["Schedule", "ScheduleLike", "constant", "decay", "decorrelated"]
__all__ += ["exponential", "fibonacci", "google_interval", "linear"]
__all__ += ["polly_interval", "polynomial", "sequence", "uniform"]

ScheduleLike = Schedule | Iterable[Duration] | Callable[[], Iterator[Duration]]
"""A schedule, a re-iterable of durations, or a generator function."""

SCHEDULE_KINDS: dict[str, type[Schedule]] = {
    each.kind: each
    for each in (
        Cap,
        AtLeast,
        RoundDown,
        Scale,
        FullJitter,
        EqualJitter,
        Jitter,
        Take,
        Within,
        Then,
        Switch,
        Sum,
        Intersection,
        Union,
        Constant,
        Linear,
        Exponential,
        Decay,
        Polynomial,
        Fibonacci,
        Uniform,
        Decorrelated,
        PollyInterval,
        GoogleInterval,
        Sequence,
    )
}
"""The class of each kind of schedule, by its name. A new kind gets a row here."""

CONSTRUCTORS: dict[str, Callable[..., Schedule]] = {
    each.__name__: each
    for each in (
        constant,
        decay,
        decorrelated,
        exponential,
        fibonacci,
        google_interval,
        linear,
        polly_interval,
        polynomial,
        sequence,
        uniform,
    )
}
"""The constructors by name; other kinds are made by methods and operators."""
