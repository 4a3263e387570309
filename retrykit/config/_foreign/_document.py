"""The data of a file of another system, with the line of each value."""

from typing import Any, NamedTuple, final

__all__ = ["Document", "Expression", "Place"]

Place = tuple[str | int, ...]
"""Where a value is: the keys and indexes that lead to it."""


@final
class Expression(str):
    """A value that only the system itself can compute, as it is written."""

    __slots__ = ()


class Document(NamedTuple):
    """The data of a file.

    Attributes:
        name: The name of the file, for errors.
        data: The documents in the file, one but for YAML; or the text of a file in a
            format of its own.
        lines: The lines of values, from 1, by their places.
    """

    name: str
    data: Any
    lines: dict[Place, int]
