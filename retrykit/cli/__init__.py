"""The command line: policies shown, charted, compared, checked and written.

Needs the extra ``retrykit[cli]``. Each command is a module of its own, which is
imported when it is run: the help must not wait for what draws a chart.
"""

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        args: What stands after the name of the program; by default what this
            process was started with.

    Returns:
        The exit code: 0; 1 where `lint` found something; 2 for what is wrong
        in the arguments, in a file or in a policy.
    """
    try:
        from retrykit.cli.program import run  # noqa: PLC0415  the extra may be missing
    except ModuleNotFoundError as error:
        if error.name not in {"click", "rich"}:
            raise
        suggestion = "in a clone: pip install '.[cli]'"
        sys.stderr.write(
            f"retrykit: the command line needs {error.name}; {suggestion}\n"
        )
        return 2
    return run(sys.argv[1:] if args is None else args)
