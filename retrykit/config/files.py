"""Policies in files, each by its name, with what it takes over from another.

A file is data: reading it imports no module and runs no code.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from retrykit._internal.validation import (
    check_instance,
    did_you_mean,
    invalid_setting,
    safe_repr,
)
from retrykit.config.documents import read_document
from retrykit.config.preset_names import BUILT_IN, parse_preset
from retrykit.errors import ConfigError
from retrykit.policy.serialization import policy_from_dict
from retrykit.policy.settings import Settings

__all__ = ["load_policy", "policy_names"]


def policy_names(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of the policies in a file, in their order.

    Args:
        path: A file, as for `load_policy`.

    Raises:
        ConfigError: The file cannot be read, or has no table of policies.
    """
    return list(_policies(path))


def load_policy(path: str | os.PathLike[str], name: str) -> Settings:
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
) -> tuple[list[str], Settings]:
    """Return a policy and those that it extends, and the settings of the last."""
    chain: dict[str, None] = {}
    while True:
        chain[name] = None
        with _told_of(path, name):
            own = policies[name]
            if not isinstance(own, dict):
                raise invalid_setting("policy", "a table of settings", own)
            if "extends" not in own:
                return list(chain), Settings()
            base = check_instance("extends", own["extends"], str)
            if base in chain:
                rule = "a policy that does not extend this one"
                raise invalid_setting(
                    "extends", rule, base, " -> ".join([*chain, base])
                )
            if base not in policies:
                return list(chain), _built_in(base, policies)
        name = base


def _built_in(text: str, policies: dict[str, Any]) -> Settings:
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
