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

DOCUMENT = (Path(__file__).parents[1] / "docs" / "migrating.md").read_text("utf-8")
TABLES = DOCUMENT.partition("\n## tenacity\n")[2].partition("\n## ")[0]


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


def chained():
    """Return an error whose cause has a cause."""
    cause, error = RuntimeError("late"), ValueError("busy, see above")
    cause.__cause__, error.__cause__ = OSError("refused"), cause
    return error


CONDITION_ROW = re.compile(
    r"^\| `(retry_\w+\([^`]*\)|retry_always)`.*? \| `([^`]+)`", re.MULTILINE
)
CONDITIONS = dict(CONDITION_ROW.findall(TABLES))
OUTCOMES = {
    "OSError": OSError("refused"),
    "TypeError": TypeError("busy"),
    "ValueError": ValueError("bad"),
    "a chain of causes": chained(),
    "result": "page",
    "no result": None,
}


def predicate(outcome):
    return isinstance(outcome, OSError | None)


def defined_below_the_table():
    """Return the functions of the block of Python in the section of tenacity."""
    names = {}
    exec(re.search(r"```python\n(.*?)```", TABLES, re.DOTALL)[1], names)  # noqa: S102
    return names | {"predicate": predicate}


@pytest.mark.parametrize("outcome", OUTCOMES.values(), ids=OUTCOMES)
@pytest.mark.parametrize(("theirs", "ours"), CONDITIONS.items(), ids=CONDITIONS)
def test_the_condition_of_a_row_retries_the_same_outcomes(theirs, ours, outcome):
    names = vars(tenacity) | defined_below_the_table()
    retry, stop = eval(theirs, names), tenacity.stop_after_attempt(3)  # noqa: S307
    policy = eval(f"Policy({ours}, max_attempts=3)", names | {"Policy": Policy})  # noqa: S307
    with draw(0.0):
        before = run(
            tenacity.Retrying(retry=retry, stop=stop, reraise=True), [outcome, ...]
        )
        after = run(policy.replace(schedule=[0, 0]).call, [outcome, ...])
    assert after == before
    theirs = tenacity.Retrying(
        retry=retry, stop=stop, retry_error_callback=lambda _state: "gave up"
    )
    ours = policy.replace(schedule=[0, 0], fallback="gave up").call
    assert run(ours, [outcome, ...]) == run(theirs, [outcome, ...])


def test_the_conditions_are_found():
    assert len(CONDITIONS) > 9


def test_a_delay_of_the_error_may_be_longer_than_an_hour():
    theirs = tenacity.wait_exception(lambda error: float(str(error)))
    [cell] = re.findall(
        r"^\| `wait_exception\(function\)` \| `(.+?)`, `(.+?)` ", TABLES, re.MULTILINE
    )
    names = exports_of(schedules) | {"function": lambda error: float(str(error))}
    settings = eval(f"dict(schedule={cell[0]}, {cell[1]})", names)  # noqa: S307
    script = [OSError("7200"), OSError("1"), "page"]
    before = run(tenacity.Retrying(wait=theirs), script)
    after = run(Policy(max_attempts=None, **settings).call, script)
    assert after == before
    assert before.waits == [7200.0, 1.0]


@pytest.mark.parametrize(
    ("theirs", "ours", "calls"),
    [
        ({"sleep": True}, "sleep=event.wait", 3),
        ({"sleep": True, "stop": True}, "stop_event=event", 1),
        ({"stop": True}, "stop_event=event", 1),
    ],
    ids=["sleep_using_event", "both", "stop_when_event_set"],
)
def test_an_event_that_is_set_ends_the_wait_or_the_call(theirs, ours, calls):
    """In real time, since a wait for an event that is set takes none."""
    event, server = threading.Event(), ScriptedFunction([OSError, ...])
    event.set()
    stop = tenacity.stop_after_attempt(3)
    if "stop" in theirs:
        stop |= tenacity.stop_when_event_set(event)
    sleep = tenacity.sleep_using_event(event)
    before = tenacity.Retrying(
        wait=tenacity.wait_fixed(60), stop=stop, sleep=sleep, reraise=True
    )
    settings = eval(f"dict({ours})", {"event": event})  # noqa: S307  from the document
    after = Policy(schedule=schedules.constant(60), max_attempts=3, **settings).call
    assert f"| `{ours}` |" in TABLES
    for each in (before, after):
        with pytest.raises(OSError):
            each(server)
        assert len(server.calls) == calls
        server.calls.clear()
