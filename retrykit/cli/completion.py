"""``retrykit completion``: what lets a shell complete commands and policies."""

import click
from click.shell_completion import get_completion_class

from retrykit.cli.options import command_of

__all__ = ["command"]


@command_of(
    "completion",
    'eval "$(retrykit completion bash)"',
    "retrykit completion zsh > ~/.zfunc/_retrykit",
    "retrykit completion fish > ~/.config/fish/completions/retrykit.fish",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    By it the shell completes commands, flags and their values, presets and
    their parameters, and the policies of TOML and JSON files.
    """
    kind = get_completion_class(shell)
    if kind is not None:  # pragma: no branch  (click knows these three)
        script = kind(ctx.find_root().command, {}, "retrykit", "_RETRYKIT_COMPLETE")
        click.echo(script.source())
