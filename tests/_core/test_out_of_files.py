"""Calls that fail when the process can open no more files, and so import no module."""

import subprocess
import sys

import pytest

pytest.importorskip("resource", reason="needs limits of processes")

SCRIPT = """
import resource, sys
from retrykit._internal import late_modules
{imports}
attempts = []
def read():
    attempts.append(1)
    if len(attempts) <= {failures}:
        open(sys.executable).close()
    return "read"

call = {call}
# As in a process in which nothing else has imported them.
for each in late_modules.__all__:
    sys.modules.pop(each, None)
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
result = final = None
try:
    result = call()
except Exception as error:
    final = error
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
from retrykit import state_of
print(result or state_of(final).innermost.errors)
print(len(attempts))
"""

CALLS = {
    "retried": (2, "retry(on=OSError, schedule=[0, 0])(read)"),
    "with jitter": (2, "retry(on=OSError, schedule=uniform(0, 1e-9))(read)"),
    "with a rule": (2, "retry(rules=[Rule(OSError, schedule=[0, 0])])(read)"),
    "with a hint": (2, "retry(on=OSError, hint=retry_after(), schedule=[0, 0])(read)"),
    "with a budget": (2, "retry(budget=TokenBucket(), schedule=[0, 0])(read)"),
    "by a condition": (2, "retry(on=lambda e: e.errno == 24, schedule=[0, 0])(read)"),
    "gives up": (9, "retry(on=OSError, schedule=[0, 0])(read)"),
    "gives up in a call": (9, "retry(schedule=[0])(retry(schedule=[0, 0])(read))"),
}
IMPORTS = {
    "retry": "retrykit",
    "Rule": "retrykit",
    "uniform": "retrykit.schedules",
    "TokenBucket": "retrykit.budgets",
    "retry_after": "retrykit.hints",
}


@pytest.mark.parametrize(("failures", "call"), CALLS.values(), ids=CALLS)
def test_a_call_is_retried_without_importing_anything(failures, call):
    lines = [f"from {IMPORTS[x]} import {x}" for x in IMPORTS if f"{x}(" in call]
    script = SCRIPT.format(failures=failures, call=call, imports="\n".join(lines))
    done = subprocess.run(  # noqa: S603  a fixed command
        [sys.executable, "-c", script], capture_output=True, check=False, text=True
    )
    assert done.stderr == ""
    result, count = done.stdout.splitlines()
    assert count == "3"
    failed = ", ".join(["OSError(24, 'Too many open files')"] * 3)
    assert result == ("read" if failures == 2 else f"({failed})")


def test_the_outcome_of_a_call_needs_no_file_after_the_call():
    script = """
import resource
from retrykit import Policy
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
outcome = Policy().run(resource.setrlimit, resource.RLIMIT_NOFILE, (3, hard))
print(outcome.ok)
"""
    done = subprocess.run(  # noqa: S603  a fixed command
        [sys.executable, "-c", script], capture_output=True, check=False, text=True
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
