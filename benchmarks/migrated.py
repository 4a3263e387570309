"""Test suites of public packages, before and after ``retrykit migrate``.

``python -m benchmarks.migrated FOLDER [PACKAGE...]`` downloads the source archive of
each package, installs it in a virtual environment of its own, runs its tests, mypy and
ruff under its own settings, migrates it, and runs them again. It prints a table, and
what no longer passes. Nothing of the packages is kept in this repository. The folder
keeps archives and environments for the next run; each takes some minutes.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

from benchmarks.table import markdown

__all__ = ["PACKAGES", "Checks", "Package", "Result", "main"]

_OWN = Path(__file__).parents[1]
_TOOLS = ("mypy", "pytest", "ruff")
_LONGEST = 1800
"""Seconds for the tests of a package."""


class Package(NamedTuple):
    """A released package whose source archive has its tests.

    Attributes:
        name: Its name.
        version: Its release.
        source: The folder of its code, which is checked and, with *tests*, migrated.
        tests: The files and folders of the tests that are run.
        install: The arguments of ``pip install``, in the folder of its archive.
    """

    name: str
    version: str
    source: str
    tests: tuple[str, ...]
    install: tuple[str, ...]


_OSLO = ("oslotest", "testscenarios", "testtools", "stestr")

PACKAGES = (
    Package("gql", "4.4.0", "gql", ("tests",), ("--editable", ".[dev]")),
    Package(
        "os-brick",
        "7.1.1",
        "os_brick",
        ("os_brick/tests",),
        ("--editable", ".", *_OSLO, "castellan", "ddt", "fixtures", "oslo.vmware"),
    ),
    Package(
        "papermill",
        "2.7.0",
        "papermill",
        ("papermill/tests/test_iorw.py", "papermill/tests/test_gcs.py"),
        ("--editable", ".[test]", "setuptools<81"),
    ),
    Package(
        "singer-sdk",
        "0.54.9",
        "singer_sdk",
        ("tests/core",),
        ("--editable", ".[faker,jwt,msgspec,parquet]", "--group", "typing"),
    ),
    Package(
        "taskflow",
        "6.5.0",
        "taskflow",
        (
            "taskflow/tests/unit/persistence",
            "taskflow/tests/unit/test_storage.py",
            "taskflow/tests/unit/jobs/test_entrypoint.py",
            "taskflow/tests/unit/test_conductors.py",
        ),
        (
            "--editable",
            ".[etcd,redis,zookeeper]",
            *_OSLO,
            "alembic",
            "pydotplus",
            "sqlalchemy",
        ),
    ),
)


class Checks(NamedTuple):
    """What the tools of a package say about it.

    Attributes:
        passed: The tests that pass.
        mypy: The errors of mypy, without their lines.
        ruff: The errors of ``ruff check``, likewise.
        unformatted: The files that ``ruff format`` would change.
    """

    passed: frozenset[str]
    mypy: Counter[str]
    ruff: Counter[str]
    unformatted: frozenset[str]


class Result(NamedTuple):
    """A package before and after its migration.

    Attributes:
        package: The package.
        translated: Its usages that are translated.
        left: Why the others are left as they are.
        before: The checks before.
        after: The checks after.
        again: The files that a second migration would change.
    """

    package: Package
    translated: int
    left: list[str]
    before: Checks
    after: Checks
    again: list[str]

    def row(self) -> list[str]:
        """Return the cells of the table."""
        usages = self.translated + len(self.left)
        before, after = self.before, self.after
        return [
            f"{self.package.name} {self.package.version}",
            f"{self.translated} of {usages}",
            *(str(len(each.passed)) for each in (before, after)),
            *(str(each.mypy.total()) for each in (before, after)),
            *(str(each.ruff.total()) for each in (before, after)),
        ]

    def details(self) -> str:
        """Return what is left, fails, or is told after the migration alone."""
        before, after = self.before, self.after
        parts: list[tuple[str, Iterable[str]]] = [
            ("left", self.left),
            ("fails", sorted(before.passed - after.passed)),
            ("mypy", (after.mypy - before.mypy).elements()),
            ("ruff", (after.ruff - before.ruff).elements()),
            ("unformatted", sorted(after.unformatted - before.unformatted)),
            ("changes again", self.again),
        ]
        name = self.package.name
        return "\n".join(f"{name}: {head}: {x}" for head, xs in parts for x in xs)


class _Environment:
    """A package in a virtual environment."""

    def __init__(self, package: Package, folder: Path) -> None:
        self.package = package
        self.root = folder / f"{package.name}-{package.version}"
        self._bin = folder / f"{package.name}-env" / "bin"
        # Some tests start programs of their packages.
        path = f"{self._bin}{os.pathsep}{os.environ['PATH']}"
        self._variables = {**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        self._variables.pop("PYTHONPATH", None)
        if not self._bin.exists():
            self._make()

    def _make(self) -> None:
        venv = [sys.executable, "-m", "venv", str(self._bin.parent)]
        subprocess.run(venv, check=True)  # noqa: S603  ours
        # Since 25.1, it knows groups.
        self._install("pip>=25.1")
        self.unpack()
        self._install(*_TOOLS, *self.package.install)

    def _install(self, *arguments: str) -> None:
        pip = ["python", "-m", "pip", "install", "-qqq", *arguments]
        if self.run(*pip).returncode:
            msg = f"{self.package.name} cannot be installed"
            raise SystemExit(msg)

    def unpack(self) -> None:
        """Download the archive if it is not there, and unpack it afresh."""
        requirement = f"{self.package.name}=={self.package.version}"
        archives = self.root.with_name("archives") / self.root.name
        if not archives.is_dir():
            pip = ["python", "-m", "pip", "download", "--quiet", "--no-deps"]
            pip += [
                "--no-binary",
                self.package.name,
                "--dest",
                str(archives),
                requirement,
            ]
            subprocess.run([self._bin / pip[0], *pip[1:]], check=True)  # noqa: S603
        (archive,) = archives.iterdir()
        unpacked = self.root.with_name(f"{self.root.name}-unpacked")
        with tarfile.open(archive) as source:
            source.extractall(unpacked, filter="data")
        (top,) = unpacked.iterdir()
        shutil.rmtree(self.root, ignore_errors=True)
        top.rename(self.root)
        unpacked.rmdir()

    def install_ours(self) -> None:
        """Install this clone; its dependencies stay as they are."""
        self._install(f"{_OWN}[cli,migrate]")

    def run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run a program of the environment in the folder of the package."""
        folder = self.root if self.root.is_dir() else self.root.parent
        return subprocess.run(  # noqa: S603  the programs above
            [self._bin / command[0], *command[1:]],
            cwd=folder,
            env=self._variables,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            timeout=_LONGEST,
        )

    def migrate(self, *options: str) -> str:
        """Migrate the package and its tests; return what the command prints."""
        paths = dict.fromkeys([self.package.source, *self.package.tests])
        command = ["python", "-m", "retrykit", "migrate", *paths, *options]
        return self.run(*command).stdout

    def check(self) -> Checks:
        """Run the tools of the package."""
        source = self.package.source
        types = self.run(
            "mypy", "--no-incremental", "--no-pretty", "--no-error-summary", source
        )
        lint = self.run("ruff", "check", "--output-format=concise", source)
        style = self.run("ruff", "format", "--check", source)
        unformatted = re.findall(r"^Would reformat: (.+)$", style.stdout, re.MULTILINE)
        return Checks(
            self._passed(),
            _errors(types.stdout),
            _errors(lint.stdout),
            frozenset(unformatted),
        )

    def _passed(self) -> frozenset[str]:
        report = self.root / "passed.xml"
        options = ["-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        self.run("python", "-m", "pytest", *options, *self.package.tests)
        cases = ET.parse(report).iter("testcase")  # noqa: S314  written by pytest
        return frozenset(
            f"{case.get('classname')}.{case.get('name')}"
            for case in cases
            if not {"failure", "error", "skipped"} & {each.tag for each in case}
        )


def _errors(text: str) -> Counter[str]:
    """Return the errors of a tool, without lines and columns, which move."""
    found = re.findall(
        r"^(\S+?\.pyi?):\d+(?::\d+)?: (?!note:)(.+)$", text, re.MULTILINE
    )
    return Counter(f"{path}: {message}" for path, message in found)


def _try(package: Package, folder: Path) -> Result:
    environment = _Environment(package, folder)
    environment.unpack()
    before = environment.check()
    if not before.passed:
        msg = f"{package.name}: no test passes; see {environment.root}"
        raise SystemExit(msg)
    environment.install_ours()
    written = json.loads(environment.migrate("--write", "--json"))
    after = environment.check()
    again = json.loads(environment.migrate("--json"))
    usages = [
        (f"{file['path']}:{usage['line']}: {usage['reason']}", usage["reason"])
        for file in written["files"]
        for usage in file["usages"]
    ]
    return Result(
        package,
        sum(reason is None for _, reason in usages),
        [text for text, reason in usages if reason is not None],
        before,
        after,
        [file["path"] for file in again["files"] if file["changed"]],
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE")
    given = parser.parse_args(arguments)
    folder = given.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [x for x in PACKAGES if not given.packages or x.name in given.packages]
    results = [_try(package, folder) for package in chosen]
    heads = ["package", "usages translated", "tests passed", "after"]
    heads += ["errors of mypy", "after", "errors of ruff", "after"]
    print(markdown(heads, [each.row() for each in results]))
    for details in filter(None, (each.details() for each in results)):
        print(f"\n{details}")


if __name__ == "__main__":
    main()
