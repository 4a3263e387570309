"""What the commands share: how a policy is given, and how a command is made."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import click
from click.shell_completion import CompletionItem
from click.types import StringParamType

from retrykit.cli.completions import policies, values

__all__ = [
    "CONTEXT",
    "PolicyText",
    "attempt",
    "command_of",
    "debug",
    "policies_argument",
]
__all__ += ["policy_argument", "retries", "samples", "start"]

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 88}
"""How every command shows its help."""

debug = click.Option(
    ["--debug"],
    is_flag=True,
    expose_value=False,
    help="Show the traceback of an error.",
)
"""Whether the traceback of an error is shown; the program looks for it itself."""


def command_of(
    name: str, *examples: str
) -> Callable[[Callable[..., Any]], click.Command]:
    """Return what makes a command of a function, whose docstring is the help.

    Args:
        name: What is typed.
        examples: Lines that can be typed as they are.
    """
    epilog = "\n".join(["\b", "Examples:", *(f"  {line}" for line in examples)])
    made = click.command(name, epilog=epilog, context_settings=CONTEXT)

    def command(function: Callable[..., Any]) -> click.Command:
        command = made(function)
        command.params.append(debug)
        return command

    return command


class PolicyText(StringParamType):
    """A POLICY; which one it is, is found out when it is used."""

    name = "policy"

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the policies, files and folders that begin so."""
        # As plain words: a shell that is told of a file forgets the others. A line
        # each, so what has several cannot be completed.
        found = policies(incomplete)
        return [CompletionItem(each) for each in found if each.isprintable()]


policy_argument = click.argument("policy", required=False, type=PolicyText())
"""A POLICY, or none."""

policies_argument = click.argument("policies", nargs=-1, type=PolicyText())
"""Any number of policies."""


def _length(_ctx: click.Context, _param: click.Parameter, value: str) -> float:
    from retrykit._internal.durations import parse_duration  # noqa: PLC0415  the help needs none

    return parse_duration("--attempt", value)


attempt = click.option(
    "--attempt",
    metavar="TIME",
    default="0s",
    show_default=True,
    callback=_length,
    help="How long each attempt takes.",
)
"""How long each attempt takes, handed on in seconds."""

retries = click.option(
    "--retries",
    metavar="N",
    type=click.IntRange(1, 10_000),
    help="Show the first N retries.",
)
"""How many retries are shown."""

samples = click.option(
    "--samples",
    metavar="N",
    type=click.IntRange(min=0),
    default=2000,
    show_default=True,
    help="Calls drawn for what has no formula.",
)
"""How many calls are drawn."""


def _moment(_ctx: click.Context, _param: click.Parameter, value: str | None) -> Any:
    if value is None:
        return None
    if value == "now":
        return datetime.now().astimezone().replace(microsecond=0)
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        msg = f"{value!r} is neither 'now' nor a time such as 2026-01-31T09:00."
        raise click.BadParameter(msg) from None


start = click.option(
    "--start",
    metavar="TIME",
    callback=_moment,
    shell_complete=values("now"),
    help="When the call starts: now, or as 2026-01-31T09:00.",
)
"""When the call starts, handed on as a `datetime`."""

VALUES = {
    "--max-attempts": ("unlimited",),
    "--max-elapsed": ("unlimited",),
    "--deadline": ("stop", "clip", "overshoot"),
}
"""The words that such a flag takes, for shells that complete them."""

FLAGS = {
    "--schedule": ("SCHEDULE", "TEXT", "Delays '1s, 5s, 1m', or an expression."),
    "--max-attempts": ("MAX_ATTEMPTS", "N", "Most calls in all, or unlimited."),
    "--max-elapsed": ("MAX_ELAPSED", "TIME", "Time in all, or unlimited."),
    "--deadline": ("DEADLINE", "RULE", "stop, clip or overshoot."),
    "--default-retry-limit": ("RETRY_LIMIT", "N", "Zizq: most retries."),
    "--default-backoff-base": ("BACKOFF_BASE", "TIME", "Zizq: B, bare in ms."),
    "--default-backoff-exponent": ("BACKOFF_EXPONENT", "E", "Zizq: E."),
    "--default-backoff-jitter": ("BACKOFF_JITTER", "TIME", "Zizq: J, bare in ms."),
}
"""Each flag that changes a policy: its variable in the environment, and its help."""
