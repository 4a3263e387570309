"""Lines that have changed since a git revision."""

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from retrykit._internal.validation import (
    ConfigError,
    did_you_mean,
    invalid_setting,
    reworded,
    user_facing,
)

__all__ = ["Changes", "changed_lines", "touches"]

Changes = dict[str, list[tuple[int, int]]]
"""For the real path of each file, the first and the last line of each change."""

_SECONDS = 60.0
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_WHOLE = (1, 1 << 60)
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "r": "\r", "a": "\a"}
_ESCAPE = re.compile(r"\\([0-7]{3}|.)")


@user_facing
def changed_lines(
    revision: str, folder: str | Path, seconds: float = _SECONDS
) -> Changes:
    """Return the lines that have changed since a revision, and all lines of new files.

    Files that git ignores are left out.

    Args:
        revision: A commit, branch or tag, such as ``main``, or a range such as
            ``main...``.
        folder: A folder in the working tree.
        seconds: The time limit of each git command.

    Raises:
        ConfigError: The revision does not exist, git is missing or takes too long, or
            the folder is not in a repository.
    """
    if not revision or revision.startswith("-") or "\0" in revision:
        raise invalid_setting(
            "diff", "a revision of git", revision, code="unreadable-file"
        )
    top = os.path.realpath(
        _git(folder, seconds, "rev-parse", "--show-toplevel").strip("\n")
    )
    # Neither settings nor attributes of the repository change the output.
    options = ("-U0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")
    prefixes = ("--src-prefix=a/", "--dst-prefix=b/", "--no-relative")
    arguments = (*options, *prefixes, revision, "--")
    try:
        text = _git(top, seconds, "diff", *arguments)
    except ConfigError as error:
        names = _git(top, seconds, "for-each-ref", "--format=%(refname:short)")
        suggestion = did_you_mean(revision, names.splitlines())
        msg = f"{error.message}; {suggestion}" if suggestion else error.message
        raise reworded(error, msg) from None
    found = _parse(text, top)
    new = _git(top, seconds, "ls-files", "--others", "--exclude-standard", "-z")
    for each in new.split("\0")[:-1]:
        found[os.path.join(top, each)] = [_WHOLE]
    return found


def _git(folder: str | Path, seconds: float, *arguments: str) -> str:
    command = ["git", "-c", "core.quotepath=true", *arguments]
    try:
        done = subprocess.run(  # noqa: S603  no shell
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError:
        msg = "diff needs git, which is not installed"
        raise ConfigError(msg, "not-installed") from None
    except subprocess.TimeoutExpired:
        msg = f"git {arguments[0]} took more than {seconds:g} s"
        raise ConfigError(msg, "unreadable-file") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or [
            "failed"
        ]
        reason = lines[0].removeprefix("fatal: ")
        msg = f"diff: git {arguments[0]}: {reason}"
        raise ConfigError(msg, "unreadable-file")
    return os.fsdecode(done.stdout)


def _parse(text: str, top: str) -> Changes:
    found: Changes = {}
    lines: list[tuple[int, int]] = []
    left = 0
    for line in text.split("\n"):
        if left > 0 and line[:1] in ("+", "-", "\\"):
            # A line of a file may look like a header.
            left -= line[0] != "\\"
        elif line.startswith("+++ "):
            lines = []
            name = _unquote(line[4:].rstrip("\t"))
            if name != "/dev/null":
                found[os.path.join(top, name.removeprefix("b/"))] = lines
        elif hunk := _HUNK.match(line):
            removed, start, added = (int(x or 1) for x in hunk.groups())
            left = removed + added
            # Where lines were only removed, those around them have changed.
            lines.append((start, start + max(added - 1, 1 if not added else 0)))
    return found


def _unquote(name: str) -> str:
    if not name.startswith('"'):
        return name
    raw = _ESCAPE.sub(
        lambda x: chr(int(x[1], 8)) if x[1].isdigit() else _ESCAPES.get(x[1], x[1]),
        name[1:-1],
    )
    return os.fsdecode(raw.encode("latin-1", "replace"))


def touches(lines: Sequence[tuple[int, int]], first: int, last: int) -> bool:
    """Return whether any line from *first* to *last* has changed."""
    return any(start <= last and end >= first for start, end in lines)
