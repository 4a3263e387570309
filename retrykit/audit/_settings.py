"""Audit settings in ``pyproject.toml``."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, final

from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import (
    ConfigError,
    did_you_mean,
    invalid_setting,
    prefix_errors,
)
from retrykit.audit._rules import RULES

__all__ = ["Settings", "check_rules", "find_settings"]

_LIST = "retrykit audit --rules lists them"
_KEYS = ("select", "ignore", "exclude", "per-file-ignores", "baseline")


@final
class Settings(Frozen):
    """Settings of an audit.

    Attributes:
        root: The folder of the file with the settings, or None.
        select: The codes of the only rules to apply; None for all.
        ignore: The codes of rules to skip.
        exclude: Patterns of paths or names to skip, relative to *root*.
        per_file_ignores: The codes of rules to skip, keyed by pattern of paths.
        baseline: The path of the baseline, or None.
    """

    __slots__ = ("baseline", "exclude", "ignore", "per_file_ignores", "root", "select")
    root: Path | None
    select: tuple[str, ...] | None
    ignore: tuple[str, ...]
    exclude: tuple[str, ...]
    per_file_ignores: Mapping[str, tuple[str, ...]]
    baseline: Path | None


_NONE = Settings(None, None, (), (), {}, None)


def find_settings(path: str | Path) -> Settings:
    """Return the audit settings of the nearest ``pyproject.toml`` that has any.

    Args:
        path: A file or a folder; the search begins there, and continues in the folders
            above.

    Returns:
        The settings; if there are none, those that apply all rules to all files.

    Raises:
        ConfigError: A ``pyproject.toml`` cannot be read, or has an invalid setting.
    """
    here = Path(path).absolute()
    for folder in (here, *here.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            table = _read(file)
            if table is not None:
                with prefix_errors(f"{file}, [tool.retrykit.audit]"):
                    return _parse(folder, table)
    return _NONE


def _read(file: Path) -> Any:
    try:
        data: Any = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        msg = f"{file}: {reason}"
        raise ConfigError(msg, "unreadable-file") from None
    for name in ("tool", "retrykit", "audit"):
        data = data.get(name) if isinstance(data, dict) else None
    return data


def _parse(root: Path, table: Any) -> Settings:
    if not isinstance(table, dict):
        raise invalid_setting("audit", "a table", table)
    for key in table:
        if key not in _KEYS:
            rule = f"one of {', '.join(_KEYS)}"
            raise invalid_setting(
                "key", rule, key, did_you_mean(key, _KEYS), code="unknown-name"
            )
    per_file = table.get("per-file-ignores", {})
    if not isinstance(per_file, dict):
        raise invalid_setting("per-file-ignores", "a table", per_file)
    baseline = table.get("baseline")
    if not isinstance(baseline, str | None):
        raise invalid_setting("baseline", "a path", baseline)
    select = table.get("select")
    return Settings(
        root,
        None if select is None else _rules("select", select),
        _rules("ignore", table.get("ignore", [])),
        _texts("exclude", table.get("exclude", [])),
        {
            pattern: _rules(f"per-file-ignores of {pattern!r}", codes)
            for pattern, codes in per_file.items()
        },
        None if baseline is None else root / baseline,
    )


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(x, str) for x in value):
        raise invalid_setting(name, "a list of strings", value)
    return tuple(value)


def _rules(name: str, value: Any) -> tuple[str, ...]:
    return check_rules(name, _texts(name, value))


def check_rules(name: str, codes: Iterable[str]) -> tuple[str, ...]:
    """Return the codes of rules as a tuple.

    Raises:
        ConfigError: A code is unknown.
    """
    found = tuple(codes)
    for each in found:
        if each not in RULES:
            suggestion = did_you_mean(each, RULES) or _LIST
            raise invalid_setting(
                name, "the code of a rule", each, suggestion, code="unknown-name"
            )
    return found
