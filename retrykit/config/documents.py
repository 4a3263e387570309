"""A TOML or JSON file as plain data; what is wrong with it is told with its place.

It knows nothing of policies.
"""

import os
import re
from pathlib import Path
from typing import Any

from retrykit._internal.validation import invalid_setting
from retrykit.errors import ConfigError

__all__ = ["read_document"]


def read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a file holds.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "numbers.toml")
    ...     _ = path.write_text("[first] # comment")
    ...     read_document(path)
    {'first': {}}

    Args:
        path: A file in UTF-8: JSON if its name ends in ``.json``, else TOML.

    Returns:
        A dict of dicts, lists, texts and numbers.

    Raises:
        ConfigError: There is no such file, it cannot be read, or it is no TOML
            or JSON.
    """
    try:
        file = Path(path)
    except TypeError:
        raise invalid_setting("path", "the path of a file", path) from None
    text = _text(file)
    try:
        return _json(file, text) if file.suffix == ".json" else _toml(file, text)
    except RecursionError:
        told = f"{file} must be nested some levels deep, got more than Python can read"
        raise ConfigError(told) from None


def _text(file: Path) -> str:
    try:
        data = file.read_bytes()
    # A ValueError where a name cannot be one of a file.
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        rule = "a file that can be read"
        raise invalid_setting(str(file), rule, reason, _beside(file)) from None
    try:
        # Some editors begin a file with a mark that no parser reads.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        place = f"{file}, line {line},"
        wrong = data[error.start : error.start + 1]
        raise invalid_setting(place, "text in UTF-8", wrong) from None


def _beside(file: Path) -> str:
    """Return which files there are to be read instead."""
    try:
        folder = file if file.is_dir() else file.parent
        names = sorted(x.name for x in folder.iterdir() if x.suffix in _SUFFIXES)
    except (OSError, ValueError):
        return ""
    others = [name for name in names if name != file.name]
    more = ", ..." if len(others) > _LISTED else ""
    return f"there are {', '.join(others[:_LISTED])}{more}" if others else ""


_LISTED = 9
_SUFFIXES = {".json", ".toml"}


def _toml(file: Path, text: str) -> dict[str, Any]:
    # Imported here, as in _json: only who reads such a file needs it.
    import tomllib  # noqa: PLC0415

    try:
        return tomllib.loads(text)
    except ValueError as error:
        found = _PLACE.fullmatch(str(error))
        told, *place = found.groups() if found else (str(error),)
        if place and not any(place):
            *before, last = text.split("\n")
            place = [str(len(before) + 1), str(len(last) + 1)]
        raise _broken(file, "TOML", told, *place) from None


# What tomllib says of a fault, and where; no place where the text is too short.
_PLACE = re.compile(r"(?s)(.*) \(at (?:line (\d+), column (\d+)|end of document)\)")


def _json(file: Path, text: str) -> dict[str, Any]:
    import json  # noqa: PLC0415

    try:
        data = json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise _broken(file, "JSON", error.msg, error.lineno, error.colno) from None
    except ValueError as error:
        raise _broken(file, "JSON", str(error)) from None
    if not isinstance(data, dict):
        raise invalid_setting(str(file), "a JSON object", data)
    return data


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, each of whose names is written once, as in TOML."""
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made:
            msg = f"cannot overwrite {name!r}"
            raise ValueError(msg)
        made[name] = value
    return made


def _broken(file: Path, kind: str, told: str, *place: object) -> ConfigError:
    at = " at line {}, column {}".format(*place) if place else ""
    told = told[:1].lower() + told[1:]
    return ConfigError(f"{file} must be {kind}, got a fault{at}; {told}")
