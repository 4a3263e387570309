import re
from collections import defaultdict
from zlib import crc32

import pytest

from tests.engines.engines import ENGINES

# Applications, which run as commands.
collect_ignore_glob = ["*_app.py"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark tests as thorough on all servers of an engine but one, in turns."""
    tests = defaultdict(lambda: defaultdict(list))
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        kind = parameters.get("engine")
        # Those of other folders are here, too.
        if kind in ENGINES:
            tests[item.function, kind.module][kind].append(item)
    for (function, _), kinds in tests.items():
        # By other bits, SQLite would get the test that restarts its server.
        turn = (crc32(function.__name__.encode()) >> 1) % len(kinds)
        for number, each in enumerate(kinds.values()):
            if number != turn:
                for item in each:
                    item.add_marker("thorough")


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
