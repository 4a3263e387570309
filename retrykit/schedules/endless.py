"""Whether a schedule goes on for ever, told by what it is made of.

No far retry is asked for, except of schedules that are the user's own code.
"""

from typing import Any

__all__ = ["is_endless"]

# Code of the user's that still has a delay for this retry counts as endless.
_EFFECTIVELY_ENDLESS = 100_000


def is_endless(schedule: Any) -> bool:
    """Return whether a schedule is known to have a delay for every retry.

    >>> from retrykit.schedules import constant, linear
    >>> is_endless(linear(1).cap(60)), is_endless(constant(1).within("1w"))
    (True, False)

    Args:
        schedule: A `Schedule`. One that is the user's own code is taken to be
            endless if it has a delay for retry 100,000.
    """
    match schedule.kind:
        case "take" | "within":
            endless = False
        case "then":
            endless = is_endless(schedule.other)
        case "switch":
            goes_on = schedule.bounds(schedule.after + 1) is not None
            endless = goes_on and is_endless(schedule.to)
        case "sum" | "intersection":
            endless = is_endless(schedule.left) and is_endless(schedule.right)
        case "union":
            endless = is_endless(schedule.left) or is_endless(schedule.right)
        case "sequence" if isinstance(schedule.delays, tuple):
            endless = False
        case "" | "sequence":
            endless = schedule.bounds(_EFFECTIVELY_ENDLESS) is not None
        case _:
            # A formula, or the delays of another schedule, each of them changed.
            endless = "of" not in schedule.field_names or is_endless(schedule.of)
    return endless
