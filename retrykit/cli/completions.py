"""What a shell may complete: policies by their names, and the values of flags."""

import inspect
from collections.abc import Callable, Iterator
from glob import escape, glob
from pathlib import Path

import click

from retrykit.errors import ConfigError

__all__ = ["policies", "values"]


def values(*known: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return what completes one of these values, or several with commas between."""

    def complete(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
        before = typed[: typed.rfind(",") + 1]
        return [
            f"{before}{each}" for each in known if f"{before}{each}".startswith(typed)
        ]

    return complete


def policies(typed: str) -> Iterator[str]:
    """Give what a POLICY may be that begins so; no module is imported for it."""
    from retrykit.config.preset_names import BUILT_IN  # noqa: PLC0415  the help needs none

    yield from (name for name in BUILT_IN if name.startswith(typed))
    name, colon, rest = typed.partition(":")
    if colon and name in BUILT_IN:
        known = inspect.signature(BUILT_IN[name]).parameters
        given, comma, part = rest.rpartition(",")
        begun = f"{name}:{given}{comma}"
        yield from (f"{begun}{each}=" for each in known if each.startswith(part))
    elif colon and name.endswith((".toml", ".json")):
        yield from (each for each in _in_file(name) if each.startswith(typed))
    else:
        yield from _paths(typed)


def _in_file(path: str) -> Iterator[str]:
    from retrykit.config.files import policy_names  # noqa: PLC0415  the help needs none

    try:
        names = policy_names(path)
    except ConfigError:
        # What is wrong with the file is told when the command is run.
        return
    yield from (f"{path}:{name}" for name in names)


def _paths(typed: str) -> Iterator[str]:
    # Not Path.glob, which knows no pattern of another folder.
    for path in sorted(glob(f"{escape(typed)}*")):  # noqa: PTH207
        if Path(path).is_dir():
            yield f"{path}/"
        elif path.endswith((".toml", ".json", ".py")):
            yield path
