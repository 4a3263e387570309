"""Reports as data: JSON, SARIF 2.1.0, and GitHub annotations.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", 2020.
"""

import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from retrykit.audit._files import relative_path
from retrykit.audit._findings import Finding, Report
from retrykit.audit._notebooks import cell_of, file_of
from retrykit.audit._reading import read_lines
from retrykit.audit._rules import RULES, Rule
from retrykit.audit._sites import Behavior, Site

__all__ = ["as_data", "as_github", "as_sarif", "by_site"]

_VERSION: Final = 1
_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_ERRORS: Final = frozenset(
    ["blocking-sleep", "cancellation-swallowed", "nested-retries", "unbounded"]
)


def by_site(report: Report) -> Iterator[tuple[Site, list[Finding]]]:
    """Yield each site of a report with its findings."""
    found: dict[Site, list[Finding]] = defaultdict(list)
    for finding in report.findings:
        found[finding.site].append(finding)
    for site in report.sites:
        # Two sites may be equal: their findings are reported once.
        yield site, found.pop(site, [])


def as_data(report: Report) -> dict[str, Any]:
    """Return a report as JSON data.

    An unknown number is null, and an infinite one is "unlimited".
    """
    return {
        "version": _VERSION,
        "files": report.files,
        "lines": report.lines,
        "ignored": report.ignored,
        "unused_ignores": [
            {"path": each.path, "line": each.line, "reason": each.reason}
            for each in report.unused_ignores
        ],
        "sites": [
            {
                "path": site.path,
                "line": site.line,
                "end_line": site.end_line,
                "column": site.column,
                "library": site.library,
                "function": site.function,
                "async": site.is_async,
                "summary": str(site.behavior),
                **_behavior(site.behavior),
                "findings": [
                    {
                        "rule": each.rule,
                        "line": each.line,
                        "message": each.message,
                        "fix": each.fix,
                        "fingerprint": each.fingerprint,
                    }
                    for each in findings
                ],
            }
            for site, findings in by_site(report)
        ],
        "problems": [
            {"path": each.path, "line": each.line, "reason": each.reason}
            for each in report.problems
        ],
    }


def _behavior(behavior: Behavior) -> dict[str, Any]:
    delays = behavior.delays
    return {
        "calls": _number(behavior.calls),
        "elapsed": _number(behavior.elapsed),
        "delays": {
            "shape": delays.shape,
            "first": _number(delays.first),
            "growth": _number(delays.growth),
            "cap": _number(delays.cap),
            "listed": [_number(each) for each in delays.listed] or None,
            "jitter": delays.jitter,
        },
        "retried": None if behavior.retried is None else list(behavior.retried),
        "ending": behavior.ending,
    }


def _number(value: float | None) -> float | str | None:
    if value is None:
        return None
    if value == math.inf:
        return "unlimited"
    whole = int(value)
    return whole if whole == value else value


def as_sarif(report: Report, version: str) -> dict[str, Any]:
    """Return a report as a SARIF log.

    Args:
        report: The report.
        version: The version of the program.
    """
    codes = [*RULES]
    read = cache(read_lines)
    driver = {
        "name": "retrykit",
        "semanticVersion": version,
        "rules": [_sarif_rule(each) for each in RULES.values()],
    }
    results = [
        {
            "ruleId": each.rule,
            "ruleIndex": codes.index(each.rule),
            "level": _level(each.rule),
            **_located(each.site.path, each.line, _text(each), read),
            "partialFingerprints": {"retrykit/v2": each.fingerprint},
        }
        for each in report.findings
    ]
    notifications = [
        {"level": "error", **_located(each.path, each.line, each.reason, read)}
        for each in report.problems
    ]
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": notifications,
            }
        ],
        "results": results,
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _sarif_rule(rule: Rule) -> dict[str, Any]:
    words = rule.code.split("-")
    text = f"{rule.why}\n\nDon't:\n\n{rule.bad}\n\nDo:\n\n{rule.good}"
    code = "```python\n{}\n```"
    marked = [rule.why, "Don't:", code.format(rule.bad), "Do:", code.format(rule.good)]
    return {
        "id": rule.code,
        # A name must differ from the code.
        **({"name": "".join(map(str.capitalize, words))} if words[1:] else {}),
        "shortDescription": {"text": _as_sentence(rule.summary)},
        "fullDescription": {"text": rule.why},
        "help": {"text": text, "markdown": "\n\n".join(marked)},
        "defaultConfiguration": {"level": _level(rule.code)},
    }


def _level(code: str) -> str:
    return "error" if code in _ERRORS else "warning"


def _as_sentence(summary: str) -> str:
    """Return a summary, which must not begin with a name in code, as a sentence."""
    return f"{summary[:1].upper()}{summary[1:]}."


def _text(finding: Finding) -> str:
    # As it is: a message may begin with a name such as `time.sleep`.
    return f"{finding.message}; {finding.fix}"


def _in_file(place: str, line: int, text: str) -> tuple[int, str]:
    """Return the line of a place in its file, and the text about it.

    Lines of a notebook's file differ from lines of its cells, so there the line is 1,
    and the text names the cell.
    """
    cell = cell_of(place)
    if not cell:
        return line, text
    where = f"cell {cell}, line {line}" if line else f"cell {cell}"
    return 1, f"In {where}: {text}"


def _located(
    place: str, line: int, text: str, read: Callable[[str], list[str]]
) -> dict[str, Any]:
    """Return the SARIF properties of a message about a line; 0 is the whole file."""
    line, text = _in_file(place, line, text)
    location: dict[str, Any] = {"artifactLocation": _artifact(place)}
    if line:
        location["region"] = _region(line, read(place))
    return {
        "message": {"text": text},
        "locations": [{"physicalLocation": location}],
    }


def _region(line: int, lines: list[str]) -> dict[str, int]:
    """Return the SARIF region of a line, with all numbers that GitHub requires."""
    text = lines[line - 1].rstrip() if line <= len(lines) else ""
    start = len(text) - len(text.lstrip()) + 1
    end = max(len(text), start) + 1
    return {"startLine": line, "startColumn": start, "endLine": line, "endColumn": end}


def _artifact(path: str) -> dict[str, str]:
    file = file_of(path)
    relative = relative_path(file, ".")
    if os.path.isabs(relative) or relative.startswith("../"):
        return {"uri": Path(os.path.abspath(file)).as_uri()}
    return {"uri": quote(os.fsencode(relative)), "uriBaseId": "%SRCROOT%"}


def as_github(report: Report) -> Iterator[str]:
    """Yield a report as workflow commands, which GitHub shows beside the code.

    Source: GitHub Docs, "Workflow commands for GitHub Actions".
    """
    for each in report.problems:
        yield _command("error", each.path, each.line, "not read", each.reason)
    for each in report.unused_ignores:
        yield _command("notice", each.path, each.line, "unused ignore", each.reason)
    for finding in report.findings:
        kind, text = _level(finding.rule), _text(finding)
        yield _command(kind, finding.site.path, finding.line, finding.rule, text)


def _command(kind: str, place: str, line: int, title: str, text: str) -> str:
    line, text = _in_file(place, line, text)
    properties = {
        "file": relative_path(file_of(place), "."),
        "line": str(line or 1),
        "title": f"retrykit: {title}",
    }
    named = ",".join(f"{key}={_escape(x, ':,')}" for key, x in properties.items())
    return f"::{kind} {named}::{_escape(text)}"


def _escape(text: str, others: str = "") -> str:
    for each in ("%", "\r", "\n", *others):
        text = text.replace(each, f"%{ord(each):02X}")
    return text
