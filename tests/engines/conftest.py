import re

import pytest

from tests.engines.engines import ENGINES

# Applications, which are run as commands.
collect_ignore_glob = ["*_app.py"]


@pytest.fixture(params=ENGINES, ids=lambda kind: kind.name)
def engine(request, tmp_path):
    """An engine with its servers; what was counted goes into a table."""
    with request.param(tmp_path) as engine:
        yield engine
    counted = "; ".join(dict.fromkeys(engine.table))
    request.node.user_properties.append(("counted", f"{engine.name}|{counted}"))


def pytest_terminal_summary(terminalreporter):
    """Print how often each attempt was begun, in every test on every engine."""
    rows = [
        (value.partition("|"), report.head_line or "")
        for report in terminalreporter.getreports("")
        for name, value in report.user_properties
        if name == "counted" and report.when == "teardown" and value[-1] != "|"
    ]
    if rows:
        terminalreporter.section("how often each attempt was begun")
    for (engine, _, counted), test in sorted(rows):
        name = re.sub(r"^test_|\[.*", "", test).replace("_", " ")
        terminalreporter.write_line(f"{engine:24} {name}: {counted}")
