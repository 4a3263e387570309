"""``retrykit show``: every delay of a policy, as a table, JSON or CSV."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import click

from retrykit._internal.frozen import fields_of
from retrykit._internal.validation import check_choice, did_you_mean, invalid_setting
from retrykit.analysis.preview import EndOfCall, Preview, RetryRow, TotalWait
from retrykit.cli.completions import values
from retrykit.cli.options import (
    attempt,
    command_of,
    policy_argument,
    retries,
    samples,
    start,
)
from retrykit.cli.policy_argument import chosen
from retrykit.cli.policy_options import policy_flags
from retrykit.cli.previews import previewed
from retrykit.cli.summary import summary
from retrykit.cli.terminal import aligned, console, decimal, pairs, print_figures, span

__all__ = ["command", "figures"]

_COLUMNS = ("seconds", "minutes", "hours", "cumulative", "at")


@command_of(
    "show",
    "retrykit show hostname-verification",
    "retrykit show zizq:retry_limit=10 --start 2026-01-31T09:00",
    "retrykit show mypackage.clients:fetch --attempt 2s",
    "retrykit show pyproject.toml:fetch --env FETCH --json",
    "retrykit show --schedule 'exponential(0.5).cap(60)' --max-attempts 9",
)
@policy_argument
@attempt
@start
@retries
@samples
@click.option(
    "--columns",
    metavar="NAMES",
    help=f"Some of {', '.join(_COLUMNS)}.",
    shell_complete=values(*_COLUMNS),
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Write CSV.")
@policy_flags
def command(
    policy: str | None,
    attempt: float,
    start: datetime | None,
    retries: int | None,
    samples: int,
    columns: str | None,
    as_json: bool,
    as_csv: bool,
    **flags: Any,
) -> None:
    """Show every delay of a policy as a table.

    How long each is, when it is over, and where the policy ends. They are
    exact; where chance is at work there are the shortest, the mean and the
    longest one. Without POLICY, the policy of a bare @retry. A POLICY in a
    module or a .py file is imported, which runs the code there.
    """
    if as_json and (as_csv or columns):
        other = "--csv" if as_csv else "--columns"
        msg = f"--json and {other} cannot be given together."
        raise click.UsageError(msg)
    [(name, meant)] = chosen([] if policy is None else [policy], flags, most=1).items()
    wanted = _wanted(columns, start) if columns else None
    seen = previewed(name, meant, attempt=attempt, retries=retries, samples=samples)
    if as_json:
        click.echo(json.dumps(_data(name, seen, start, retries), indent=2))
    elif as_csv:
        click.echo(_csv(seen.shown(retries), start, wanted or _all(start)), nl=False)
    else:
        _print(name, seen, start, wanted, retries)


def _wanted(columns: str, start: datetime | None) -> list[str]:
    """Return the names of the columns that are asked for."""
    wanted = [name.strip() for name in columns.split(",")]
    for name in wanted:
        check_choice("--columns", name, _COLUMNS, did_you_mean(name, _COLUMNS))
    if "at" in wanted and start is None:
        rule = "given where the column at is wanted"
        raise invalid_setting("--start", rule, start, "write --start now")
    return wanted


def _all(start: datetime | None) -> list[str]:
    return [name for name in _COLUMNS if start or name != "at"]


def _fitting(rows: Sequence[RetryRow], start: datetime | None) -> list[str]:
    """Return the names of the columns that say something of these delays."""
    if start:
        # Beside the time of day, two units more would be too wide for a terminal.
        return ["seconds", "cumulative", "at"]
    longest = max((row.high for row in rows), default=0.0)
    units = [name for name, unit in _UNITS.items() if longest >= unit]
    return ["seconds", *units, "cumulative"]


def figures(row: RetryRow, start: datetime | None) -> dict[str, dict[str, Any]]:
    """Return the figures of a retry, by the column that they belong to.

    Times are in seconds, and as dates where there is a start.
    """
    mean = row.mean
    soonest, latest = row.at(start) if start else (None, None)
    return {
        "seconds": {"seconds_low": row.low, "seconds": mean, "seconds_high": row.high},
        "minutes": {"minutes": None if mean is None else round(mean / 60, 6)},
        "hours": {"hours": None if mean is None else round(mean / 3600, 6)},
        "cumulative": {
            "cumulative_low": row.total_low,
            "cumulative_high": row.total_high,
        },
        "at": {
            "at_low": soonest and soonest.isoformat(),
            "at_high": latest and latest.isoformat(),
        },
    }


def _data(
    name: str, seen: Preview, start: datetime | None, retries: int | None
) -> dict[str, Any]:
    rows = []
    for row in seen.shown(retries):
        told = figures(row, start)
        if start is None:
            del told["at"]
        merged = {key: value for group in told.values() for key, value in group.items()}
        rows.append({"retry": row.retry, **merged, "seconds_error": row.mean_error})
    return {
        "name": name,
        "policy": repr(seen.policy),
        "attempt": seen.attempt,
        "end": _end(seen.end),
        "limits": {name: _end(end) for name, end in seen.limits.items()},
        "calls": seen.calls,
        "worst": seen.worst,
        "window": _window(seen.total_wait),
        "samples": seen.samples,
        "rows": rows,
    }


def _end(end: EndOfCall | None) -> dict[str, Any] | None:
    return end and fields_of(end)


def _window(window: TotalWait | None) -> dict[str, Any] | None:
    if window is None:
        return None
    return fields_of(window) | {"quantiles": [fields_of(q) for q in window.quantiles]}


def _csv(rows: Sequence[RetryRow], start: datetime | None, wanted: list[str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        told = figures(row, start)
        cells = {k: v for column in wanted for k, v in told[column].items()}
        if row is rows[0]:
            writer.writerow(["retry", *cells])
        written = (decimal(x) if isinstance(x, float) else x for x in cells.values())
        writer.writerow([row.retry, *written])
    return text.getvalue()


def _print(
    name: str,
    seen: Preview,
    start: datetime | None,
    wanted: list[str] | None,
    retries: int | None,
) -> None:
    visible = seen.shown(retries)
    wanted = wanted or _fitting(visible, start)
    steady = all(row.low == row.high for row in seen.rows)
    heads = ["retry", *(head for column in wanted for head in _HEADS[steady][column])]
    rows = (
        [str(row.retry), *_cells(row, start, wanted, steady=steady)] for row in visible
    )
    out = console()
    out.print(name, style="bold")
    print_figures(out, aligned(heads, rows))
    if len(visible) < len(seen.rows):
        out.print(f"... and so on; --retries {2 * len(visible)} shows more")
    out.print()
    out.print(pairs(summary(seen)))


_HEADS = {
    True: {name: [name] for name in _COLUMNS},
    False: {
        "seconds": ["low s", "mean s", "high s"],
        "minutes": ["mean min"],
        "hours": ["mean h"],
        "cumulative": ["cumulative"],
        "at": ["at"],
    },
}


def _cells(
    row: RetryRow, start: datetime | None, wanted: list[str], *, steady: bool
) -> Iterator[str]:
    mean = row.mean
    for column in wanted:
        if column == "seconds":
            numbers = [row.low] if steady else [row.low, mean, row.high]
            yield from ("?" if x is None else decimal(x, 3) for x in numbers)
        elif column == "cumulative":
            yield span(row.total_low, row.total_high)
        elif column == "at":
            yield _moments(*row.at(start)) if start else ""
        else:
            unit = _UNITS[column]
            yield "?" if mean is None else decimal(mean / unit)


_UNITS = {"minutes": 60, "hours": 3600}


def _moments(soonest: datetime | None, latest: datetime | None) -> str:
    if soonest is None:
        return "beyond the calendar"
    first = soonest.isoformat(" ", "seconds")
    if latest is None or latest - soonest < timedelta(seconds=1):
        return first
    same_day = soonest.date() == latest.date()
    last = latest.strftime("%H:%M:%S") if same_day else latest.isoformat(" ", "seconds")
    return f"{first} to {last}"
