"""Whether anything in this process asks the drivers to look twice.

Observers of the whole process and clocks that are handed in are rare, and
drivers are called often: they read one number here, and nothing else while it
is zero.
"""

import threading

__all__ = ["ask", "needed", "withdraw"]

needed: int = 0
"""How many reasons there are to look twice; read by the drivers at every call."""

_lock = threading.Lock()


def ask() -> None:
    """Count one more reason."""
    global needed  # noqa: PLW0603  a plain name, because nothing is read faster
    with _lock:
        needed += 1


def withdraw() -> None:
    """Count one reason less."""
    global needed  # noqa: PLW0603
    with _lock:
        needed -= 1
