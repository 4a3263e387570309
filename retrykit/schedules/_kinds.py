"""Tables of all kinds of schedules, and of their constructors."""

from collections.abc import Callable

from retrykit.schedules._base import Schedule
from retrykit.schedules._basic import (
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
from retrykit.schedules._composition import Intersection, Sum, Switch, Then, Union
from retrykit.schedules._randomized import (
    Decorrelated,
    GoogleInterval,
    PollyInterval,
    Uniform,
    decorrelated,
    google_interval,
    polly_interval,
    uniform,
)
from retrykit.schedules._sequences import Sequence, sequence
from retrykit.schedules._transforms import (
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

__all__ = ["CONSTRUCTORS", "SCHEDULE_KINDS"]

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
"""The class of each kind of schedule, keyed by kind. A new kind gets a row here."""

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
"""The constructors, keyed by name; other kinds are made by methods and operators."""
