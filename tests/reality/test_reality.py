"""The rig: what it records, how it is compared, and what the table says of it."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from retrykit.simulate import Outage, Server
from tests.reality.cell import Cell
from tests.reality.cells import CELLS
from tests.reality.comparison import MOST_LAG, compare, differences, measured, replayed
from tests.reality.rig import Recording, record, recorded
from tests.reality.table import build_table, put, row

OUTAGE = Outage("1s", "error", begin="1s")
CELL = Cell(name="two", fleet=("3 at once",) * 2, load=0.5, outage=OUTAGE, horizon=10)
SECOND = 1_000_000_000


def recording_of(cell, calls, attempts, lag=0.01):
    return Recording(
        repr(cell), "2026-11-29", lag, {}, {"served": len(calls)}, calls, attempts, []
    )


def steady(cell, attempts_in_outage=4):
    """Return what happens to 10 calls a second of the first client."""
    calls, attempts = [], []
    for number in range(int(10 * cell.end)):
        begun = number * SECOND // 10 + 1
        failed = 1 <= begun / SECOND < 2
        took = None if failed else begun + SECOND // 100
        calls.append((begun, 0, took, begun if failed else None))
        attempts.extend(
            (begun + attempt, attempt == 0, not failed)
            for attempt in range(attempts_in_outage if failed else 1)
        )
    return calls, attempts


def test_equal_results_have_no_differences():
    recording = recording_of(CELL, *steady(CELL))
    found = compare(CELL, recording)
    assert found.differences == []
    assert found.real.outcome == found.simulated.outcome == "recovers"
    assert found.real.load == found.simulated.load
    assert found.real.calls == found.real.succeeded + found.real.given_up == 120


def test_each_difference_is_named_with_both_values():
    calls, attempts = steady(CELL, attempts_in_outage=2)
    attempts += [(begun, False, False) for begun, *_ in calls[90:]]
    found = compare(CELL, recording_of(CELL, calls, sorted(attempts)))
    assert found.differences == [
        "attempts per call: 1.333, not 1.25",
        "attempts in the outage: 20, not 40",
        "peak: 2, not 4",
    ]


def test_another_outcome_is_a_difference():
    calls, attempts = steady(CELL)
    attempts += [(begun, False, False) for begun, *_ in calls[20:]]
    found = compare(CELL, recording_of(CELL, calls, sorted(attempts)))
    assert found.differences[0] == "outcome: does not recover, not recovers"


@pytest.mark.parametrize(
    ("loose", "other", "differs"),
    [
        (False, 20.99, False),
        (False, 21.01, True),
        (True, 24.99, False),
        (True, 25.01, True),
    ],
)
def test_times_to_recovery_may_differ_by_some_share(loose, other, differs):
    """By 5 %, or by 25 % where the order of near events decides."""
    cell = replace(CELL, loose=loose, horizon=60.0)
    calls, attempts = steady(cell)

    def recovering_after(seconds):
        last = round((2 + seconds) * SECOND)
        changed = [
            (sent, first, good and sent > last) for sent, first, good in attempts
        ]
        changed.append((last, False, False))
        return measured(cell, recording_of(cell, calls, sorted(changed)))

    found = differences(cell, recovering_after(20.0), recovering_after(other))
    expected = [f"recovery: 20 s, not {other:g} s"] if differs else []
    assert found == expected


def test_the_client_of_a_call_makes_it_in_the_simulation_too():
    cell = replace(CELL, fleet=("no retries", "3 at once"))
    calls, attempts = steady(cell)
    first = replayed(cell, recording_of(cell, calls, attempts))
    second = [(begun, 1, *rest) for begun, _, *rest in calls]
    other = replayed(cell, recording_of(cell, second, attempts))
    assert (first.retries, other.retries) == (0, 30)


def test_a_recording_of_another_cell_is_not_used(tmp_path):
    path = tmp_path / "folder" / "cell.json.gz"
    assert recorded(CELL, path) is None
    recording = recording_of(CELL, *steady(CELL))
    recording.save(path)
    kept = recorded(CELL, path)
    assert kept is not None
    assert compare(CELL, kept).differences == []
    assert recorded(replace(CELL, load=0.6), path) is None


def test_the_table_tells_why_a_row_differs_or_does_not_count(tmp_path):
    cell = replace(CELL, cause="another draw")
    calls, attempts = steady(cell, attempts_in_outage=2)
    rows = []
    for lag in (0.01, MOST_LAG):
        recording = recording_of(cell, calls, attempts, lag)
        rows.append(row(cell, recording, compare(cell, recording)))
    assert rows[0].recovers == "at once / at once"
    assert rows[0].cause.startswith("attempts per call: ")
    assert rows[0].cause.endswith("; another draw")
    assert rows[1].cause.startswith("timers too late to count: attempts per call: ")
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- reality -->\n\nold\n\n<!-- end of reality -->\nb\n")
    table = build_table(rows)
    assert not put(page, table, write=False)
    assert put(page, table, write=True)
    assert put(page, table, write=False)
    assert page.read_text().startswith("a\n<!-- reality -->\n\n| cell | ")
    assert page.read_text().endswith(" |\n\n<!-- end of reality -->\nb\n")


def test_cells_differ_in_more_than_their_names():
    assert len({replace(each, name="") for each in CELLS.values()}) == len(CELLS)


@pytest.mark.thorough
@pytest.mark.needs("processes", "threads")
def test_real_processes_are_recorded_and_simulated():
    """This is about the rig, on any machine; `nox -s reality` compares."""
    server = Server(order="newest_first", drops="abandoned", queue_bound="5s")
    cells = [
        replace(
            CELL,
            outage=Outage("1s", kind, begin="500ms", share=share),
            server=server,
            sdk=sdk,
            connections=connections,
            timeout=0.5,
            horizon=0.5,
        )
        for kind, share, sdk, connections in [
            ("hang", 1, "", 30),
            ("refuse", 1, "1 at once", 0),
            ("error", 0.9, "", 0),
        ]
    ]
    with ThreadPoolExecutor(3) as pool:
        recordings = pool.map(record, cells)
    for cell, recording in zip(cells, recordings, strict=True):
        made = Counter(client for _, client, *_ in recording.calls)
        assert made == Counter(client for _, client in cell.arrivals())
        assert recording.unexpected == {}
        assert {succeeded for *_, succeeded in recording.attempts} == {True, False}
        assert recording.served["served"] > 0
        simulated = replayed(replace(cell, horizon=10.0), recording)
        attempts = len(recording.attempts)
        assert simulated.attempts == pytest.approx(attempts, rel=0.3)
