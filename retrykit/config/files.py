"""Policies in files, each by its name, with what it takes over from another.

A file is data: reading it imports no module and runs no code.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from retrykit._internal.validation import instance, nearest, refuse, told
from retrykit.config.documents import document
from retrykit.config.preset_names import BUILT_IN, settings_named
from retrykit.errors import ConfigError
from retrykit.policy.serialization import settings_from
from retrykit.policy.settings import Settings

__all__ = ["names_in", "settings_in"]


def names_in(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of the policies in a file, in their order.

    Args:
        path: A file, as for `settings_in`.

    Raises:
        ConfigError: The file cannot be read, or has no table of policies.
    """
    return list(_policies(path))


def settings_in(path: str | os.PathLike[str], name: str) -> Settings:
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
    ...     names_in(path), settings_in(path, "fetch").max_attempts
    (['polite', 'fetch'], 3)

    Args:
        path: A TOML file with a table ``[tool.retrykit.policies.NAME]`` for each
            policy, as pyproject.toml, or ``[policies.NAME]`` if it has no table
            ``[tool.retrykit]``; or a ``.json`` file of the same structure.
        name: The name of the policy. Its settings are those that
            `Policy.from_dict` reads, and ``extends``, which names a policy of
            the same file, or a dialect as `settings_named` reads it: its
            settings hold where the policy has none of its own.

    Raises:
        ConfigError: The file cannot be read or has no such policy, or a setting
            is unknown or wrong. The error begins with the file.
    """
    policies = _policies(path)
    if instance("name", name, str) not in policies:
        rule = f"the name of a policy in {os.fspath(path)}"
        way_out = nearest(name, policies) or _there(policies)
        raise refuse("name", rule, name, way_out)
    chain, settings = _chain(path, policies, name)
    for each in reversed(chain):
        with _told_of(path, each):
            own = {key: x for key, x in policies[each].items() if key != "extends"}
            settings = settings.replace(**settings_from(own))
    return settings


def _policies(path: str | os.PathLike[str]) -> dict[str, Any]:
    data = document(path)
    tool = data.get("tool")
    own = tool.get("retrykit") if isinstance(tool, dict) else None
    root, table = (data, "policies") if own is None else (own, "tool.retrykit.policies")
    policies = root.get("policies") if isinstance(root, dict) else root
    if isinstance(policies, dict):
        return policies
    rule = f"a file with a table [{table}] of tables by name"
    way_out = "" if own is not None else "in pyproject.toml [tool.retrykit.policies]"
    got = list(root) if policies is None else policies
    places = {"tool.retrykit": own} if own is not None else {"": data, "tool": tool}
    for written, meant in _misspelt(places):
        got, way_out = written, f"did you mean {meant}?"
    raise refuse(os.fspath(path), rule, got, way_out)


def _misspelt(places: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Give the tables whose names are nearly right, and what is right."""
    for place, table in places.items():
        known = "retrykit" if place == "tool" else "policies"
        for key in islice(table if isinstance(table, dict) else (), _MOST_COMPARED):
            if key != known and nearest(key, [known]):
                yield f"{place}.{key}".lstrip("."), f"{place}.{known}".lstrip(".")


_MOST_COMPARED = 1000


def _chain(
    path: str | os.PathLike[str], policies: dict[str, Any], name: str
) -> tuple[list[str], Settings]:
    """Return a policy and those that it extends, and the settings of the last."""
    chain: dict[str, None] = {}
    while True:
        chain[name] = None
        with _told_of(path, name):
            own = policies[name]
            if not isinstance(own, dict):
                raise refuse("policy", "a table of settings", own)
            if "extends" not in own:
                return list(chain), Settings()
            base = instance("extends", own["extends"], str)
            if base in chain:
                rule = "a policy that does not extend this one"
                raise refuse("extends", rule, base, " -> ".join([*chain, base]))
            if base not in policies:
                return list(chain), _built_in(base, policies)
        name = base


def _built_in(text: str, policies: dict[str, Any]) -> Settings:
    known = [*policies, *BUILT_IN]
    if text.partition(":")[0].strip().replace("_", "-") not in BUILT_IN:
        rule = "a policy of the same file, or a dialect"
        raise refuse("extends", rule, text, nearest(text, known) or _there(known))
    return settings_named(text)


def _there(names: Iterable[str]) -> str:
    return f"there are {', '.join(names) or 'none'}"


@contextmanager
def _told_of(path: str | os.PathLike[str], name: str) -> Iterator[None]:
    """Let errors say which policy of which file they are about."""
    try:
        yield
    except ConfigError as error:
        msg = f"{os.fspath(path)}, policy {told(name)}: {error}"
        raise ConfigError(msg).with_traceback(error.__traceback__) from None
