"""What is opened by ``with`` and closed with it, once at a time.

It says where it was opened, for the error of who closes it in the wrong order.

Unlike `contextlib.contextmanager`, it makes nothing that decorates: above a
coroutine function that would open and close it before the first line runs.
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
    """A ``with`` block; its ``repr`` is the expression that opened it.

    Attributes:
        what: That expression, and the line where it was opened.
    """

    def __init__(self) -> None:
        self._opened: ExitStack | None = None
        self.what = repr(self)

    @abstractmethod
    def _open(self, opened: ExitStack) -> T:
        """Open what is to be closed with *opened*, and return what it gives."""

    def __enter__(self) -> T:
        if self._opened is not None:
            msg = f"{self!r} must be closed before it is opened again"
            raise NestingError(msg)
        caller = sys._getframe(1)  # noqa: SLF001  documented, and logging does it too
        at = f"{caller.f_code.co_filename}:{caller.f_lineno}"
        self.what = f"{self!r} (opened at {at})"
        with ExitStack() as opened:
            given = self._open(opened)
            self._opened = opened.pop_all()
        return given

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        if self._opened is None:
            msg = f"{self!r} must be opened before it is closed"
            raise NestingError(msg)
        opened, self._opened = self._opened, None
        opened.__exit__(kind, error, trace)
