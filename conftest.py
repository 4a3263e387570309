"""Leaves out the parts of the suite that need more than is installed, and says so."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests._support import required

# The same examples in every run: a suite that fails now and then helps nobody.
settings.register_profile("quick", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=200)
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for where nothing may be left out."""
    parser.addoption(
        "--require-all",
        action="store_true",
        help="fail if a library or program is missing that part of the suite needs",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Begin as everywhere, or not at all where something may not be missing."""
    # What a terminal is set to would reach the programs that tests start.
    for name in ("COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "PYTEST_ADDOPTS"):
        os.environ.pop(name, None)
    # Airflow is too large to be installed beside the others.
    missing = {*required.missing()} - {"airflow"}
    if missing and config.getoption("require_all"):
        msg = f"--require-all, and not installed: {', '.join(sorted(missing))}"
        raise pytest.UsageError(msg)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out a file that needs what is not installed."""
    # None, and not False, leaves the other reasons to ignore a file in force.
    return bool(required.missing(collection_path)) or None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Say in the last line what was left out, and how to run it."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput"):
        return
    left_out = []
    if config.getoption("markexpr") == "not engines":
        left_out.append("durable jobs on servers that are killed")
    if missing := required.missing():
        left_out.append(f"what needs {', '.join(missing)}")
    if left_out:
        told = ", and ".join(left_out)
        reporter.write_line(f"Left out: {told}. To run everything: nox -s test-all")
