"""Which policies a POLICY on the command line means."""

import importlib
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from retrykit.checks import nearest, refuse
from retrykit.cli.flags import changed
from retrykit.decorators import policy_of
from retrykit.documents import document
from retrykit.errors import ConfigError
from retrykit.files import names_in, settings_in
from retrykit.policy import Policy
from retrykit.records import safe_text
from retrykit.schedules import Schedule
from retrykit.service_config import from_service_config
from retrykit.settings import recast
from retrykit.systems import BUILT_IN, settings_named

__all__ = ["chosen", "file_of", "imported", "is_policy", "meant"]

_FILE = re.compile(r"(?P<path>.+\.(?:toml|json))(?::(?P<name>.+))?")
_ATTRIBUTE = re.compile(r"(?P<module>[A-Za-z_][\w.]*):(?P<path>[A-Za-z_][\w.]*)")


def chosen(
    texts: Sequence[str], flags: Mapping[str, Any], *, most: int | None = None
) -> dict[str, Policy]:
    """Return the policies that are meant, by the names they are shown under.

    Args:
        texts: A POLICY each; none means the policy that the flags make.
        flags: What `policy_flags` gave: they change every one of the policies.
        most: How many there may be; None is unlimited.

    Raises:
        ConfigError: There is no such policy, or a flag is wrong.
    """
    for module in flags.get("imports", ()):
        imported(module)
    found: dict[str, Policy] = {}
    for text in texts:
        found |= {_free(name, found): policy for name, policy in meant(text).items()}
    if most is not None and len(found) > most:
        rule = f"one policy, as {texts[0]}:{next(iter(found))}"
        raise refuse("POLICY", rule, texts[0], f"it holds {', '.join(found)}")
    bases: dict[str, Policy | None] = {**found} or {"default": None}
    return {name: recast(changed(base, flags), Policy) for name, base in bases.items()}


def _free(name: str, taken: Mapping[str, object]) -> str:
    """Return a name that is not taken yet: the second of its kind is told so."""
    names = (name, *(f"{name} ({number})" for number in range(2, len(taken) + 2)))
    return next(each for each in names if each not in taken)


def meant(text: str) -> dict[str, Policy]:
    """Return the policies that a POLICY means, by their names.

    >>> meant("zizq:retry_limit=3")["zizq:retry_limit=3"].max_attempts
    4

    Raises:
        ConfigError: It means none.
    """
    if file := _FILE.fullmatch(text):
        if config := _service_config(file["path"]):
            policy = from_service_config(config, method=file["name"])
            return {file["name"] or Path(file["path"]).stem: policy}
        names = [file["name"]] if file["name"] else names_in(file["path"])
        return {name: recast(settings_in(file["path"], name), Policy) for name in names}
    attribute = _ATTRIBUTE.fullmatch(text)
    if attribute and attribute["module"].replace("_", "-") not in BUILT_IN:
        return {text: _policy_of(text, _found(attribute["module"], attribute["path"]))}
    return {text: recast(settings_named(text), Policy)}


def _service_config(path: str) -> dict[str, Any] | None:
    """Return what a file holds if that is a service config of gRPC."""
    data = document(path) if path.endswith(".json") else {}
    return data if data.keys() & {"methodConfig", "initialBackoff"} else None


def file_of(text: str) -> str | None:
    """Return the path of the file that a POLICY is in; None if it is in none."""
    file = _FILE.fullmatch(text)
    return file and file["path"]


def is_policy(text: str) -> bool:
    """Return whether a text names a policy without a module: no code is in it."""
    head = text.partition(":")[0].replace("_", "-")
    return file_of(text) is not None or head in BUILT_IN


def imported(name: str) -> ModuleType:
    """Import a module as one started here would: from this folder first.

    Raises:
        ConfigError: There is none, or it cannot be imported.
    """
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        told = f"{type(error).__name__}: {safe_text(error)}"
        msg = f"{name} must be a module that can be imported, got {told}"
        raise ConfigError(msg) from error


def _found(module: str, path: str) -> object:
    value: object = imported(module)
    for name in path.split("."):
        try:
            value = getattr(value, name)
        except AttributeError:
            text = f"{module}:{path}"
            there = nearest(name, dir(value)) or f"there is no {name}"
            raise refuse("POLICY", "what its module holds", text, there) from None
    return value


def _policy_of(text: str, value: object) -> Policy:
    if isinstance(value, Policy):
        return value
    if isinstance(value, Schedule):
        return Policy(schedule=value, max_attempts=None, max_elapsed=None)
    try:
        return policy_of(value)
    except ConfigError:
        rule = f"a policy, a schedule or a decorated function at {text}"
        raise refuse("POLICY", rule, value) from None
