"""Command-line options that select a policy and change its settings."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from retrykit.cli.completions import values
from retrykit.cli.options import FLAGS, VALUES
from retrykit.cli.policy_argument import imported

__all__ = ["policy_flags"]

F = TypeVar("F", bound=Callable[..., Any])


def _imported(ctx: click.Context, _param: click.Parameter, names: Any) -> None:
    for name in () if ctx.resilient_parsing else names:
        imported(name)


def policy_flags(function: F) -> F:
    """Add the flags that make a policy, or change the one that is given.

    They win over the environment, and that over a file.
    """
    known = click.option(
        "--import",
        metavar="MODULE",
        multiple=True,
        expose_value=False,
        is_eager=True,
        callback=_imported,
        help="Import it first, for the exception types that a file names.",
    )
    env = click.option(
        "--env", metavar="PREFIX", help="Read the variables PREFIX_... first."
    )
    function = env(known(function))
    for flag, (_, metavar, text) in reversed(FLAGS.items()):
        words = values(*VALUES.get(flag, ()))
        option = click.option(flag, metavar=metavar, help=text, shell_complete=words)
        function = option(function)
    return function
