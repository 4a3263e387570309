"""Rows of backoff in ``docs/migrating.md``, beside backoff itself."""

import re
import time

import backoff
import pytest

from retrykit import Policy, current_state, retry, schedules
from tests._support.exports import exports_of
from tests._support.side_by_side import draw, run
from tests.test_coming_from import TABLES

SECTION = TABLES.partition("\n## backoff\n")[2].partition("\n## ")[0]


def settings_of(row, **names):
    """Return the settings in the second cell of a row, as written there."""
    [cell] = re.findall(rf"^\| {re.escape(row)} \| `(.+?)`", SECTION, re.MULTILINE)
    return eval(f"dict({cell})", exports_of(schedules) | names)  # noqa: S307


def slow(seconds):
    """Return a function that decorates calls of the server that take so long."""

    def decorated(decorate):
        @decorate
        def attempt(server):
            time.sleep(seconds)
            return server()

        return attempt

    return decorated


def before(seconds, limit):
    decorate = backoff.on_exception(
        backoff.constant, OSError, interval=0.3, jitter=None, max_time=limit
    )
    return slow(seconds)(decorate)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_max_time_limits_quick_attempts_alike(limit):
    changes = settings_of("`max_time=60`") | {"max_elapsed": limit}
    policy = Policy(on=OSError, schedule=schedules.constant(0.3), **changes)
    script = [OSError, ...]
    after = run(policy.call, script)
    assert after.calls == run(before(0, limit), script).calls


def test_slow_attempts_within_max_time_are_fewer_unless_their_start_is_asked():
    schedule = schedules.constant(0.3)
    changes = settings_of("`max_time=60`") | {"max_elapsed": 1}
    elapsed = Policy(schedule=schedule, on=OSError, **changes)
    started = Policy(
        schedule=schedule,
        on=OSError,
        max_attempts=None,
        give_up_on=lambda _error: current_state().attempt_started >= 1,
    )
    script = [OSError, ...]
    theirs = run(before(1.5, 1), script).calls
    ours = [run(slow(1.5)(retry(each)), script).calls for each in (elapsed, started)]
    assert (theirs, ours) == (2, [1, 2])


def test_the_elapsed_time_of_an_event_is_that_of_the_start_of_the_attempt():
    [name] = re.findall(r"`\.(\w+)`, `\.next_delay` \|$", SECTION, re.MULTILINE)
    theirs, ours = [], []

    def report(event):
        ours.append(getattr(event.state, name))

    decorate = backoff.on_exception(
        backoff.constant,
        OSError,
        interval=2,
        jitter=None,
        max_tries=4,
        on_backoff=lambda details: theirs.append(details["elapsed"]),
    )
    policy = Policy(
        on=OSError, schedule=[2, 2, 2], observers={"retry_scheduled": report}
    )
    for each in (decorate, retry(policy)):
        run(slow(5)(each), [OSError, ...])
    assert ours == theirs == [0.0, 7.0, 14.0]


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_delay_of_the_error_may_be_longer_than_an_hour(share):
    def delay(error):
        return float(str(error))

    row = "`runtime`, with `value=function, jitter=None`"
    policy = Policy(on=OSError, **settings_of(row, function=delay))
    decorate = backoff.on_exception(backoff.runtime, OSError, value=delay, jitter=None)
    script = [OSError("7200"), OSError("1"), "page"]
    with draw(share):
        theirs = run(lambda server: decorate(server)(), script)
        ours = run(policy.replace(max_attempts=None).call, script)
    assert ours == theirs
    assert ours.waits == [7200.0, 1.0]


def test_every_wait_generator_of_a_row_is_in_the_release():
    named = re.findall(r"^\| `(\w+)`[^|]*, with `", SECTION, re.MULTILINE)
    assert set(named) >= {"expo", "constant", "fibo", "runtime"}
    assert [name for name in named if not hasattr(backoff, name)] == []
