"""The audit of files and folders."""

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from retrykit._internal.validation import check_integer, did_you_mean, user_facing
from retrykit.audit._baseline import Baseline, fingerprint
from retrykit.audit._changes import changed_lines, touches
from retrykit.audit._context import with_context
from retrykit.audit._files import (
    find_files,
    is_excluded,
    relative_path,
)
from retrykit.audit._findings import Finding, Problem, Report
from retrykit.audit._nesting import check_nesting
from retrykit.audit._notebooks import Cell
from retrykit.audit._project import Project
from retrykit.audit._reading import Reading, read_lines
from retrykit.audit._repeated import Repeated
from retrykit.audit._rules import RULES, RULES_OF_POLICIES, Rule, check_site
from retrykit.audit._scan import Progress, scan, without_collection
from retrykit.audit._settings import check_rules
from retrykit.audit._sites import Site

__all__ = ["audit"]


def _say_nothing(_done: int, _all: int) -> None:
    return


@user_facing
@without_collection()
def audit(  # noqa: PLR0913  settings, by name
    paths: Iterable[str | Path],
    *,
    select: Iterable[str] | None = None,
    ignore: Iterable[str] = (),
    exclude: Iterable[str] = (),
    per_file_ignores: Mapping[str, Iterable[str]] | None = None,
    root: str | Path | None = None,
    baseline: str | Path | None = None,
    diff: str | None = None,
    processes: int = 1,
    progress: Progress = _say_nothing,
) -> Report:
    """Find where code retries, and what is wrong with that, without running the code.

    Args:
        paths: Files and folders.
        select: The codes of the only rules to apply; None for all.
        ignore: The codes of rules to skip.
        exclude: Patterns of paths or names to skip in folders, relative to *root*.
        per_file_ignores: The codes of rules to skip, keyed by pattern of paths.
        root: The folder that patterns are relative to; None for the current one.
        baseline: A file of known findings, which are left out.
        diff: A git revision: findings are left out if no line of their site has changed
            since then.
        processes: How many processes read files. Count, >= 1. A script that uses more
            than one must be importable, as `multiprocessing` requires.
        progress: Called with the number of files read so far, and the number of all
            files.

    Raises:
        ConfigError: A path is neither a file nor a folder; a code is unknown;
            *processes* is not an integer >= 1; the baseline or the changes since *diff*
            cannot be read.
    """
    check_integer("processes", processes, at_least=1)
    rules = _choose(select, ignore)
    per_file = {
        pattern: check_rules("per_file_ignores", codes)
        for pattern, codes in (per_file_ignores or {}).items()
    }
    base = Path(root or ".").absolute()
    given = [os.fspath(each) for each in paths]
    known = None if baseline is None else Baseline.read(baseline)
    files, problems = find_files(given, tuple(exclude), base)
    changes = None if diff is None else changed_lines(diff, _folder(given))
    readings = scan(files, processes, progress)
    by_path = dict(zip((each.path for each in files), readings, strict=True))
    for each in readings:
        problems += each.problems
    problems += _unknown_codes(by_path)
    sites, found = _check(Project.of_files(files, readings), rules)
    findings = [
        each
        for each in found
        if not _is_ignored(each, by_path[each.site.path])
        and each.rule not in _ignored_codes(each.site.path, per_file, base)
    ]
    unused = _unused_ignores(found, by_path, rules)
    modules = {each.path: each.module for each in files}
    findings = _with_fingerprints(findings, modules)
    if known is not None:
        findings = known.remove(findings)
    ignored = len(found) - len(findings)
    if changes is not None:
        findings = [
            each
            for each in findings
            if touches(
                changes.get(os.path.realpath(each.site.path), ()),
                each.site.line,
                each.site.end_line,
            )
        ]
    return Report(
        tuple(_in_cell(each, by_path[each.path].cells) for each in sites),
        tuple(_finding_in_cell(x, by_path[x.site.path].cells) for x in findings),
        tuple(problems),
        len(files),
        sum(each.lines for each in readings),
        ignored,
        tuple(unused),
    )


def _check(
    project: Project, rules: dict[str, Rule]
) -> tuple[list[Site], list[Finding]]:
    """Return the sites of a project and the findings about them, in the same order."""
    sites = [*project.sites()]
    repeated = Repeated(project, sites)
    told = {each: with_context(each, repeated) for each in sites}
    sites = [*told.values()]
    found = [
        each.replace(site=told[each.site])
        for each in check_nesting(repeated)
        if each.rule in rules
    ]
    for site in sites:
        found += check_site(site, rules)
    order = {site: index for index, site in enumerate(sites)}
    return sites, sorted(found, key=lambda each: order[each.site])


def _choose(select: Iterable[str] | None, ignore: Iterable[str]) -> dict[str, Rule]:
    skipped = check_rules("ignore", ignore)
    chosen = RULES if select is None else check_rules("select", select)
    return {each: RULES[each] for each in chosen if each not in skipped}


def _folder(paths: Sequence[str]) -> str:
    """Return the first path if it is a folder, else its folder; "." without paths."""
    first = paths[0] if paths else "."
    return first if os.path.isdir(first) else os.path.dirname(first) or "."


def _unknown_codes(readings: Mapping[str, Reading]) -> Iterator[Problem]:
    """Yield a problem for each unknown rule that a comment ignores."""
    for path, reading in readings.items():
        for line, codes in reading.ignored.items():
            for code in codes:
                if code not in RULES and code not in RULES_OF_POLICIES:
                    place, number = _place(path, line, reading.cells)
                    suggestion = did_you_mean(code, {*RULES, *RULES_OF_POLICIES})
                    reason = f"there is no rule {code!r} to ignore"
                    text = f"{reason}; {suggestion}" if suggestion else reason
                    yield Problem(place, number, text)


def _is_ignored(finding: Finding, reading: Reading) -> bool:
    """Return whether a comment ignores a finding."""
    return next(_ignoring_lines(finding, reading), None) is not None


def _ignoring_lines(finding: Finding, reading: Reading) -> Iterator[int]:
    """Yield the lines of the comments that ignore a finding."""
    if not reading.ignored:
        return
    site = finding.site
    # A call may be longer than a line; a loop may contain any other statement.
    last = site.line if site.library == "loop" else site.end_line
    for line in (*range(site.line, last + 1), finding.line):
        codes = reading.ignored.get(line)
        if codes is not None and (not codes or finding.rule in codes):
            yield line


def _unused_ignores(
    found: Iterable[Finding],
    readings: Mapping[str, Reading],
    rules: Mapping[str, Rule],
) -> Iterator[Problem]:
    """Yield a problem for each comment that ignores no finding.

    A comment is left out if any of its rules is not applied: another audit may need it.
    """
    used = {
        (each.site.path, line)
        for each in found
        for line in _ignoring_lines(each, readings[each.site.path])
    }
    for path, reading in readings.items():
        for line, codes in reading.ignored.items():
            if (path, line) not in used and rules.keys() >= {*(codes or RULES)}:
                place, number = _place(path, line, reading.cells)
                yield Problem(place, number, _UNUSED)


_UNUSED: Final = (
    "no finding to ignore here; the comment belongs on the line of the finding, which "
    "of a loop is its first line"
)


def _ignored_codes(
    path: str, per_file: Mapping[str, tuple[str, ...]], root: Path
) -> set[str]:
    """Return the codes of the rules that *per_file* ignores in a file."""
    if not per_file:
        return set()
    relative = relative_path(path, root)
    return {
        code
        for pattern, codes in per_file.items()
        if is_excluded(relative, [pattern])
        for code in codes
    }


def _with_fingerprints(
    findings: Iterable[Finding], modules: Mapping[str, str]
) -> list[Finding]:
    """Return findings with fingerprints, which stay the same if lines move."""
    lines: dict[str, list[str]] = {}
    found = []
    for each in findings:
        path = each.site.path
        if path not in lines:
            lines = {path: read_lines(path)}
        made = fingerprint(each, lines[path], modules[path])
        found.append(each.replace(fingerprint=made))
    return found


def _place(path: str, line: int, cells: Sequence[Cell]) -> tuple[str, int]:
    """Return a path and a line as they are reported.

    In a notebook, the path names the cell, and the line is counted from its start.
    """
    if not cells or not line:
        return path, line
    index = bisect_right(cells, line, key=lambda each: each.line) - 1
    cell = cells[index]
    return f"{path}:cell {cell.number}", line - cell.line + 1


def _in_cell(site: Site, cells: Sequence[Cell]) -> Site:
    if not cells:
        return site
    path, line = _place(site.path, site.line, cells)
    moved = line - site.line
    blocking = site.blocking and site.blocking + moved
    end = site.end_line + moved
    found: Site = site.replace(path=path, line=line, end_line=end, blocking=blocking)
    return found


def _finding_in_cell(finding: Finding, cells: Sequence[Cell]) -> Finding:
    if not cells:
        return finding
    line = _place("", finding.line, cells)[1]
    found: Finding = finding.replace(site=_in_cell(finding.site, cells), line=line)
    return found
