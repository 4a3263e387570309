"""The command ``retrykit audit``; what it prints is in a transcript."""

import json
import re

import pytest

from retrykit.audit import RULES
from tests._support.terminal import run_command

ENDLESS = "import tenacity\n\n\n@tenacity.retry\ndef fetch(): ...\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.py").write_text(ENDLESS)
    return tmp_path


def run(folder, *args, **options):
    return run_command("audit", *args, folder=folder, **options)


def test_the_exit_code_tells_findings_and_problems(folder):
    assert run(folder).code == 1
    assert run(folder, "--select", "no-jitter").code == 0
    (folder / "b.py").write_text("retry(")
    assert run(folder, "--select", "no-jitter").code == 2


def test_prints_each_site_with_its_findings(folder):
    printed = run(folder)
    assert printed.err == ""
    assert printed.out == (
        "./a.py:4  fetch  tenacity\n"
        "    calls without a limit; no delay; retries Exception\n"
        "    unbounded                nothing ends a call that fails every time; limit "
        "the number of attempts or the time\n"
        "    retries-at-once          retries follow each other without a delay; wait "
        "between attempts, longer each time\n"
        "    retries-every-exception  Exception is retried, and with it bugs that no "
        "retry fixes; name the errors that may go away\n"
        "\n"
        "3 findings at 1 of 1 site, in 1 file with 5 lines.\n"
    )


def test_on_a_terminal_texts_are_folded_beside_their_rule(folder):
    printed = run(folder, FORCE_COLOR="1", TERM="xterm")
    assert "\x1b[33m    unbounded" in printed.out
    lines = re.sub(r"\x1b\[[0-9;]*m", "", printed.out).splitlines()
    assert [line.rstrip() for line in lines[2:5]] == [
        "    unbounded                nothing ends a call that fails every time; limit",
        "                             the number of attempts or the time",
        "    retries-at-once          retries follow each other without a delay; wait",
    ]


def test_quiet_prints_a_line_for_each_finding(folder):
    (folder / "b.py").write_text("retry(")
    lines = run(folder, "--quiet", "--ignore", "retries-at-once").out.splitlines()
    assert lines == [
        (
            "./a.py:4: unbounded: nothing ends a call that fails every time; limit the "
            "number of attempts or the time"
        ),
        (
            "./a.py:4: retries-every-exception: Exception is retried, "
            "and with it bugs that "
            "no retry fixes; name the errors that may go away"
        ),
        "not read  ./b.py:1: not Python: '(' was never closed",
    ]


def test_statistics_count_the_findings_of_each_rule(folder):
    (folder / "b.py").write_text(ENDLESS + "retry()\n")
    printed = run(folder, "--statistics", "--select", "unbounded,no-jitter")
    assert "findings  rule\n2         unbounded\n\n2 findings at 2" in printed.out
    assert (
        "findings  rule" not in run(folder, "--statistics", "--select", "no-jitter").out
    )


def test_statistics_follow_the_lines_of_quiet(folder):
    lines = run(folder, "-q", "--statistics", "--select", "unbounded").out.splitlines()
    assert lines[1:] == ["findings  rule", "1         unbounded"]
    assert not run(folder, "-q", "--statistics", "--select", "no-jitter").out


def test_a_file_that_cannot_be_read_is_told(folder):
    (folder / "b.py").write_text("retry(")
    assert "not read  ./b.py:1: not Python: '(' was never closed\n\n" in run(folder).out


@pytest.mark.parametrize("option", ["--json", "--sarif"])
def test_prints_data(folder, option):
    assert "runs" in (data := json.loads(run(folder, option).out)) or data["sites"]


def test_prints_annotations(folder):
    lines = run(folder, "--github").out.splitlines()
    assert next(line[:30] for line in lines) == "::error file=a.py,line=4,title"
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("a.html", "<!doctype html>"),
        ("a.json", '{\n  "version": 1'),
        ("a.sarif", "{\n  "),
    ],
)
def test_writes_a_file(folder, name, start):
    assert run(folder, "-o", name).code == 1
    assert (folder / name).read_text().startswith(start)


def test_writes_a_baseline_and_leaves_out_what_is_in_it(folder):
    printed = run(folder, "--write-baseline", "known.json")
    assert (printed.code, printed.out) == (0, "known.json: 3 findings\n")
    assert run(folder, "--baseline", "known.json").code == 0
    assert run(folder, "--write-baseline", "x.json", "-o", "x.html").code == 0
    assert (folder / "x.html").is_file()
    (folder / "pyproject.toml").write_text(
        "[tool.retrykit.audit]\nbaseline = 'known.json'"
    )
    printed = run(folder)
    assert "3 ignored" in printed.out
    (folder / "b.py").write_text("retry(")
    printed = run(folder, "--write-baseline", "known.json", "--select", "unbounded")
    assert printed.code == 2
    assert printed.out.startswith("known.json: 1 finding\nnot read  ./b.py:1: ")


def test_with_a_baseline_only_sites_with_new_findings_are_printed(folder):
    run(folder, "--write-baseline", "known.json")
    (folder / "b.py").write_text(ENDLESS)
    printed = run(folder, "--baseline", "known.json").out
    assert "./b.py:4  fetch  tenacity\n" in printed
    assert "a.py" not in printed
    assert printed.endswith(
        "3 findings at 1 of 2 sites, in 2 files with 10 lines; 3 ignored.\n"
    )


def test_a_comment_without_an_effect_is_told_and_fails_nothing(folder):
    (folder / "a.py").write_text("retry = 1  # retrykit: ignore\n")
    printed = run(folder)
    assert printed.code == 0
    assert printed.out == (
        "unused  ./a.py:1: no finding to ignore here; the comment belongs on the line "
        "of the finding, which of a loop is its first line\n\n"
        "no findings at no sites, in 1 file with 1 line.\n"
    )
    assert not run(folder, "--quiet").out


def test_settings_of_the_project_apply(folder):
    (folder / "pyproject.toml").write_text(
        "[tool.retrykit.audit]\nignore = ['unbounded']\nexclude = ['b.py']\n"
        "per-file-ignores = { 'a.py' = ['retries-at-once'] }"
    )
    (folder / "b.py").write_text(ENDLESS)
    lines = run(folder, "-q").out.splitlines()
    assert [line.split(": ")[1] for line in lines] == ["retries-every-exception"]


def test_lists_the_rules(folder):
    lines = run(folder, "--rules").out.splitlines()
    assert [line.split()[0] for line in lines[1:] if line[0] != " "] == [*RULES]


@pytest.mark.parametrize("code", RULES)
def test_explains_a_rule(folder, code):
    printed = run(folder, "--explain", code)
    assert printed.out.startswith(f"{code}\n")
    assert "\nDon't:\n    " in printed.out
    assert "\nDo:\n    " in printed.out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--select", "unbouned"], ("--select must be the code of a rule, got "
         "'unbouned'; did you mean unbounded?")),
        (["--explain", "no-jiter"], ("--explain must be the code of a rule, got "
         "'no-jiter'; did you mean no-jitter?")),
        (["a.py", "b.py"], ("path must be a file or a folder that exists, got 'b.py'; "
         "did you mean a.py?")),
        (["--select", ""], ("--select must be the code of a rule, got ''; retrykit "
         "audit --rules lists them")),
        (["--baseline", "b.py"], ("baseline must be a file that --write-baseline has "
         "written, got 'b.py'; did you mean a.py?")),
        (["--write-baseline", "a.json", "--json"], ("--json and --write-baseline "
         "cannot be given together. See retrykit audit --help.")),
        (["no"], "path must be a file or a folder that exists, got 'no'"),
        (["-o", "a.htm"], ("--output must be a file whose name ends in .html, .json, "
         ".sarif, got 'a.htm'; did you mean .html?")),
        (["-o", "a.txt"], ("--output must be a file whose name ends in .html, .json, "
         ".sarif, got 'a.txt'")),
        (["-o", "no/a.html"], ("--output must be a file in a folder that exists, got "
         "'no/a.html'")),
        (["--json", "--sarif"], ("--json and --sarif cannot be given together. See "
         "retrykit audit --help.")),
        (["--baseline", "no"], ("baseline must be a file that --write-baseline has "
         "written, got 'no'; No such file or directory")),
    ],
)  # fmt: skip
def test_a_fault_is_told_on_one_line(folder, args, message):
    printed = run(folder, *args)
    assert (printed.code, printed.out) == (2, "")
    told = re.sub(r"  \[[a-z-]+\]\n", "\n", printed.err)
    assert told == f"retrykit: {message}\n"
