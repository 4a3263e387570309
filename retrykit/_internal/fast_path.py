"""Whether anything in this process asks the drivers to look twice.

Observers of the whole process and clocks that are handed in are rare, and
drivers are called often: they look at one list here, and at nothing else while
it is empty. To change it is one operation of a list: no thread, signal handler
or fork sees it half done, so there is no lock.
"""

__all__ = ["block", "blockers", "unblock"]

blockers: list[None] = []
"""One item for each reason to look twice; always the same list."""


def block() -> None:
    """Give one more reason."""
    blockers.append(None)


def unblock() -> None:
    """Take one reason back."""
    blockers.pop()
