"""Findings on lines that have changed since a revision of git."""

import subprocess
from shutil import copytree

import pytest

from retrykit.audit import audit
from retrykit.audit._changes import changed_lines, touches
from retrykit.errors import ConfigError
from tests.audit.test_audit import ENDLESS, codes, write

NAMES = ["a.py", "with space.py", "ünïcödé.py", 'quote".py', "tab\t.py", "sub/b.py"]


def git(folder, *arguments):
    named = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    command = ["git", *named, *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)  # noqa: S603


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("original")
    git(folder, "init", "-q")
    for name in NAMES:
        write(folder, name)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


@pytest.fixture
def repository(tmp_path, original):
    # Faster than to make one.
    return copytree(original, tmp_path / "work")


def test_what_has_not_changed_is_left_out(repository):
    assert not codes(audit([repository], diff="HEAD"))
    assert len(codes(audit([repository]))) == 3 * len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_line_is_told(repository, name):
    write(repository, name, ENDLESS.replace("@tenacity.retry", "@tenacity.retry "))
    report = audit([repository / "sub"], diff="HEAD")
    assert bool(report.findings) == (name == "sub/b.py")
    report = audit([repository], diff="HEAD")
    assert {each.site.path for each in report.findings} == {str(repository / name)}


def test_the_nearest_branch_is_suggested(repository):
    git(repository, "branch", "release/1.2")
    with pytest.raises(ConfigError, match=r"revision.*; did you mean release/1.2\? "):
        changed_lines("relaese/1.2", repository)
    with pytest.raises(ConfigError, match=r"bad revision 'x'  \["):
        changed_lines("x", repository)


def test_a_change_elsewhere_in_the_file_is_not(repository):
    write(repository, text=f"{ENDLESS}\n++ 1\n-- 1\n+++ b/x.py\n")
    assert not codes(audit([repository / "a.py"], diff="HEAD"))


def test_a_line_that_was_removed_from_a_loop_changes_it(repository):
    loop = (
        "while True:\n  try:\n    f()\n    x = 1\n    break\n  "
        "except OSError:\n    sleep(1)\n"
    )
    write(repository, text=loop)
    git(repository, "commit", "-qam", "loop")
    write(repository, text=loop.replace("    x = 1\n", ""))
    assert codes(audit([repository / "a.py"], diff="HEAD"))


def test_a_new_file_has_changed_as_a_whole(repository):
    write(repository, "new.py")
    (repository / "a.py").unlink()
    assert len(codes(audit([repository], diff="HEAD"))) == 3


@pytest.mark.parametrize("revision", ["", "--output=x", "a\0b"])
def test_what_is_no_revision_is_told(repository, revision):
    with pytest.raises(ConfigError, match="diff must be a revision of git, got "):
        changed_lines(revision, repository)


def test_an_unknown_revision_is_told(repository):
    with pytest.raises(ConfigError, match=r"^diff: git diff: bad revision 'nonsense'"):
        changed_lines("nonsense", repository)


def test_a_folder_without_a_repository_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(ConfigError, match="git rev-parse: not a git repository"):
        audit([tmp_path], diff="HEAD")


def test_without_git_that_is_told(repository, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(
        ConfigError,
        match="needs git, which is not installed",
    ):
        changed_lines("HEAD", repository)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("sleep 20", r"^git rev-parse took more than 0\.2 s  "),
        ("exit 3", "^diff: git rev-parse: failed  "),
    ],
)
def test_a_git_that_fails_or_hangs_is_told(tmp_path, monkeypatch, script, message):
    program = tmp_path / "git"
    program.write_text(
        f"#!/bin/sh\nexec /bin/{script}\n".replace("exec /bin/exit", "exit")
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=message):
        changed_lines("HEAD", tmp_path, 0.2)


def test_a_change_touches_the_lines_that_it_overlaps():
    assert touches([(3, 4)], 4, 9)
    assert not touches([(3, 4), (10, 10)], 5, 9)
