"""Policies from the command line: POLICY arguments, options, environment variables."""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from retrykit._cli.modules import (
    attribute_of,
    find_attribute,
    import_here,
    import_script,
    policies_in,
)
from retrykit._cli.options import complete_words
from retrykit._core.decorators import policy_of
from retrykit._core.policy import Policy
from retrykit._core.settings import DeadlineRule, LimitRule
from retrykit._internal.validation import did_you_mean, invalid_setting, reworded
from retrykit.config._environment import MUTUALLY_EXCLUSIVE, policy_from_env
from retrykit.config._files import load_policy, policy_names, read_document
from retrykit.config._foreign import NAMES
from retrykit.config._foreign._loading import SUFFIXES
from retrykit.config._preset_names import BUILT_IN, LISTED, parse_preset, preset_key
from retrykit.config.grpc_service_config import from_service_config
from retrykit.errors import ConfigError
from retrykit.schedules import Schedule

__all__ = ["apply_flags", "file_of", "find_policies", "format_config_error"]
__all__ += [
    "is_attribute",
    "is_preset",
    "load_attribute",
    "policy_flags",
    "select_policies",
    "select_policy",
]
__all__ += ["split_file"]

F = TypeVar("F", bound=Callable[..., Any])

_RULES, _LIMIT_RULES = get_args(DeadlineRule), get_args(LimitRule)
# Metavar, help and words to complete.
_FLAGS = {
    "--schedule": ("TEXT", "Delays '1s, 5s, 1m', or an expression."),
    "--max-attempts": ("N", "Maximum number of attempts, or unlimited.", "unlimited"),
    "--max-elapsed": ("TIME", "Time limit of a call, or unlimited.", "unlimited"),
    "--limits": ("RULE", "Which limit ends a call: any or all.", *_LIMIT_RULES),
    "--deadline": ("RULE", "At the time limit: stop, clip or overshoot.", *_RULES),
    "--default-retry-limit": ("N", "Zizq: maximum number of retries."),
    "--default-backoff-base": ("TIME", "Zizq: base; in ms without a unit."),
    "--default-backoff-exponent": ("E", "Zizq: exponent."),
    "--default-backoff-jitter": ("TIME", "Zizq: jitter; in ms without a unit."),
}
# The environment variable that each flag overrides, without its prefix.
_KEYS = {
    flag: flag.removeprefix("--").removeprefix("default-").replace("-", "_").upper()
    for flag in _FLAGS
}


def _import_modules(ctx: click.Context, _param: click.Parameter, names: Any) -> None:
    for name in () if ctx.resilient_parsing else names:
        import_here(name)


_import_option = click.option(
    "--import",
    metavar="MODULE",
    multiple=True,
    expose_value=False,
    is_eager=True,
    callback=_import_modules,
    help="Import MODULE first, for exception types that a file names.",
)


def policy_flags(function: F, *, imports: Callable[[Any], Any] = _import_option) -> F:
    """Add the options that change or define a policy.

    Args:
        function: The function of a command.
        imports: The option ``--import``.
    """
    options = [
        click.option(
            flag, metavar=name, help=text, shell_complete=complete_words(*words)
        )
        for flag, (name, text, *words) in _FLAGS.items()
    ]
    text = "Apply environment variables such as PREFIX_MAX_ATTEMPTS."
    options.append(click.option("--env", metavar="PREFIX", help=text))
    from_ = click.option(
        "--from",
        "foreign_format",
        metavar="FORMAT",
        type=click.Choice(NAMES),
        expose_value=False,
        is_eager=True,
        callback=_keep,
        help=f"Format of a file of another system: {', '.join(NAMES)}.",
    )
    closest = click.option(
        "--closest",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_keep,
        help="Read what a policy cannot express exactly, and list the differences.",
    )
    for option in (closest, from_, imports, *reversed(options)):
        function = option(function)
    return function


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    ctx.meta[f"retrykit.{param.name}"] = value


def _kept(name: str) -> Any:
    ctx = click.get_current_context(silent=True)
    return ctx and ctx.meta.get(f"retrykit.{name}")


def format_config_error(error: ConfigError) -> str:
    """Return an error on one line, with options in place of Python code."""
    text = " ".join(error.message.split())
    text = re.sub(r"; closest=True reads", "; --closest reads", text)
    text = re.sub(r"; import ([\w.]+) first$", r"; add --import \1", text)
    return str(reworded(error, text))


def apply_flags(base: Policy | None, flags: Mapping[str, Any]) -> Policy:
    """Return a policy with the changes of environment variables and flags.

    Flags override environment variables. If *base* is None, the default policy is
    changed.

    >>> flags = {"default_retry_limit": "3", "env": None}
    >>> apply_flags(None, flags).max_attempts
    4
    """
    stem = (flags.get("env") or "FLAG").removesuffix("_")
    environ = dict(os.environ) if flags.get("env") else {}
    texts = {key: flags.get(flag[2:].replace("-", "_")) for flag, key in _KEYS.items()}
    # A flag also overrides the variable that sets the same thing in another way.
    for pair in MUTUALLY_EXCLUSIVE:
        for key, rival in (pair, reversed(pair)):
            if texts[key] is not None:
                environ.pop(f"{stem}_{rival}", None)
    environ |= {
        f"{stem}_{key}": text for key, text in texts.items() if text is not None
    }
    # Errors name the flag, unless only the variable is set.
    display_names = {
        f"{stem}_{key}": flag
        for flag, key in _KEYS.items()
        if texts[key] is not None or not environ.get(f"{stem}_{key}")
    }
    return policy_from_env(stem, environ, base=base, display_names=display_names)


def select_policy(text: str | None, flags: Mapping[str, Any]) -> tuple[str, Policy]:
    """Return the name and the policy of a POLICY that selects a single policy.

    The flags change this policy; if *text* is None, they define it.

    Raises:
        ConfigError: *text* does not select a single policy, or a flag or an
            environment variable is invalid.
    """
    several = [] if text is None else split_file(text)
    if text is not None and len(several) > 1:
        raise _not_single(text, several[0], (each[len(text) + 1 :] for each in several))
    selected = select_policies([] if text is None else [text], flags)
    if len(selected) > 1:
        raise _not_single(text, f"{text}:{next(iter(selected))}", selected)
    [item] = selected.items()
    return item


def _not_single(text: str | None, example: str, names: Iterable[str]) -> ConfigError:
    rule = f"a single policy, such as {example}"
    suggestion = f"it contains {', '.join(names)}"
    return invalid_setting("POLICY", rule, text, suggestion)


def select_policies(
    texts: Sequence[str], flags: Mapping[str, Any]
) -> dict[str, Policy]:
    """Return policies, changed by the flags and keyed by the names to show.

    Without any POLICY, the flags define the only policy, named ``default``.
    """
    found: dict[str, Policy] = {}
    for text in texts:
        policies = find_policies(text)
        if not policies:
            raise invalid_setting(
                "POLICY", "a file with policies", text, code="unreadable-file"
            )
        for name, policy in policies.items():
            names = chain([name], (f"{name} ({number})" for number in count(2)))
            found[next(each for each in names if each not in found)] = policy
    bases: dict[str, Policy | None] = {**found} or {"default": None}
    return {name: apply_flags(base, flags) for name, base in bases.items()}


_SUFFIXES = "|".join(suffix[1:] for suffix in SUFFIXES)
_FILE = re.compile(
    rf"(?P<path>.+?\.(?:{_SUFFIXES}))(?:[:#](?P<name>.+))?", re.IGNORECASE | re.DOTALL
)
_SCRIPT = re.compile(r"(?P<path>.+\.py)(?::(?P<name>.+))?")
_ATTRIBUTE = re.compile(r"(?P<module>[A-Za-z_][\w.]*):(?P<path>[A-Za-z_][\w.]*)")


def find_policies(text: str) -> dict[str, Policy]:
    """Return the policies that a POLICY selects, keyed by name.

    >>> find_policies("zizq:retry_limit=3")["zizq:retry_limit=3"].max_attempts
    4
    """
    if file := _FILE.fullmatch(text):
        path, name = file["path"], file["name"]
        if _is_foreign(path):
            return _read_foreign(path, name)
        if config := _read_service_config(path):
            return {name or Path(path).stem: _load_service(config, path, name)}
        names = [name] if name else policy_names(path)
        return {name: load_policy(path, name) for name in names}
    if script := _SCRIPT.fullmatch(text):
        return _read_script(text, script["path"], script["name"])
    if is_preset(text):
        return {text: parse_preset(text)}
    if _ATTRIBUTE.fullmatch(text):
        return {text: load_attribute(text)}
    rule = "a preset, a file.toml:name or a module:attribute"
    similar = did_you_mean(text.partition(":")[0], BUILT_IN)
    suggestion = similar or f"presets: {LISTED}"
    raise invalid_setting("POLICY", rule, text, suggestion, code="unknown-name")


def _read_script(text: str, path: str, name: str | None) -> dict[str, Policy]:
    module = import_script(path, text)
    if name is None:
        return policies_in(module)
    return {name: _as_policy(text, attribute_of(module, "POLICY", text, name))}


def _is_foreign(path: str) -> bool:
    """Return whether to read a file as one of another system, and not of retrykit."""
    if _kept("foreign_format") or not path.lower().endswith((".toml", ".json")):
        return True
    if {"policies", "tool"} & read_document(path).keys() or _read_service_config(path):
        return False
    return bool(_foreign_names(path))


def _foreign_names(path: str) -> list[str]:
    # Imported here: few POLICYs are in files of other systems.
    from retrykit.config import foreign  # noqa: PLC0415

    return foreign.names(path, format=_kept("foreign_format"))


def _read_foreign(path: str, name: str | None) -> dict[str, Policy]:
    from retrykit.config import foreign  # noqa: PLC0415  see above

    format_, closest = _kept("foreign_format"), bool(_kept("closest"))
    found: dict[str, Policy] = {}
    names = _foreign_names(path)
    for each in [name] if name or not names else names:
        reading = foreign.read(path, each, format=format_, closest=closest)
        found[reading.name or Path(path).stem] = reading.policy
        for text in reading.differences:
            click.echo(f"differs: {text}", err=True)
        for text in reading.notes:
            click.echo(f"note: {text}", err=True)
    return found


def file_of(text: str) -> str | None:
    """Return the path of a POLICY's data file, such as a TOML file, or None."""
    file = _FILE.fullmatch(text)
    return file and file["path"]


def split_file(text: str) -> list[str]:
    """Return a POLICY for each policy of a file; *text* alone if it cannot be split."""
    if file_of(text) != text:
        return [text]
    if _is_foreign(text):
        names = _foreign_names(text)
        return [f"{text}#{name}" if name else text for name in names] or [text]
    if _read_service_config(text):
        return [text]
    return [f"{text}:{name}" for name in policy_names(text)]


def is_preset(text: str) -> bool:
    """Return whether a POLICY is a preset."""
    return preset_key(text) in BUILT_IN


def is_attribute(text: str) -> bool:
    """Return whether a POLICY names an attribute of a Python file or module."""
    script = _SCRIPT.fullmatch(text)
    return bool(script["name"] if script else _ATTRIBUTE.fullmatch(text))


def _read_service_config(path: str) -> dict[str, Any] | None:
    """Return the gRPC service config in a file; None if it has none."""
    data = read_document(path) if path.lower().endswith(".json") else {}
    return data if data.keys() & {"methodConfig", "initialBackoff"} else None


def _load_service(config: dict[str, Any], path: str, method: str | None) -> Policy:
    try:
        return from_service_config(config, method=method)
    except ConfigError as error:
        suggestion = ""
        if method is None and error.message.startswith("method "):
            suggestion = f"; write {path}:package.Service/Method"
        msg = f"{path}: {error.message}{suggestion}"
        raise reworded(error, msg) from None


def load_attribute(text: str) -> Policy:
    """Return the policy of a ``module:attribute``, whose module is imported."""
    attribute = _ATTRIBUTE.fullmatch(text)
    if not attribute:
        raise invalid_setting(
            "--import", "a module or a module:attribute", text, code="unknown-name"
        )
    module, path = attribute["module"], attribute["path"]
    return _as_policy(text, find_attribute("POLICY", text, module, path))


def _as_policy(text: str, value: object) -> Policy:
    if isinstance(value, Policy):
        return value
    if isinstance(value, Schedule):
        return Policy(schedule=value, max_attempts=None)
    try:
        return policy_of(value)
    except ConfigError:
        rule = f"a policy, a schedule or a decorated function at {text}"
        # Not the value, which may be long, or contain a secret.
        raise invalid_setting(
            "POLICY", rule, type(value), code="unknown-name"
        ) from None
