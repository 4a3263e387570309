"""Findings of an audit, and the report that holds them."""

from typing import final

from retrykit._internal.frozen import Frozen
from retrykit.audit._sites import Site

__all__ = ["Finding", "Problem", "Report"]


@final
class Finding(Frozen):
    """Something that is wrong with a site.

    Attributes:
        rule: The code of the rule, in lower case with hyphens.
        site: Where it is.
        line: The line that the finding is about; from 1.
        message: What is wrong, with numbers.
        fix: What to change.
        fingerprint: A hash that stays the same if the lines of the site move.
    """

    __slots__ = ("fingerprint", "fix", "line", "message", "rule", "site")
    rule: str
    site: Site
    line: int
    message: str
    fix: str
    fingerprint: str

    def __init__(  # noqa: PLR0913, PLR0917  one for each field
        self,
        rule: str,
        site: Site,
        line: int,
        message: str,
        fix: str,
        fingerprint: str = "",
    ) -> None:
        Frozen.__init__(self, rule, site, line, message, fix, fingerprint)

    def __str__(self) -> str:
        return f"{self.site.path}:{self.line}: {self.rule}: {self.message}; {self.fix}"


@final
class Problem(Frozen):
    """A file, folder or cell that was not read, or a comment without an effect.

    Attributes:
        path: Its path.
        line: The line of a syntax error or of a comment, or 0.
        reason: Why it was not read, or has no effect.
    """

    __slots__ = ("line", "path", "reason")
    path: str
    line: int
    reason: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.reason}"


@final
class Report(Frozen):
    """The result of an audit.

    Attributes:
        sites: Where something is retried, by file and line.
        findings: What is wrong with the sites, in the same order.
        problems: What was not read, and comments that ignore unknown rules.
        files: How many files were found.
        lines: How many lines they have.
        ignored: How many findings are left out by comments, *per_file_ignores* or the
            baseline.
        unused_ignores: Comments that leave out no finding, although all of their rules
            were applied.
    """

    __slots__ = (
        "files",
        "findings",
        "ignored",
        "lines",
        "problems",
        "sites",
        "unused_ignores",
    )
    sites: tuple[Site, ...]
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    files: int
    lines: int
    ignored: int
    unused_ignores: tuple[Problem, ...]
