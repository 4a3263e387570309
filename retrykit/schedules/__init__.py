"""Schedules: their constructors and their base class.

>>> constant("15s") + exponential(1).cap("1h").full_jitter()
constant(15.0) + exponential(1.0, factor=2.0).cap(3600.0).full_jitter()
"""

from typing import TYPE_CHECKING

from retrykit._internal.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from retrykit.schedules.base import Schedule, ScheduleLike
    from retrykit.schedules.basic import (
        constant,
        decay,
        exponential,
        fibonacci,
        linear,
        polynomial,
    )
    from retrykit.schedules.randomized import (
        decorrelated,
        google_interval,
        polly_interval,
        uniform,
    )
    from retrykit.schedules.sequences import sequence
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "schedules.base": "Schedule ScheduleLike",
            "schedules.basic": "constant decay exponential fibonacci linear polynomial",
            "schedules.randomized": "decorrelated google_interval polly_interval "
            "uniform",
            "schedules.sequences": "sequence",
        },
    )

__all__ = ["Schedule", "ScheduleLike", "constant", "decay", "decorrelated"]
__all__ += ["exponential", "fibonacci", "google_interval", "linear"]
__all__ += ["polly_interval", "polynomial", "sequence", "uniform"]
