"""Command line for policies, simulations, durable jobs and retries in source code.

Needs the extra ``cli``. Each command is a module, imported on demand, so that
``--help`` stays fast.
"""

import sys
from collections.abc import Sequence

from retrykit._internal.distribution import installed_by

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        args: Arguments after the program name; by default this process's own.

    Returns:
        The exit code: 0; 1 if a command has found a problem, such as a warning of
        `lint`; 2 for an error in the arguments, a file or a policy; 130 after Ctrl-C.
    """
    try:
        from retrykit._cli.program import run  # noqa: PLC0415  the extra may be missing
    except ModuleNotFoundError as error:
        if error.name not in {"click", "rich"}:
            raise
        needed = f"the command line needs {error.name}"
        sys.stderr.write(f"retrykit: {needed}; {installed_by('cli')}\n")
        return 2
    return run(sys.argv[1:] if args is None else args)
