"""The command line, as seen in a terminal of 80 columns."""

import contextlib
import csv
import io
import itertools
import json
import os
import re
import shutil
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import retrykit
from retrykit import ConfigError
from retrykit._cli import main
from retrykit._cli.program import COMMANDS, program
from retrykit._cli.terminal import show_progress
from retrykit._internal.distribution import installed_by
from retrykit.config.json_schema import policy_schema
from tests._support.reference_data import reference_data
from tests._support.required import installed
from tests._support.terminal import FOLDER, TRANSCRIPTS, replay, run_command


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_every_command_prints_its_transcript(path):
    """``python -m tests._support.terminal`` rewrites them."""
    text = path.read_text("utf-8")
    assert replay(text) == text


def test_every_command_has_a_transcript_of_its_help_and_of_itself():
    text = "".join(path.read_text("utf-8") for path in TRANSCRIPTS)
    for name in COMMANDS:
        assert f"$ retrykit {name} --help\n" in text
        if name not in {"completion", "schema"}:
            assert text.count(f"$ retrykit {name}") > 1


def test_the_help_lists_each_command_with_its_first_line():
    ctx = click.Context(program)
    own = {name: program.get_command(ctx, name) for name in COMMANDS}
    assert {name: command.name for name, command in own.items()} == {
        name: name for name in COMMANDS
    }
    assert {
        name: command.help.splitlines()[0] for name, command in own.items()
    } == COMMANDS


def test_hostname_verification_as_csv_equals_its_documentation():
    printed = run_command("show", "hostname-verification", "--csv").out
    rows = list(csv.DictReader(io.StringIO(printed)))
    known = reference_data("hostname_verification")["rows"]
    assert len(rows) == 75
    for row, entry in zip(rows, known[:75], strict=True):
        assert int(row["retry"]) == entry["retry_attempt"] + 1
        for unit in ("seconds", "minutes", "hours"):
            assert float(row[unit]) == entry[unit]


def test_json_has_every_figure_unrounded():
    data = json.loads(run_command("show", "google", "--json", "--samples", "0").out)
    assert data["rows"][3]["cumulative_low"] == 0.25 + 0.375 + 0.562 + 0.843
    assert (data["end"]["min_retries"], data["end"]["max_retries"]) == (20, 40)
    assert data["total_wait"] is None


def test_columns_of_csv_can_be_chosen():
    printed = run_command(
        "show", "zizq:retry_limit=1", "--csv", "--columns", "hours,seconds"
    )
    assert printed.out.splitlines() == [
        "retry,hours,seconds_low,seconds,seconds_high",
        "1,0.008611,16,31,46",
    ]


@pytest.mark.parametrize("args", [(), ("--json",), ("--csv",)])
def test_each_retry_tells_when_it_starts_if_attempts_take_time(args):
    show = ("show", "--schedule", "[1, 5]", "--attempt", "2s", *args)
    printed = run_command(*show).out
    if not args:
        assert re.findall(r"^ +\d .*", printed, re.MULTILINE) == [
            "    1        1          1s     3s",
            "    2        5          6s    10s",
        ]
        assert " start" not in run_command("show", "zizq:retry_limit=1").out
        return
    data = csv.DictReader(printed.splitlines())
    rows = json.loads(printed)["rows"] if args == ("--json",) else [*data]
    assert [float(each["start_low"]) for each in rows] == [3, 10]
    assert [float(each["start_high"]) for each in rows] == [3, 10]


def test_csv_of_a_policy_without_retries_has_its_columns():
    printed = run_command("show", "requests", "--csv")
    assert printed.out == (
        "retry,seconds_low,seconds,seconds_high,minutes,hours,cumulative_low,"
        "cumulative_high,start_low,start_high\n"
    )


def test_color_is_only_for_terminals_that_want_it():
    plain = run_command("chart", "zizq", "--retries", "3").out
    colored = run_command("chart", "zizq", "--retries", "3", FORCE_COLOR="1").out
    disabled = run_command(
        "chart", "zizq", "--retries", "3", FORCE_COLOR="1", NO_COLOR="1"
    )
    assert "\x1b[34m" in colored
    assert "\x1b[34m" not in plain + disabled.out


def test_no_figure_is_cut_off_in_a_narrow_terminal():
    wide = run_command("show", "zizq", width=200).out.splitlines()
    narrow = run_command("show", "zizq", width=30).out.splitlines()
    assert [line.split() for line in narrow[:27]] == [
        line.split() for line in wide[:27]
    ]


def test_a_terminal_without_blocks_gets_plain_characters():
    printed = run_command("chart", "zizq", "--retries", "2", charset="ascii", width=60)
    assert [line.split()[1].strip("#") for line in printed.out.splitlines()[2:]] == [
        "",
        "",
    ]


def test_ticks_of_a_chart_do_not_overlap():
    args = ("chart", "--schedule", "[1, 86401]", "--max-elapsed", "unlimited", "--log")
    for width in range(50, 110):
        axis = run_command(*args, width=width).out.splitlines()[1]
        known = {"retry", "1s", "10s", "1m", "10m", "1h", "10h", "1d"}
        assert set(axis.split()) <= known


def test_the_schema_is_printed_as_its_file():
    assert json.loads(run_command("schema").out) == policy_schema()


# PNG and SVG need matplotlib; the HTML page does not.
ENDS = ["html", *(["svg", "png"] if installed("matplotlib") else [])]


@pytest.mark.parametrize("end", ENDS)
def test_a_chart_is_written_to_a_file(end, tmp_path):
    path = tmp_path / f"zizq.{end}"
    assert run_command("chart", "zizq", "google", "-o", str(path)) == (0, "", "")
    begins = {"svg": b"<?xml", "png": b"\x89PNG", "html": b"<!doctype html>"}
    assert path.read_bytes().lower().startswith(begins[end].lower())


@pytest.mark.parametrize("end", ENDS)
def test_a_chart_in_a_file_follows_its_options(end, tmp_path):
    seen = set()
    shapes = itertools.product(["", "--cumulative"], ["--log", "--linear"])
    for flags in ([*filter(None, shape)] for shape in shapes):
        path = tmp_path / f"{len(seen)}.{end}"
        assert run_command("chart", "zizq", *flags, "-o", str(path)) == (0, "", "")
        seen.add(path.read_bytes())
        view = {"cumulative": "--cumulative" in flags, "log": "--log" in flags}
        if end == "html":
            assert f'"view": {json.dumps(view)}' in path.read_text("utf-8")
    assert len(seen) == 4
    path = tmp_path / f"chosen.{end}"
    assert run_command("chart", "zizq", "-o", str(path)) == (0, "", "")
    assert path.read_bytes() in seen
    if end == "html":
        assert '"view": {"cumulative": false, "log": true}' in path.read_text("utf-8")


@contextlib.contextmanager
def without(library, module):
    """Import a module again as if a library were not installed."""
    removed = {name: sys.modules.pop(name, None) for name in (library, module)}
    sys.modules[library] = None
    try:
        yield
    finally:
        for name, before in removed.items():
            sys.modules.pop(name, None)
            if before is not None:
                sys.modules[name] = before


def test_the_version_is_that_of_the_package():
    assert run_command("--version") == (0, f"retrykit {retrykit.__version__}\n", "")


def test_a_missing_extra_is_reported_with_a_suggestion():
    text = f"the command line needs click; {installed_by('cli')}"
    with without("click", "retrykit._cli.program"):
        assert run_command("--help") == (2, "", f"retrykit: {text}\n")
    broken = pytest.raises(ModuleNotFoundError, match=r"retrykit\.errors")
    with without("retrykit.errors", "retrykit._cli.program"), broken:
        run_command("--help")


def test_a_missing_library_for_pictures_is_reported_with_a_suggestion(tmp_path):
    path = tmp_path / "a.png"
    with without("matplotlib", "retrykit.analysis.charts"):
        assert run_command("chart", "zizq", "-o", str(path)).err == (
            f"retrykit: {path} needs matplotlib; {installed_by('plot')}"
            "  [not-installed]\n"
        )
    assert not path.exists()


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "retrykit", "shwo"],
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("retrykit: No such command 'shwo'.")


def test_stdout_may_be_any_stream():
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(["--version"]) == 0
    assert out.getvalue().startswith("retrykit ")


def test_names_that_a_terminal_cannot_show_are_escaped(tmp_path):
    text = '[policies."\u00fcn\u00ef"]\nschedule = "1s, 2s"\n'
    (tmp_path / "own.toml").write_text(text, "utf-8")
    printed = run_command("chart", "own.toml", folder=tmp_path, charset="ascii")
    assert printed.out.startswith(r"\xfcn\xef")


def test_debug_shows_the_traceback():
    with pytest.raises(ConfigError, match=r"broken\.toml must be TOML"):
        run_command("show", "broken.toml:fetch", "--debug")


def run_python(script, *, check=True, **environ):
    return subprocess.run(  # noqa: S603  a fixed command
        [sys.executable, "-c", script],
        env={**os.environ, **environ},
        capture_output=True,
        check=check,
        cwd=FOLDER,
        text=True,
    )


HELP = """
import sys
from retrykit._cli import main
main(["--help"])
print(*sys.modules)
"""


def test_the_help_imports_nothing_slow():
    loaded = set(run_python(HELP).stdout.splitlines()[-1].split())
    heavy = {"rich", "matplotlib", "numpy", "wrapt", "asyncio", "tomllib"}
    assert loaded & heavy == set()
    assert "retrykit._core.policy" not in loaded


def test_matplotlib_is_imported_only_to_write_a_picture():
    script = "import sys; from retrykit._cli import main; main(['{}', 'zizq']{})"
    script += "; assert 'matplotlib' not in sys.modules"
    for command in ("show", "chart"):
        assert run_python(script.format(command, "")).returncode == 0


def test_a_closed_pipe_ends_the_program_quietly():
    """The output is longer than the buffer of a pipe."""
    flags = "--schedule 'linear(1)' --max-attempts 9999 --max-elapsed unlimited"
    line = f"-m retrykit show {flags} --retries 9000 --json"
    done = subprocess.run(  # noqa: S602  a pipe is under test
        f"set -o pipefail; {sys.executable} {line} | head -n 1",
        capture_output=True,
        check=False,
        executable="/bin/bash",
        shell=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("{\n", "")


def bar(after, **environ):
    environ = {"FORCE_COLOR": None, **environ}
    with CliRunner().isolation(env=environ) as (_, err, _):
        with show_progress("reading", after=after) as tell:
            tell(1, 2)
        return err.getvalue().decode()


def test_a_progress_bar_is_shown_in_a_terminal_of_what_takes_long():
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm"}
    assert "reading" in bar(0, **terminal)
    assert bar(60, **terminal) == ""
    assert bar(0) == ""
    assert bar(0, FORCE_COLOR="1", TERM="dumb") == ""


def test_output_of_an_imported_module_does_not_mix_with_json(tmp_path):
    text = "from retrykit import Policy\nPOLICY = Policy()\nprint('loading')\n"
    (tmp_path / "loud.py").write_text(text)
    printed = run_command("show", "loud:POLICY", "--json", folder=tmp_path)
    assert json.loads(printed.out)["name"] == "loud:POLICY"
    assert printed.err == "loading\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_call_the_program(shell):
    printed = run_command("completion", shell)
    assert printed.code == 0
    assert "_RETRYKIT_COMPLETE" in printed.out


def completions(line, breaks=":="):
    """Return the completions of bash at the end of a line."""
    variables = {"COMP_LINE": f"retrykit {line}", "COMP_WORDBREAKS": breaks}
    ended = pytest.raises(SystemExit)
    isolated = CliRunner().isolation(env=variables | {COMPLETE: "bash_complete"})
    with contextlib.chdir(FOLDER), isolated as (out, *_), ended:
        main([])
    return [each.removeprefix("plain,") for each in out.getvalue().decode().split()]


COMPLETE = "_RETRYKIT_COMPLETE"

COMPLETED = {
    "a command": ("co", "compare convert completion"),
    "a preset": ("show zi", "zizq"),
    "a second preset": ("compare google z", "zizq"),
    "a file": ("show po", "polly policies.toml"),
    "a folder": ("lint ../transcrip", "../transcripts/"),
    "no such file": ("show err", ""),
    "no such command": ("shwo zi", ""),
    "a parameter": ("show zizq:re", "retry_limit="),
    "any parameter": ("show zizq:", "retry_limit= base= exponent= jitter="),
    "a second parameter": ("show zizq:jitter=5s,ba", "5s,base="),
    "a policy of a file": ("show policies.toml:f", "fetch"),
    "any policy of a file": ("lint policies.toml:", "base fetch jobs"),
    "no policy of a broken file": ("show broken.toml:f", ""),
    "no attribute of a module": ("show shop:o", ""),
    "a rule": ("show --deadline cl", "clip"),
    "a rule after an equal sign": ("show --deadline=cl", "clip"),
    "a word for a number": ("show --max-attempts u", "unlimited"),
    "a column": ("show --columns h", "hours"),
    "a second column": ("show --columns hours,c", "hours,cumulative"),
    "a form": ("convert --to py", "python"),
    "a time": ("show --start n", "now"),
}


@pytest.mark.parametrize(("line", "words"), COMPLETED.values(), ids=COMPLETED)
def test_words_are_completed(line, words):
    assert completions(line) == words.split()


def test_flags_are_completed():
    assert "--default-retry-limit" in completions("show --default")
    assert set(completions("show --deadline ")) == {"stop", "clip", "overshoot"}


def test_whole_words_are_completed_where_bash_does_not_break_them():
    assert completions("show zizq:re", breaks=" ") == ["zizq:retry_limit="]


def test_completed_names_are_quoted_for_the_shell(tmp_path):
    names = ["f $(touch gone)", "f\nx"]
    text = json.dumps({"policies": {name: {} for name in names}})
    (tmp_path / "own.json").write_text(text)
    assert completions(f"show {tmp_path}/own.json:f") == ["'f", "$(touch", "gone)'"]


BASH = """
eval "$(cat script)"
retrykit show zizq:re\t3
retrykit show policies.toml:f\t
retrykit show --deadline cl\t
retrykit show --deadline=cl\t
retrykit lint trans\tshop\t
exit
"""


@pytest.mark.thorough
@pytest.mark.skipif(not shutil.which("bash"), reason="it is for bash")
def test_bash_completes_words(tmp_path):
    """A real bash gets the keys from a terminal."""
    import pty

    shim = tmp_path / "retrykit"
    python = f'exec "{sys.executable}" -m retrykit "$@"'
    shim.write_text(f'#!/bin/sh\ntest ${COMPLETE} && {python}\necho "$@"\n')
    shim.chmod(0o755)
    (tmp_path / "script").write_text(run_command("completion", "bash").out)
    (tmp_path / "transcripts").symlink_to(FOLDER)
    shutil.copy(FOLDER / "policies.toml", tmp_path)
    keys, screen = pty.openpty()
    with os.fdopen(keys, "wb", buffering=0) as pressed, os.fdopen(screen) as terminal:
        pressed.write(BASH.encode())
        done = subprocess.run(
            ["bash", "--norc", "-i"],  # noqa: S607  any bash
            env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
            cwd=tmp_path,
            text=True,
            timeout=300,
        )
    assert done.stdout.splitlines() == [
        "show zizq:retry_limit=3",
        "show policies.toml:fetch",
        "show --deadline clip",
        "show --deadline=clip",
        "lint transcripts/shop.py",
    ]


def test_the_environment_overrides_the_policy_and_flags_override_both():
    variables = {"FETCH_MAX_ATTEMPTS": "4", "FETCH_MAX_ELAPSED": "9s"}
    args = ("convert", "policies.toml:fetch", "--to", "python", "--env", "FETCH")
    printed = run_command(*args, "--max-attempts", "2", **variables).out
    assert "max_attempts=2, max_elapsed=9.0, on=ConnectionError" in printed
    assert "max_attempts=4" in run_command(*args, **variables).out


def test_a_flag_overrides_an_equivalent_variable():
    args = ("convert", "policies.toml:fetch", "--to", "python", "--env", "FETCH")
    attempts, limit = {"FETCH_MAX_ATTEMPTS": "4"}, {"FETCH_RETRY_LIMIT": "4"}
    printed = run_command(*args, "--default-retry-limit", "1", **attempts)
    assert "max_attempts=2," in printed.out
    assert "max_attempts=2," in run_command(*args, "--max-attempts", "2", **limit).out
    names = ("base", "exponent", "jitter")
    formula = {f"FETCH_BACKOFF_{name.upper()}": "7" for name in names}
    flags = [text for name in names for text in (f"--default-backoff-{name}", "7")]
    printed = run_command(
        *args, "--schedule", "1s, 5s", "--max-attempts", "3", **formula
    )
    assert "sequence([1.0, 5.0])" in printed.out
    printed = run_command(*args, *flags, "--max-attempts", "2", FETCH_SCHEDULE="1s, 5s")
    assert "polynomial(7.0" in printed.out


def test_the_zizq_variables_mean_what_zizq_documents():
    variables = {
        "ZIZQ_DEFAULT_RETRY_LIMIT": "3",
        "ZIZQ_DEFAULT_BACKOFF_BASE": "15000",
        "ZIZQ_DEFAULT_BACKOFF_EXPONENT": "4",
        "ZIZQ_DEFAULT_BACKOFF_JITTER": "30s",
    }
    by_name = run_command("show", "zizq:retry_limit=3", "--csv").out
    assert (
        run_command("show", "--env", "ZIZQ_DEFAULT", "--csv", **variables).out
        == by_name
    )
    half = {"ZIZQ_DEFAULT_BACKOFF_BASE": "15000"}
    flags = ["--default-backoff-exponent", "4", "--default-backoff-jitter", "30s"]
    args = ("show", "--env", "ZIZQ_DEFAULT", "--default-retry-limit", "3", *flags)
    assert run_command(*args, "--csv", **half).out == by_name
    assert run_command("show", "--env", "ZIZQ_DEFAULT", **half).err == (
        "retrykit: ZIZQ_DEFAULT_BACKOFF_BASE must be given together with "
        "--default-backoff-exponent and --default-backoff-jitter, got '15000'; "
        "they are one formula  [contradiction]\n"
    )


def test_a_file_can_name_errors_of_a_module_that_is_imported_first(tmp_path):
    text = '[policies.call]\non = "xml.parsers.expat:ExpatError"\n'
    (tmp_path / "own.toml").write_text(text)
    args = ("convert", "own.toml:call", "--to", "python")
    shown = run_command(*args, "--import", "xml.parsers.expat", folder=tmp_path)
    assert "on=xml.parsers.expat.ExpatError" in shown.out


def test_the_start_may_be_now():
    printed = run_command("show", "zizq:retry_limit=1", "--start", "now", "--csv").out
    assert printed.splitlines()[0].endswith("at_low,at_high")


def test_dates_beyond_the_calendar_are_marked():
    args = ("show", "--schedule", "[1, 1e12]", "--start", "2026-01-01")
    printed = run_command(*args, "--max-elapsed", "unlimited").out
    assert "after year 9999" in printed
