"""``retrykit completion``: shell completion scripts for bash, zsh and fish."""

import os
import re
import shlex
from typing import ClassVar

import click
from click.shell_completion import (
    CompletionItem,
    ShellComplete,
    get_completion_class,
    split_arg_string,
)

from retrykit._cli.options import make_command

__all__ = ["BashComplete", "command"]


@make_command(
    "completion",
    'eval "$(retrykit completion bash)"',
    "retrykit completion zsh > ~/.zfunc/_retrykit",
    "retrykit completion fish > ~/.config/fish/completions/retrykit.fish",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a shell completion script.

    It completes commands, options and their values, presets and their parameters,
    paths, and the names of policies in files such as TOML, JSON and YAML files.
    """
    kind = get_completion_class(shell)
    if kind is not None:  # pragma: no branch  (click knows these three)
        script = kind(ctx.find_root().command, {}, "retrykit", "_RETRYKIT_COMPLETE")
        click.echo(script.source())


_SCRIPT = """\
%(complete_func)s() {
    local type value
    COMPREPLY=()
    while IFS=, read -r type value; do
        if [[ $type == file ]]; then
            compopt -o default
        elif [[ $type == plain ]]; then
            COMPREPLY+=("$value")
            [[ $value == *[=/] ]] && compopt -o nospace
        fi
    done < <(
        COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" \\
            %(complete_var)s=bash_complete "$1"
    )
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class BashComplete(ShellComplete):
    """Completion in bash, which breaks words at colons and equal signs.

    click's own script would split ``zizq:re`` into three words. This one passes the
    line up to the cursor, and receives the text to insert.
    """

    name: ClassVar[str] = "bash"
    source_template: ClassVar[str] = _SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, and the incomplete word at it."""
        line = os.environ["COMP_LINE"]
        words = split_arg_string(line)[1:]
        if line.endswith(" "):
            words.append("")
        return words[:-1], words[-1]

    def format_completion(self, item: CompletionItem) -> str:
        """Return a line for the script: the item's type, and what bash is to insert."""
        breaks = "".join(each for each in ":=" if each in os.environ["COMP_WORDBREAKS"])
        _, typed = self.get_completion_args()
        last_word = re.split(f"[{breaks}]", typed)[-1] if breaks else typed
        value = item.value.removeprefix(typed.removesuffix(last_word))
        return f"{item.type},{shlex.quote(value)}"
