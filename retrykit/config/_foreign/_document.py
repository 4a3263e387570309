"""The data of a file of another system, and the lines of its values, where known."""

from pathlib import Path
from typing import Any, NamedTuple, final

from retrykit._internal.validation import invalid_setting
from retrykit.errors import ConfigError

__all__ = ["MOST_LEVELS", "MOST_VALUES", "Document", "Expression", "Place"]
__all__ += ["too_large"]

Place = tuple[str | int, ...]
"""Where a value is: the keys and indexes that lead to it."""


@final
class Expression(str):
    """The text of a value that is not plain data, such as a computed one."""

    __slots__ = ()


class Document(NamedTuple):
    """The data of a file.

    Attributes:
        name: The name of the file, for errors.
        data: The documents in the file, as a list: any number in YAML or in a JSON
            list, else one. For a file whose syntax is not known, its text.
        lines: The lines of values, from 1, keyed by place; empty if they are unknown.
    """

    name: str
    data: Any
    lines: dict[Place, int]


MOST_VALUES = 100_000
"""The maximum number of values in a file, counting each use of an alias."""

MOST_LEVELS = 100
"""The maximum number of levels in which the values of a file are nested."""


def too_large(path: Path) -> ConfigError:
    """Return the error for a file with more values, or levels, than are read."""
    rule = f"a file of at most {MOST_VALUES} values in {MOST_LEVELS} levels"
    return invalid_setting(str(path), rule, "more", code="unreadable-file")
