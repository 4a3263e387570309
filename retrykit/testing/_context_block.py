"""Base class of the ``with`` blocks of this package.

Unlike blocks made by `contextlib.contextmanager`, they cannot be used as decorators:
around a coroutine function, the block would be closed before the first line runs.
"""

import sys
from abc import abstractmethod
from contextlib import ExitStack
from types import TracebackType
from typing import Generic, TypeVar

from retrykit.errors import NestingError

__all__ = ["Block"]

T = TypeVar("T")


class Block(Generic[T]):
    """A ``with`` block; its ``repr`` is an expression that makes it.

    Attributes:
        what: That expression, for errors; once the block has been opened, followed by
            the line that opened it.
    """

    def __init__(self) -> None:
        self._opened: ExitStack | None = None
        self.what: str = repr(self)

    @abstractmethod
    def _open(self, opened: ExitStack) -> T:
        """Enter the parts of the block on *opened*, and return the block's value."""

    def __enter__(self) -> T:
        if self._opened is not None:
            msg = f"{self!r} must be closed before it is opened again"
            raise NestingError(msg)
        caller = sys._getframe(1)  # noqa: SLF001  documented, and logging does it too
        at = f"{caller.f_code.co_filename}:{caller.f_lineno}"
        self.what = f"{self!r} (opened at {at})"
        with ExitStack() as opened:
            value = self._open(opened)
            self._opened = opened.pop_all()
        return value

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._opened is None:
            msg = f"{self!r} must be opened before it is closed"
            raise NestingError(msg)
        opened, self._opened = self._opened, None
        opened.__exit__(kind, error, traceback)
