"""``retrykit jobs``: list durable jobs, and control them."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import click
from rich.console import Group
from rich.live import Live

from retrykit._cli.job_engine import open_engine
from retrykit._cli.options import CONTEXT, duration, make_command
from retrykit._cli.policies import format_config_error
from retrykit._cli.terminal import (
    build_figures,
    build_pairs,
    console,
    print_paragraph,
    print_records,
)
from retrykit._internal.clocks import sync_clock, wall
from retrykit._internal.durations import format_duration
from retrykit.durable import JobCounts, JobEngine, JobReport
from retrykit.durable._job_report import JobStatus
from retrykit.errors import ConfigError

__all__ = ["command"]

F = TypeVar("F", bound=Callable[..., Any])

_STATUSES = ("waiting", "running", "succeeded", "dead")
_COLUMNS = ("id", "name", "status", "failed", "when", "last error")
_COUNTED = ("waiting", "running", "dead")


@click.group("jobs", context_settings=CONTEXT, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List durable jobs, and control them.

    Each command needs --app, or the environment variable RETRYKIT_APP: the module and
    the name of a Celery app, a Procrastinate app or the settings of DBOS. The module is
    imported, which runs its code; jobs are not run.

    The exit code is 0; 1 if `counts` finds more than --max-overdue or --max-dead allow,
    or if a job cannot be changed; and 2 for other errors.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _optional_duration(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> float | None:
    return None if value is None else duration(ctx, param, value)


_app = click.option(
    "--app",
    metavar="MODULE:NAME",
    required=True,
    envvar="RETRYKIT_APP",
    help="The app, or the settings of DBOS.  [env: RETRYKIT_APP]",
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_status = click.option(
    "--status", type=click.Choice(_STATUSES), help="Only jobs of this status."
)
_limit = click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Show at most N jobs.",
)
_all = click.option("--all", "every", is_flag=True, help="Every job.")
_dry_run = click.option(
    "--dry-run", is_flag=True, help="Print the ids of the jobs, and change nothing."
)
_ids = click.argument("ids", nargs=-1, metavar="[ID]...")


def _filters(function: F) -> F:
    for option in (
        click.option(
            "--older-than",
            metavar="TIME",
            callback=_optional_duration,
            help="Only jobs that were started longer ago than TIME.",
        ),
        click.option(
            "--overdue",
            metavar="TIME",
            callback=_optional_duration,
            help="Only unfinished jobs that have been due for longer than TIME.",
        ),
        click.option(
            "--error",
            metavar="TYPE",
            help="Only jobs whose last error is of TYPE, such as TimeoutError.",
        ),
        click.option("--name", metavar="NAME", help="Only jobs of the function NAME."),
    ):
        function = option(function)
    return function


def _given(filters: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in filters.items() if value is not None}


@make_command(
    "list",
    "retrykit jobs list --app mypackage.jobs:SETTINGS",
    "retrykit jobs list --overdue 10m --json",
    "retrykit jobs list --status waiting --name verify --error TimeoutError",
)
@_app
@_status
@_filters
@_limit
@_as_json
def _list(app: str, limit: int, *, as_json: bool, **filters: Any) -> None:
    """List jobs, the longest overdue first.

    The last column is the last error of a job, or the reason why it is dead.
    """
    with open_engine(app) as engine:
        _print_list(engine.jobs(limit=limit, **_given(filters)), as_json=as_json)


@make_command(
    "dead",
    "retrykit jobs dead --app mypackage.jobs:SETTINGS",
    "retrykit jobs dead --name verify --error TimeoutError --json",
)
@_app
@_filters
@_limit
@_as_json
def _dead(app: str, limit: int, *, as_json: bool, **filters: Any) -> None:
    """List dead jobs, the newest first, with the time and the reason."""
    with open_engine(app) as engine:
        reports = engine.jobs(limit=limit, status="dead", **_given(filters))
        _print_list(reports, as_json=as_json)


@make_command(
    "show",
    "retrykit jobs show --app mypackage.jobs:SETTINGS verify-7",
    "retrykit jobs show verify-7 --json",
)
@_app
@click.argument("job_id", metavar="ID")
@_as_json
def _show(app: str, job_id: str, *, as_json: bool) -> None:
    """Show a job: its status, and every error that is stored."""
    with open_engine(app) as engine:
        report = engine.status(job_id)
    if as_json:
        click.echo(json.dumps(_to_data(report) | _details(report), indent=2))
        return
    out = console()
    for line in report.describe().splitlines():
        print_paragraph(out, line)


@make_command(
    "counts",
    "retrykit jobs counts --app mypackage.jobs:SETTINGS",
    "retrykit jobs counts --max-overdue 10m --max-dead 0 || alert",
)
@_app
@click.option(
    "--status",
    type=click.Choice(_STATUSES),
    multiple=True,
    default=_COUNTED,
    help="Count jobs of this status; repeatable.  [default: all but succeeded]",
)
@click.option(
    "--max-overdue",
    metavar="TIME",
    callback=_optional_duration,
    help="Exit with 1 if a job has been due for longer than TIME.",
)
@click.option(
    "--max-dead",
    metavar="N",
    type=click.IntRange(min=0),
    help="Exit with 1 if more than N jobs are dead.",
)
@_as_json
def _counts(
    app: str,
    status: tuple[JobStatus, ...],
    max_overdue: float | None,
    max_dead: int | None,
    *,
    as_json: bool,
) -> int:
    """Count jobs by name and status, for people and for monitors."""
    _check_counted(status, max_overdue, max_dead)
    with open_engine(app) as engine:
        counts = engine.counts(status)
    if as_json:
        data = {
            "counts": counts.counts,
            "overdue": round(counts.overdue, 3),
            "next_due": _to_iso(counts.next_due),
        }
        click.echo(json.dumps(data, indent=2))
    else:
        console().print(_build_counts(counts, status))
    problems = [*_find_problems(counts, max_overdue, max_dead)]
    for problem in problems:
        click.echo(f"retrykit: {problem}", err=True)
    return 1 if problems else 0


@make_command(
    "watch",
    "retrykit jobs watch --app mypackage.jobs:SETTINGS",
    "retrykit jobs watch --every 10s",
)
@_app
@click.option(
    "--every",
    metavar="TIME",
    default="2s",
    show_default=True,
    callback=duration,
    help="Time between updates.",
)
@click.option(
    "--updates", metavar="N", type=click.IntRange(min=1), help="End after N updates."
)
def _watch(app: str, every: float, updates: int | None) -> None:
    """Show the counts of jobs until Ctrl-C."""
    out = console()
    with open_engine(app) as engine, Live(console=out, auto_refresh=False) as live:
        while True:
            live.update(_build_counts(engine.counts(), _COUNTED), refresh=True)
            updates = None if updates is None else updates - 1
            if updates == 0:
                return
            sync_clock.sleep(every)


@make_command(
    "requeue",
    "retrykit jobs requeue --app mypackage.jobs:SETTINGS verify-7 verify-8",
    "retrykit jobs requeue --name verify --error TimeoutError --dry-run",
)
@_app
@_ids
@_filters
@_all
@_dry_run
def _requeue(app: str, ids: tuple[str, ...], **options: Any) -> int:
    """Start dead jobs again, with all attempts of their policies.

    On Celery, --overdue chooses jobs whose messages were lost.
    """
    status = "dead" if options["overdue"] is None else None
    return _change(app, ids, options, status, lambda engine: engine.requeue)


@make_command(
    "kill",
    "retrykit jobs kill --app mypackage.jobs:SETTINGS verify-7",
    "retrykit jobs kill --status waiting --name verify --older-than 7d",
)
@_app
@_ids
@click.option(
    "--status",
    type=click.Choice(["waiting", "running"]),
    help="Only jobs of this status.",
)
@_filters
@_all
@_dry_run
def _kill(app: str, ids: tuple[str, ...], status: str | None, **options: Any) -> int:
    """Stop jobs: they make no further attempts."""
    return _change(app, ids, options, status, lambda engine: engine.kill)


def _parse_time(_ctx: click.Context, _param: click.Parameter, value: str) -> datetime:
    if value == "now":
        return datetime.now(UTC)
    try:
        return datetime.fromisoformat(value).astimezone()
    except ValueError:
        msg = f"{value!r} is neither 'now' nor a time such as 2026-01-31T09:00."
        raise click.BadParameter(msg) from None


@make_command(
    "retry-at",
    "retrykit jobs retry-at now --app mypackage.jobs:SETTINGS verify-7",
    "retrykit jobs retry-at 2026-01-31T09:00 --name verify",
)
@_app
@click.argument("when", metavar="TIME", callback=_parse_time)
@_ids
@_filters
@_all
@_dry_run
def _retry_at(app: str, when: datetime, ids: tuple[str, ...], **options: Any) -> int:
    """Reschedule the next attempt of waiting jobs.

    TIME is now, or a time such as 2026-01-31T09:00, in this machine's time zone unless
    it names another one.
    """
    return _change(
        app,
        ids,
        options,
        "waiting",
        lambda engine: lambda job: engine.retry_at(job, when),
    )


for _each in (_list, _show, _counts, _dead, _requeue, _kill, _retry_at, _watch):
    command.add_command(_each)


def _change(
    app: str,
    ids: Sequence[str],
    options: dict[str, Any],
    status: str | None,
    action: Callable[[JobEngine], Callable[[str], None]],
) -> int:
    """Change the jobs with the given ids, or the jobs that match filters.

    A job that cannot be changed is reported, and the others are changed nevertheless.
    With ``--dry-run``, the ids are only printed.

    Returns:
        The exit code: 1 if a job could not be changed, else 0.
    """
    dry_run, every = options.pop("dry_run"), options.pop("every")
    filters = _given(options)
    if bool(ids) + bool(filters) + every != 1:
        msg = "Write the ids of jobs, or filters such as --name, or --all."
        raise click.UsageError(msg, click.get_current_context())
    failed = False
    with open_engine(app) as engine:
        for job in ids or _find_ids(engine, status, filters):
            try:
                if not dry_run:
                    action(engine)(job)
            except ConfigError as error:
                failed = True
                text = format_config_error(error)
                click.echo(f"retrykit: {job}: {text}", err=True)
            else:
                click.echo(job)
    return 1 if failed else 0


def _find_ids(
    engine: JobEngine, status: str | None, filters: dict[str, Any]
) -> list[str]:
    """Return the ids of the jobs that match filters and have *status*.

    If *status* is None, they must be unfinished.
    """
    statuses = ("waiting", "running") if status is None else (status,)
    # At once, since jobs continue meanwhile, and would be found twice or not at all.
    reports = engine.jobs(limit=None, status=statuses, **filters)
    return [report.job for report in reports]


def _check_counted(
    statuses: Sequence[str], max_overdue: float | None, max_dead: int | None
) -> None:
    """Raise an error if a limit applies to jobs that are not counted."""
    unchecked = ""
    if max_dead is not None and "dead" not in statuses:
        unchecked = "--max-dead also needs --status dead."
    if max_overdue is not None and not {"waiting", "running"} <= {*statuses}:
        unchecked = "--max-overdue also needs --status waiting and --status running."
    if unchecked:
        raise click.UsageError(unchecked, click.get_current_context())


def _find_problems(
    counts: JobCounts, max_overdue: float | None, max_dead: int | None
) -> Iterator[str]:
    if max_overdue is not None and counts.overdue > max_overdue:
        late, most = format_duration(counts.overdue), format_duration(max_overdue)
        yield f"a job has been due for {late}, longer than {most}"
    dead = counts.total("dead")
    if max_dead is not None and dead > max_dead:
        yield f"{dead} dead, more than {max_dead}"


def _build_counts(counts: JobCounts, statuses: Sequence[Any]) -> Group:
    rows = [
        (name, *(str(each.get(status, 0)) for status in statuses))
        for name, each in counts.counts.items()
    ]
    total = ("total", *(str(counts.total(status)) for status in statuses))
    late = format_duration(counts.overdue) if counts.overdue else "nothing"
    pairs = [("overdue", late), ("next due", _format_due(counts.next_due))]
    table = build_figures(("name", *statuses), [*rows, total])
    table.columns[0].justify = "left"
    return Group(table, "", build_pairs(pairs))


def _print_list(reports: Sequence[JobReport], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([_to_data(each) for each in reports], indent=2))
    elif reports:
        print_records(console(), _COLUMNS, _build_rows(reports))
    else:
        console(stderr=True).print("no jobs")


def _build_rows(reports: Sequence[JobReport]) -> list[Sequence[str]]:
    now = wall()
    return [
        (
            report.job,
            report.name,
            report.status,
            str(0 if report.envelope is None else report.envelope.failed_attempts),
            _format_time(report, now),
            _last_failure(report) if report.status != "dead" else _why_dead(report),
        )
        for report in reports
    ]


def _format_time(report: JobReport, now: float) -> str:
    """Return when a job has ended, was due or is due, as text; "-" if unknown."""
    if report.ended is not None:
        return f"ended {format_duration(max(now - report.ended.timestamp(), 0.0))} ago"
    late = report.overdue(now)
    if late:
        return f"due {format_duration(late)} ago"
    return f"due {_format_due(report.due)}" if report.due else "-"


def _format_due(due: datetime | None) -> str:
    if due is None:
        return "-"
    return f"in {format_duration(max(due.timestamp() - wall(), 0.0))}"


def _last_failure(report: JobReport) -> str:
    """Return the last failure on one line, or else the reason in the report."""
    if report.failures:
        return " ".join(report.failures[-1].describe().split())
    return " ".join(report.reason.split())


def _why_dead(report: JobReport) -> str:
    """Return why a job is dead, with its last failure, on one line."""
    reason, last = " ".join(report.reason.split()), _last_failure(report)
    return reason if last in reason else f"{reason}; last failure: {last}"


def _to_data(report: JobReport) -> dict[str, Any]:
    envelope = report.envelope
    return {
        "id": report.job,
        "name": report.name,
        "status": report.status,
        "failed_attempts": None if envelope is None else envelope.failed_attempts,
        "due": _to_iso(report.due),
        "overdue": round(report.overdue(wall()), 3),
        "ended": _to_iso(report.ended),
        "last_error": _last_failure(report),
        "reason": report.reason,
        "engine_id": report.engine_id,
    }


def _details(report: JobReport) -> dict[str, Any]:
    return {
        "result": report.result,
        "envelope": None if report.envelope is None else report.envelope.to_dict(),
    }


def _to_iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="seconds")
