"""Audits as a whole: what is left out, and places in notebooks."""

import json
from textwrap import indent

import pytest

from retrykit.audit import RULES, audit
from retrykit.errors import ConfigError

ENDLESS = "import tenacity\n\n\n@tenacity.retry\ndef f(): ...\n"
CODES = ["unbounded", "retries-at-once", "retries-every-exception"]


def write(folder, name="a.py", text=ENDLESS):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def write_notebook(folder, *cells):
    content = {"cells": [{"cell_type": "code", "source": each} for each in cells]}
    return write(folder, "a.ipynb", json.dumps(content))


def codes(report):
    return [each.rule for each in report.findings]


def test_finds_what_is_wrong(tmp_path):
    write(tmp_path)
    report = audit([tmp_path])
    assert codes(report) == CODES
    assert (report.files, report.lines, report.ignored) == (1, 5, 0)
    assert [each.line for each in report.sites] == [4]
    assert not report.problems
    assert len({each.fingerprint for each in report.findings}) == 3


def test_rules_are_selected_and_ignored(tmp_path):
    write(tmp_path)
    assert codes(audit([tmp_path], select=CODES[:2], ignore=CODES[:1])) == CODES[1:2]


@pytest.mark.parametrize("option", ["select", "ignore"])
def test_an_unknown_rule_is_told_with_the_nearest(option):
    with pytest.raises(ConfigError) as caught:
        audit([], **{option: ["unbouned"]})
    assert caught.value.message == (
        f"{option} must be the code of a rule, got 'unbouned'; did you mean unbounded?"
    )


@pytest.mark.parametrize(
    ("comment", "left"),
    [
        ("# retrykit: ignore", []),
        ("# retrykit: ignore[unbounded]", CODES[1:]),
        ("# retrykit: ignore[unbounded, retries-at-once]", CODES[2:]),
        ("# noqa  # retrykit:ignore [unbounded]", CODES[1:]),
        ("# retrykit: ignored", CODES),
    ],
)
def test_a_comment_ignores_findings(tmp_path, comment, left):
    write(tmp_path, text=ENDLESS.replace("retry\n", f"retry  {comment}\n"))
    report = audit([tmp_path])
    assert codes(report) == left
    assert report.ignored == 3 - len(left)
    assert not report.problems
    assert not report.unused_ignores


def test_a_comment_may_be_on_any_line_of_a_call_but_not_of_a_loop(tmp_path):
    call = (
        "import tenacity\nx = tenacity.retry(\n  reraise=True,  # retrykit: ignore\n)"
    )
    loop = (
        "while True:\n    try:\n        f()\n        break\n    except OSError:\n"
        "        sleep(1)  # retrykit: ignore\n"
    )
    write(tmp_path, text=call)
    assert not codes(audit([tmp_path]))
    write(tmp_path, text=loop)
    assert codes(audit([tmp_path]))


def test_an_unknown_code_in_a_comment_is_told_with_the_nearest(tmp_path):
    text = "f.retry()  # retrykit: ignore[no-jiter]\nf.retry()  # retrykit: ignore[x]\n"
    file = write(tmp_path, text=text)
    assert [str(each) for each in audit([tmp_path]).problems] == [
        f"{file}:1: there is no rule 'no-jiter' to ignore; did you mean no-jitter?",
        f"{file}:2: there is no rule 'x' to ignore",
    ]


def test_rules_are_ignored_in_files(tmp_path):
    write(tmp_path)
    write(tmp_path, "tests/b.py")
    report = audit([tmp_path], per_file_ignores={"tests": CODES[:2]}, root=tmp_path)
    assert codes(report) == [*CODES, CODES[2]]
    assert report.ignored == 2


def test_constants_of_files_without_sites_are_read(tmp_path):
    write(tmp_path, "settings.py", "TRIES = 7")
    text = (
        "from tenacity import retry, stop_after_attempt as stop\n"
        "from settings import TRIES\nretrying = retry(stop=stop(TRIES))"
    )
    write(tmp_path, text=text)
    [site] = audit([tmp_path], select=[]).sites
    assert site.behavior.calls == 7


def test_scripts_are_known_by_their_names_if_these_are_unique(tmp_path):
    text = (
        "from tenacity import retry, stop_after_attempt as stop\n"
        "from tries import N\nretrying = retry(stop=stop(N))"
    )
    write(tmp_path, "one/run.py", text)
    write(tmp_path, "one/tries.py", "N = 7")
    [site] = audit([tmp_path]).sites
    assert site.behavior.calls == 7
    write(tmp_path, "two/tries.py", "N = 8")
    [site] = audit([tmp_path]).sites
    assert site.behavior.calls is None


def test_scripts_of_one_name_are_all_read(tmp_path):
    write(tmp_path, "one/a.py")
    write(tmp_path, "src/one/a.py")
    assert len(audit([tmp_path]).sites) == 2


def test_places_in_notebooks_are_those_of_cells(tmp_path):
    loop = (
        "async def f():\n  while True:\n    try:\n      return g()\n"
        "    except OSError:\n      time.sleep(1)"
    )
    cells = ["import time", loop, "h.retry()  # retrykit: ignore[x]", ENDLESS]
    file = write_notebook(tmp_path, *cells)
    report = audit([tmp_path])
    assert [(each.path, each.line, each.end_line) for each in report.sites] == [
        (f"{file}:cell 2", 2, 6),
        (f"{file}:cell 4", 4, 4),
    ]
    lines = {each.rule: (each.site.path, each.line) for each in report.findings}
    assert lines["blocking-sleep"] == (f"{file}:cell 2", 6)
    assert lines["retries-every-exception"] == (f"{file}:cell 4", 4)
    [problem] = report.problems
    assert str(problem).startswith(f"{file}:cell 3:1: there is no rule 'x'")


@pytest.mark.parametrize("code", RULES)
def test_every_rule_says_why_and_what_to_do(code):
    rule = RULES[code]
    assert rule.code == code
    assert rule.why.endswith(".")
    assert rule.summary


IMPORTS = """
import asyncio, backoff, random, time
from openai import OpenAI
from retrykit import Policy
from tenacity import retry, stop_after_attempt, stop_after_delay
from tenacity import wait_exponential, wait_fixed, wait_random_exponential
from urllib3 import Retry
"""


def program(example):
    """Return the example of a rule as a file of its own."""
    return f"{IMPORTS}def f():\n{indent(example, '    ')}"


@pytest.mark.parametrize("code", RULES)
def test_a_rule_warns_of_its_bad_example_and_not_of_its_good_one(tmp_path, code):
    for example, is_bad in [(RULES[code].bad, True), (RULES[code].good, False)]:
        compile(program(example), "<example>", "exec")
        write(tmp_path, text=program(example))
        rules = {each.rule for each in audit([tmp_path]).findings}
        assert (code in rules) is is_bad


def test_processes_must_be_a_count():
    with pytest.raises(ConfigError, match="processes must be an integer >= 1, got 0"):
        audit([], processes=0)


def test_a_comment_without_an_effect_is_told(tmp_path):
    loop = (
        "import time\n\n\ndef f():\n    while True:\n        try:\n"
        "            return g()\n        except OSError:  # retrykit: ignore\n"
        "            time.sleep(1)  # retrykit: ignore[no-jitter]\n"
    )
    write(tmp_path, text=loop)
    report = audit([tmp_path])
    assert [each.line for each in report.unused_ignores] == [8, 9]
    assert "which of a loop is its first line" in report.unused_ignores[0].reason
    # Others may be for a rule that is not applied.
    assert not audit([tmp_path], select=["unbounded"]).unused_ignores
