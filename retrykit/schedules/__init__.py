"""Schedules: their constructors and their base class.

>>> constant("15s") + exponential(1).cap("1h").full_jitter()
constant(15.0) + exponential(1.0, factor=2.0).cap(3600.0).full_jitter()
"""

from typing import TYPE_CHECKING

from retrykit._internal.late_modules import lazy_exports

if TYPE_CHECKING:
    from retrykit.schedules._base import Schedule, ScheduleLike
    from retrykit.schedules._basic import (
        constant,
        decay,
        exponential,
        fibonacci,
        linear,
        polynomial,
    )
    from retrykit.schedules._randomized import (
        decorrelated,
        google_interval,
        polly_interval,
        uniform,
    )
    from retrykit.schedules._sequences import sequence
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "schedules._base": "Schedule ScheduleLike",
            "schedules._basic": "constant decay exponential fibonacci linear "
            "polynomial",
            "schedules._randomized": "decorrelated google_interval polly_interval "
            "uniform",
            "schedules._sequences": "sequence",
        },
    )

__all__ = ["Schedule", "ScheduleLike", "constant", "decay", "decorrelated"]
__all__ += ["exponential", "fibonacci", "google_interval", "linear"]
__all__ += ["polly_interval", "polynomial", "sequence", "uniform"]
