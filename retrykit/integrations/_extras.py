"""Imports of optional libraries: an error names the extra that installs them."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["needs"]


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Import libraries of an extra in a ``with`` block.

    Raises:
        ImportError: One of them is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        message = f"{error.name} is not installed: pip install 'retrykit[{extra}]'"
        raise ImportError(message, name=error.name) from error
