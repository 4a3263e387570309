"""Flags that disable the drivers' fast path, for observers and test clocks.

Both are rare, and drivers are called often: all that a driver checks is whether a list
is empty. Changes are single list operations, so threads, signal handlers and forks need
no lock.
"""

from typing import final

__all__ = ["block", "blockers", "failure_blockers", "unblock"]


@final
class Reasons(list[None]):
    """A list pickled by name: an unpickled driver reads the list of its process."""

    def __reduce__(self) -> str:
        return "blockers" if self is blockers else "failure_blockers"


blockers: list[None] = Reasons()
"""One item for each reason to leave the fast path; always the same list."""

failure_blockers: list[None] = Reasons()
"""One item for each reason to leave the fast path after a failure, including the
reasons in `blockers`; always the same list."""


def block(*, failures_only: bool = False) -> None:
    """Add a reason to leave the fast path, or to leave it after a failure only."""
    failure_blockers.append(None)
    if not failures_only:
        blockers.append(None)


def unblock(*, failures_only: bool = False) -> None:
    """Remove a reason that was added by `block`."""
    if not failures_only:
        blockers.pop()
    failure_blockers.pop()
