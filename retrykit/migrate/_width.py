"""The maximum line length of a project, by the settings of its formatter or linter."""

import tomllib
from collections.abc import Mapping
from configparser import ConfigParser, Error
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

__all__ = ["WIDTH", "find_width"]

WIDTH: Final = 88
"""The maximum line length by default, in columns, as in ruff and black."""

_OF_FLAKE8: Final = 79
_RUFF: Final = ("ruff.toml", ".ruff.toml")
_FLAKE8: Final = (".flake8", "setup.cfg", "tox.ini")
_SHORTEST: Final = 40


def find_width(path: Path) -> int:
    """Return the maximum line length of a file, in columns.

    It is set for ruff, black or flake8 in the nearest folder above the file that has
    settings of one of them; a length below 40 counts as 40. Without settings, it is
    `WIDTH`.
    """
    return _width_of(path.absolute().parent)


@lru_cache(maxsize=1024)
def _width_of(folder: Path) -> int:
    found = _settings_in(folder)
    if found is not None:
        return max(found, _SHORTEST)
    return WIDTH if folder.parent == folder else _width_of(folder.parent)


def _settings_in(folder: Path) -> int | None:
    for name in _RUFF:
        if (folder / name).is_file():
            return _length(_read_toml(folder / name))
    tools = _read_toml(folder / "pyproject.toml").get("tool", {})
    for name in ("ruff", "black"):
        if name in tools:
            return _length(tools[name])
    for name in _FLAKE8:
        found = _flake8(folder / name)
        if found is not None:
            return found
    return None


def _length(settings: Mapping[str, Any]) -> int:
    found = settings.get("line-length")
    return found if isinstance(found, int) else WIDTH


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}


def _flake8(path: Path) -> int | None:
    settings = ConfigParser(interpolation=None)
    try:
        settings.read(path, "utf-8")
        if not settings.has_section("flake8"):
            return None
        text = settings["flake8"]
        found = text.get("max-line-length", text.get("max_line_length", ""))
        return int(found)
    except Error:
        return None
    except (OSError, ValueError):
        return _OF_FLAKE8
