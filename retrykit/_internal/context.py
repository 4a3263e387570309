"""Overrides of a value in one context, or in the whole process.

A context is a context of `contextvars`: a thread or a task, with the tasks that it
starts. Process-wide changes are single list operations, so threads, signal handlers and
forks need no lock.
"""

from contextlib import suppress
from contextvars import ContextVar
from typing import Generic, Self, TypeVar

from retrykit._internal import fast_path
from retrykit._internal.validation import NestingError

__all__ = ["ContextOverride", "Override"]

T = TypeVar("T")


class ContextOverride(Generic[T]):
    """A value that can be overridden in one context, or process-wide."""

    __slots__ = ("_here", "_process_wide", "default")

    def __init__(self, default: T) -> None:
        self.default: T = default
        self._here: ContextVar[Override[T] | None]
        self._here = ContextVar("retrykit scope", default=None)
        self._process_wide: list[Override[T]] = []

    def get(self) -> T:
        """Return the value in this context."""
        here = self._here.get()
        if here is None and not self._process_wide:
            return self.default
        while here is not None and not here.valid:
            here = here.previous
        if here is not None:
            return here.value
        # A copy, since another thread may remove the last one meanwhile.
        last = self._process_wide[-1:]
        return last[0].value if last else self.default

    def push(self, what: str, value: T, *, process_wide: bool = False) -> "Override[T]":
        """Override the value until the returned override is closed.

        Args:
            what: The name of the override, for errors.
            value: The new value.
            process_wide: Whether the override applies to the whole process; by default
                only to this context.
        """
        override = Override(self, what, value, self._here.get())
        self._here.set(override)
        if process_wide:
            self._process_wide.append(override)
        fast_path.block()
        return override

    def remove(self, override: "Override[T]") -> None:
        """Remove an override.

        Raises:
            NestingError: It was not the innermost override of this context. It is
                removed nevertheless.
        """
        with suppress(ValueError):
            self._process_wide.remove(override)
        fast_path.unblock()
        innermost = here = self._here.get()
        if innermost is override:
            # A task that outlives the block keeps the override.
            self._here.set(override.previous)
            return
        override.valid = False
        while here is not None and here is not override:
            here = here.previous
        rule = "in the thread or task that opened it"
        if innermost is not None and here is not None:
            rule = f"after {innermost.what}, opened inside it"
        msg = f"{override.what} must be closed {rule}"
        raise NestingError(msg)


class Override(Generic[T]):
    """An override of a value, and a ``with`` block that ends it.

    Attributes:
        value: The value until the override ends.
        what: The name of the override, for errors.
        previous: The previous override of its context.
        valid: False after it was closed out of order.
    """

    __slots__ = ("_scope", "previous", "valid", "value", "what")

    def __init__(
        self,
        scope: ContextOverride[T],
        what: str,
        value: T,
        previous: "Override[T] | None",
    ) -> None:
        self._scope = scope
        self.what: str = what
        self.value: T = value
        self.previous: Override[T] | None = previous
        self.valid: bool = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._scope.remove(self)
