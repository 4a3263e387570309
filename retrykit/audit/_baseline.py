"""Baselines: known findings, which are not reported again.

A finding is recognized by its file, function and rule, and by the text of its site. So
it may move within the file, and the audit may be given another path to the file.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, final

from retrykit._internal.validation import ConfigError, invalid_setting
from retrykit.audit._files import nearest_path, relative_path
from retrykit.audit._findings import Finding
from retrykit.audit._notebooks import file_of

__all__ = ["Baseline", "fingerprint"]

_VERSION = 2
_KEYS = ("path", "function", "rule", "hash")
_Key = tuple[str, str, str, str]


def fingerprint(finding: Finding, lines: Sequence[str], module: str) -> str:
    """Return a hash of a finding that stays the same if its lines move.

    Args:
        finding: The finding.
        lines: The lines of its file.
        module: The module name of the file, which depends on the folder that is
            audited.
    """
    site = finding.site
    words = " ".join(" ".join(lines[site.line - 1 : site.end_line]).split())
    # The full name of another file's function also depends on the folder.
    name = site.function.rpartition(".")[2]
    if site.function.startswith(f"{module}."):
        name = site.function.removeprefix(f"{module}.")
    text = f"{name}\n{finding.rule}\n{words}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@final
class Baseline:
    """Known findings.

    Args:
        keys: The path, function, rule and hash of each finding.
        root: The folder that paths are relative to.
    """

    def __init__(self, keys: Iterable[_Key], root: Path) -> None:
        self._known = Counter(keys)
        self._root = root.absolute()

    @classmethod
    def read(cls, path: str | Path) -> "Baseline":
        """Return the baseline that is stored in a file.

        Raises:
            ConfigError: The file cannot be read, or is not a baseline of this version.
        """
        file = Path(path)
        try:
            data = json.loads(file.read_text("utf-8"))
        except FileNotFoundError as error:
            nearest = nearest_path(path)
            raise _invalid(path, nearest or str(error.strerror)) from None
        except (OSError, ValueError, RecursionError) as error:
            reason = getattr(error, "strerror", None) or error
            raise _invalid(path, str(reason)) from None
        version = data.get("version") if isinstance(data, dict) else None
        if version != _VERSION:
            reason = f"its version is not {_VERSION}: write it again"
            raise _invalid(path, reason)
        entries = data.get("findings")
        if not isinstance(entries, list) or not all(map(_is_entry, entries)):
            raise _invalid(path, f"it has no list of findings with {', '.join(_KEYS)}")
        keys = [(x["path"], x["function"], x["rule"], x["hash"]) for x in entries]
        return cls(keys, file.parent)

    @classmethod
    def of(cls, findings: Iterable[Finding], path: str | Path) -> "Baseline":
        """Return a baseline of findings; paths are relative to the folder of *path*."""
        made = cls((), Path(path).parent)
        made._known.update(map(made._key, findings))
        return made

    def write(self, path: str | Path) -> None:
        """Write a sorted file, so that its diffs are easy to read."""
        findings = [
            dict(zip(_KEYS, each, strict=True))
            for each in sorted(self._known.elements())
        ]
        data = {"version": _VERSION, "findings": findings}
        Path(path).write_text(json.dumps(data, indent=1) + "\n", "utf-8")

    def remove(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings that are not known; a known one removes at most one."""
        left = self._known.copy()
        new = []
        for finding in findings:
            key = self._key(finding)
            if left[key] > 0:
                left[key] -= 1
            else:
                new.append(finding)
        return new

    def _key(self, finding: Finding) -> _Key:
        site = finding.site
        path = relative_path(file_of(site.path), self._root)
        name = site.function.rpartition(".")[2]
        return path, name, finding.rule, finding.fingerprint


def _invalid(path: str | Path, reason: str) -> ConfigError:
    rule = "a file that --write-baseline has written"
    return invalid_setting(
        "baseline", rule, os.fspath(path), reason, code="unreadable-file"
    )


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and all(
        isinstance(entry.get(each), str) for each in _KEYS
    )
