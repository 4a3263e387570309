"""Faults of connections, through every HTTP client."""

from typing import NamedTuple

import pytest

from retrykit import Policy, StopReason, observe
from retrykit.events import AttemptFailed
from retrykit.testing import record, virtual_time
from tests._support.fault_proxy import (
    cut_down,
    delay,
    hang,
    proxy,
    refused,
    reset_at_once,
    reset_upload,
    slow,
    through,
)
from tests._support.http_clients import CLIENTS, LAYERS, READS_BODIES, timeout_for
from tests._support.scripted_server import answer, serve

PLAIN = Policy(schedule=[1, 2, 4], max_elapsed=3600)

HEAD = len(answer(body=b"0123456789", close=True).head)


class Row(NamedTuple):
    """The plans of connections, the delays, and the number of requests that arrive.

    The call ends with a status, or with an error of the client. A transport does not
    see the body, so its outcome may differ.
    """

    plans: list
    delays: list[float]
    seen: int
    ends: int | None = 200
    through_transport: tuple | None = None
    body: bytes = b""


UNSEEN_BY_TRANSPORT = ([], 1, None)

ROWS = {
    "through": Row([through()], [], 1),
    "refused once": Row([refused(), through()], [1.0], 1),
    "refused twice": Row([refused(), refused(), through()], [1.0, 2.0], 1),
    "refused every time": Row([refused()], [1.0, 2.0, 4.0], 0, None),
    "reset at once": Row([reset_at_once(), through()], [1.0], 1),
    "reset every time": Row([reset_at_once()], [1.0, 2.0, 4.0], 0, None),
    "reset in the upload": Row(
        [reset_upload(50_000), through()], [1.0], 1, body=b"x" * 900_000
    ),
    "hanging": Row([hang(), through()], [1.0], 1),
    "delayed": Row([delay(0.05)], [], 1),
    "slow": Row([slow(20, 0.005)], [], 1),
    "cut in the head": Row([cut_down(8), through()], [1.0], 2),
    "reset in the head": Row([cut_down(8, reset=True), through()], [1.0], 2),
    "cut before the first byte": Row([cut_down(0), through()], [1.0], 2),
    "cut in the body": Row(
        [cut_down(HEAD + 5), through()], [1.0], 2, 200, UNSEEN_BY_TRANSPORT
    ),
    "reset in the body": Row(
        [cut_down(HEAD + 5, reset=True), through()], [1.0], 2, 200, UNSEEN_BY_TRANSPORT
    ),
}


def has_failed(event):
    return isinstance(event, AttemptFailed) and not event.state.depth


# Under trio, httpx does not close the generator of a body that is cut off.
@pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <async_generator object ByteStream"
)
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("row", ROWS)
def test_a_fault_of_the_connection_has_the_expected_outcome(client, layer, row):
    plans, delays, seen, ends, other, body = ROWS[row]
    if layer == "transport" and other and client not in READS_BODIES:
        delays, seen, ends = other
    timeout = timeout_for(plans, hang())
    server_step = answer(body=b"0123456789", close=True)
    with (
        serve(server_step) as server,
        proxy(server.port, *plans) as faults,
        observe(lambda event: has_failed(event) and faults.attempt_failed()),
        virtual_time() as clock,
        record() as recorded,
    ):
        url = f"http://127.0.0.1:{faults.port}/x"
        sent = ("PUT", None, lambda: body) if body else ("GET", None, lambda: None)
        [result] = CLIENTS[client](layer, PLAIN, 1, url, *sent, client_timeout=timeout)
    assert clock.sleeps == delays
    assert [each.body for each in server.seen] == [body] * seen
    assert result.status == ends
    assert (result.error is None) == (ends == 200)
    *_, state = (call for call in recorded.calls if not call.depth)
    assert len(state.failures) == len(delays) + (state.stop_reason is not DONE)
    assert ends is None or state.stop_reason is DONE


DONE = StopReason.SUCCEEDED
