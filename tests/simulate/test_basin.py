"""From which states the load does not come back by itself."""

import csv
import io
import json

import pytest

from retrykit import ConfigError, Policy
from retrykit.simulate import Basin, Server, basin
from retrykit.simulate._basin import _NO_TIME
from retrykit.simulate._simulate import run

IMMEDIATE = Policy(schedule=[0, 0, 0])
SMALL = {"server": Server(20), "load": "60%", "horizon": "30s", "steps": 2}


def test_each_state_is_simulated():
    told = []
    found = basin(IMMEDIATE, progress=lambda *given: told.append(given), **SMALL)
    # Three timeouts of work.
    assert found.queue == found.pending == (0, 30, 60)
    assert [len(row) for row in found.returns] == [3, 3, 3]
    assert found.returns[0][0]
    assert not found.returns[2][2]
    assert told == [(number, 9) for number in range(1, 10)]
    assert (found.settings["outage"], found.settings["load"]) == (None, "60%")
    assert str(found) == "the load does not come back from 8 of 9 states"


@pytest.mark.thorough
def test_a_fuller_state_is_never_better():
    found = basin(IMMEDIATE, **SMALL | {"steps": 3})
    for row in (*found.returns, *zip(*found.returns, strict=True)):
        assert [*row] == sorted(row, reverse=True)


LATE = {"load": "90%", "server": Server(20), "queue": 2, "pending": 180, "steps": 1}


def test_a_load_that_fails_again_does_not_come_back():
    """Calls whose delay is long return after a recovery, and bring the server down."""
    found = basin(Policy(schedule=[30, 0, 0, 0]), **LATE)
    assert found.returns == ((True,) * 2, (False,) * 2)


def test_the_states_of_a_basin_end_once_nothing_is_left_to_do():
    """The result is that of the whole horizon, in less events."""
    settings = {"load": "50%", "outage": _NO_TIME, "horizon": "60s", "state": (30, 5)}
    short, whole = (
        run(IMMEDIATE, until_rest=rest, **settings) for rest in (True, False)
    )
    assert (short.outcome, short.recovery) == (whole.outcome, whole.recovery)
    assert len(short.load) < 15
    assert short.pending == whole.pending[: len(short.pending)]
    assert min(whole.pending) == 0


def test_without_retries_the_load_comes_back_from_everywhere():
    found = basin(Policy(max_attempts=1), **SMALL)
    assert found.returns == ((True,) * 3,) * 3


def test_a_queue_begins_no_longer_than_its_bound():
    server = Server(20, queue_bound="200ms")
    assert basin(IMMEDIATE, **SMALL | {"server": server}).queue == (0, 2, 4)


def test_a_basin_is_written_as_json_and_csv():
    found = basin(IMMEDIATE, queue=1, pending=1, **SMALL)
    # No state is simulated twice.
    assert found.queue == found.pending == (0, 1)
    data = json.loads(found.to_json())
    assert data == found.to_dict()
    assert Basin(**data).to_dict() == data
    rows = [*csv.DictReader(io.StringIO(found.to_csv()))]
    assert len(rows) == 4
    assert rows[1] == {"queue": "1", "pending": "0", "returns": "1"}


@pytest.mark.parametrize("name", ["queue", "pending", "steps"])
def test_a_number_of_a_basin_is_at_least_one(name):
    with pytest.raises(ConfigError, match=f"{name} must be an integer"):
        basin(IMMEDIATE, **SMALL | {name: 0})
