"""``retrykit compare``: two policies side by side."""

from itertools import zip_longest
from typing import Any

import click

from retrykit._cli.options import PolicyText, attempt, make_command, retries, samples
from retrykit._cli.policies import policy_flags, select_policy
from retrykit._cli.summary import preview_policy, summarize
from retrykit._cli.terminal import (
    build_figures,
    build_table,
    console,
    format_range,
    print_uncut,
)
from retrykit.analysis.preview import RetryRow

__all__ = ["command"]


@make_command(
    "compare",
    "retrykit compare google zizq",
    "retrykit compare zizq --default-retry-limit 10",
    "retrykit compare pyproject.toml:fetch mypackage.clients:fetch",
)
@click.argument("a", type=PolicyText())
@click.argument("b", required=False, type=PolicyText())
@attempt
@retries
@samples
@policy_flags
def command(
    a: str,
    b: str | None,
    attempt: float,
    retries: int | None,
    samples: int,
    **flags: Any,
) -> None:
    """Compare two policies side by side.

    A and B are each a POLICY. The options that change a policy change B;
    without B, they change a copy of A.
    """
    if b is None and not any(flags.values()):
        msg = "Missing argument 'B', or an option that changes A."
        raise click.UsageError(msg, click.get_current_context())
    policies = [select_policy(a, {}), select_policy(b or a, flags)]
    previews = [
        preview_policy(name, policy, attempt=attempt, retries=retries, samples=samples)
        for name, policy in policies
    ]
    (first, _), (second, _) = policies
    names = [first, f"{second} (changed)" if second == first else second]
    left, right = (
        {label: lines for label, *lines in summarize(preview)} for preview in previews
    )
    rows = [
        (label, left.get(label, []), right.get(label, []))
        for label in dict.fromkeys([*left, *right])
    ]
    columns = ["retry", "delay A", "total A", "delay B", "total B"]
    pairs = zip_longest(*(preview.shown(retries) for preview in previews))
    figures = [
        [str(number), *_cells(row), *_cells(other)]
        for number, (row, other) in enumerate(pairs, 1)
    ]
    out = console()
    out.print(build_table(["", *names], rows))
    out.print()
    print_uncut(out, build_figures(columns, figures))


def _cells(row: RetryRow | None) -> tuple[str, str]:
    if row is None:
        return "", ""
    return format_range(row.low, row.high), format_range(row.total_low, row.total_high)
