"""``retrykit migrate``: uses of other libraries, translated to retrykit."""

import difflib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from retrykit._cli.options import make_command
from retrykit._cli.terminal import console, show_progress
from retrykit._internal.distribution import installed_by
from retrykit._internal.processes import count_processors

# LibCST may be missing, and takes long to import.
if TYPE_CHECKING:
    from retrykit.migrate import FileMigration, Problem, Report

__all__ = ["command"]


@make_command(
    "migrate",
    "retrykit migrate src",
    "retrykit migrate src --write",
    "retrykit migrate src --check",
    "retrykit migrate src/client.py --json",
)
@click.argument(
    "paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path)
)
@click.option("--diff", "as_diff", is_flag=True, help="Print a diff, as by default.")
@click.option("--write", is_flag=True, help="Write the files.")
@click.option("--check", is_flag=True, help="Exit with 1 if a file would change.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    paths: tuple[Path, ...], as_diff: bool, write: bool, check: bool, as_json: bool
) -> int:
    """Translate tenacity, backoff, urllib3 and others to retrykit.

    PATH is a file or a folder. Calls, delays, errors, results and hooks stay the same;
    what cannot be translated exactly is left as it is, under a comment that says why.
    Without --write, the changes are printed and nothing is written. Give all files of a
    project at once, since they may use each other's policies. Nothing is imported.

    The exit code is 0; 1 under --check if a file would change; 2 if a file cannot be
    read or written.
    """
    context = click.get_current_context()
    if check and write:
        msg = "--check cannot be used with --write."
        raise click.UsageError(msg, context)
    try:
        from retrykit.migrate import write_file  # noqa: PLC0415  it needs LibCST
    except ImportError as error:
        msg = f"migrate needs {error.name}; {installed_by('migrate')}."
        raise click.UsageError(msg, context) from error
    report = _migrate(paths)
    problems = [*report.problems]
    changed = [each for each in report.files if each.migration.changed]
    if write:
        problems += [found for each in changed if (found := write_file(each))]
    if as_json:
        _print_json(report, problems)
    else:
        if as_diff or not write:
            _print_diffs(changed)
        _print_summary(report, problems, len(changed), written=write)
    if problems:
        return 2
    return int(check and bool(changed))


def _migrate(paths: Sequence[Path]) -> "Report":
    from retrykit.migrate import migrate_paths  # noqa: PLC0415  as above

    with show_progress("translating") as progress:
        return migrate_paths(paths, progress, count_processors())


_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def _print_diffs(files: "Sequence[FileMigration]") -> None:
    out = console()
    for file in files:
        for line in _diff(file):
            bold = line.startswith(("+++", "---"))
            style = "bold" if bold else _STYLES.get(line[:1], "")
            if out.is_terminal:
                out.print(Text(line, style=style), soft_wrap=True)
            else:
                click.echo(line)


def _diff(file: "FileMigration") -> Iterator[str]:
    before, after = (
        text.splitlines() for text in (file.migration.before, file.migration.after)
    )
    name = file.path.as_posix()
    yield from difflib.unified_diff(before, after, name, name, lineterm="")


def _print_summary(
    report: "Report", problems: "Sequence[Problem]", changed: int, *, written: bool
) -> None:
    out = console(stderr=True)
    for problem in problems:
        out.print(f"{problem.path}: {problem.reason}", style="red", soft_wrap=True)
    left = [(path, usage) for path, usage in report.usages if usage.reason]
    for path, usage in left:
        line = f"{path}:{usage.line}: {usage.library}, left as it is: {usage.reason}"
        out.print(line, soft_wrap=True)
    total = len(report.usages)
    if not total:
        out.print("no usages of backoff, tenacity, stamina, retrying or urllib3 found")
        return
    files = f"{changed} file{'' if changed == 1 else 's'}"
    verb = "changed" if written else "would change"
    out.print(
        f"{total - len(left)} of {total} usages translated exactly; {files} {verb}"
    )


def _print_json(report: "Report", problems: "Sequence[Problem]") -> None:
    files = [
        {
            "path": str(file.path),
            "changed": file.migration.changed,
            "usages": [usage._asdict() for usage in file.migration.usages],
            "diff": "".join(f"{line}\n" for line in _diff(file)),
        }
        for file in report.files
    ]
    reasons = Counter("left" if x.reason else "translated" for _, x in report.usages)
    data = {
        "translated": reasons["translated"],
        "left": reasons["left"],
        "files": files,
        "problems": [{"path": str(x.path), "reason": x.reason} for x in problems],
    }
    click.echo(json.dumps(data, indent=2))
