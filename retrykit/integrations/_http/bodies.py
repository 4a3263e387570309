"""Functions that rewind request bodies, so that they can be sent again."""

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["Rewind", "build_rewind", "combine_rewinds", "no_rewind"]

Rewind = Callable[[], object]
"""A function that makes a body ready to be sent again."""


def no_rewind() -> None:
    """Do nothing: a body in memory can always be sent again."""


def build_rewind(source: Any) -> Rewind | None:
    """Return a function that rewinds the source of a body.

    >>> import io
    >>> file = io.BytesIO(b"head, body")
    >>> file.read(6), build_rewind(file)(), file.read()
    (b'head, ', 6, b'body')
    >>> build_rewind(iter([b"once"])) is None
    True

    Args:
        source: Bytes, a string, a file, an iterable of chunks, or None.

    Returns:
        A function that seeks a file back to its current position, and does nothing for
        None, bytes, a string, a list or a tuple. None for a file that cannot seek, and
        for any other iterable: after the first send it may be exhausted, and would be
        sent as an empty body.
    """
    if source is None or isinstance(source, str | bytes | bytearray | list | tuple):
        return no_rewind
    if not hasattr(source, "read"):
        return None
    try:
        position = source.tell() if source.seekable() else None
    except Exception:  # noqa: BLE001  any object may pass for a file
        return None
    return None if position is None else lambda: source.seek(position)


def combine_rewinds(rewinds: Iterable[Rewind | None]) -> Rewind | None:
    """Return a function that rewinds all parts of a body.

    Returns:
        A function that rewinds the parts in order, and raises the first error;
        `no_rewind` if all parts are in memory; None if any part can be read only once.
    """
    parts = [*rewinds]
    known = [rewind for rewind in parts if rewind is not None]
    if len(known) < len(parts):
        return None
    if all(rewind is no_rewind for rewind in known):
        return no_rewind

    def rewind_all() -> None:
        for rewind in known:
            rewind()

    return rewind_all
