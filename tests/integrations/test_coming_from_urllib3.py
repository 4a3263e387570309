"""Rows of urllib3 in ``docs/migrating.md``, beside the ``Retry`` of urllib3 itself."""

import re
from inspect import signature
from pathlib import Path
from unittest.mock import patch

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry, connection

from retrykit import schedules
from retrykit.integrations.requests import RetryAdapter
from retrykit.testing import virtual_time
from tests._support.exports import exports_of
from tests._support.ports import free_port
from tests._support.scripted_server import answer, serve
from tests._support.side_by_side import draw

DOCUMENT = Path(__file__).parents[2] / "docs" / "migrating.md"
SECTION = DOCUMENT.read_text("utf-8").partition("\n## urllib3\n")[2]
AT_ONCE = schedules.constant(0)


def settings_of(row):
    """Return the settings in the second cell of a row, as written there."""
    [cell] = re.findall(rf"^\| {re.escape(row)}.*? \| `(.+?)`", SECTION, re.MULTILINE)
    return eval(f"dict({cell})", exports_of(schedules) | named_below())  # noqa: S307


def named_below():
    names = {}
    exec(re.search(r"```python\n(.*?)```", SECTION, re.DOTALL)[1], names)  # noqa: S102
    return names


def send(adapter, url, method):
    """Send a request; return the status, or the name of the error, and the waits."""
    waits = []
    with requests.Session() as session, patch("time.sleep", waits.append):
        session.mount("http://", adapter)
        with virtual_time() as clock:
            try:
                outcome = session.request(method, url, timeout=10).status_code
            except requests.RequestException as error:
                outcome = type(error).__name__
    return outcome, [x for x in (*waits, *clock.sleeps) if x]


def fetch(adapter, *steps, method="GET"):
    """Send to a server; return the number of requests, the outcome and the waits."""
    with serve(*steps) as server:
        outcome, waits = send(adapter, server.url, method)
        return len(server.seen), outcome, waits


def theirs(total, **settings):
    retry = Retry(total, raise_on_status=False, allowed_methods=None, **settings)
    return HTTPAdapter(max_retries=retry)


def busy(status, seconds):
    return answer(status, [("Retry-After", seconds)])


@pytest.mark.skipif(
    "retry_after_max" not in signature(Retry).parameters,
    reason="older urllib3 waits however long it is asked to",
)
def test_a_long_retry_after_is_cut_to_the_maximum():
    row = "`retry_after_max=60`, by default 6 h"
    changes = settings_of(row) | {"hint_cap": 1}
    ours = RetryAdapter(schedule=AT_ONCE, max_attempts=3, **changes)
    before = fetch(theirs(2, retry_after_max=1), busy(503, "3"))
    assert fetch(ours, busy(503, "3")) == before == (3, 503, [1.0, 1.0])


@pytest.mark.parametrize("status", [500, 502])
def test_a_status_of_the_list_is_retried(status):
    ours = RetryAdapter(
        schedule=AT_ONCE, max_attempts=3, **settings_of("`status_forcelist=[500, 502]`")
    )
    before = fetch(theirs(2, status_forcelist=[500, 502]), answer(status))
    assert fetch(ours, answer(status)) == before == (3, status, [])


@pytest.mark.parametrize(
    ("status", "seconds", "requests"),
    [
        (413, "1", 3),
        (429, "1", 3),
        (503, "1", 3),
        (404, "1", 1),
        (504, "1", 1),
        (429, None, 1),
        (503, None, 1),
    ],
)
def test_a_retry_after_is_obeyed_whatever_the_list_says(status, seconds, requests):
    step = answer(status) if seconds is None else busy(status, seconds)
    ours = RetryAdapter(
        schedule=AT_ONCE,
        max_attempts=3,
        hint_jitter=0,
        **settings_of("`status_forcelist=[500, 502]`"),
    )
    before = fetch(theirs(2, status_forcelist=[500, 502]), step)
    assert fetch(ours, step) == before == (requests, status, [1.0] * (requests - 1))


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    "row",
    [
        "`backoff_factor=0.5, backoff_max=120`",
        "`backoff_factor=0.5, backoff_jitter=1`",
    ],
)
def test_the_delays_of_a_row_are_equal(row, share):
    given = eval(f"dict({row.strip('`')})")  # noqa: S307  from the row
    ours = RetryAdapter(max_attempts=12, **settings_of(row))
    with draw(share):
        before = fetch(theirs(11, status_forcelist=[500], **given), answer(500))
        after = fetch(ours, answer(500))
    assert after[:2] == before[:2] == (12, 500)
    assert after[2] == pytest.approx(before[2])


@pytest.mark.parametrize(
    ("method", "methods", "kind"),
    [
        ("GET", {}, "connect"),
        ("POST", {}, "once"),
        ("POST", {"methods": None}, "connect"),
    ],
)
def test_a_post_that_could_not_connect_is_sent_again_if_methods_say_so(
    method, methods, kind, monkeypatch
):
    connects = []
    url = f"http://127.0.0.1:{free_port()}"

    def count(original):
        def connect(*args, **kwargs):
            connects.append(args)
            return original(*args, **kwargs)

        return connect

    monkeypatch.setattr(
        connection, "create_connection", count(connection.create_connection)
    )
    assert send(HTTPAdapter(max_retries=Retry(3)), url, method)[0] == "ConnectionError"
    assert len(connects) == 4
    connects.clear()
    ours = RetryAdapter(schedule=AT_ONCE, max_attempts=4, **methods)
    assert send(ours, url, method)[0] == "ConnectionError"
    assert len(connects) == (4 if kind == "connect" else 1)


def test_a_short_retry_after_is_waited_for_exactly_without_a_schedule_of_its_own():
    steps = [busy(503, "1")]
    before = fetch(theirs(2, backoff_factor=4), *steps)
    longer = RetryAdapter(schedule=schedules.constant(4), max_attempts=3)
    [advice] = re.findall(r"`(schedule=constant.*?)` leaves it", SECTION)
    exact = eval(  # noqa: S307  from the document
        f"dict({advice})", exports_of(schedules)
    )
    assert before == (3, 503, [1.0, 1.0])
    assert fetch(longer, *steps) == (3, 503, [4.0, 4.0])
    assert fetch(RetryAdapter(max_attempts=3, **exact), *steps) == before
