"""Comments above usages that are left as they are."""

import textwrap
from collections.abc import Sequence
from typing import Final

import libcst as cst

from retrykit.migrate._width import WIDTH

__all__ = ["MARK", "with_comment", "without_comment"]

MARK: Final = "# retrykit migrate:"
"""The beginning of each comment."""

_MORE: Final = "#    "


def with_comment(
    lines: Sequence[cst.EmptyLine], reason: str, column: int, width: int = WIDTH
) -> list[cst.EmptyLine]:
    """Return the lines above a statement with one comment that gives a reason.

    Args:
        lines: The lines so far; a comment of an earlier run is replaced.
        reason: Why the usage is left as it is.
        column: The column of the statement, from 0.
        width: The maximum line length, in columns; the comment gets at least 40.
    """
    wrapped = textwrap.wrap(
        f"{MARK} {reason}",
        max(width - column, 40),
        subsequent_indent=f"{_MORE} ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    added = [cst.EmptyLine(indent=True, comment=cst.Comment(each)) for each in wrapped]
    return [*without_comment(lines), *added]


def without_comment(lines: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """Return the lines above a statement without the comments of an earlier run."""
    kept, inside = [], False
    for line in lines:
        text = "" if line.comment is None else line.comment.value
        inside = text.startswith(MARK) or (inside and text.startswith(_MORE))
        if not inside:
            kept.append(line)
    return kept
