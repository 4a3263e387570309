"""Readers of the calls of a library."""

from collections.abc import Callable, Mapping

from retrykit.audit._sites import Behavior
from retrykit.audit._values import Call

__all__ = ["Reader", "Readers"]

Reader = Callable[[Call], Behavior | None]
"""Returns the behavior of a call of a library, or None if it retries nothing."""

Readers = Mapping[str, Reader]
"""Readers, keyed by the name of the called object, without its module."""
