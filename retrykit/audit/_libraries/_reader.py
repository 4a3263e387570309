"""Types of the functions that find the behavior of a library's calls."""

from collections.abc import Callable, Mapping

from retrykit.audit._sites import Behavior
from retrykit.audit._values import Call

__all__ = ["Reader", "Readers"]

Reader = Callable[[Call], Behavior | None]
"""Returns the behavior of a call to a library.

The result is None if the call is not known to retry, or if a call in its arguments is
reported instead.
"""

Readers = Mapping[str, Reader]
"""Readers, keyed by the name of the called object, without its module."""
