"""Policies in TOML and JSON files; a policy may extend another one, or a preset.

Reading a file imports no module and runs no code.
"""

import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from retrykit._core.policy import Policy
from retrykit._core.serialization import settings_from_dict
from retrykit._internal.validation import (
    check_instance,
    did_you_mean,
    invalid_setting,
    prefix_errors,
    safe_repr,
)
from retrykit.config._preset_names import BUILT_IN, parse_preset, preset_key
from retrykit.errors import ConfigError

__all__ = ["load_policy", "parse_json", "parse_json_value", "parse_toml"]
__all__ += ["policy_names", "read_document", "read_text", "syntax_error"]


def policy_names(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of the policies in a file, in the order of the file.

    Raises:
        ConfigError: The file cannot be read, or has no table of policies.
    """
    return list(_policies(path))


def load_policy(path: str | os.PathLike[str], name: str) -> Policy:
    """Return a policy from a file, as documented in `Policy.from_toml`."""
    policies = _policies(path)
    if check_instance("name", name, str) not in policies:
        rule = f"the name of a policy in {os.fspath(path)}"
        suggestion = did_you_mean(name, policies) or _list_names(policies)
        raise invalid_setting("name", rule, name, suggestion, code="unknown-name")
    chain, policy = _find_chain(path, policies, name)
    for each in reversed(chain):
        with prefix_errors(_locate(path, each)):
            own = {key: x for key, x in policies[each].items() if key != "extends"}
            policy = policy.replace(**settings_from_dict(own))
    return policy


def _policies(path: str | os.PathLike[str]) -> dict[str, Any]:
    data = read_document(path)
    tool = data.get("tool")
    own = tool.get("retrykit") if isinstance(tool, dict) else None
    root, table = (data, "policies") if own is None else (own, "tool.retrykit.policies")
    policies = root.get("policies") if isinstance(root, dict) else root
    if isinstance(policies, dict):
        return policies
    rule = f"a file with a table [{table}.NAME] for each policy"
    suggestion = "" if own is not None else "in pyproject.toml, under [tool.retrykit]"
    got = list(root) if policies is None else policies
    tables = {"tool.retrykit": own} if own is not None else {"": data, "tool": tool}
    for misspelled, known in _find_misspelled(tables):
        got, suggestion = misspelled, f"did you mean {known}?"
    raise invalid_setting(
        os.fspath(path), rule, got, suggestion, code="unreadable-file"
    )


def _find_misspelled(tables: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the misspelled names in tables, each with the right name."""
    for path, table in tables.items():
        known = "retrykit" if path == "tool" else "policies"
        for key in islice(table if isinstance(table, dict) else (), _MAX_COMPARED):
            if key != known and did_you_mean(key, [known]):
                yield f"{path}.{key}".lstrip("."), f"{path}.{known}".lstrip(".")


_MAX_COMPARED = 1000


def _find_chain(
    path: str | os.PathLike[str], policies: dict[str, Any], name: str
) -> tuple[list[str], Policy]:
    """Return the names of a policy and its ancestors, and the base of the oldest."""
    chain: dict[str, None] = {}
    while True:
        chain[name] = None
        with prefix_errors(_locate(path, name)):
            own = policies[name]
            if not isinstance(own, dict):
                raise invalid_setting("policy", "a table of settings", own)
            if "extends" not in own:
                return list(chain), Policy()
            base = check_instance("extends", own["extends"], str)
            if base in chain:
                rule = "a policy that does not extend this one"
                raise invalid_setting(
                    "extends",
                    rule,
                    base,
                    " -> ".join([*chain, base]),
                    code="contradiction",
                )
            if base not in policies:
                return list(chain), _load_preset(base, policies)
        name = base


def _load_preset(text: str, policies: dict[str, Any]) -> Policy:
    known = [*policies, *BUILT_IN]
    if preset_key(text) not in BUILT_IN:
        rule = "a policy in the same file, or a preset"
        raise invalid_setting(
            "extends",
            rule,
            text,
            did_you_mean(text, known) or _list_names(known),
            code="unknown-name",
        )
    return parse_preset(text)


def _list_names(names: Iterable[str]) -> str:
    listed = ", ".join(names)
    return f"the names are {listed}" if listed else "the file has none"


def _locate(path: str | os.PathLike[str], name: str) -> str:
    """Return the file and the name of a policy, for errors."""
    return f"{os.fspath(path)}, policy {safe_repr(name)}"


def read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the data of a file: JSON if its name ends in ``.json``, otherwise TOML.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "numbers.toml")
    ...     _ = path.write_text("[first] # comment")
    ...     read_document(path)
    {'first': {}}

    Raises:
        ConfigError: The file cannot be read, or is not valid.
    """
    try:
        file = Path(path)
    except TypeError:
        raise invalid_setting(
            "path", "the path of a file", path, code="unreadable-file"
        ) from None
    text = read_text(file)
    try:
        parse = parse_json if file.suffix.lower() == ".json" else parse_toml
        return parse(file, text)
    except RecursionError:
        msg = f"{file} must be less deeply nested, got more levels than Python can read"
        raise ConfigError(msg, "unreadable-file") from None


def read_text(file: Path) -> str:
    """Return the text of a file in UTF-8, without a byte order mark."""
    try:
        data = file.read_bytes()
    # ValueError: no file can have such a name, for example with a null character.
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        rule = "a readable file"
        raise invalid_setting(
            str(file), rule, reason, _list_files(file), code="unreadable-file"
        ) from None
    try:
        # Some editors start a file with a byte order mark, which no parser accepts.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        place = f"{file}, line {line},"
        wrong = data[error.start : error.start + 1]
        raise invalid_setting(
            place, "text in UTF-8", wrong, code="unreadable-file"
        ) from None


def _list_files(file: Path) -> str:
    """Return a suggestion with other TOML and JSON files in a folder; may be empty.

    The folder is *file* itself, or the folder that it is in.
    """
    try:
        folder = file if file.is_dir() else file.parent
        names = sorted(
            x.name for x in folder.iterdir() if x.suffix.lower() in _SUFFIXES
        )
    except (OSError, ValueError):
        return ""
    others = [name for name in names if name != file.name]
    more = ", ..." if len(others) > _MAX_LISTED else ""
    return f"the folder has {', '.join(others[:_MAX_LISTED])}{more}" if others else ""


_MAX_LISTED = 9
_SUFFIXES = {".json", ".toml"}


def parse_toml(file: Path, text: str) -> dict[str, Any]:
    """Return the data of a text in TOML."""
    import tomllib  # noqa: PLC0415  few programs read such files

    try:
        return tomllib.loads(text)
    except ValueError as error:
        found = _TOML_ERROR.fullmatch(str(error))
        reason, *place = found.groups() if found else (str(error),)
        if place and not any(place):
            *before, last = text.split("\n")
            place = [str(len(before) + 1), str(len(last) + 1)]
        raise syntax_error(file, "TOML", reason, *place) from None


# Reason, line and column in errors of tomllib; no numbers at the end of the file.
_TOML_ERROR = re.compile(
    r"(?s)(.*) \(at (?:line (\d+), column (\d+)|end of document)\)"
)


def parse_json(file: Path, text: str) -> dict[str, Any]:
    """Return the object that a text in JSON describes."""
    data = parse_json_value(file, text)
    if not isinstance(data, dict):
        raise invalid_setting(str(file), "a JSON object", data, code="unreadable-file")
    return data


def parse_json_value(file: Path, text: str) -> Any:
    """Return the data of a text in JSON."""
    import json  # noqa: PLC0415  few programs read such files

    try:
        return json.loads(text, object_pairs_hook=_check_unique)
    except json.JSONDecodeError as error:
        raise syntax_error(file, "JSON", error.msg, error.lineno, error.colno) from None
    except ValueError as error:
        raise syntax_error(file, "JSON", str(error)) from None


def _check_unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dict; raise a ValueError if a name is repeated."""
    data: dict[str, Any] = {}
    for name, value in pairs:
        if name in data:
            msg = f"cannot overwrite {name!r}"
            raise ValueError(msg)
        data[name] = value
    return data


def syntax_error(file: Path, kind: str, reason: str, *place: object) -> ConfigError:
    """Return the error for a file with a syntax error.

    Args:
        file: The file.
        kind: The syntax, such as TOML.
        reason: What is wrong.
        *place: The line and the column, from 1; or nothing.
    """
    at = " at line {}, column {}".format(*place) if place else ""
    reason = reason[:1].lower() + reason[1:]
    message = f"{file} must be {kind}, got a syntax error{at}; {reason}"
    return ConfigError(message, "unreadable-file")
