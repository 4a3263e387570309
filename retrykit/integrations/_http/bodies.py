"""Rewinding of request bodies, so that they can be sent again."""

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["Rewind", "build_rewind", "combine_rewinds", "no_rewind"]

Rewind = Callable[[], object]
"""Makes a body ready to be sent again."""


def no_rewind() -> None:
    """Do nothing: a body in memory can always be sent again."""


def build_rewind(source: Any) -> Rewind | None:
    """Return a function that makes the source of a body ready to be read again.

    >>> import io
    >>> file = io.BytesIO(b"head, body")
    >>> file.read(6), build_rewind(file)(), file.read()
    (b'head, ', 6, b'body')
    >>> build_rewind(iter([b"once"])) is None
    True

    Args:
        source: Bytes, a string, a file, or an iterable of chunks.

    Returns:
        A function that seeks a file back to its present position, and does nothing
        for bytes, a string, a list or a tuple. None if the source can, or may, be
        read only once: another iterable may be exhausted without telling, and would
        be sent again as an empty body.
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
        A function that raises the first error of a part; None if any part can be
        read only once.
    """
    parts = [*rewinds]
    known = [rewind for rewind in parts if rewind is not None]
    if len(known) < len(parts):
        return None

    def rewind_all() -> None:
        for rewind in known:
            rewind()

    return rewind_all
