"""``retrykit audit``: what is wrong with the retries in source code."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from rich.table import Table
from rich.text import Text

from retrykit._cli.options import complete_words, make_command
from retrykit._cli.terminal import build_table, console, print_paragraph, show_progress
from retrykit._internal.processes import count_processors
from retrykit._internal.validation import (
    did_you_mean,
    escape_unprintable,
    invalid_setting,
)
from retrykit.audit._audit import audit
from retrykit.audit._baseline import Baseline
from retrykit.audit._findings import Finding, Report
from retrykit.audit._formats import as_data, as_github, as_sarif, by_site
from retrykit.audit._page import as_page, summary
from retrykit.audit._rules import RULES
from retrykit.audit._settings import check_rules, find_settings
from retrykit.audit._sites import Site

__all__ = ["command"]

_SUFFIXES: Final = (".html", ".json", ".sarif")


def _rules(
    _ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> tuple[str, ...]:
    """Return an option's codes; a value may hold several, separated by commas."""
    codes = (code.strip() for value in values for code in value.split(","))
    return check_rules(param.opts[0], codes)


def _rule_option(name: str, text: str) -> Callable[..., Any]:
    return click.option(
        name,
        metavar="RULE",
        multiple=True,
        callback=_rules,
        shell_complete=complete_words(*RULES),
        help=text,
    )


@make_command(
    "audit",
    "retrykit audit src",
    "retrykit audit src --ignore no-jitter",
    "retrykit audit . --diff main --github",
    "retrykit audit . --write-baseline retries.json",
    "retrykit audit src -o retries.html",
    "retrykit audit --explain unbounded",
)
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATH]...")
@_rule_option("--select", "Apply only this rule; repeatable.")
@_rule_option("--ignore", "Skip this rule; repeatable.")
@click.option(
    "--exclude",
    metavar="PATTERN",
    multiple=True,
    help="Skip files and folders of this name or path, such as tests; repeatable.",
)
@click.option(
    "--baseline",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Leave out the findings in this file.",
)
@click.option(
    "--write-baseline",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write all findings to this file, and exit with 0.",
)
@click.option(
    "--diff",
    metavar="REV",
    help="Only what has changed since this revision of git.",
)
@click.option(
    "--processes",
    metavar="N",
    type=click.IntRange(min=1),
    help="Processes that read files; by default, one for each processor.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--sarif", is_flag=True, help="Print SARIF 2.1.0.")
@click.option("--github", is_flag=True, help="Print annotations for GitHub Actions.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write a page (.html), JSON (.json) or SARIF (.sarif).",
)
@click.option("-q", "--quiet", is_flag=True, help="One line for each finding.")
@click.option("--statistics", is_flag=True, help="Count the findings of each rule.")
@click.option("--rules", "list_rules", is_flag=True, help="List the rules and exit.")
@click.option(
    "--explain",
    metavar="RULE",
    shell_complete=complete_words(*RULES),
    help="Explain a rule and exit.",
)
def command(
    paths: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    exclude: tuple[str, ...],
    baseline: str | None,
    write_baseline: str | None,
    diff: str | None,
    processes: int | None,
    as_json: bool,
    sarif: bool,
    github: bool,
    output: str | None,
    quiet: bool,
    statistics: bool,
    list_rules: bool,
    explain: str | None,
) -> int:
    """Find what is wrong with retries in source code.

    PATH is a file or a folder, by default the current folder. Retries by tenacity and
    other libraries, and loops written by hand, are found in Python files and notebooks;
    nothing is imported or run. The report says what each of them does, what is wrong
    with it, and what to change. The table [tool.retrykit.audit] of pyproject.toml has
    settings; a comment "# retrykit: ignore[RULE]" leaves out a finding.

    The exit code is 0 without findings, 1 with findings, and 2 if something cannot
    be read.
    """
    if list_rules:
        rows = ((code, rule.summary) for code, rule in RULES.items())
        console().print(build_table(("rule", "warns that"), rows))
        return 0
    if explain is not None:
        _explain(*check_rules("--explain", [explain]))
        return 0
    _check_output(
        output,
        {
            "--json": as_json,
            "--sarif": sarif,
            "--github": github,
            "--quiet": quiet,
            "--write-baseline": write_baseline is not None,
        },
    )
    given = paths or (".",)
    settings = find_settings(given[0])
    # A new baseline has all findings, including those of the old one.
    known = None if write_baseline else baseline or settings.baseline
    with show_progress("reading") as progress:
        report = audit(
            given,
            select=select or settings.select,
            ignore=(*settings.ignore, *ignore),
            exclude=(*settings.exclude, *exclude),
            per_file_ignores=settings.per_file_ignores,
            root=settings.root,
            baseline=known,
            diff=diff,
            processes=processes or count_processors(),
            progress=progress,
        )
    if output is not None:
        Path(output).write_text(_contents(report, Path(output).suffix), "utf-8")
    if write_baseline is not None:
        Baseline.of(report.findings, write_baseline).write(write_baseline)
        count = len(report.findings)
        click.echo(f"{write_baseline}: {count} finding{'' if count == 1 else 's'}")
        return 2 if _print_problems(report) else 0
    if as_json or sarif:
        click.echo(_contents(report, ".json" if as_json else ".sarif"), nl=False)
    elif github:
        for line in as_github(report):
            click.echo(escape_unprintable(line))
    else:
        is_partial = known is not None or diff is not None
        _print(report, quiet=quiet, statistics=statistics, is_partial=is_partial)
    if report.problems:
        return 2
    return 1 if report.findings else 0


def _check_output(output: str | None, formats: Mapping[str, bool]) -> None:
    """Raise an error for several formats, an unknown suffix or a missing folder."""
    given = [each for each, is_set in formats.items() if is_set]
    if len(given) > 1:
        msg = f"{' and '.join(given)} cannot be given together"
        raise click.UsageError(msg)
    if output is None:
        return
    file = Path(output)
    if file.suffix not in _SUFFIXES:
        rule = f"a file whose name ends in {', '.join(_SUFFIXES)}"
        nearest = did_you_mean(file.suffix, _SUFFIXES)
        raise invalid_setting("--output", rule, output, nearest)
    if not file.absolute().parent.is_dir():
        raise invalid_setting("--output", "a file in a folder that exists", output)


def _contents(report: Report, suffix: str) -> str:
    if suffix == ".html":
        return as_page(report)
    if suffix == ".json":
        data = as_data(report)
    else:
        from retrykit import __version__  # noqa: PLC0415  takes long

        data = as_sarif(report, __version__)
    return json.dumps(data, indent=2) + "\n"


def _explain(code: str) -> None:
    rule = RULES[code]
    out = console()
    out.print(code, style="bold")
    print_paragraph(out, f"{rule.summary[:1].upper()}{rule.summary[1:]}.")
    print_paragraph(out, rule.why)
    for title, text in (("Don't:", rule.bad), ("Do:", rule.good)):
        out.print()
        out.print(title, style="bold")
        for line in text.splitlines():
            out.print(f"    {line}", soft_wrap=True)


def _print(report: Report, *, quiet: bool, statistics: bool, is_partial: bool) -> None:
    """Print a report: its sites, or one line for each finding if *quiet*.

    Of a partial report, sites without findings are left out.
    """
    out = console()
    if quiet:
        for finding in report.findings:
            out.print(str(finding), soft_wrap=True)
        _print_problems(report)
        if statistics:
            _print_statistics(report)
        return
    for site, findings in by_site(report):
        if findings or not is_partial:
            _print_site(site, findings)
            out.print()
    _print_unused_ignores(report)
    if _print_problems(report):
        out.print()
    if statistics and report.findings:
        _print_statistics(report)
        out.print()
    style = "bold red" if report.findings else "bold green"
    out.print(Text(f"{summary(report)}.", style=style), soft_wrap=True)


def _print_statistics(report: Report) -> None:
    counts = Counter(each.rule for each in report.findings)
    rows = [(str(count), rule) for rule, count in counts.most_common()]
    if rows:
        console().print(build_table(("findings", "rule"), rows))


def _print_site(site: Site, findings: Sequence[Finding]) -> None:
    """Print a site: where it is, what it does, and what is wrong with it."""
    out = console()
    name = site.function.rpartition(".")[2]
    parts = [
        (f"{site.path}:{site.line}", "bold"),
        (name, "cyan"),
        (site.library, "dim"),
    ]
    title = [out.render_str(text, style=style) for text, style in parts if text]
    out.print(Text("  ").join(title), soft_wrap=True)
    print_paragraph(out, f"    {site.behavior}")
    width = max((len(each.rule) for each in findings), default=0)
    for each in findings:
        line = "" if each.line == site.line else f" (line {each.line})"
        rule = Text(f"    {each.rule:<{width}}  ", style="yellow")
        text = out.render_str(f"{each.message}{line}; {each.fix}")
        if not out.is_terminal:
            out.print(Text.assemble(rule, text), soft_wrap=True)
            continue
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(width=width + 4, no_wrap=True)
        table.add_column(overflow="fold")
        rule.rstrip()
        table.add_row(rule, text)
        out.print(table)


def _print_unused_ignores(report: Report) -> None:
    out = console()
    for each in report.unused_ignores:
        line = Text.assemble(("unused  ", "yellow"), out.render_str(str(each)))
        out.print(line, soft_wrap=True)
    if report.unused_ignores:
        out.print()


def _print_problems(report: Report) -> bool:
    """Print the problems of a report; return whether it has any."""
    out = console()
    for each in report.problems:
        out.print(
            Text.assemble(("not read  ", "red"), out.render_str(str(each))),
            soft_wrap=True,
        )
    return bool(report.problems)
