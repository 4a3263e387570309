"""Short runs of `python -m benchmarks.durable`."""

import pytest

from benchmarks.durable import SETTINGS, due, waiting

pytestmark = pytest.mark.engines


def cells(table):
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.splitlines()
        if "---" not in line
    ]


def test_measures_jobs_that_wait_beside_workflows_that_sleep(tmp_path):
    heads, *rows = cells(waiting(tmp_path, jobs=12, sleeping=5, idle=0.1))
    assert heads == ["", "nothing waits", "12 jobs wait", "5 workflows sleep"]
    figures = {title: [float(x) for x in row if x != "-"] for title, *row in rows}
    assert len(figures["memory of the process (MB)"]) == 3
    for title in "started a second", "file for each (kB)", "all wait again after (s)":
        assert len(figures[title]) == 2
        assert min(figures[title]) > 0


@pytest.mark.thorough
def test_measures_jobs_that_come_due_at_once_under_each_setting(tmp_path):
    _, *rows = cells(due(tmp_path, jobs=4, sample=3))
    measured = [(row[0], row[2], row[3]) for row in rows]
    expected = [(each.journal, *map(str, each[:2])) for each in SETTINGS]
    assert measured == [*expected, measured[1]]
    assert all(float(figure) > 0 for row in rows for figure in row[4:])
