"""What the suite leaves out is what cannot be run here, and it says so."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import retrykit
from tests._support import required

ROOT = Path(__file__).parents[1]
# Of the wheel, retrykit is not beside its tests.
PACKAGE = Path(retrykit.__file__).parent
NAMES = {name for names in required.PARTS.values() for name in names.split()}


def files(pattern):
    beside = PACKAGE.parent if pattern.startswith("retrykit") else ROOT
    return [*beside.glob(pattern)]


@pytest.mark.parametrize("pattern", required.PARTS)
def test_every_pattern_is_of_files_that_are_there(pattern):
    assert files(pattern)


def test_a_file_needs_what_each_of_its_patterns_says():
    assert required.needs(ROOT / "tests/integrations/test_http_mountebank.py") == {
        *("aiohttp", "grpc", "httpx", "mb", "requests", "urllib3")
    }
    assert required.needs(ROOT / "tests/test_readme.py") == set()


def imported(path):
    """Return the libraries that a file imports when it is imported itself."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


def test_every_file_that_imports_a_library_needs_it():
    """Or the suite would fail where that library is not installed."""
    every = [*PACKAGE.rglob("*.py"), *ROOT.glob("tests/**/*.py")]
    every += ROOT.glob("examples/*.py")
    forgotten = {
        str(path): names
        for path in every
        # A folder that needs something is not looked into; typing/ is never run.
        if (names := NAMES & {*imported(path)} - required.needs(path))
        and not required.needs(path.parent)
        and path.parent.name != "typing"
    }
    assert forgotten == {}


def test_a_program_is_there_or_not():
    assert required.program(Path(sys.executable).name)
    assert required.program("no-such-program") is None


def ran(*args):
    """Return the exit code and the last line of a run that collects one file."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q"]
    run = subprocess.run(  # noqa: S603  this interpreter, and the suite itself
        [*command, *args, "--color=no", "-p", "no:cacheprovider", __file__],
        capture_output=True,
        check=False,
        cwd=ROOT,
        encoding="utf-8",
    )
    return run.returncode, (run.stdout + run.stderr).rstrip().rpartition("\n")[2]


def test_the_last_line_of_a_run_says_what_was_left_out_and_how_to_run_it():
    code, last = ran()
    assert code == 0
    assert all(name in last for name in required.missing())
    assert "nox -s test-all" in last


def test_where_nothing_may_be_left_out_a_run_without_something_is_refused():
    missing = {*required.missing()} - {"airflow"}
    code, last = ran("--require-all")
    assert code == (4 if missing else 0)
    assert all(name in last for name in missing)
