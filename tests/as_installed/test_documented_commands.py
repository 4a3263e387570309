"""Every command that the documents show runs, as the first of a new process.

The commands about durable jobs are in test_job_commands.py.
"""

import json
from itertools import cycle

import pytest

from retrykit.config._preset_names import BUILT_IN
from tests._support import required
from tests._support.documented_commands import (
    documented_commands,
    leaf_commands,
    outputs,
)
from tests._support.documents import marks_of
from tests._support.new_process import run_shell

COMMANDS = [each for each in documented_commands() if not each.of_jobs]
NOT_HERE = {
    "python3 -m venv": "the gate runs it in a clean clone",
    "pip install": "it downloads packages",
    "--diff main": "the project is in no repository",
    "uvicorn main:app": "it serves until it is stopped",
}
"""The commands that cannot run in a test, by their beginning, and the reason."""

WARNINGS_FOUND = 1
FINDING = ("lint", "audit", "--check")
"""Parts of commands that end with 1 after warnings."""
SUMMARY = ("src/", "2 of 2 usages translated")
"""What ``retrykit migrate`` says about the project, besides the diff."""


def why_not_here(command):
    """Return why a command cannot run in a test; an empty string if it can."""
    found = (why for part, why in NOT_HERE.items() if f" {part}" in f" {command.line}")
    return next(found, "")


def missing(line):
    """Return why a command cannot run with what is installed; an empty string else."""
    image = line.endswith((".png", ".svg"))
    needs = {"matplotlib": image, "yaml": ".yaml" in line, "hcl2": ".tf" in line}
    needs["libcst"] = line.startswith("retrykit migrate") and "--help" not in line
    lacking = [x for x in needs if needs[x] and not required.installed(x)]
    return f"no {lacking[0]}" if lacking else ""


def marked(value, why, name, marks=()):
    """Return a parameter of a test that is skipped for a reason in its name."""
    if not why:
        return pytest.param(value, id=name, marks=marks)
    skip = pytest.mark.skip(reason=why)
    return pytest.param(value, id=f"{name} (not here: {why})", marks=[*marks, skip])


def commands():
    """Return all commands as parameters; only those of the README are quick."""
    for each in COMMANDS:
        why = why_not_here(each) or missing(each.line)
        yield marked(each, why, str(each), marks_of(each.source))


@pytest.mark.parametrize("command", [*commands()])
def test_a_documented_command_runs(command, project, home):
    ended = run_shell(command.script, project, home)
    finds = any(each in command.line for each in FINDING)
    assert ended.code in ({0, WARNINGS_FOUND} if finds else {0}), ended
    # Remarks on what a file of another system says, and on what is not translated.
    remarks = ("note: ", "differs: ", *SUMMARY)
    assert [x for x in ended.err.splitlines() if not x.startswith(remarks)] == []


def test_every_reason_is_that_of_a_command():
    lines = "\n".join(each.line for each in COMMANDS)
    assert [part for part in NOT_HERE if part not in lines] == []


def lines():
    """Return each command with each kind of its output; other presets take turns."""
    commands = {
        " ".join(path): outputs(command, "PRESET")
        for path, command in leaf_commands()
        if path and path[0] != "jobs"
    }
    shown = [[*name.split(), *kind] for name in commands for kind in commands[name]]
    # With suggestions, a simulation takes seconds.
    turns = cycle(
        each
        for each in shown
        if "PRESET" in each and (each[0] != "simulate" or "--no-suggest" in each)
    )
    every = [("zizq", each) for each in shown]
    every += zip(BUILT_IN, turns, strict=False)
    return [
        " ".join(["retrykit", *(preset if x == "PRESET" else x for x in each)])
        for preset, each in every
    ]


def variants():
    """Return the lines as parameters; one of them is quick."""
    for line in dict.fromkeys(lines()):
        marks = [] if line == "retrykit show zizq" else [pytest.mark.thorough]
        yield marked(line, missing(line), line, marks)


@pytest.mark.parametrize("line", [*variants()])
def test_a_command_writes_every_kind_of_output(line, project, home):
    ended = run_shell(line, project, home)
    finds = any(each in line for each in FINDING)
    assert ended.code in ({0, WARNINGS_FOUND} if finds else {0}), ended
    assert [x for x in ended.err.splitlines() if not x.startswith(SUMMARY)] == []
    files = [*project.glob("out.*")]
    assert len(files) == ("--output" in line or "-o " in line)
    assert all(file.stat().st_size > 500 for file in files)
    assert files or ended.out or "lint" in line or "--write" in line
    if "json" in line and not files:
        json.loads(ended.out)


def paths():
    """Return the path of each command; of ``jobs``, those of one are quick."""
    quick = [("jobs", "list")]
    for path, _ in leaf_commands():
        slow = len(path) > 1 and path not in quick
        marks = [pytest.mark.thorough] if slow else []
        yield pytest.param(path, id=" ".join(path), marks=marks)


@pytest.mark.thorough
@pytest.mark.parametrize("path", [*paths()])
def test_a_command_shows_its_help(path, tmp_path):
    ended = run_shell(" ".join(["retrykit", *path, "--help"]), tmp_path)
    assert ended.code == 0, ended
    assert ended.out.startswith(" ".join(["Usage: retrykit", *path]))
    assert ended.err == ""
