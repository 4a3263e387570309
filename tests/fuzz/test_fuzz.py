"""The fuzzers report faults, and draw the same inputs in every run."""

import subprocess
import sys
import time
import warnings
from pathlib import Path
from random import Random

import pytest

from retrykit._internal.validation import check_number
from tests.fuzz.report import print_report
from tests.fuzz.runner import run_chunk, shown
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]
MANY = range(200)


def target(read, use=lambda value, random: None):
    """Return a target whose inputs are 0, 00 and so on, up to nine digits."""
    return Target("zeros", 1, lambda random: "0" * random.randint(1, 9), read, use)


def run(read, limit=1.0, numbers=MANY, **use):
    return run_chunk(target(read, **use), numbers, seed=7, limit=limit)


def only_fault(tally):
    [(cause, fault)] = tally.faults.items()
    return cause, fault


def use_processor(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class TestAnInput:
    def test_is_read(self):
        tally = run(int)
        assert (tally.inputs, tally.read, tally.wrong) == (200, 200, 0)

    def test_is_rejected_by_a_documented_error(self):
        tally = run(lambda zeros: check_number("zeros", zeros))
        assert (tally.rejected, tally.wrong, tally.faults) == (200, 0, {})

    def test_with_another_error_is_a_fault_and_the_shortest_is_kept(self):
        tally = run(lambda zeros: {}[zeros])
        cause, fault = only_fault(tally)
        assert cause.startswith("KeyError at test_fuzz.py:")
        assert (fault.times, fault.shown, fault.error) == (200, "'0'", "KeyError: '0'")
        assert tally.wrong == 200

    def test_is_a_fault_if_its_use_raises_any_error(self):
        tally = run(str, use=lambda zeros, _: check_number("zeros", zeros))
        assert only_fault(tally)[0].startswith(
            "ConfigError at _internal/validation.py:"
        )

    def test_is_a_fault_if_it_causes_a_warning(self):
        tally = run(lambda _: warnings.warn("odd", SyntaxWarning, stacklevel=1))
        assert only_fault(tally)[0] == "SyntaxWarning"

    @pytest.mark.thorough
    def test_is_a_fault_if_it_takes_too_long(self):
        tally = run(lambda _: use_processor(0.51), limit=0.5, numbers=range(1))
        assert only_fault(tally)[0] == "slow"
        assert tally.slowest > 0.5

    def test_is_ended_and_a_fault_if_it_hangs(self):
        tally = run(lambda _: time.sleep(60), limit=0.01, numbers=range(2))
        assert only_fault(tally)[0] == "Hung"

    @pytest.mark.parametrize("name", TARGETS)
    def test_is_the_same_for_the_same_seed(self, name):
        draw = TARGETS[name].draw
        first, again = (
            [shown(draw(Random(seed))) for seed in range(20)] for _ in range(2)
        )
        assert first == again
        assert len({*first}) > 5


def test_the_report_shows_how_to_reproduce_a_fault(capsys):
    tally = run(lambda zeros: {}[zeros])
    tally.add(run(int))
    print_report({"zeros": tally, "again": run(lambda zeros: {}[zeros])}, seed=7)
    printed = capsys.readouterr().out
    assert "| zeros | 400 | 200 | 0 | 200 |" in printed
    assert "200 times: KeyError: '0'" in printed
    [fault] = tally.faults.values()
    assert f"--seed 7 --only zeros --one {fault.number}\n" in printed


def run_command(*args):
    command = [sys.executable, "-m", "tests.fuzz", "--seed", "7", *args]
    return subprocess.run(  # noqa: S603  a fixed command
        command, cwd=ROOT, check=False, capture_output=True, text=True
    )


@pytest.mark.thorough
def test_the_command_runs_inputs_in_several_processes():
    result = run_command("--only", "durations", "--count", "600", "--processes", "2")
    assert (result.returncode, result.stderr) == (0, "")
    assert "| durations | 600 |" in result.stdout


@pytest.mark.thorough
def test_the_command_fails_if_there_is_a_fault():
    result = run_command("--only", "command-line", "--count", "1", "--limit", "0.001")
    assert (result.returncode, result.stderr) == (1, "")
    assert result.stdout.endswith("--seed 7 --only command-line --one 0\n")


@pytest.mark.thorough
def test_the_command_runs_one_input_again():
    result = run_command("--only", "durations", "--one", "3")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.endswith(" ms\n")
