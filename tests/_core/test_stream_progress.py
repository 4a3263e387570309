"""Streams that succeed in something without handing out an item."""

import pytest

from retrykit import Policy, StopReason, retry, state_of, streams
from retrykit._core.stream_calls import note_progress
from retrykit.schedules import constant
from retrykit.testing import virtual_time

LIMITED = Policy(schedule=constant(30), max_attempts=3, max_elapsed=60)


def behind(last, _state):
    return {"start": last}


@retry(LIMITED, stream=streams.resume(behind))
def listen(quiet, start=0):
    quiet.append(None)
    if len(quiet) <= 9:
        note_progress()
        raise ConnectionError
    if len(quiet) > 10:
        raise OSError("nothing works")
    yield 7
    raise ConnectionError


def test_failures_behind_progress_begin_a_new_row():
    got, quiet = [], []
    with virtual_time() as clock, pytest.raises(OSError, match="nothing") as caught:
        got.extend(each for each in listen(quiet))
    assert (len(quiet), clock.sleeps) == (12, [30.0] * 11)
    assert state_of(caught.value).stop_reason is StopReason.ATTEMPTS
    assert state_of(caught.value).stream.items == 1


def test_nothing_happens_where_no_stream_runs():
    note_progress()
    assert Policy().call(note_progress) is None
