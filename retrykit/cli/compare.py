"""``retrykit compare``: two policies side by side."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import click

from retrykit._internal.validation import invalid_setting
from retrykit.analysis.preview import Preview, RetryRow
from retrykit.cli.options import (
    PolicyText,
    attempt,
    command_of,
    retries,
    samples,
)
from retrykit.cli.policy_argument import chosen
from retrykit.cli.policy_options import policy_flags
from retrykit.cli.previews import previewed
from retrykit.cli.summary import summary
from retrykit.cli.terminal import aligned, console, listed, print_figures, span

__all__ = ["command"]


@command_of(
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
    """Show two policies side by side.

    Their settings, ends, totals and delays.
    Flags change B; without B, it is A as the flags change it.
    """
    if b is None and not any(flags.values()):
        raise invalid_setting("B", "given, or a flag that changes A", "")
    [(left, first)] = chosen([a], {}, most=1).items()
    [(right, second)] = chosen([b or a], flags, most=1).items()
    seen = [
        previewed(name, policy, attempt=attempt, retries=retries, samples=samples)
        for name, policy in ((left, first), (right, second))
    ]
    names = [left, f"{right} as changed" if right == left else right]
    out = console()
    out.print(listed(["", *names], _told(*seen), left=(0, 1, 2)))
    out.print()
    heads = [
        "retry",
        *(f"{what} {side}" for side in "AB" for what in ("delay", "in all")),
    ]
    rows = _delays(*(each.shown(retries) for each in seen))
    print_figures(out, aligned(heads, rows))


def _told(
    first: Preview, second: Preview
) -> Iterator[tuple[str, list[str], list[str]]]:
    left, right = (
        {name: lines for name, *lines in summary(seen)} for seen in (first, second)
    )
    for name in dict.fromkeys([*left, *right]):
        yield name, left.get(name, []), right.get(name, [])


def _delays(
    first: Sequence[RetryRow], second: Sequence[RetryRow]
) -> Iterator[list[str]]:
    for number, rows in enumerate(zip_longest(first, second), 1):
        cells = (_cells(row) for row in rows)
        yield [str(number), *(cell for pair in cells for cell in pair)]


def _cells(row: RetryRow | None) -> tuple[str, str]:
    if row is None:
        return "", ""
    return span(row.low, row.high), span(row.total_low, row.total_high)
