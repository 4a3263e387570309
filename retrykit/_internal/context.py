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

__all__ = ["Holding", "Scoped"]

T = TypeVar("T")


@final
class Scoped(Generic[T]):
    """What is asked in every context: its own value, or that of everywhere.

    Args:
        default: What holds where nothing else does.
    """

    __slots__ = ("_everywhere", "_here", "default")

    def __init__(self, default: T) -> None:
        self.default = default
        self._here: ContextVar[Holding[T] | None]
        self._here = ContextVar("retrykit scope", default=None)
        self._everywhere: list[Holding[T]] = []

    def get(self) -> T:
        """Return what holds in this context."""
        here = self._here.get()
        if here is None and not self._everywhere:
            return self.default
        while here is not None and not here.valid:
            here = here.below
        if here is not None:
            return here.value
        # A copy, since another thread may take the last one away meanwhile.
        last = self._everywhere[-1:]
        return last[0].value if last else self.default

    def hold(self, what: str, value: T, *, everywhere: bool = False) -> "Holding[T]":
        """Let *value* hold from now on, until what is returned is closed.

        Args:
            what: What is opened, as its user typed it, for the error.
            value: What holds.
            everywhere: Whether it holds in every context that has none of its
                own, too.
        """
        held = Holding(self, what, value, self._here.get())
        self._here.set(held)
        if everywhere:
            self._everywhere.append(held)
        fast_path.ask()
        return held

    def release(self, held: "Holding[T]") -> None:
        """Let what was held hold no more.

        Raises:
            NestingError: It is not the innermost one of this context.
        """
        with suppress(ValueError):
            self._everywhere.remove(held)
        fast_path.withdraw()
        inner = here = self._here.get()
        if inner is held:
            # A task that goes on after the block keeps what it began with.
            self._here.set(held.below)
            return
        held.valid = False
        while here is not None and here is not held:
            here = here.below
        if inner is None or here is None:
            msg = f"{held.what} must be closed in the thread or task that opened it"
        else:
            msg = f"{held.what} must be closed after {inner.what}, opened inside of it"
        raise NestingError(msg)


@final
class Holding(Generic[T]):
    """A value while it holds, and a ``with`` block for it.

    Attributes:
        value: What holds.
        what: What was opened, as its user typed it.
        below: What held in its context before.
        valid: Whether it was not closed too early.
    """

    __slots__ = ("_scope", "below", "valid", "value", "what")

    def __init__(
        self, scope: Scoped[T], what: str, value: T, below: "Holding[T] | None"
    ) -> None:
        self._scope = scope
        self.what = what
        self.value = value
        self.below = below
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
        self._scope.release(self)
