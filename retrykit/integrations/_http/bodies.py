"""Bodies of requests: which of them can be sent twice, and how.

What a client makes of a body is not known here.
"""

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["ready", "rewinding", "together"]


def ready() -> None:
    """Do nothing: what is in memory is always ready to be sent again."""


def rewinding(source: Any) -> Callable[[], object] | None:
    """Return what makes the source of a body ready to be read again.

    >>> import io
    >>> file = io.BytesIO(b"head, body")
    >>> file.read(6), rewinding(file)(), file.read()
    (b'head, ', 6, b'body')
    >>> rewinding(iter([b"once"])) is None
    True

    Args:
        source: Bytes, a text, a file, or what gives pieces of a body.

    Returns:
        A function that takes a file back to where it is now, and does nothing to
        bytes, a text, a list and a tuple; None if the source can be read once
        only, or may be: what else gives pieces does not tell whether it begins
        anew, and would be sent again with nothing in it.
    """
    if source is None or isinstance(source, str | bytes | bytearray):
        return ready
    if hasattr(source, "read"):
        return _back(source) if _seeks(source) else None
    return ready if isinstance(source, list | tuple) else None


def together(
    rewinds: Iterable[Callable[[], object] | None],
) -> Callable[[], object] | None:
    """Return what makes all parts of a body ready to be read again.

    Args:
        rewinds: What does so with each part; None for one that can be read once.

    Returns:
        A function that raises what the first part raises that cannot; None if a
        part can be read once only.
    """
    parts = [*rewinds]
    known = [each for each in parts if each is not None]
    if len(known) < len(parts):
        return None

    def rewind() -> None:
        for each in known:
            each()

    return rewind


def _seeks(file: Any) -> bool:
    """Return whether a file can be taken back."""
    try:
        return bool(file.seekable())
    except Exception:  # noqa: BLE001  it may be anyone's object
        return False


def _back(file: Any) -> Callable[[], object] | None:
    try:
        place = file.tell()
    except Exception:  # noqa: BLE001  it may be anyone's object
        return None
    return lambda: file.seek(place)
