"""Programs before and after their migration do the same, or have not changed.

Each is run with the real library and with retrykit, in virtual time, against servers
that follow the same scripts, with every random number at the beginning, in the middle
and at the end of its range.
"""

import io
import logging
import sys
import time
from contextlib import redirect_stdout
from types import ModuleType
from unittest.mock import patch

import pytest
import stamina

from retrykit.migrate import migrate_text
from tests._support.side_by_side import draw, run
from tests.migrate.programs import PROGRAMS

EXACT = [x for x in PROGRAMS if x.scripts and x.library != "urllib3"]
LEFT = [program for program in PROGRAMS if program.left]


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_the_text_after_is_as_listed(program):
    assert migrate_text(program.before).after == program.after


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_a_second_run_changes_nothing(program):
    assert migrate_text(program.after).after == program.after


@pytest.mark.parametrize("program", LEFT, ids=str)
def test_a_program_that_cannot_be_exact_gets_comments_alone(program):
    found = migrate_text(program.before)
    assert program.left in " ".join(str(usage.reason) for usage in found.usages)
    lines = [x for x in found.after.splitlines() if not x.strip().startswith("#")]
    before = [x for x in program.before.splitlines() if not x.strip().startswith("#")]
    assert lines == before


def outcome(source, script, share):
    """Return what a program does, what it has printed, and what its hooks were told."""
    module = ModuleType("program")
    printed = io.StringIO()
    records = []

    class Handler(logging.Handler):
        def emit(self, record):
            if record.name in {"program", "fetch"}:
                records.append((record.name, record.levelno))

    def randint(low, high):
        return low + (high - low) * share

    handler = Handler()
    root = logging.getLogger()
    root.addHandler(handler)
    level = root.level
    root.setLevel(logging.DEBUG)
    # Not by patch.dict, which would forget what is imported meanwhile.
    sys.modules["program"] = module
    try:
        with (
            draw(share),
            patch("random.randint", randint),
            # In virtual time, which `run` begins.
            patch("time.time", lambda: time.monotonic()),  # noqa: PLW0108
            redirect_stdout(printed),
        ):
            exec(compile(source, "program.py", "exec"), vars(module))  # noqa: S102
            found = run(module.main, script)
    finally:
        del sys.modules["program"]
        root.removeHandler(handler)
        root.setLevel(level)
    waits = [round(wait, 6) for wait in found.waits]
    log = getattr(module, "LOG", None)
    return found.calls, waits, found.outcome, log, printed.getvalue(), records


@pytest.fixture
def silent():
    """Let stamina log nothing, as retrykit does to its own logger."""
    stamina.instrumentation.set_on_retry_hooks([])
    yield
    stamina.instrumentation.set_on_retry_hooks(None)


CASES = [
    pytest.param(program, script.strip(), id=f"{program}: {script.strip()}")
    for program in EXACT
    for script in program.scripts.split(" | ")
]


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("program", "script"), CASES)
def test_a_migrated_program_does_the_same(program, script, share):
    before = outcome(program.before, eval(script), share)  # noqa: S307
    after = outcome(program.after, eval(script), share)  # noqa: S307
    assert after == before
    assert before[0] > 0
