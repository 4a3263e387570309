"""Values that hold for a while: in one context, or in the whole process.

A context is that of `contextvars`: a thread or a task, with the tasks that it
starts. What is put there is not known here. To change what holds everywhere is
one operation of a list: no thread, signal handler or fork sees it half done, so
there is no lock.
"""

from contextlib import suppress
from contextvars import ContextVar
from types import TracebackType
from typing import Generic, Self, TypeVar, final

from retrykit._internal import fast_path
from retrykit.errors import NestingError

__all__ = ["ContextOverride", "Override"]

T = TypeVar("T")


@final
class ContextOverride(Generic[T]):
    """What is asked in every context: its own value, or that of everywhere.

    Args:
        default: What holds where nothing else does.
    """

    __slots__ = ("_here", "_process_wide", "default")

    def __init__(self, default: T) -> None:
        self.default = default
        self._here: ContextVar[Override[T] | None]
        self._here = ContextVar("retrykit scope", default=None)
        self._process_wide: list[Override[T]] = []

    def get(self) -> T:
        """Return what holds in this context."""
        here = self._here.get()
        if here is None and not self._process_wide:
            return self.default
        while here is not None and not here.valid:
            here = here.previous
        if here is not None:
            return here.value
        # A copy, since another thread may take the last one away meanwhile.
        last = self._process_wide[-1:]
        return last[0].value if last else self.default

    def push(self, what: str, value: T, *, process_wide: bool = False) -> "Override[T]":
        """Let *value* hold from now on, until what is returned is closed.

        Args:
            what: What is opened, as its user typed it, for the error.
            value: What holds.
            process_wide: Whether it holds in every context that has none of its
                own, too.
        """
        held = Override(self, what, value, self._here.get())
        self._here.set(held)
        if process_wide:
            self._process_wide.append(held)
        fast_path.block()
        return held

    def remove(self, held: "Override[T]") -> None:
        """Let what was held hold no more.

        Raises:
            NestingError: It is not the innermost one of this context.
        """
        with suppress(ValueError):
            self._process_wide.remove(held)
        fast_path.unblock()
        inner = here = self._here.get()
        if inner is held:
            # A task that goes on after the block keeps what it began with.
            self._here.set(held.previous)
            return
        held.valid = False
        while here is not None and here is not held:
            here = here.previous
        if inner is None or here is None:
            msg = f"{held.what} must be closed in the thread or task that opened it"
        else:
            msg = f"{held.what} must be closed after {inner.what}, opened inside of it"
        raise NestingError(msg)


@final
class Override(Generic[T]):
    """A value while it holds, and a ``with`` block for it.

    Attributes:
        value: What holds.
        what: What was opened, as its user typed it.
        previous: What held in its context before.
        valid: Whether it was not closed too early.
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
        self.what = what
        self.value = value
        self.previous = previous
        self.valid = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        self._scope.remove(self)
