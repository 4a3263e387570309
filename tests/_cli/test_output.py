"""Unprintable characters and trailing blanks in the output of the command line."""

import json
import tomllib

import pytest

from tests._support.terminal import run_command

# A window title, red, a line break, another text direction, a line separator.
HOSTILE = "\x1b]0;own\x07\x1b[31mred\nx.py:1: gone\r\u202eltr\u2028\x9b1m\ud800"
SHOWN = r"\x1b]0;own\x07\x1b[31mred"


@pytest.fixture
def folder(tmp_path):
    policy = {"max_attempts": 20, "on": "Exception", "schedule": "constant('1s')"}
    (tmp_path / "n.json").write_text(json.dumps({"policies": {HOSTILE: policy}}))
    wrong = {"policies": {HOSTILE: {"on": HOSTILE}, "a": {HOSTILE: 1}}}
    (tmp_path / "wrong.json").write_text(json.dumps(wrong))
    (tmp_path / "own.py").write_text(f"""
from retrykit import Policy, retry
from retrykit.schedules import Schedule, constant

class Own(Schedule):
    def delay(self, retry, previous, random): return 1.0
    def bounds(self, retry): return 1.0, 1.0
    def __repr__(self): return {HOSTILE!a}

def judge(error): return True
judge.__qualname__ = {HOSTILE!a}

OWN = Policy(schedule=Own(), on=judge)

@retry(schedule=constant(1), max_attempts=20)
def named(): ...
named.__qualname__ = {HOSTILE!a}
""")
    (tmp_path / "raising.py").write_text(f"raise OSError({HOSTILE!a})\n")
    return tmp_path


LINES = {
    "show": ["show", "n.json"],
    "show, own code": ["show", "own:OWN"],
    "chart": ["chart", "n.json"],
    "compare": ["compare", "n.json", "own:OWN"],
    "lint": ["lint", "n.json"],
    "lint, own code": ["lint", "own.py"],
    "lint, wrong": ["lint", "wrong.json"],
    "lint, raising": ["lint", "raising.py"],
    "convert": ["convert", "wrong.json:a", "--to", "toml"],
    "an error": ["show", "raising:policy"],
    "an argument": ["show", HOSTILE],
    "a name": ["show", f"n.json:{HOSTILE}x"],
    "a command": [HOSTILE],
    "an option": ["show", f"--{HOSTILE}"],
    "a variable": ["show", "--env", "OWN"],
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_no_output_controls_the_terminal(line, folder):
    printed = run_command(*line, folder=folder, width=200, OWN_SCHEDULE="\x1b[31mred")
    lines = (printed.out + printed.err).removesuffix("\n").split("\n")
    assert lines != [""]
    assert [each for each in lines if not each.isprintable()] == []
    assert not any(each.startswith("x.py:1") for each in lines)


def test_a_name_is_shown_with_its_characters_escaped(folder):
    escaped = rf"{SHOWN}\nx.py:1: gone\r\u202eltr\u2028\x9b1m\ud800"
    assert run_command("show", "n.json", folder=folder).out.split("\n")[0] == escaped
    [line, *_] = run_command("lint", "n.json", folder=folder).out.split("\n")
    assert line.startswith(f"n.json: {escaped}: no-jitter: ")


def test_colors_are_kept(folder):
    printed = run_command("lint", "n.json", folder=folder, FORCE_COLOR="1").out
    assert "\x1b[33m" in printed
    assert SHOWN in printed


def test_output_for_programs_is_exact(folder):
    shown = run_command("show", "n.json", "--json", folder=folder).out
    assert json.loads(shown)["name"] == HOSTILE
    linted = run_command("lint", "n.json", "--json", folder=folder).out
    assert json.loads(linted)["findings"][-1]["name"] == HOSTILE
    name = HOSTILE.removesuffix("\ud800")
    args = ("convert", "n.json", "--name", name, "--to")
    assert name in json.loads(run_command(*args, "json", folder=folder).out)["policies"]
    toml = tomllib.loads(run_command(*args, "toml", folder=folder).out)
    assert [*toml["tool"]["retrykit"]["policies"]] == [name]


TABLES = {
    "show": ["show", "zizq"],
    "chart": ["chart", "zizq", "google"],
    "compare": ["compare", "zizq", "google"],
    "rules": ["lint", "--rules"],
    "presets": ["presets"],
}


@pytest.mark.parametrize("line", TABLES.values(), ids=TABLES)
def test_no_line_of_a_table_ends_with_blanks_in_a_pipe(line):
    lines = run_command(*line).out.split("\n")
    assert [each for each in lines if each != each.rstrip()] == []
