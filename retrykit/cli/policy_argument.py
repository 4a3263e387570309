"""Which policies a POLICY on the command line means."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from retrykit._internal.validation import did_you_mean, invalid_setting
from retrykit.analysis.lint import discover, importing
from retrykit.cli.policy_overrides import changed
from retrykit.config.files import load_policy, policy_names, read_document
from retrykit.config.grpc_service_config import from_service_config
from retrykit.config.preset_names import BUILT_IN, parse_preset
from retrykit.errors import ConfigError
from retrykit.execution.decorators import policy_of
from retrykit.policy.policy import Policy
from retrykit.schedules import Schedule

__all__ = ["chosen", "file_of", "imported", "is_policy", "meant"]
__all__ += ["names_of"]

_FILE = re.compile(
    r"(?P<path>.+?\.(?:toml|json))(?::(?P<name>.+))?", re.IGNORECASE | re.DOTALL
)
_SCRIPT = re.compile(r".+\.py(?::.+)?")
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
    found: dict[str, Policy] = {}
    for text in texts:
        found |= {_free(name, found): policy for name, policy in meant(text).items()}
    if most is not None and len(found) > most:
        rule = f"one policy, as {texts[0]}:{next(iter(found))}"
        raise invalid_setting("POLICY", rule, texts[0], f"it holds {', '.join(found)}")
    bases: dict[str, Policy | None] = {**found} or {"default": None}
    return {name: changed(base, flags) for name, base in bases.items()}


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
            policy = _of_service(config, file)
            return {file["name"] or Path(file["path"]).stem: policy}
        names = [file["name"]] if file["name"] else policy_names(file["path"])
        return {name: load_policy(file["path"], name) for name in names}
    if _SCRIPT.fullmatch(text):
        return _written(text)
    attribute = _ATTRIBUTE.fullmatch(text)
    if attribute and not _is_preset(text):
        return {text: _policy_of(text, _found(attribute["module"], attribute["path"]))}
    if not _is_preset(text):
        rule = "a preset, a module:attribute, or a file and a name in it"
        there = did_you_mean(text.partition(":")[0], BUILT_IN)
        suggestion = there or f"the presets are {', '.join(BUILT_IN)}"
        raise invalid_setting("POLICY", rule, text, suggestion)
    return {text: parse_preset(text)}


def _written(text: str) -> dict[str, Policy]:
    """Return what a file of code holds, which is imported."""
    discovery = discover(text)
    for fault in discovery.unread:
        msg = f"{text} must be in a file that can be imported, got {fault.reason}"
        msg += f" at {fault.place}"
        raise ConfigError(msg)
    return {each.name: each.policy for each in discovery.found}


def _is_preset(text: str) -> bool:
    return text.partition(":")[0].strip().replace("_", "-") in BUILT_IN


def _service_config(path: str) -> dict[str, Any] | None:
    """Return what a file holds if that is a service config of gRPC."""
    data = read_document(path) if path.lower().endswith(".json") else {}
    return data if data.keys() & {"methodConfig", "initialBackoff"} else None


def file_of(text: str) -> str | None:
    """Return the path of the file that a POLICY is in; None if it is in none."""
    file = _FILE.fullmatch(text)
    return file and file["path"]


def _of_service(config: dict[str, Any], file: re.Match[str]) -> Policy:
    try:
        return from_service_config(config, method=file["name"])
    except ConfigError as error:
        msg = f"{file['path']}: {error}; write {file['path']}:package.Service/Method"
        raise ConfigError(msg) from None


def names_of(path: str) -> list[str]:
    """Return the names of the policies in a file; none in one of gRPC."""
    return [] if _service_config(path) else policy_names(path)


def is_policy(text: str) -> bool:
    """Return whether a text names a policy without a module: no code is in it."""
    return file_of(text) is not None or _is_preset(text)


def imported(name: str) -> ModuleType:
    """Import a module as ``python -m`` does: from this folder first.

    Raises:
        ConfigError: There is none, or it cannot be imported.
    """
    rule = "must be a module that can be imported"
    with importing.temporary_sys_path([Path.cwd()], forget=False):
        try:
            module = importing.imported(name)
        except ConfigError:
            msg = f"{name} {rule} from this folder, got none of that name"
            raise ConfigError(msg) from None
    if isinstance(module, ModuleType):
        return module
    where = f" at {module.place}" if module.place else ""
    msg = f"{name} {rule}, got {module.reason}{where}"
    raise ConfigError(msg)


def _found(module: str, path: str) -> object:
    value: object = imported(module)
    for name in path.split("."):
        try:
            value = getattr(value, name)
        except AttributeError:
            text = f"{module}:{path}"
            there = did_you_mean(name, dir(value)) or f"there is no {name}"
            raise invalid_setting(
                "POLICY", "what its module holds", text, there
            ) from None
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
        # Its type alone: the value may be long, and may hold a secret.
        raise invalid_setting("POLICY", rule, type(value)) from None
