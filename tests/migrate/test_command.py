"""The command ``retrykit migrate``."""

import json

import pytest

from tests._support.terminal import run_command

BEFORE = """\
import backoff


@backoff.on_exception(backoff.expo, OSError, max_tries=5)
def fetch(): ...


@backoff.on_exception(backoff.expo, BaseException)
def find(): ...
"""
LEFT = "a.py:8: backoff, left as it is: retrykit never retries BaseException\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.py").write_text(BEFORE)
    return tmp_path


def test_a_diff_is_printed_and_nothing_is_written(folder):
    printed = run_command("migrate", "a.py", folder=folder)
    assert printed.code == 0
    assert "+@retry(on=OSError, max_attempts=5" in printed.out
    assert printed.err == (
        f"{LEFT}1 of 2 usages translated exactly; 1 file would change\n"
    )
    assert (folder / "a.py").read_text() == BEFORE


def test_a_diff_has_colors_on_a_terminal(folder):
    printed = run_command("migrate", "a.py", folder=folder, FORCE_COLOR="1")
    assert "\x1b[32m+@retry" in printed.out


def test_a_file_is_written_once(folder):
    printed = run_command("migrate", ".", "--write", folder=folder)
    assert (printed.code, printed.out) == (0, "")
    assert printed.err.endswith("1 of 2 usages translated exactly; 1 file changed\n")
    after = (folder / "a.py").read_text()
    assert "from retrykit import retry" in after
    assert run_command("migrate", ".", "--check", folder=folder).code == 0
    assert run_command("migrate", ".", folder=folder).out == ""


def test_a_check_fails_if_a_file_would_change(folder):
    assert run_command("migrate", ".", "--check", folder=folder).code == 1
    printed = run_command("migrate", ".", "--check", "--write", folder=folder)
    assert printed.code == 2
    assert "--check cannot be used with --write" in printed.err


def test_json_is_for_programs(folder):
    (folder / "b.py").write_text("import backoff\ndef (")
    printed = run_command("migrate", ".", "--json", folder=folder)
    assert (printed.code, printed.err) == (2, "")
    data = json.loads(printed.out)
    assert (data["translated"], data["left"]) == (1, 1)
    [file] = data["files"]
    assert file["path"] == "a.py"
    assert file["usages"][1] == {
        "line": 8,
        "library": "backoff",
        "reason": "retrykit never retries BaseException",
    }
    assert [each["path"] for each in data["problems"]] == ["b.py"]


def test_a_project_without_usages_is_told(tmp_path):
    (tmp_path / "a.py").write_text("import os\n")
    printed = run_command("migrate", ".", folder=tmp_path)
    assert (printed.code, printed.out) == (0, "")
    assert printed.err.startswith("no usages of backoff")
    assert run_command("migrate", "none.py", folder=tmp_path).code == 2
