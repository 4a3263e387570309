"""What the parts of a schedule are, and how many they may be."""

from retrykit._internal.validation import invalid_setting
from retrykit.schedules.base import Schedule, iter_parts
from retrykit.schedules.sequences import Sequence

__all__ = ["MAX_LEVELS", "check_size", "has_user_code"]

MAX_LEVELS = 100
"""How deep a schedule that is read from data or from a text may be nested."""

_MOST_PARTS = 1_000


def has_user_code(schedule: Schedule) -> bool:
    """Return whether some part of a schedule is code of the user's.

    >>> from retrykit.schedules import constant, sequence
    >>> def ever():
    ...     while True:
    ...         yield 1
    >>> has_user_code(constant(1).cap(9)), has_user_code(sequence(ever).cap(9))
    (False, True)
    """
    return any(
        not isinstance(part.delays, tuple)
        if isinstance(part, Sequence)
        else not part.kind
        for _, part in iter_parts(schedule)
    )


def check_size(schedule: Schedule) -> Schedule:
    """Return a schedule that was read, if it is small enough to be used at once.

    Raises:
        ConfigError: It has more than 100 levels or 1,000 parts.
    """
    for number, (level, _) in enumerate(iter_parts(schedule), 1):
        if level > MAX_LEVELS:
            raise invalid_setting("schedule", f"of at most {MAX_LEVELS} levels", level)
        if number > _MOST_PARTS:
            raise invalid_setting("schedule", f"of at most {_MOST_PARTS} parts", number)
    return schedule
