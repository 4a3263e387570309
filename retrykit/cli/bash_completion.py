"""Completion in bash, which breaks words at colons and equal signs.

The script of click takes ``zizq:re`` for three words, so this one hands over the
line as it was typed.
"""

import os
import re
import shlex
from typing import ClassVar

from click.shell_completion import CompletionItem, ShellComplete, split_arg_string

__all__ = ["BashComplete"]

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
    """Completes the line up to the cursor, and answers with the part to insert."""

    name: ClassVar[str] = "bash"
    source_template: ClassVar[str] = _SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one at the cursor, and what it begins with."""
        line = os.environ["COMP_LINE"]
        words = split_arg_string(line)[1:]
        if line.endswith(" "):
            words.append("")
        return words[:-1], words[-1]

    def format_completion(self, item: CompletionItem) -> str:
        """Return a line for the script: the type and what follows the last break."""
        breaks = "".join(each for each in ":=" if each in os.environ["COMP_WORDBREAKS"])
        _, typed = self.get_completion_args()
        kept = re.split(f"[{breaks}]", typed)[-1] if breaks else typed
        value = item.value.removeprefix(typed.removesuffix(kept))
        return f"{item.type},{shlex.quote(value)}"
