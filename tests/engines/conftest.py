import re

import pytest

from tests.engines.engines import ENGINES

# Applications, which run as commands.
collect_ignore_glob = ["*_app.py"]


@pytest.fixture(params=ENGINES, ids=lambda kind: kind.name)
def engine(request, tmp_path):
    """A running engine; its table of attempts goes into the summary."""
    with request.param(tmp_path) as engine:
        yield engine
    counts = "; ".join(dict.fromkeys(engine.table))
    request.node.user_properties.append(("attempts", f"{engine.name}|{counts}"))


def pytest_terminal_summary(terminalreporter):
    """Print how often each attempt was started, for every test on every engine."""
    rows = [
        (value.partition("|"), report.head_line or "")
        for report in terminalreporter.getreports("")
        for name, value in report.user_properties
        if name == "attempts" and report.when == "teardown" and value[-1] != "|"
    ]
    if rows:
        terminalreporter.section("how often each attempt was started")
    for (engine, _, counts), test in sorted(rows):
        name = re.sub(r"^test_|\[.*", "", test).replace("_", " ")
        terminalreporter.write_line(f"{engine:24} {name}: {counts}")
