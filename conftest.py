"""Leaves out tests whose needs are missing, and reports it."""

import gc
import os
import signal
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import none

from tests._support import required

# The same examples in every run, so that a failure can be repeated.
settings.register_profile("quick", max_examples=10, deadline=None, derandomize=True)
for name, count in {"few": 3, "full": 25, "thorough": 200}.items():
    settings.register_profile(name, settings.get_profile("quick"), max_examples=count)
settings.load_profile("quick")

SKIPPED: Counter[str] = Counter()
"""The numbers of single tests that were skipped, by their reasons."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--require-all``."""
    parser.addoption(
        "--require-all",
        action="store_true",
        help="fail if a library or program that tests need is missing",
    )
    parser.addoption(
        "--extra",
        metavar="NAME",
        help="run only the files that need the libraries of this extra",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Let no process of pytest-xdist wait for another one: some tests take long."""
    if getattr(config.option, "numprocesses", None) and config.option.dist == "no":
        config.option.dist = "worksteal"


def pytest_configure(config: pytest.Config) -> None:
    """Reset the environment; with ``--require-all``, fail if anything is missing."""
    # Tests send it, and a shell ignores it in what it runs in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Tests start programs, which would read these settings of the terminal.
    for name in ("COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "PYTEST_ADDOPTS"):
        os.environ.pop(name, None)
    # Airflow is too large to be installed with the others.
    missing = {*required.missing()} - {"airflow"}
    extra = config.getoption("extra")
    if extra and not required.libraries(extra):
        msg = f"--extra {extra}: tests/_support/required.py lists none of its libraries"
        raise pytest.UsageError(msg)
    if missing and config.getoption("require_all"):
        msg = f"--require-all, but not installed: {', '.join(sorted(missing))}"
        raise pytest.UsageError(msg)


def pytest_collection_finish() -> None:
    """Keep the collector of garbage from looking at all tests again each time."""
    # Afterwards, Hypothesis would not find what refers to its source of randomness.
    given(none())(lambda _: None)()
    gc.collect()
    gc.freeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out a file whose libraries or programs are missing."""
    extra = config.getoption("extra")
    if extra and collection_path.is_file():
        selected = required.libraries(extra) <= required.needs(collection_path)
    else:
        selected = True
    # None, unlike False, leaves the decision to the other hooks.
    return not selected or bool(required.missing(collection_path)) or None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose libraries, programs or abilities are missing."""
    for marker in item.iter_markers("needs"):
        required.skip_without(*marker.args)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count the tests that were skipped."""
    if report.skipped and isinstance(report.longrepr, tuple):
        SKIPPED[report.longrepr[2].removeprefix("Skipped: ")] += 1


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Let pytest-xdist send what was logged, even if UTF-8 cannot encode it."""
    data = yield
    data["sections"] = [
        (name, text.encode("utf-8", "backslashreplace").decode())
        for name, text in data.get("sections", ())
    ]
    return data


def pytest_unconfigure(config: pytest.Config) -> None:
    """Report in the last line what was left out, and how to run it."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput"):
        return
    left_out = []
    if "not engines" in config.getoption("markexpr"):
        left_out.append("durable jobs on servers that are killed")
    if missing := required.missing():
        left_out.append(f"tests that need {', '.join(missing)}")
    left_out += [
        f"{count} single tests, since each {reason}"
        for reason, count in sorted(SKIPPED.items())
        if reason.startswith("needs ")
    ]
    if left_out:
        parts = ", and ".join(left_out)
        reporter.write_line(f"Left out: {parts}. To run everything: nox -s test-all")
