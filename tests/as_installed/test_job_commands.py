"""The documented commands about durable jobs, each as the first of a new process."""

import shutil
from pathlib import Path

import pytest

from tests._support.dbos_jobs import skip_if_unusable
from tests._support.documented_commands import documented_commands
from tests._support.new_process import run_python, run_shell
from tests.as_installed.conftest import copy_project

COMMANDS = [each for each in documented_commands() if each.of_jobs]
APP = "mypackage.jobs:SETTINGS"

# Runs the first attempts of two jobs, which then wait for an hour or are dead.
START = """
import sys, time
from dbos import DBOS
from retrykit.integrations import dbos as durable
from mypackage.jobs import SETTINGS, verify
hostname, status = sys.argv[1:]
durable.listen(SETTINGS | {"log_level": "CRITICAL"}, polling=0.01)
for name in ("verify-7", "verify-8"):
    verify.start_as(name, hostname)
end = time.monotonic() + 60
while [job.status for job in durable.jobs() if job.failures] != [status] * 2:
    assert time.monotonic() < end
    time.sleep(0.05)
DBOS.destroy()
"""


@pytest.fixture(scope="module")
def projects(tmp_path_factory):
    """Return the user's project by the status of its two jobs."""
    skip_if_unusable()
    found = {}
    for hostname, status in (("busy.example", "waiting"), ("dead.example", "dead")):
        folder = copy_project(tmp_path_factory.mktemp(status))
        jobs = Path(__file__).with_name("dbos_jobs.py")
        shutil.copy(jobs, folder / "src/mypackage/jobs.py")
        code = f"import sys; sys.argv[1:] = {[hostname, status]}\n{START}"
        ended = run_python(code, folder)
        assert ended.code == 0, ended
        found[status] = folder
    return found


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_a_documented_command_about_jobs_runs(command, projects, tmp_path):
    restarts = "requeue" in command.line and "--dry-run" not in command.line
    shutil.copytree(
        projects["dead" if restarts else "waiting"],
        tmp_path,
        dirs_exist_ok=True,
        symlinks=True,
    )
    line = command.script
    if "watch" in line:
        # Until Ctrl-C, as it is documented.
        line = line.replace("retrykit", "timeout --preserve-status -s INT 5 retrykit")
    alert = "alert() { echo alert; }"
    ended = run_shell(f"{alert}\nexport RETRYKIT_APP={APP}\n{line}", tmp_path)
    accepted = {130} if "watch" in line else {0, 1} if "counts" in line else {0}
    assert ended.code in accepted, ended
    # Such as the end of the line of Ctrl-C, or that no job was found.
    assert "retrykit: " not in ended.err
    assert "Traceback" not in ended.err
