"""The command ``retrykit simulate``; what it prints is in a transcript."""

import csv
import io
import json

import pytest

from retrykit._cli.simulate import _Watcher
from retrykit.simulate._progress import Estimate
from tests._support.required import installed
from tests._support.terminal import run_command

QUICK = ("--horizon", "20s", "--capacity", "20", "--no-suggest")
STORM = ("simulate", "--schedule", "[0, 0, 0]", "--load", "60%", *QUICK)
CLIENTS = "Clients(policy=Policy(), share=3.0, processes=7, timeout=2.0, sdk=None, "
CLIENTS += "connections=None)"
CALM = ("simulate", "--max-attempts", "1", "--load", "20%", *QUICK)

needs_matplotlib = pytest.mark.skipif(
    not installed("matplotlib"), reason="needs matplotlib"
)


def test_the_exit_code_may_require_a_recovery():
    assert run_command(*STORM).code == 0
    assert run_command(*STORM, "--require-recovery").code == 1
    assert run_command(*CALM, "--require-recovery").code == 0


def test_without_an_outage_there_is_nothing_to_recover_from():
    printed = run_command(
        *CALM, "--outage", "none", "--require-recovery", "--seeds", "2"
    )
    assert printed.code == 0
    assert printed.out.startswith("default: no outage: 100.0% of the calls succeed\n")


@pytest.mark.parametrize("option", ["--horizon", "--network", "--think"])
def test_only_what_may_be_left_out_is_none(option):
    printed = run_command(*CALM, option, "none")
    assert printed.err.startswith(f"retrykit: {option} must be a duration such as ")


def test_a_picture_in_no_folder_is_refused_before_the_simulation():
    printed = run_command(*CALM, "-o", "no_such_folder/load.svg")
    assert printed.out == ""
    assert printed.err == (
        "retrykit: --output must be a file in a folder that exists, got "
        "'no_such_folder/load.svg'  [invalid-value]\n"
    )


def test_every_share_may_be_in_percent(tmp_path):
    mixed = ("simulate", "requests", "zizq", "--load", "20%", *QUICK)
    args = ("--failing", "50%", "--share", "25%", "--share", "75 %", "--json")
    as_numbers = ("--failing", "0.5", "--share", "0.25", "--share", "0.75", "--json")
    assert run_command(*mixed, *args).out == run_command(*mixed, *as_numbers).out


def test_the_load_may_be_a_number_where_it_may_be_in_percent():
    found = {run_command("lint", "zizq", "--load", load).out for load in ("0.7", "70%")}
    assert len(found) == 1
    assert found != {""}


@pytest.mark.parametrize("share", ["0", "2", "half", "150%", "50%%"])
def test_the_option_of_a_partial_outage_is_named(share):
    printed = run_command(*CALM, "--failing", share)
    assert printed.err.startswith("retrykit: Invalid value for '--failing': ")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--queue-bound", "1ms"], "--queue-bound must be the time of one request or "),
        (["--slots", "0"], "--slots must be an integer >= 1, got 0"),
        (["--outage", "0s"], "--outage must be a duration > 0, got 0"),
        (["--outage", "90d"], "--outage must be a duration of at most 1e+06 s, got "),
        (["--users", "9999"], "--users must be below the capacity of the server, 20 "),
        (["--think", "0s"], "--think must be a duration > 0, got 0"),
        (["--load", "2"], "--load must be a share of the capacity above 0 and below "),
        (["--processes", "0"], "--processes must be an integer >= 1, got 0"),
        (["--timeout", "50ms"], "--timeout must be above 0.051 s, the least time of "),
        (["--horizon", "1s"], "--horizon must be a duration from 10 s to 1,000,000 s"),
        (
            ["--retry-after", "1s"],
            "--retry-after must be None where --kind is 'hang', got 1.0; only a 503 ha",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_an_error_names_the_option(args, message):
    users = ["--users", "5"] if "--think" in args else []
    printed = run_command(*CALM, *args, *users)
    assert printed.err.startswith(f"retrykit: {message}")


@needs_matplotlib
def test_a_basin_that_cannot_be_simulated_is_refused_before_the_simulation(tmp_path):
    file = tmp_path / "basin.svg"
    printed = run_command("simulate", "aws-adaptive", *QUICK, "--basin", str(file))
    assert (printed.code, printed.out) == (2, "")
    assert printed.err.startswith(
        "retrykit: --basin must be left out for a policy with limits or a hedge, got "
    )


def test_only_some_failures_raise():
    printed = run_command(*CALM, "--raises", "slow=builtins:OSError")
    assert printed.err == (
        "retrykit: --raises must be of one of timeout, refused, unavailable, got "
        "'slow=builtins:OSError'  [unknown-name]\n"
    )


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("int", "an exception, or a type of one, got"),
        ("BaseException", "an exception, or a type of one, got"),
        ("UnicodeDecodeError", "an exception, or a type of one that is made with a "),
    ],
)
def test_what_no_client_can_raise_is_told(name, rule):
    printed = run_command(*CALM, "--raises", f"timeout=builtins:{name}")
    assert printed.err.startswith(f"retrykit: --raises must be {rule}")


def test_json_has_the_whole_results():
    printed = run_command(*STORM, "--json", "--seeds", "2")
    data = json.loads(printed.out)
    assert data["verdict"] == "recovers in 0 of 2"
    assert data["change"] is None
    assert [each["settings"]["seed"] for each in data["simulations"]] == [1, 2]
    assert len(data["simulations"][0]["load"]) == 40


def test_json_has_the_smallest_change_if_asked():
    data = json.loads(run_command(*STORM, "--json", "--suggest").out)
    assert data["verdict"] == "does not recover within 20 s: 3.6 times its load"
    assert data["change"]["words"] == "budget=FleetBudget()"
    assert data["change"]["simulation"]["outcome"] == "recovers"


def test_csv_has_a_row_for_each_second():
    one = [*csv.DictReader(io.StringIO(run_command(*STORM, "--csv").out))]
    assert len(one) == 40
    assert [*one[0]] == ["second", "load", "goodput", "queue", "pending"]
    both = run_command(*STORM, "--csv", "--seeds", "2").out
    rows = [*csv.DictReader(io.StringIO(both))]
    assert {row["seed"] for row in rows} == {"1", "2"}
    assert [{**row} | {"seed": "1"} for row in rows[:40]] == [
        {"seed": "1"} | row for row in one
    ]


def test_the_mean_recovery_of_several_seeds_is_told():
    printed = run_command(*CALM, "--seeds", "3")
    assert printed.out.startswith("default: recovers in 3 of 3, mean ")


def test_verdicts_of_seeds_tell_how_the_others_end():
    late = ("--schedule", "[30, 0, 0, 0]", "--load", "90%", "--kind", "error")
    again = run_command("simulate", *late, *QUICK, "--horizon", "1m", "--seeds", "2")
    assert again.out.startswith("default: recovers in 0 of 2; fails again in 2\n")


def test_a_search_that_may_be_long_is_offered():
    printed = run_command(*STORM)
    assert printed.out.endswith(
        "--suggest searches for the smallest change that lets it recover.\n"
    )


def test_a_search_may_find_nothing():
    args = ("--slow-start", "1000s", "--load", "90%", "--horizon", "10s", "--suggest")
    printed = run_command("simulate", *args, "--capacity", "20")
    assert printed.out.endswith("No small change lets it recover with three seeds.\n")


def test_the_options_describe_clients_outage_and_server():
    args = ("--processes", "7", "--timeout", "2s", "--share", "3", "--slots", "2")
    args += ("--service", "exponential", "--order", "newest-first", "--drops", "late")
    args += ("--queue-bound", "500ms", "--kind", "error", "--failing", "0.5")
    args += ("--retry-after", "1s", "--slow-start", "3s", "--network", "2ms")
    args += ("--late-answers", "--outage", "4s", "--json", "--seed", "9")
    [data] = json.loads(run_command("simulate", *QUICK, *args).out)["simulations"]
    settings = data["settings"]
    assert (
        settings.pop("errors")[2:]
        == ["ServiceUnavailable('503 Service Unavailable')"] * 2
    )
    assert settings == {
        "clients": [CLIENTS],
        "load": "70%",
        "outage": "Outage(duration=4.0, kind='error', begin=10.0, share=0.5, "
        "retry_after=1.0, slow_start=3.0)",
        "server": "Server(capacity=20.0, slots=2, service='exponential', "
        "queue_bound=0.5, order='newest_first', drops='late')",
        "network": 0.002,
        "late_answers": True,
        "horizon": 20.0,
        "seed": 9,
    }


def test_a_load_may_be_a_number():
    printed = run_command(*CALM, "--load", "0.3", "--json")
    assert json.loads(printed.out)["simulations"][0]["normal"] == 6


def test_what_a_client_raises_can_be_named():
    policy = ("simulate", "policies.toml:fetch", *QUICK)
    refused = run_command(*policy)
    assert refused.code == 2
    assert "with which the outage is simulated" in refused.err
    printed = run_command(*policy, "--raises", "timeout=builtins:ConnectionError")
    assert printed.code == 0
    assert "ConnectionError('simulated')" in printed.out
    for wrong in ("timeout", "timeout=builtins", "=builtins:OSError"):
        printed = run_command(*policy, "--raises", wrong)
        assert printed.err == (
            "retrykit: --raises must be written as timeout=module:Error, got "
            f"{wrong!r}  [invalid-value]\n"
        )


def test_ctrl_c_keeps_what_there_is():
    printed = run_command(
        "simulate", "interrupting.py:LATE", *QUICK, "--processes", "1"
    )
    assert printed.code == 130
    assert "interrupted after" in printed.out.splitlines()[0]
    assert "goodput" in printed.out
    assert "--suggest" not in printed.out


def test_ctrl_c_keeps_the_seeds_before():
    args = ("interrupting.py:LATE", *QUICK, "--processes", "1", "--seeds", "3")
    data = json.loads(run_command("simulate", *args, "--json").out)
    assert [each["outcome"] for each in data["simulations"]] == ["interrupted"]


def test_ctrl_c_in_the_first_second_prints_nothing():
    args = ("--outage", "10s", "--timeout", "60ms", "--load", "99%")
    printed = run_command("simulate", "interrupting.py:FIRST", *QUICK, *args)
    assert (printed.code, printed.out) == (130, "")


def test_ctrl_c_in_a_search_keeps_the_result():
    args = (*QUICK, "--processes", "1", "--suggest")
    printed = run_command("simulate", "interrupting.py:SEARCHED", *args)
    assert printed.code == 130
    assert printed.out.startswith("SEARCHED: does not recover within 20 s")
    assert "Smallest" not in printed.out


def test_a_warning_is_a_line_on_standard_error(capsys):
    watcher = _Watcher(runs=3)
    _Watcher(runs=3).expect(lambda: Estimate(1_999_999, 19.9))
    assert capsys.readouterr().err == ""
    for _ in range(3):
        watcher.expect(lambda: Estimate(4_000_000, 40))
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == (
        "retrykit: this simulation may take 2 min, for about 12,000,000 attempts; with "
        "a shorter horizon, or a server of less capacity, it takes less\n"
    )


def test_a_search_is_shown_in_a_terminal_alone():
    assert run_command(*STORM).err == ""
    shown = run_command(*STORM, "--suggest", TTY_COMPATIBLE="1", FORCE_COLOR="1").err
    assert "searching" in shown


@needs_matplotlib
def test_pictures_are_written_to_files(tmp_path):
    load, basin = tmp_path / "load.svg", tmp_path / "basin.PNG"
    assert run_command(*CALM, "-o", str(load), "--basin", str(basin)).err == ""
    assert load.read_bytes().startswith(b"<?xml")
    assert basin.read_bytes().startswith(b"\x89PNG")


@needs_matplotlib
def test_ctrl_c_in_a_basin_draws_nothing(tmp_path):
    basin = tmp_path / "basin.png"
    args = ("--outage", "none", "--load", "5%", "--basin", str(basin))
    printed = run_command("simulate", "interrupting.py:FIRST", *QUICK, *args)
    assert printed.code == 130
    assert printed.out.startswith("FIRST: no outage: ")
    assert not basin.exists()
