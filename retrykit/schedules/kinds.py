"""Table of the kinds of schedules."""

from retrykit.schedules.base import Schedule
from retrykit.schedules.basic import (
    Constant,
    Decorrelated,
    Exponential,
    Fibonacci,
    GoogleInterval,
    Linear,
    PollyInterval,
    Polynomial,
)
from retrykit.schedules.composition import Intersection, Sum, Union
from retrykit.schedules.sequences import Sequence
from retrykit.schedules.transforms import (
    AtLeast,
    Cap,
    EqualJitter,
    FullJitter,
    Jitter,
    RoundDown,
    Scale,
    Switch,
    Take,
    Then,
    Within,
)

__all__ = ["SCHEDULE_KINDS"]

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
