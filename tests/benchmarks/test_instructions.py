"""The gate for speed: which rows fail, and which commit it compares with."""

from pathlib import Path

import pytest

from benchmarks import calls
from benchmarks.instructions import (
    PAUSE,
    SEEDS,
    compare,
    excuses,
    start_of_series,
    titles,
    until_none_fails,
)

QUIET = ("quiet", "call, success")
INSTALLED = ("as installed", "call, success")


def rows(before, now, excused=()):
    """Return the rows of one call, by the state of the logs."""
    found = compare(
        dict.fromkeys((QUIET, INSTALLED), 1000.0) if before is None else before,
        {QUIET: 1000.0, INSTALLED: 1000.0} | now,
        ["call, success"],
        dict(excused),
    )
    return {row.state: row for row in found}


@pytest.mark.parametrize(
    ("now", "fails"),
    [(900.0, False), (1050.0, False), (1051.0, True)],
    ids=["faster", "5 % slower", "more than 5 % slower"],
)
def test_a_row_fails_if_it_is_more_than_five_percent_slower(now, fails):
    found = rows(None, {QUIET: now})
    assert found["quiet"].fails is fails
    assert not found["as installed"].fails


def test_a_slower_row_says_by_how_much():
    found = rows(None, {QUIET: 1100.0})
    assert str(found["quiet"]) == "1,000 to 1,100 (+10.0%) FAILS"


def test_a_slower_row_passes_with_a_reason():
    found = rows(None, {QUIET: 1100.0}, {"call, *": "it checks the loop"})
    assert not found["quiet"].fails
    assert str(found["quiet"]) == "1,000 to 1,100 (+10.0%), it checks the loop"
    assert str(found["as installed"]) == "1,000 to 1,000 (+0.0%)"


def test_the_reason_of_another_row_does_not_count():
    found = rows(None, {QUIET: 1100.0}, {"block, *": "it checks the loop"})
    assert found["quiet"].fails


def test_a_row_that_was_not_there_before_is_called_new():
    found = rows({INSTALLED: 1000.0}, {QUIET: 5000.0})
    assert not found["quiet"].fails
    assert str(found["quiet"]) == "5,000, a new row"


def test_a_row_that_is_gone_fails_unless_a_commit_says_why():
    known = ["call, success"]
    gone, _ = compare({INSTALLED: 1000.0}, {}, known, {})
    assert gone.fails
    assert str(gone) == "gone FAILS"
    said, _ = compare({INSTALLED: 1000.0}, {}, known, {"call, success": "renamed"})
    assert not said.fails
    assert str(said) == "gone, renamed"


def counted(now, before=1000.0):
    """Return the rows, and the seeds that were counted, of counts by seed."""
    seeds = []

    def count(seed):
        seeds.append(seed)
        # One after the other, as two processes count them.
        return iter([{QUIET: before}, {QUIET: now[min(seed, len(now) - 1)]}])

    found = until_none_fails(
        count, lambda then, here: compare(then, here, ["call, success"], {})
    )
    [row] = [row for row in found if row.state == "quiet"]
    return row, seeds


def test_versions_are_counted_once_if_no_row_fails():
    row, seeds = counted([1050.0, 1.0])
    assert str(row) == "1,000 to 1,050 (+5.0%)"
    assert seeds == [0]


def test_a_row_that_fails_is_counted_again_and_the_least_counts():
    row, seeds = counted([1080.0, 1060.0, 1020.0, 1.0])
    assert str(row) == "1,000 to 1,020 (+2.0%)"
    assert seeds == [0, 1, 2]


def test_a_row_that_is_slower_with_every_seed_fails():
    row, seeds = counted([1080.0, 1060.0, 1090.0])
    assert str(row) == "1,000 to 1,060 (+6.0%) FAILS"
    assert seeds == [*SEEDS]


def test_a_row_that_is_gone_is_not_counted_again():
    seeds = []

    def count(seed):
        seeds.append(seed)
        return {QUIET: 1000.0}, {}

    found = until_none_fails(
        count, lambda then, here: compare(then, here, ["call, success"], {})
    )
    assert {str(row) for row in found} == {"gone FAILS"}
    assert seeds == [0]


def test_the_trailers_of_commits_are_reasons_by_row():
    trailers = "block, *: it checks: twice\n\ncall, success: new\n"
    assert excuses(trailers) == {
        "block, *": "it checks: twice",
        "call, success": "new",
    }


@pytest.mark.parametrize("trailer", ["block, success", "block, success: "])
def test_a_trailer_without_a_reason_is_an_error(trailer):
    with pytest.raises(ValueError, match="must have the form `Slower: ROW: REASON`"):
        excuses(trailer)


def test_the_titles_of_a_version_are_read_from_its_source():
    source = Path(calls.__file__).read_text("utf-8")
    assert titles(source) == [*calls.ROWS]


def test_a_version_without_rows_has_no_titles():
    assert titles("") == []


def test_a_change_starts_before_the_last_pause_of_six_hours():
    times = [9 * PAUSE, 9 * PAUSE - 60, 8 * PAUSE - 60, PAUSE]
    log = "\n".join(f"{time} commit{n}" for n, time in enumerate(times))
    assert start_of_series(log) == "commit2"


def test_a_history_without_a_pause_has_no_start():
    assert start_of_series("120 b\n60 a") is None
    assert start_of_series("") is None
