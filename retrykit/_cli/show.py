"""``retrykit show``: every delay of a policy, as a table, JSON or CSV."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import click

from retrykit._cli.options import (
    attempt,
    complete_words,
    make_command,
    policy_argument,
    retries,
    samples,
)
from retrykit._cli.policies import policy_flags, select_policy
from retrykit._cli.summary import name_rules, preview_policy, summarize
from retrykit._cli.terminal import (
    build_figures,
    build_pairs,
    console,
    format_decimal,
    format_range,
    print_uncut,
)
from retrykit._core.policy import Policy
from retrykit._internal.frozen import fields_of
from retrykit._internal.validation import check_choice, did_you_mean, invalid_setting
from retrykit.analysis.preview import Preview, RetryRow
from retrykit.analysis.preview._rule_policies import has_only_rules

__all__ = ["command"]

# The figures of each column, as named in JSON and CSV.
_FIGURES = {
    "seconds": ("seconds_low", "seconds", "seconds_high"),
    "minutes": ("minutes",),
    "hours": ("hours",),
    "cumulative": ("cumulative_low", "cumulative_high"),
    "start": ("start_low", "start_high"),
    "at": ("at_low", "at_high"),
}
_COLUMNS = (*_FIGURES,)
_UNITS = {"minutes": 60, "hours": 3600}


def _parse_start(
    _ctx: click.Context, _param: click.Parameter, value: str | None
) -> datetime | None:
    if value is None:
        return None
    if value == "now":
        return datetime.now().astimezone().replace(microsecond=0)
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        msg = f"{value!r} is neither 'now' nor a time such as 2026-01-31T09:00."
        raise click.BadParameter(msg) from None


@make_command(
    "show",
    "retrykit show hostname-verification",
    "retrykit show zizq:retry_limit=10 --start 2026-01-31T09:00",
    "retrykit show mypackage.clients:fetch --attempt 2s",
    "retrykit show pyproject.toml:fetch --env FETCH --json",
    "retrykit show --schedule 'exponential(0.5).cap(60)' --max-attempts 9",
)
@policy_argument
@attempt
@click.option(
    "--start",
    metavar="TIME",
    callback=_parse_start,
    shell_complete=complete_words("now"),
    help="Show dates for a call that starts at TIME: now, or 2026-01-31T09:00.",
)
@retries
@samples
@click.option(
    "--columns",
    metavar="NAMES",
    help=f"Columns to show, separated by commas: {', '.join(_COLUMNS)}.",
    shell_complete=complete_words(*_COLUMNS),
)
@click.option(
    "--rule",
    metavar="N",
    type=click.IntRange(min=1),
    help="Show only the failures of rule N of the policy.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@policy_flags
def command(
    policy: str | None,
    attempt: float,
    start: datetime | None,
    retries: int | None,
    samples: int,
    columns: str | None,
    rule: int | None,
    as_json: bool,
    as_csv: bool,
    **flags: Any,
) -> None:
    """Show every delay of a policy in a table.

    A summary shows where retries end, how many attempts are made, and how long a call
    that fails every time waits. For random delays, the table has the shortest, the mean
    and the longest. The column cumulative sums the delays; start is the time at which
    the retry starts, after these delays and the attempts before it. Rules that have
    delays of their own have their own tables. Without POLICY, the default policy of
    @retry is shown.
    """
    if as_json and (as_csv or columns):
        other = "--csv" if as_csv else "--columns"
        msg = f"--json and {other} cannot be used together."
        raise click.UsageError(msg, click.get_current_context())
    chosen = _parse_columns(columns, start) if columns else None
    name, selected = select_policy(policy, flags)
    previews = {
        part: preview_policy(
            part, each, attempt=attempt, retries=retries, samples=samples
        )
        for part, each in _parts(name, selected, rule)
    }
    if not (as_json or as_csv):
        # If a policy has nothing but rules, its own delays never occur.
        shown = list(previews)[rule is None and has_only_rules(selected) :]
        for part in shown:
            if part != shown[0]:
                click.echo()
            preview = previews[part]
            _print(part, preview, preview.shown(retries), start, chosen)
        return
    chosen = chosen or [each for each in _COLUMNS if start or each != "at"]
    data = [
        (
            part,
            preview,
            [_figures(row, start, chosen) for row in preview.shown(retries)],
        )
        for part, preview in previews.items()
    ]
    if as_csv:
        click.echo(_to_csv(_names(chosen), data[0][2]), nl=False)
    else:
        whole, *rules = (_to_data(*each) for each in data)
        whole |= {"rules": rules} if rules else {}
        click.echo(json.dumps(whole, indent=2, default=fields_of))


def _parts(name: str, policy: Policy, rule: int | None) -> list[tuple[str, Policy]]:
    """Return a policy and the policies of its rules, or only the policy of *rule*.

    Rules without delays of their own are left out, unless the policy has only rules.
    """
    rules = name_rules(name, policy)
    if rule is None:
        # The limit of a rule without delays of its own is among the notes.
        only = has_only_rules(policy)
        told = zip(policy.rules, rules, strict=True)
        return [(name, policy), *(x for own, x in told if only or own.schedule)]
    if rule > len(rules):
        limit = f"the number of a rule, of which {name} has {len(rules)}"
        raise invalid_setting("--rule", limit, rule, code="out-of-range")
    return [rules[rule - 1]]


def _parse_columns(text: str, start: datetime | None) -> list[str]:
    columns = [name.strip() for name in text.split(",")]
    for name in columns:
        check_choice("--columns", name, _COLUMNS, did_you_mean(name, _COLUMNS))
    if "at" in columns and start is None:
        msg = "The column 'at' needs --start, such as --start now."
        raise click.UsageError(msg, click.get_current_context())
    return columns


def _figures(
    row: RetryRow, start: datetime | None, columns: Sequence[str]
) -> dict[str, Any]:
    """Return the figures of a retry, keyed by their names in JSON and CSV."""
    mean = row.mean
    earliest, latest = row.at(start) if start else (None, None)
    figures: dict[str, list[Any]] = {
        "seconds": [row.low, mean, row.high],
        "minutes": [None if mean is None else round(mean / 60, 6)],
        "hours": [None if mean is None else round(mean / 3600, 6)],
        "cumulative": [row.total_low, row.total_high],
        "start": [row.start_low, row.start_high],
        "at": [earliest and earliest.isoformat(), latest and latest.isoformat()],
    }
    chosen = [value for name in columns for value in figures[name]]
    return dict(zip(_names(columns), [row.retry, *chosen], strict=True))


def _names(columns: Sequence[str]) -> list[str]:
    """Return the names of the figures in some columns, after ``retry``."""
    return ["retry", *(name for column in columns for name in _FIGURES[column])]


def _to_data(
    name: str, preview: Preview, rows: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "name": name,
        "policy": repr(preview.policy),
        "attempt": preview.attempt,
        "end": preview.end,
        "limits": preview.limits,
        "attempts": preview.attempts,
        "worst_case": preview.worst_case,
        "total_wait": preview.total_wait,
        "samples": preview.samples,
        "rows": [
            figures | {"seconds_error": row.mean_error}
            for figures, row in zip(rows, preview.rows, strict=False)
        ],
    }


def _to_csv(names: Sequence[str], rows: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        cells = row.values()
        writer.writerow(format_decimal(x) if isinstance(x, float) else x for x in cells)
    return text.getvalue()


def _print(
    name: str,
    preview: Preview,
    rows: Sequence[RetryRow],
    start: datetime | None,
    columns: Sequence[str] | None,
) -> None:
    columns = columns or _default_columns(rows, start, preview.attempt)
    random = any(row.low != row.high for row in preview.rows)
    headings = _HEADINGS if random else {}
    heads = [head for column in columns for head in headings.get(column, [column])]
    cells = [
        [str(row.retry), *_cells(row, start, columns, random=random)] for row in rows
    ]
    out = console()
    out.print(name, style="bold")
    print_uncut(out, build_figures(["retry", *heads], cells))
    if len(rows) < len(preview.rows):
        out.print(f"... and so on; --retries {2 * len(rows)} shows more")
    out.print()
    out.print(build_pairs(summarize(preview)))


def _default_columns(
    rows: Sequence[RetryRow], start: datetime | None, attempt: float
) -> list[str]:
    """Return the columns that suit the delays and fit a terminal."""
    if start:
        return ["seconds", "cumulative", "at"]
    longest = max((row.high for row in rows), default=0.0)
    units = [name for name, unit in _UNITS.items() if longest >= unit]
    # Without attempts that take time, a retry starts at the sum of the delays.
    return ["seconds", *units, "cumulative", *(["start"] if attempt else [])]


_HEADINGS = {
    "seconds": ["min (s)", "mean (s)", "max (s)"],
    "minutes": ["mean (min)"],
    "hours": ["mean (h)"],
}


def _cells(
    row: RetryRow, start: datetime | None, columns: Sequence[str], *, random: bool
) -> Iterator[str]:
    mean = row.mean
    for column in columns:
        if column == "seconds":
            figures = [row.low, mean, row.high] if random else [row.low]
            yield from ("?" if x is None else format_decimal(x, 3) for x in figures)
        elif column == "cumulative":
            yield format_range(row.total_low, row.total_high)
        elif column == "start":
            yield format_range(row.start_low, row.start_high)
        elif column == "at":
            yield _format_dates(*row.at(start)) if start else ""
        else:
            # An estimate has no six digits.
            digits = 3 if random else 6
            unit = _UNITS[column]
            yield "?" if mean is None else format_decimal(mean / unit, digits)


def _format_dates(earliest: datetime | None, latest: datetime | None) -> str:
    if earliest is None:
        return "after year 9999"
    first = earliest.isoformat(" ", "seconds")
    if latest is None or latest - earliest < timedelta(seconds=1):
        return first
    same_day = earliest.date() == latest.date()
    last = latest.strftime("%H:%M:%S") if same_day else latest.isoformat(" ", "seconds")
    return f"{first} to {last}"
