"""Flag that disables the drivers' fast path, for observers and test clocks.

These are rare, and drivers are called often: all they check is whether one list is
empty. Changes are single list operations, so threads, signal handlers and forks need
no lock.
"""

__all__ = ["block", "blockers", "unblock"]

blockers: list[None] = []
"""One item for each reason to leave the fast path; always the same list."""


def block() -> None:
    """Add a reason to leave the fast path."""
    blockers.append(None)


def unblock() -> None:
    """Remove a reason to leave the fast path."""
    blockers.pop()
