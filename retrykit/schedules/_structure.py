"""Structure of schedules: size, user code, and whether they end."""

from typing import Any

from retrykit._internal.frozen import fields_of
from retrykit._internal.validation import invalid_setting
from retrykit.schedules._base import Schedule, iter_parts

__all__ = ["MAX_LEVELS", "check_size", "has_user_code", "is_endless"]
__all__ += ["is_uniform"]

MAX_LEVELS = 100
"""Maximum number of nested levels of a schedule that is read or written as text."""

_MAX_PARTS = 1_000
# User code that still has a delay for this retry counts as endless.
_EFFECTIVELY_ENDLESS = 100_000


def check_size(schedule: Schedule) -> Schedule:
    """Return *schedule* if it is not too large to read, write and use."""
    for number, (level, _) in enumerate(iter_parts(schedule), 1):
        if level > MAX_LEVELS:
            raise invalid_setting("schedule", f"of at most {MAX_LEVELS} levels", level)
        if number > _MAX_PARTS:
            raise invalid_setting("schedule", f"of at most {_MAX_PARTS} parts", number)
    return schedule


def has_user_code(schedule: Schedule) -> bool:
    """Return whether some part of a schedule is user code.

    >>> from retrykit.schedules import constant, sequence
    >>> def ever():
    ...     while True:
    ...         yield 1
    >>> has_user_code(constant(1).cap(9)), has_user_code(sequence(ever).cap(9))
    (False, True)
    """
    whole: Any = schedule
    if whole.kind == "sequence":
        # It has no parts. Quickly, since a block asks whenever it runs.
        return not isinstance(whole.delays, tuple)
    return any(
        not isinstance(fields_of(part)["delays"], tuple)
        if part.kind == "sequence"
        else not part.kind
        for _, part in iter_parts(schedule)
    )


def is_uniform(schedule: Schedule) -> bool:
    """Return whether each delay depends on its number and at most one draw alone.

    The delay is then drawn uniformly between its bounds.

    >>> from retrykit.schedules import exponential
    >>> is_uniform(exponential(1).cap(60).jitter(0.5))
    True
    >>> is_uniform(exponential(1).jitter(0.5).cap(60))
    False
    """
    random = [part.kind in RANDOM_KINDS for _, part in iter_parts(schedule)]
    match schedule.kind:
        case "take" | "within":
            return is_uniform(fields_of(schedule)["of"])
        case "full_jitter" | "equal_jitter" | "jitter" | "uniform":
            return sum(random) == 1
        case _:
            return not any(random) and not has_user_code(schedule)


RANDOM_KINDS = {
    "decorrelated",
    "equal_jitter",
    "full_jitter",
    "google_interval",
    "jitter",
    "polly_interval",
    "uniform",
}
"""The kinds of schedules that draw their delays at random."""


def is_endless(schedule: Schedule) -> bool:
    """Return whether a schedule has a delay for every retry.

    User code is taken to be endless if it has a delay for retry 100,000.

    >>> from retrykit.schedules import constant, linear
    >>> is_endless(linear(1).cap(60)), is_endless(constant(1).within("1w"))
    (True, False)
    """
    parts = fields_of(schedule)
    match schedule.kind:
        case "take" | "within":
            endless = False
        case "then":
            endless = is_endless(parts["other"])
        case "switch":
            goes_on = schedule.bounds(parts["after"] + 1) is not None
            endless = goes_on and is_endless(parts["to"])
        case "sum" | "intersection":
            endless = is_endless(parts["left"]) and is_endless(parts["right"])
        case "union":
            endless = is_endless(parts["left"]) or is_endless(parts["right"])
        case "sequence" if isinstance(parts["delays"], tuple):
            endless = False
        case "" | "sequence":
            endless = schedule.bounds(_EFFECTIVELY_ENDLESS) is not None
        case _:
            # A formula, or a schedule whose delays are changed one by one.
            endless = "of" not in parts or is_endless(parts["of"])
    return endless
