"""Limits and delays of tenacity, and those of retrykit in ``docs/migrating.md``."""

import re
import threading
from pathlib import Path

import pytest
import tenacity

from retrykit import Policy, schedules
from retrykit.testing import ScriptedFunction
from tests._support.exports import exports_of
from tests._support.side_by_side import draw, run

TABLES = (Path(__file__).parents[1] / "docs" / "migrating.md").read_text("utf-8")


# The first expression of each cell: tenacity's and retrykit's.
ROW = re.compile(r"^\| `(wait_\w+\([^`]*\))`.*? \| `([^`]+)`", re.MULTILINE)
DELAYS = {x: y for x, y in ROW.findall(TABLES) if "function" not in x}


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("theirs", "ours"), DELAYS.items(), ids=DELAYS)
def test_the_delays_of_a_row_are_equal(theirs, ours, share):
    wait = eval(theirs, vars(tenacity))  # noqa: S307  from our own document
    schedule = eval(ours, exports_of(schedules))  # noqa: S307
    stop, script = tenacity.stop_after_attempt(8), [OSError, ...]
    with draw(share):
        before = run(tenacity.Retrying(wait=wait, stop=stop, reraise=True), script)
        after = run(Policy(schedule=schedule, max_attempts=8).call, script)
    assert after.waits == pytest.approx(before.waits)
    assert len(after.waits) == 7


def test_the_rows_are_found():
    assert len(DELAYS) > 9


LATE = {"max_elapsed": 25, "deadline": "overshoot"}
LIMITS = {
    "stop_after_attempt(3)": {"max_attempts": 3},
    "stop_before_delay(25)": {"max_elapsed": 25},
    "stop_after_delay(25)": LATE,
    "stop_after_attempt(2) | stop_after_delay(25)": {"max_attempts": 2} | LATE,
    "stop_after_attempt(9) | stop_after_delay(25)": {"max_attempts": 9} | LATE,
    "stop_after_attempt(2) & stop_after_delay(25)": (
        {"max_attempts": 2, "limits": "all"} | LATE
    ),
    "stop_after_attempt(9) & stop_after_delay(25)": (
        {"max_attempts": 9, "limits": "all"} | LATE
    ),
}


@pytest.mark.parametrize(("theirs", "ours"), LIMITS.items(), ids=LIMITS)
def test_limits_end_a_call_at_the_same_attempt(theirs, ours):
    stop = eval(theirs, vars(tenacity))  # noqa: S307  from the table above
    wait, script = tenacity.wait_fixed(10), [OSError, ...]
    before = run(tenacity.Retrying(wait=wait, stop=stop, reraise=True), script)
    after = run(Policy(schedule=schedules.constant(10), **ours).call, script)
    assert after == before


def test_an_event_ends_a_wait_of_both_and_tenacity_makes_another_attempt():
    """In real time, since virtual time does not wait for events."""

    def count_calls(build):
        event, server = threading.Event(), ScriptedFunction([OSError, ...])
        timer = threading.Timer(0.01, event.set)
        timer.start()
        with pytest.raises(OSError):
            build(event)(server)
        timer.join()
        return len(server.calls)

    def before(event):
        return tenacity.Retrying(
            wait=tenacity.wait_fixed(60),
            stop=tenacity.stop_when_event_set(event),
            sleep=tenacity.sleep_using_event(event),
            reraise=True,
        )

    def after(event):
        return Policy(schedule=schedules.constant(60), stop_event=event).call

    assert (count_calls(before), count_calls(after)) == (2, 1)
