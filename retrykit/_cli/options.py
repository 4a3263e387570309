"""Options and arguments that commands share, with their shell completion.

``--help`` imports this module, so modules that read policies are imported only when
they are needed.
"""

import inspect
import math
import re
from collections.abc import Callable, Iterator
from glob import escape, glob
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem
from click.types import StringParamType

from retrykit._internal.durations import parse_duration
from retrykit.errors import ConfigError

__all__ = ["CONTEXT", "PolicyText", "Share", "attempt", "complete_words", "debug"]
__all__ += [
    "duration",
    "make_command",
    "number_or_text",
    "policy_argument",
    "retries",
    "samples",
]

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 88}
"""Context settings of every command."""

debug = click.Option(
    ["--debug"], is_flag=True, expose_value=False, help="Show the traceback of errors."
)
"""An option of the program and of commands; `retrykit._cli.program.run` reads it."""


def make_command(
    name: str, *examples: str
) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator that makes a function a command, with examples in its help."""

    def decorator(function: Callable[..., Any]) -> click.Command:
        command = click.command(name, context_settings=CONTEXT)(function)
        lines = ["\b", "Examples:", *(f"  {line}" for line in examples)]
        if any(isinstance(each.type, PolicyText) for each in command.params):
            lines += ["", "See 'retrykit --help' for the forms of a POLICY."]
        command.epilog = "\n".join(lines)
        command.params.append(debug)
        return command

    return decorator


def complete_words(
    *words: str,
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return the completion of an option that takes words separated by commas."""

    def complete(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
        before = typed[: typed.rfind(",") + 1]
        values = (f"{before}{word}" for word in words)
        return [value for value in values if value.startswith(typed)]

    return complete


class PolicyText(StringParamType):
    """The type of a POLICY, which `retrykit._cli.policies.find_policies` reads."""

    name = "policy"

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the policies, parameters, files and folders that complete a text."""
        # Files are also plain words: an item of type "file" makes shells drop the rest.
        # Shells read one item per line, so a name must not have line breaks.
        values = _complete_policy(incomplete)
        return [CompletionItem(value) for value in values if value.isprintable()]


class Share(click.FloatRange):
    """A share of something, as a number or in percent: 0.5, 50%."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the share as a number."""
        number, sign, rest = str(value).strip().partition("%")
        try:
            share = float(number) / (100 if sign else 1)
        except ValueError:
            share = math.nan
        if rest or math.isnan(share):
            self.fail(f"{value!r} is not a share such as 0.5 or 50%.", param, ctx)
        return float(super().convert(share, param, ctx))


def number_or_text(
    _ctx: click.Context, _param: click.Parameter, value: str | None
) -> str | float | None:
    """Return an option's value as a number, or else unchanged, such as ``70%``."""
    try:
        return None if value is None else float(value)
    except ValueError:
        return value


def _complete_policy(typed: str) -> Iterator[str]:
    """Yield the completions of a POLICY, without importing the user's modules."""
    from retrykit.config._preset_names import BUILT_IN  # noqa: PLC0415  not for --help

    yield from (name for name in BUILT_IN if name.startswith(typed))
    name, colon, rest = typed.partition(":")
    if colon and name in BUILT_IN:
        parameters = inspect.signature(BUILT_IN[name]).parameters
        complete, comma, part = rest.rpartition(",")
        before = f"{name}:{complete}{comma}"
        yield from (f"{before}{each}=" for each in parameters if each.startswith(part))
    elif path := re.match(rf"(.+(?:{'|'.join(map(re.escape, _FILES))}))[:#]", typed):
        yield from (each for each in _policies_in(path[1]) if each.startswith(typed))
    else:
        yield from _complete_path(typed)


# Of `retrykit.config._foreign._loading.SUFFIXES`.
_FILES = (".toml", ".json", ".yaml", ".yml", ".tf", ".conf")


def _policies_in(path: str) -> Iterator[str]:
    from retrykit.config import foreign  # noqa: PLC0415  not for --help
    from retrykit.config._files import policy_names  # noqa: PLC0415  same

    try:
        yield from (f"{path}#{name}" for name in foreign.names(path))
        if path.endswith((".toml", ".json")):
            yield from (f"{path}:{name}" for name in policy_names(path))
    except (ConfigError, ImportError):
        # The command itself reports the error.
        return


def _complete_path(typed: str) -> Iterator[str]:
    # Path.glob cannot expand "../x*".
    for path in sorted(glob(f"{escape(typed)}*")):  # noqa: PTH207
        if Path(path).is_dir():
            yield f"{path}/"
        elif path.endswith((*_FILES, ".py")):
            yield path


policy_argument = click.argument("policy", required=False, type=PolicyText())
"""Argument for at most one POLICY."""


def duration(_ctx: click.Context, param: click.Parameter, value: str) -> float:
    """Return the value of an option as a duration in seconds."""
    return parse_duration(param.opts[0], value)


attempt = click.option(
    "--attempt",
    metavar="TIME",
    default="0s",
    show_default=True,
    callback=duration,
    help="Duration of each attempt.",
)
"""Option for the duration of each attempt, in seconds."""

retries = click.option(
    "--retries",
    metavar="N",
    type=click.IntRange(1, 10_000),
    help="Show the first N retries.",
)
"""Option for the number of retries to show."""

samples = click.option(
    "--samples",
    metavar="N",
    type=click.IntRange(min=0),
    default=2000,
    show_default=True,
    help="Calls to simulate if the totals cannot be computed exactly.",
)
"""Option for the number of calls to simulate."""
