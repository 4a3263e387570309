"""Policies in TOML and JSON files, by name, each possibly extending another.

A file is data: reading it imports no module and runs no code. Errors name the file
and the line.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from retrykit._internal.validation import (
    check_instance,
    did_you_mean,
    invalid_setting,
    safe_repr,
)
from retrykit.config.preset_names import BUILT_IN, parse_preset
from retrykit.errors import ConfigError
from retrykit.policy.policy import Policy
from retrykit.policy.serialization import policy_from_dict

__all__ = ["load_policy", "policy_names", "read_document"]


def policy_names(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of the policies in a file, in their order.

    Args:
        path: A file, as for `load_policy`.

    Raises:
        ConfigError: The file cannot be read, or has no table of policies.
    """
    return list(_policies(path))


def load_policy(path: str | os.PathLike[str], name: str) -> Policy:
    """Return the settings of one policy in a file.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "policies.toml")
    ...     _ = path.write_text('''
    ...         [policies.polite]
    ...         max_attempts = 8
    ...         schedule = "exponential('500ms').cap('1m').full_jitter()"
    ...         [policies.fetch]
    ...         extends = "polite"
    ...         max_attempts = 3
    ...     ''')
    ...     policy_names(path), load_policy(path, "fetch").max_attempts
    (['polite', 'fetch'], 3)

    Args:
        path: A TOML file with a table ``[tool.retrykit.policies.NAME]`` for each
            policy, as pyproject.toml, or ``[policies.NAME]`` if it has no table
            ``[tool.retrykit]``; or a ``.json`` file of the same structure.
        name: The name of the policy. Its settings are those that
            `Policy.from_dict` reads, and ``extends``, which names a policy of
            the same file, or a preset as `parse_preset` reads it: its
            settings hold where the policy has none of its own.

    Raises:
        ConfigError: The file cannot be read or has no such policy, or a setting
            is unknown or wrong. The error begins with the file.
    """
    policies = _policies(path)
    if check_instance("name", name, str) not in policies:
        rule = f"the name of a policy in {os.fspath(path)}"
        suggestion = did_you_mean(name, policies) or _there(policies)
        raise invalid_setting("name", rule, name, suggestion)
    chain, settings = _chain(path, policies, name)
    for each in reversed(chain):
        with _told_of(path, each):
            own = {key: x for key, x in policies[each].items() if key != "extends"}
            settings = settings.replace(**policy_from_dict(own))
    return settings


def _policies(path: str | os.PathLike[str]) -> dict[str, Any]:
    data = read_document(path)
    tool = data.get("tool")
    own = tool.get("retrykit") if isinstance(tool, dict) else None
    root, table = (data, "policies") if own is None else (own, "tool.retrykit.policies")
    policies = root.get("policies") if isinstance(root, dict) else root
    if isinstance(policies, dict):
        return policies
    rule = f"a file with a table [{table}] of tables by name"
    suggestion = "" if own is not None else "in pyproject.toml [tool.retrykit.policies]"
    got = list(root) if policies is None else policies
    places = {"tool.retrykit": own} if own is not None else {"": data, "tool": tool}
    for written, meant in _misspelt(places):
        got, suggestion = written, f"did you mean {meant}?"
    raise invalid_setting(os.fspath(path), rule, got, suggestion)


def _misspelt(places: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Give the tables whose names are nearly right, and what is right."""
    for place, table in places.items():
        known = "retrykit" if place == "tool" else "policies"
        for key in islice(table if isinstance(table, dict) else (), _MOST_COMPARED):
            if key != known and did_you_mean(key, [known]):
                yield f"{place}.{key}".lstrip("."), f"{place}.{known}".lstrip(".")


_MOST_COMPARED = 1000


def _chain(
    path: str | os.PathLike[str], policies: dict[str, Any], name: str
) -> tuple[list[str], Policy]:
    """Return a policy and those that it extends, and the settings of the last."""
    chain: dict[str, None] = {}
    while True:
        chain[name] = None
        with _told_of(path, name):
            own = policies[name]
            if not isinstance(own, dict):
                raise invalid_setting("policy", "a table of settings", own)
            if "extends" not in own:
                return list(chain), Policy()
            base = check_instance("extends", own["extends"], str)
            if base in chain:
                rule = "a policy that does not extend this one"
                raise invalid_setting(
                    "extends", rule, base, " -> ".join([*chain, base])
                )
            if base not in policies:
                return list(chain), _built_in(base, policies)
        name = base


def _built_in(text: str, policies: dict[str, Any]) -> Policy:
    known = [*policies, *BUILT_IN]
    if text.partition(":")[0].strip().replace("_", "-") not in BUILT_IN:
        rule = "a policy of the same file, or a preset"
        raise invalid_setting(
            "extends", rule, text, did_you_mean(text, known) or _there(known)
        )
    return parse_preset(text)


def _there(names: Iterable[str]) -> str:
    return f"there are {', '.join(names) or 'none'}"


@contextmanager
def _told_of(path: str | os.PathLike[str], name: str) -> Iterator[None]:
    """Let errors say which policy of which file they are about."""
    try:
        yield
    except ConfigError as error:
        msg = f"{os.fspath(path)}, policy {safe_repr(name)}: {error}"
        raise ConfigError(msg).with_traceback(error.__traceback__) from None


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
