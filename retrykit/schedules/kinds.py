"""Tables of the kinds of schedules and of their constructors."""

from collections.abc import Callable

from retrykit.schedules.base import Schedule
from retrykit.schedules.basic import (
    Constant,
    Exponential,
    Fibonacci,
    Linear,
    Polynomial,
    constant,
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
    decorrelated,
    google_interval,
    polly_interval,
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
        Polynomial,
        Fibonacci,
        Decorrelated,
        PollyInterval,
        GoogleInterval,
        Sequence,
    )
}
"""The class of each kind of schedule, by its name in data.

A new kind gets its row here. The order is that of the JSON Schema.
"""

CONSTRUCTORS: dict[str, Callable[..., Schedule]] = {
    each.__name__: each
    for each in (
        constant,
        decorrelated,
        exponential,
        fibonacci,
        google_interval,
        linear,
        polly_interval,
        polynomial,
        sequence,
    )
}
"""The public function that makes each kind of schedule that has one, by its name."""
