"""The table of verdicts on presets after an outage."""

import re

import pytest

from benchmarks.preset_verdicts import (
    BEGIN,
    END,
    KINDS,
    LOADS,
    NOT_RETRIED,
    NOT_SIMULATED,
    PAGE,
    Verdict,
    cell,
    cell_of,
    groups,
    header,
    rows_of,
    verdict_of,
)
from retrykit import Policy, presets
from retrykit.simulate import Outage, simulate

SECTION = PAGE.read_text("utf-8").partition("\n## After an outage\n")[2]
TABLE = SECTION.partition(BEGIN)[2].partition(END)[0]
ROWS = {
    name: [each.strip() for each in line.split("|")[2:-1]]
    for line in TABLE.splitlines()[2:]
    for name in re.findall(r"`(\w+)\(\)`", line)
}
GROUPS = {names[0]: (names, policy) for names, policy in groups()}
COLUMNS = [(kind, load) for kind in KINDS for load in LOADS]


def test_each_preset_has_a_row_or_a_reason():
    assert TABLE.startswith(header())
    assert sorted([*ROWS, *NOT_SIMULATED]) == sorted(presets.__all__)
    assert [x for x in NOT_SIMULATED if f"`{x}()`" not in SECTION] == []
    assert {
        (name, kind)
        for name, cells in ROWS.items()
        for (kind, _), text in zip(COLUMNS, cells, strict=True)
        if text == "not retried"
    } == NOT_RETRIED


@pytest.mark.parametrize(
    ("name", "kind", "load"),
    [
        ("airflow", "hang", "50%"),
        pytest.param("grpc", "hang", "50%", marks=pytest.mark.thorough),
        pytest.param("finagle", "error", "90%", marks=pytest.mark.thorough),
        pytest.param("curl", "hang", "50%", marks=pytest.mark.thorough),
        pytest.param("dramatiq", "refuse", "70%", marks=pytest.mark.thorough),
    ],
)
def test_a_cell_of_the_page_is_what_the_simulation_says(name, kind, load):
    _, policy = GROUPS[name]
    assert ROWS[name][COLUMNS.index((kind, load))] == cell(policy, kind, load)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "column"),
    [(name, 5 * row % len(COLUMNS)) for row, name in enumerate(GROUPS)][3::8],
)
def test_a_sample_of_the_page_is_what_the_command_prints(name, column):
    """The command itself, without a name, tells whether all of it is."""
    assert ROWS[name][column] == cell_of((GROUPS[name], COLUMNS[column]))


@pytest.mark.thorough
def test_a_row_is_written_as_on_the_page():
    (row,) = rows_of([GROUPS["airflow"]])
    assert row in TABLE


def after_errors(policy, load, horizon):
    outage = Outage("10s", "error")
    return verdict_of(simulate(policy, load=load, outage=outage, horizon=horizon))


def test_a_server_that_is_up_and_fails_when_late_calls_return_is_told_apart():
    late = Policy(schedule=[20.0, 20.0, 20.0], max_attempts=None)
    assert after_errors(Policy(max_attempts=1), "70%", "1m") == Verdict("up", 0.0)
    assert after_errors(late, "90%", "3m") == Verdict("relapse", 0.0)
    kind, first, last = after_errors(late.replace(schedule=[20.0]), "60%", "3m")
    assert (kind, first) == ("again", 0.0)
    assert 20 < last < 170


def test_no_recovery_and_one_near_the_horizon_are_told_apart():
    stubborn = Policy(schedule=[0, 0, 0])
    found = simulate(stubborn, load="60%", outage="10s", horizon="20s")
    assert verdict_of(found) == Verdict("down")
    found = simulate(Policy(max_attempts=1), load="87%", outage="10s", horizon="60s")
    assert verdict_of(found).kind == "late"


def test_presets_with_equal_decisions_share_a_row():
    together = [names for names, _ in groups()]
    assert ["anthropic", "openai", "stainless"] in together
    assert ["airflow", "huey", "prefect", "requests"] in together
    assert ["grpc"] in together
