"""Imports of optional libraries: an error names the extra that installs them."""

from collections.abc import Iterator
from contextlib import contextmanager

from retrykit._internal.distribution import installed_by

__all__ = ["needs"]


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Return a context manager whose block imports libraries of an extra.

    Raises:
        ImportError: One of the libraries is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        # A namespace, such as google, is not the name of a library.
        library = extra if extra.startswith(f"{error.name}-") else error.name
        message = f"{library} is not installed; {installed_by(extra)}"
        raise ImportError(message, name=error.name) from error
