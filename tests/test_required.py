"""The suite leaves out exactly the parts that cannot run, and reports them."""

import ast
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import retrykit
from retrykit._internal.distribution import NAME
from tests._support import required

ROOT = Path(__file__).parents[1]
# With a wheel, retrykit is not beside its tests.
PACKAGE = Path(retrykit.__file__).parent
NAMES = {name for names in required.PARTS.values() for name in names.split()}


def files(pattern):
    beside = PACKAGE.parent if pattern.startswith("retrykit") else ROOT
    return [*beside.glob(pattern)]


@pytest.mark.parametrize("pattern", required.PARTS)
def test_every_pattern_matches_files(pattern):
    assert files(pattern)


def test_a_file_has_the_needs_of_all_its_patterns():
    assert required.needs(ROOT / "tests/integrations/test_http_mountebank.py") == {
        *("aiohttp", "grpc", "httpx", "httpx2", "mb", "requests", "urllib3")
    }
    assert required.needs(ROOT / "tests/test_readme.py") == set()


def imported(path):
    """Return the libraries that a file imports at its top level."""
    text = path.read_text("utf-8")
    # Most import none, and a search is faster than the parser.
    found = NAMES & {*re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)}
    for node in ast.parse(text).body if found else ():
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


@pytest.mark.thorough
def test_every_file_that_imports_a_library_lists_it():
    """Otherwise the suite fails if that library is not installed."""
    every = [*PACKAGE.rglob("*.py"), *ROOT.glob("tests/**/*.py")]
    every += ROOT.glob("examples/*.py")
    forgotten = {
        str(path): names
        for path in every
        # A folder with needs is skipped as a whole; typing/ is never run.
        if (found := NAMES & {*imported(path)})
        and (names := found - required.needs(path))
        and not required.needs(path.parent)
        and path.parent.name != "typing"
    }
    assert forgotten == {}


@pytest.mark.parametrize("name", ["pytest", "importlib.util"])
def test_a_library_or_a_part_of_it_is_installed(name):
    assert required.installed(name)


@pytest.mark.parametrize("name", ["no_library", "importlib.no_part", "no_library.part"])
def test_a_library_or_a_part_of_it_is_not_installed(name):
    assert not required.installed(name)


def test_program_finds_a_program_on_the_path():
    assert required.program(Path(sys.executable).name)
    assert required.program("no-such-program") is None


def run_suite(path, *args):
    """Collect one file with no program on the path but those of a folder."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q"]
    return subprocess.run(  # noqa: S603  a fixed command
        [*command, *args, "--color=no", "-p", "no:cacheprovider", __file__],
        capture_output=True,
        check=False,
        cwd=ROOT,
        encoding="utf-8",
        env={**os.environ, "PATH": str(path)},
    )


@pytest.mark.thorough
def test_the_last_line_of_a_run_names_the_skipped_parts(tmp_path):
    run = run_suite(tmp_path)
    last = run.stdout.splitlines()[-1]
    assert run.returncode == 0
    assert re.search(r"^Left out: .*\bmb\b.*nox -s test-all$", last)


@pytest.mark.thorough
def test_require_all_fails_if_something_is_missing(tmp_path):
    run = run_suite(tmp_path, "--require-all")
    assert run.returncode == 4
    assert re.search(r"not installed: .*\bmb\b", run.stderr)


@pytest.mark.thorough
def test_an_extra_without_libraries_of_its_own_has_no_tests_of_its_own(tmp_path):
    run = run_suite(tmp_path, "--extra", "cli")
    assert run.returncode == 4
    assert "--extra cli: tests/_support/required.py lists none of its" in run.stderr


def test_every_extra_that_is_installed_has_tests():
    """Otherwise nox -s oldest could not test it."""
    extras = {*metadata.metadata(NAME).get_all("Provides-Extra")}
    tests = [*map(required.needs, ROOT.glob("tests/**/test_*.py"))]
    untested = []
    for extra in extras - {"cli", "hypothesis", "test"}:
        try:
            libraries = required.libraries(extra)
        except metadata.PackageNotFoundError:
            continue
        if not libraries or not any(libraries <= needs for needs in tests):
            untested.append(extra)
    assert untested == []
