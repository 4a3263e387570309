"""``retrykit compare``: two policies side by side."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import click

from retrykit.cli.options import (
    PolicyText,
    attempt,
    command_of,
    policy_flags,
    retries,
    samples,
)
from retrykit.cli.summary import summary
from retrykit.cli.targets import chosen, imported
from retrykit.cli.terminal import console, listed, print_figures, span
from retrykit.cli.watched import drawn, shown
from retrykit.preview import Preview, Row

__all__ = ["command"]


@command_of(
    "compare",
    "retrykit compare google zizq",
    "retrykit compare zizq --default-retry-limit 10",
    "retrykit compare pyproject.toml:fetch mypackage.clients:fetch",
)
@click.argument("a", type=PolicyText())
@click.argument("b", required=False, type=PolicyText())
@policy_flags
@attempt
@retries
@samples
def command(
    a: str,
    b: str | None,
    attempt: float,
    retries: int | None,
    samples: int,
    **flags: Any,
) -> None:
    """Show policies A and B side by side: settings, ends, totals and delays.

    Flags change B; without B, it is A as the flags change it.
    """
    for module in flags["imports"]:
        imported(module)
    [(left, first)] = chosen([a], {}, most=1).items()
    [(right, second)] = chosen([b or a], flags, most=1).items()
    seen = [
        drawn(policy, attempt=attempt, retries=retries, samples=samples)
        for policy in (first, second)
    ]
    names = [left, f"{right} as changed" if right == left else right]
    out = console()
    out.print(listed(["", *names], _told(*seen), left=(0, 1, 2)))
    out.print()
    heads = [
        "retry",
        *(f"{what} {side}" for side in "AB" for what in ("delay", "in all")),
    ]
    rows = _delays(*(shown(each, retries) for each in seen))
    print_figures(out, listed(heads, rows))


def _told(first: Preview, second: Preview) -> Iterator[tuple[str, str, str]]:
    left, right = dict(summary(first)), dict(summary(second))
    for name in dict.fromkeys([*left, *right]):
        yield name, left.get(name, ""), right.get(name, "")


def _delays(first: Sequence[Row], second: Sequence[Row]) -> Iterator[list[str]]:
    for number, rows in enumerate(zip_longest(first, second), 1):
        cells = (_cells(row) for row in rows)
        yield [str(number), *(cell for pair in cells for cell in pair)]


def _cells(row: Row | None) -> tuple[str, str]:
    if row is None:
        return "", ""
    return span(row.low, row.high), span(row.total_low, row.total_high)
