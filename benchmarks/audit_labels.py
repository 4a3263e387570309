"""Precision and recall of an auditor of retries on labeled places in public packages.

The labels are in ``tests/audit/labels.csv``, one place a row; the code itself is not
kept. Each place was read, in the released package, and says what is true for a careful
reader, not what a program can know:

- ``package``, ``version``, ``path``: The path is relative to the unpacked archive. Of
  a repository on GitHub, these are its owner and name, the commit, and the path in it.
- ``line``: The line of the decorator, of the call that makes the retries, or of the
  loop.
- ``kind``: The library that retries; ``loop``, which is written by hand; ``none``,
  which looks like a retry and is none; or ``unclear``, which is not scored.
- ``what``: A few words. For ``none`` they begin with what it is instead: ``poll``,
  ``worker``, ``reconnect``, ``pagination``, ``rate limiter``, ``compare-and-set``,
  ``skip-bad-items``, ``fallback`` (to another server or form), or ``other``.
- ``rules``: The rules that are broken, separated by spaces; `RULES` says when.
- ``unknown``: The rules that the source of this package alone does not decide, as when
  the caller passes the limit.

Not every retry of a package is labeled, so a site at another place is neither right
nor wrong; it is counted as unread. ``download`` fetches the packages, about 300 MB:
wheels, and seven source archives, whose ``setup.py`` pip runs. ``score`` scores
``retrykit audit``, or a function that yields the sites of one package, given its
folder:

    python -m benchmarks.audit_labels download FOLDER
    python -m benchmarks.audit_labels score FOLDER [MODULE:FUNCTION] [-v]

``--labels FILE`` before the command takes the labels from another file.
"""

import argparse
import csv
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, Protocol

from benchmarks.table import markdown
from retrykit.audit import audit

__all__ = [
    "RULES",
    "Label",
    "Released",
    "Score",
    "Site",
    "audited",
    "download",
    "read_labels",
    "score",
    "unpack",
]

LABELS = Path(__file__).parents[1] / "tests/audit/labels.csv"

RULES = {
    "unbounded": "Neither attempts nor time end a call that fails every time. An event"
    " that stops the program is no limit.",
    "retries-at-once": "Two or more retries without a delay. One at once, as with a new"
    " token or connection, is no fault.",
    "no-jitter": "There is a delay, and no part of it is random.",
    "growth-without-cap": "Delays are multiplied without an upper limit, and attempts"
    " have no limit, or one that the caller sets with no default, or with one above 10;"
    " or a delay exceeds 10 minutes.",
    "retries-every-exception": "Exception, BaseException or everything is retried, and"
    " nothing sorts out errors that stay. A handler before it that raises does so, or a"
    " test after which one raises; one for a cancellation does not.",
    "cancellation-swallowed": "BaseException, everything or CancelledError is retried.",
    "error-hidden": "At the end the last error is neither raised nor chained nor"
    " returned.",
    "blocking-sleep": "time.sleep in a coroutine.",
}
"""When each rule is broken."""

NOT_RETRIES = (
    "poll",
    "worker",
    "reconnect",
    "pagination",
    "rate limiter",
    "compare-and-set",
    "skip-bad-items",
    "fallback",
    "other",
)
"""What a place that looks like a retry can be instead."""

_LIBRARIES = {
    "aiohttp-retry",
    "anthropic",
    "backoff",
    "botocore",
    "celery",
    "google-api-core",
    "httpx",
    "openai",
    "redis",
    "requests",
    "retry",
    "retrying",
    "stamina",
    "tenacity",
    "urllib3",
}


class Released(Protocol):
    """Something of a released package."""

    @property
    def package(self) -> str:
        """Its name."""

    @property
    def version(self) -> str:
        """Its version."""


class Label(NamedTuple):
    """A place that was read."""

    package: str
    version: str
    path: str
    line: int
    kind: str
    what: str
    rules: frozenset[str]
    unknown: frozenset[str]

    @property
    def form(self) -> str:
        """Return ``library``, ``loop``, ``none`` or ``unclear``."""
        return self.kind if self.kind in {"loop", "none", "unclear"} else "library"

    def __str__(self) -> str:
        """Return the place, its kind and what it is."""
        return f"{self.package}/{self.path}:{self.line} {self.kind}: {self.what}"


class Site(NamedTuple):
    """A retry that an auditor found.

    Attributes:
        path: Relative to the unpacked package.
        line: The line of the decorator, call or loop.
        end_line: Its last line.
        library: The library, or ``loop``.
        rules: The names in `RULES` that the auditor says are broken.
    """

    path: str
    line: int
    end_line: int
    library: str
    rules: frozenset[str] = frozenset()


class Score(NamedTuple):
    """What an auditor found, held against the labels.

    Attributes:
        found: Labeled retries that it found.
        missed: Labeled retries that it did not find.
        wrong: Labeled places that are no retries and that it took for one.
        unread: Sites of each package at places without a label.
        right_findings: Rules that are broken, and that it names, with the place.
        wrong_findings: Rules that it names, and that are not broken.
        missed_findings: Rules that are broken, and that it does not name.
    """

    found: list[Label]
    missed: list[Label]
    wrong: list[Label]
    unread: list[tuple[str, Site]]
    right_findings: list[tuple[str, Label]]
    wrong_findings: list[tuple[str, Label]]
    missed_findings: list[tuple[str, Label]]

    def tables(self) -> str:
        """Return a table of sites and one of rules."""
        return f"{self._sites()}\n\n{self._rules()}"

    def details(self) -> str:
        """Return everything that is wrong, missed or unread, one a line."""
        parts = [
            ("no retry, found as one", [str(label) for label in self.wrong]),
            ("wrong finding", _lines(self.wrong_findings)),
            ("missed retry", [str(label) for label in self.missed]),
            ("missed finding", _lines(self.missed_findings)),
            ("unread site", [_place(*each) for each in self.unread]),
        ]
        return "\n".join(f"{head}: {line}" for head, lines in parts for line in lines)

    def _sites(self) -> str:
        rows = []
        for form in ("library", "loop"):
            found = sum(label.form == form for label in self.found)
            missed = sum(label.form == form for label in self.missed)
            rows.append([form, str(found), str(missed), _share(found, missed)])
        rows.append(["no retry", str(len(self.wrong)), "", ""])
        rows.append(["unread", str(len(self.unread)), "", ""])
        return markdown(["sites", "found", "missed", "recall"], rows)

    def _rules(self) -> str:
        right, wrong, missed = (
            Counter(rule for rule, _ in findings)
            for findings in (
                self.right_findings,
                self.wrong_findings,
                self.missed_findings,
            )
        )
        rows = [
            [
                rule,
                str(right[rule]),
                str(wrong[rule]),
                str(missed[rule]),
                _share(right[rule], wrong[rule]),
                _share(right[rule], missed[rule]),
            ]
            for rule in RULES
        ]
        heads = ["rule", "right", "wrong", "missed", "precision", "recall"]
        return markdown(heads, rows)


def read_labels(path: Path = LABELS) -> list[Label]:
    """Return the labels of a file.

    Raises:
        ValueError: A kind or rule is unknown, or a place that is no retry breaks a
            rule.
    """
    with path.open(encoding="utf-8", newline="") as file:
        return [_read_row(row) for row in csv.DictReader(file)]


def _read_row(row: dict[str, str]) -> Label:
    label = Label(
        row["package"],
        row["version"],
        row["path"],
        int(row["line"]),
        row["kind"],
        row["what"],
        frozenset(row["rules"].split()),
        frozenset(row["unknown"].split()),
    )
    if fault := _find_fault(label):
        msg = f"{fault}: {label}"
        raise ValueError(msg)
    return label


def _find_fault(label: Label) -> str:
    """Return what is wrong with a label, or an empty text."""
    if label.form == "library" and label.kind not in _LIBRARIES:
        return f"kind must be loop, none, unclear or a library, got {label.kind!r}"
    if unknown := (label.rules | label.unknown) - RULES.keys():
        return f"rules must be in RULES, got {sorted(unknown)}"
    if both := label.rules & label.unknown:
        return f"a rule must be decided or not, got {sorted(both)} as both"
    if label.form in {"none", "unclear"} and label.rules:
        return f"rules of what is no retry must be empty, got {sorted(label.rules)}"
    if label.form == "none" and label.what.partition(":")[0] not in NOT_RETRIES:
        return f"what must begin with one of {NOT_RETRIES}, got {label.what!r}"
    return ""


def score(labels: Iterable[Label], sites: Mapping[str, Iterable[Site]]) -> Score:
    """Hold the sites of each package against its labels.

    A site belongs to the label on its line, else to the nearest one between its first
    and last line that no other site has. A rule that the label does not decide is left
    out, and so is everything about a label that is unclear.

    Args:
        labels: Those of packages that are not in *sites* are left out.
        sites: The sites of each package by its name.
    """
    result = Score([], [], [], [], [], [], [])
    by_package = defaultdict(list)
    for label in labels:
        by_package[label.package].append(label)
    for package, found in sites.items():
        pairs, unread = _match(by_package[package], list(found))
        result.unread.extend((package, site) for site in unread)
        for label, site in pairs:
            _add(result, label, site)
    return result


def _add(result: Score, label: Label, site: Site | None) -> None:
    if label.form == "unclear":
        return
    named = site.rules if site else frozenset()
    if label.form != "none":
        (result.found if site else result.missed).append(label)
    elif site:
        result.wrong.append(label)
    for rule in RULES:
        if rule in label.rules:
            found = result.right_findings if rule in named else result.missed_findings
            found.append((rule, label))
        elif rule in named - label.unknown:
            result.wrong_findings.append((rule, label))


def _match(
    labels: list[Label], sites: list[Site]
) -> tuple[list[tuple[Label, Site | None]], list[Site]]:
    """Return each label with its site, and the sites that are left."""
    distances = sorted(
        (label.line - site.line, i, j)
        for i, label in enumerate(labels)
        for j, site in enumerate(sites)
        if label.path == site.path and site.line <= label.line <= site.end_line
    )
    pairs: dict[int, int] = {}
    for _, i, j in distances:
        if i not in pairs and j not in pairs.values():
            pairs[i] = j
    left = [site for j, site in enumerate(sites) if j not in pairs.values()]
    return [
        (label, sites[pairs[i]] if i in pairs else None)
        for i, label in enumerate(labels)
    ], left


def _share(part: int, rest: int) -> str:
    return f"{part / (part + rest):.0%}" if part + rest else ""


def _lines(findings: list[tuple[str, Label]]) -> list[str]:
    return [f"{rule}: {label}" for rule, label in sorted(findings)]


def _place(package: str, site: Site) -> str:
    rules = " ".join(sorted(site.rules))
    return f"{package}/{site.path}:{site.line} {site.library}: {rules}".rstrip(": ")


def download(packages: Iterable[Released], folder: Path) -> dict[str, Path]:
    """Download and unpack the Python files of each package that is not there yet.

    Returns:
        The folder of each package; one that cannot be had is named on stderr.
    """
    folders = {}
    for package, version in sorted({(each.package, each.version) for each in packages}):
        target = folder / f"{package}-{version}"
        if target.is_dir() or _fetch(package, version, target):
            folders[package] = target
        else:
            print(f"cannot download {package}=={version}", file=sys.stderr)
    return folders


def _fetch(package: str, version: str, target: Path) -> bool:
    """Download and unpack a package, or a commit of a repository."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        folder = Path(temporary, "archive")
        folder.mkdir()
        archived = _clone if "/" in package else _download
        if not archived(package, version, folder):
            return False
        (archive,) = folder.iterdir()
        unpacked = Path(temporary, "unpacked")
        unpack(archive, unpacked)
        unpacked.rename(target)
    return True


def _download(package: str, version: str, folder: Path) -> bool:
    # An environment of uv has no pip of its own.
    pip = [sys.executable, "-m", "pip"] if find_spec("pip") else ["pip"]
    command = [*pip, "download", "--quiet", "--no-deps", "--prefer-binary"]
    # They are read, not run.
    command += ["--ignore-requires-python"]
    command += ["--dest", str(folder), f"{package}=={version}"]
    return not subprocess.run(command, check=False).returncode  # noqa: S603 (pinned)


def _clone(package: str, version: str, folder: Path) -> bool:
    url = f"https://github.com/{package}"
    with tempfile.TemporaryDirectory() as repository:
        git = ["git", "-C", repository]
        archive = ["archive", "--prefix=repository/", "--format=tar"]
        commands = [
            ["init", "--quiet"],
            ["fetch", "--quiet", "--depth=1", url, version],
            [*archive, f"--output={folder / 'archive.tar'}", "FETCH_HEAD"],
        ]
        return not any(
            subprocess.run([*git, *each], check=False).returncode  # noqa: S603 (pinned)
            for each in commands
        )


def unpack(archive: Path, folder: Path) -> None:
    """Unpack the Python files; those of a source archive without its first folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                if name.endswith(".py"):
                    wheel.extract(name, folder)
        return
    with tarfile.open(archive) as source:
        for member in source:
            if member.isfile() and member.name.endswith(".py"):
                member.name = member.name.partition("/")[2]
                source.extract(member, folder, filter="data")


def audited(folder: Path) -> Iterator[Site]:
    """Yield the sites that ``retrykit audit`` finds in a package."""
    report = audit([folder], select=RULES)
    rules = defaultdict(set)
    for each in report.findings:
        rules[each.site].add(each.rule)
    for site in report.sites:
        path = Path(site.path).relative_to(folder).as_posix()
        named = frozenset(rules[site])
        yield Site(path, site.line, site.end_line, site.library, named)


def _sites(
    auditor: Callable[[Path], Iterable[Site]], folders: Mapping[str, Path]
) -> Iterator[tuple[str, list[Site]]]:
    for package, folder in folders.items():
        print(f"{package} ...", file=sys.stderr)
        yield package, list(auditor(folder))


def main(arguments: Sequence[str] | None = None) -> None:
    """Download the packages, or score an auditor on them.

    Args:
        arguments: Those of the command line by default.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit_labels")
    parser.add_argument("--labels", type=Path, default=LABELS, help="another file")
    commands = parser.add_subparsers(dest="command", required=True)
    fetching = commands.add_parser("download", help="download the packages")
    fetching.add_argument("folder", type=Path)
    scoring = commands.add_parser("score", help="score an auditor on the packages")
    scoring.add_argument("folder", type=Path)
    scoring.add_argument(
        "function",
        nargs="?",
        default="benchmarks.audit_labels:audited",
        help="MODULE:FUNCTION, from a folder to its sites",
    )
    scoring.add_argument("-v", "--verbose", action="store_true", help="list the faults")
    options = parser.parse_args(arguments)
    labels = read_labels(options.labels)
    folders = download(labels, options.folder)
    if options.command == "score":
        module, _, name = options.function.partition(":")
        auditor = getattr(import_module(module), name)
        result = score(labels, dict(_sites(auditor, folders)))
        print(result.tables())
        if options.verbose:
            print(f"\n{result.details()}")


if __name__ == "__main__":
    main()
