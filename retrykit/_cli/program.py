"""The program ``retrykit``: its commands, exit codes and error messages."""

import io
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click
from click.shell_completion import add_completion_class

from retrykit._cli.completion import BashComplete
from retrykit._cli.options import CONTEXT, debug
from retrykit._internal.validation import escape_unprintable
from retrykit.errors import ConfigError

__all__ = ["COMMANDS", "program", "run"]

COMMANDS = {
    "show": "Show every delay of a policy in a table.",
    "chart": "Draw the delays of policies as a chart.",
    "compare": "Compare two policies side by side.",
    "simulate": "Simulate what policies do to a server after an outage.",
    "audit": "Find what is wrong with retries in source code.",
    "lint": "Warn about problems in policies.",
    "migrate": "Translate tenacity, backoff, urllib3 and others to retrykit.",
    "convert": "Convert a policy to TOML, JSON, Python or gRPC.",
    "jobs": "List durable jobs, and control them.",
    "presets": "List the built-in policies, in groups.",
    "schema": "Print the JSON Schema of policy files.",
    "completion": "Print a shell completion script.",
}
"""The commands, each with the first line of its help."""


class _Commands(click.Group):
    """Group whose commands are imported on demand."""

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
        command: click.Command = import_module(f"retrykit._cli.{cmd_name}").command
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
        from retrykit import __version__  # noqa: PLC0415  it takes as long as the help

        click.echo(f"retrykit {__version__}")
        ctx.exit()


_EPILOG = """\b
Examples:
  retrykit show hostname-verification
  retrykit show zizq:retry_limit=10,jitter=5s --csv
  retrykit chart google zizq -o policies.html
  retrykit lint src/mypackage
  retrykit show pyproject.toml:fetch --max-attempts 8
  retrykit jobs list --app mypackage.jobs:SETTINGS --overdue 10m

\b
A POLICY is one of these:
  zizq:retry_limit=10      a preset, with or without parameters
  pyproject.toml:fetch     a policy in a TOML or JSON file
  envoy.yaml#checkout      a policy in a file of another system
  clients.py:fetch         a policy or decorated function in a Python file
  mypackage.clients:fetch  a policy or decorated function in a module
Options such as --max-attempts change it, or define a policy on their own.
Python files and modules are imported, which runs their code; lint only reads them.

\b
Run 'retrykit COMMAND --help' for more about a command."""


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
    """Show what retry policies do before they run, and check them."""


program.params.append(debug)
add_completion_class(BashComplete)


def run(args: Sequence[str]) -> int:
    """Run the program, print any error on one line, and return the exit code.

    With ``--debug``, the error is raised instead.
    """
    for stream in (sys.stdout, sys.stderr):
        # Its encoding may lack characters of a name.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        # Without arguments, click would print the help as an error.
        code = program.main(
            list(args) or ["--help"], prog_name="retrykit", standalone_mode=False
        )
    except click.Abort:
        return 130  # as shells do
    except Exception as error:
        if "--debug" in args:
            raise
        click.echo(f"retrykit: {escape_unprintable(_format_error(error))}", err=True)
        return 2
    return code if isinstance(code, int) else 0


def _format_error(error: Exception) -> str:
    """Return an error on one line."""
    from retrykit._internal.error_texts import safe_str  # noqa: PLC0415  not for --help

    if isinstance(error, click.UsageError):
        text = " ".join(error.format_message().split())
        stop = "" if text.endswith((".", "?")) else "."
        path = error.ctx.command_path if error.ctx else "retrykit"
        return f"{text}{stop} See {path} --help."
    if isinstance(error, ConfigError):
        from retrykit._cli.policies import format_config_error  # noqa: PLC0415

        return format_config_error(error)
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    text = " ".join(safe_str(error).split())
    return f"{type(error).__name__}: {text}; --debug shows the traceback"
