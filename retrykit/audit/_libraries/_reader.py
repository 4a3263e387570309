"""Readers of the calls of a library."""

from collections.abc import Callable, Mapping

from retrykit.audit._sites import Behavior
from retrykit.audit._values import Call

__all__ = ["Reader", "Readers"]

Reader = Callable[[Call], Behavior | None]
"""Returns what a call of a library does, or None if it retries nothing."""

Readers = Mapping[str, Reader]
"""Readers by the names of what is called, without their modules."""
