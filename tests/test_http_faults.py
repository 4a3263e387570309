"""The same, where it is the way to the server that is at fault."""

from typing import NamedTuple

import pytest

from retrykit import Policy, StopReason, observe
from retrykit.events import AttemptFailed
from retrykit.testing import record, virtual_time
from tests import mountebank
from tests.fault_proxy import (
    cut_down,
    delay,
    hang,
    proxy,
    refused,
    reset_at_once,
    slow,
    through,
)
from tests.http_clients import CLIENTS, READS_BODIES, WAYS
from tests.mountebank import DROPPED
from tests.scripted_server import answer, serve

PLAIN = Policy(schedule=[1, 2, 4], max_elapsed=3600)

HEAD = len(answer(body=b"0123456789", close=True).head)


class Row(NamedTuple):
    """What becomes of connections, and what is waited then.

    It ends with a status, or with an error of the client's own. A transport
    does not see what comes after the head, so it may end otherwise.
    """

    plans: list
    delays: list[float]
    ends: int | None = 200
    through_transport: tuple | None = None


ROWS = {
    "through": Row([through()], []),
    "refused once": Row([refused(), through()], [1.0]),
    "refused twice": Row([refused(), refused(), through()], [1.0, 2.0]),
    "refused for good": Row([refused()], [1.0, 2.0, 4.0], None),
    "reset at once": Row([reset_at_once(), through()], [1.0]),
    "reset for good": Row([reset_at_once()], [1.0, 2.0, 4.0], None),
    "hanging": Row([hang(), through()], [1.0]),
    "delayed": Row([delay(0.05)], []),
    "slow": Row([slow(20, 0.005)], []),
    "cut in the head": Row([cut_down(8), through()], [1.0]),
    "reset in the head": Row([cut_down(8, reset=True), through()], [1.0]),
    "cut before the first byte": Row([cut_down(0), through()], [1.0]),
    "cut in the body": Row([cut_down(HEAD + 5), through()], [1.0], 200, ([], None)),
    "reset in the body": Row(
        [cut_down(HEAD + 5, reset=True), through()], [1.0], 200, ([], None)
    ),
}


def has_failed(event):
    return isinstance(event, AttemptFailed) and not event.state.depth


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("row", ROWS)
def test_table(client, way, row):
    plans, delays, ends, other = ROWS[row]
    if way == "transport" and other and client not in READS_BODIES:
        delays, ends = other
    patience = 1.2 if hang() in plans else 5
    steady = answer(body=b"0123456789", close=True)
    with (
        serve(steady) as server,
        proxy(server.port, *plans) as faults,
        observe(lambda event: has_failed(event) and faults.failed()),
        virtual_time(patience=patience) as clock,
        record() as recorded,
    ):
        url = f"http://127.0.0.1:{faults.port}/x"
        [came] = CLIENTS[client](way, PLAIN, 1, url, "GET", None, lambda: None)
    assert clock.naps == delays
    assert came.status == ends
    assert (came.error is None) == (ends == 200)
    *_, state = (call for call in recorded.calls if not call.depth)
    assert len(state.failures) == len(delays) + (state.stop_reason is not DONE)
    assert ends is None or state.stop_reason is DONE


DONE = StopReason.SUCCEEDED

running = mountebank.running


SCRIPTS = {
    "503, 503, dropped, 200": ([503, 503, DROPPED, 200], [1.0, 2.0, 4.0], 200),
    "429 with Retry-After": ([(429, {"Retry-After": "9"}), 200], [9.0], 200),
    "429 with a wrong Retry-After": ([(429, {"Retry-After": "-9"}), 200], [1.0], 200),
    "404": ([404], [], 404),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_server_that_others_have_written_sees_the_same(running, client, way, script):
    steps, delays, ends = SCRIPTS[script]
    with running.imposter(*steps) as url, virtual_time() as clock:
        [came] = CLIENTS[client](way, PLAIN, 1, url, "GET", None, lambda: None)
    assert clock.naps == delays
    assert came.status == (None if way == "whole" and ends == 404 else ends)
