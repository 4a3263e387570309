"""The program: its commands by name, and what becomes of an error.

What a command does is in the module of its name.
"""

import io
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click
from click.shell_completion import add_completion_class

from retrykit._internal.validation import escape_unprintable
from retrykit.cli.bash_completion import BashComplete
from retrykit.cli.options import CONTEXT, debug
from retrykit.errors import ConfigError

__all__ = ["COMMANDS", "program", "run"]

COMMANDS = {
    "show": "Show every delay of a policy as a table.",
    "chart": "Draw the band in which delays lie.",
    "compare": "Show two policies side by side.",
    "lint": "Warn of what is wrong with policies.",
    "convert": "Write a policy as TOML, JSON, Python or gRPC.",
    "presets": "List the policies that are built in.",
    "schema": "Print the JSON Schema of policies.",
    "completion": "Print the completion script of a shell.",
}
"""The commands, each with what it does in a line."""


class _Commands(click.Group):
    """Commands that are imported when they are run."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = [*COMMANDS, *(name for name in args[:1] if name.startswith("-"))]
        if args[0] not in known and not ctx.resilient_parsing:
            raise click.NoSuchCommand(args[0], possibilities=COMMANDS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"retrykit.cli.{cmd_name}").command
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _print_version(ctx: click.Context, _option: click.Parameter, value: Any) -> None:
    if value:
        # It takes longer than all of the help.
        from importlib.metadata import version  # noqa: PLC0415

        click.echo(f"retrykit {version('retrykit')}")
        ctx.exit()


_EPILOG = """\b
Examples:
  retrykit show hostname-verification
  retrykit show zizq:retry_limit=10,jitter=5s --csv
  retrykit chart google zizq -o policies.html
  retrykit lint src/mypackage
  retrykit show pyproject.toml:fetch --max-attempts 8

\b
A POLICY is a preset with parameters (zizq:retry_limit=10), a
module:attribute, a file and a name in it (pyproject.toml:fetch,
clients.py:fetch), or flags. A module or a .py file is imported for it,
which runs its code. 'retrykit COMMAND --help' says more."""


@click.group(cls=_Commands, context_settings=CONTEXT, epilog=_EPILOG)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)
def program() -> None:
    """See what a retry policy does before it runs, and keep it in order."""


program.params.append(debug)
add_completion_class(BashComplete)


def run(args: Sequence[str]) -> int:
    """Run the program, and tell its errors in a line each.

    Args:
        args: What stands after its name.

    Returns:
        The exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        # A name that a terminal cannot show is no reason to show nothing.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        # Without a word they are asked for help, and given it.
        code = program.main(
            list(args) or ["--help"], prog_name="retrykit", standalone_mode=False
        )
    except click.Abort:
        return _INTERRUPTED
    except Exception as error:
        if "--debug" in args:
            raise
        click.echo(f"retrykit: {escape_unprintable(_told(error))}", err=True)
        return 2
    return code if isinstance(code, int) else 0


# What shells say of a program that Ctrl-C ended.
_INTERRUPTED = 130


def _told(error: Exception) -> str:
    """Return what is wrong, in one line."""
    from retrykit.state.records import safe_str  # noqa: PLC0415  the help needs none

    if isinstance(error, click.UsageError):
        told = " ".join(error.format_message().split())
        stop = "" if told.endswith((".", "?")) else "."
        path = error.ctx.command_path if error.ctx else "retrykit"
        return f"{told}{stop} See {path} --help."
    if isinstance(error, ConfigError):
        told = " ".join(str(error).split())
        # Where there is no program, a flag is the way to import a module.
        return re.sub(r"; import ([\w.]+) first$", r"; add --import \1", told)
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    told = " ".join(safe_str(error).split())
    return f"{type(error).__name__}: {told}; --debug shows where"
