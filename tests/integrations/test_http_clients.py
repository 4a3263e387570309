"""Faults of a server, through every HTTP client: requests, delays and outcome."""

import io
from collections.abc import Callable
from email.utils import formatdate
from functools import partial
from typing import NamedTuple

import pytest

from retrykit import Policy, StopReason
from retrykit.hints import first_of, milliseconds, reset_at, retry_after
from retrykit.testing import record, virtual_time
from tests._support.http_clients import (
    CLIENTS,
    LAYERS,
    NO_FILES,
    READS_BODIES,
    timeout_for,
)
from tests._support.scripted_server import (
    answer,
    close,
    cut,
    cut_in_head,
    hang,
    redirect,
    reset,
    reset_in_body,
    serve,
    slow,
)

PLAIN = Policy(schedule=[1, 2, 4], max_elapsed=3600, hint_cap="30m", hint_jitter=0)
NOON = 1_800_000_000


class Expected(NamedTuple):
    """The number of requests, the delays, and the end: a status or a client's error."""

    requests: int
    delays: list[float]
    ends: int | type[Exception]
    reason: StopReason = StopReason.SUCCEEDED


class Row(NamedTuple):
    """The steps of a server, and the expected outcome for each layer of retries."""

    steps: list
    function: Expected
    transport: Expected | None = None  # the same as function
    times: int = 1
    policy: Policy = PLAIN
    method: str = "GET"
    headers: dict | None = None
    body: Callable = lambda: None


def last(status=200, headers=()):
    """Answer, and announce that the connection is closed."""
    return answer(status, headers, close=True)


def busy(*values, status=503):
    """Return the steps of a server that is busy once and sends Retry-After."""
    at = ("Date", formatdate(NOON, usegmt=True))
    headers = [at, *(("Retry-After", value) for value in values)]
    return [last(status, headers), last()]


def http_date(seconds, zone="GMT"):
    return formatdate(NOON + seconds, usegmt=True).replace("GMT", zone)


ONCE = Expected(1, [], 200)
RETRIED = Expected(2, [1.0], 200)
ERROR_ONCE = Expected(1, [], Exception, StopReason.NOT_RETRYABLE)
# A transport is done when the head has arrived.
CUT = Expected(1, [], Exception)


SENT_ONCE = Expected(1, [], 503, StopReason.ATTEMPTS)
KEY = {"Idempotency-Key": "8e03978e"}


def gave_up(requests, delays, status, reason):
    """Return the outcomes: an error in a function, the last response in a transport."""
    function = Expected(requests, delays, Exception, reason)
    return function, function._replace(ends=status)


ROWS = {
    "it answers": Row([answer()], ONCE),
    "it answers in chunks": Row([answer(chunked=True)], ONCE),
    "it answers slowly": Row([slow(0.01, answer())], ONCE),
    **{
        f"{status}, then it answers": Row([last(status), last()], RETRIED)
        for status in (408, 425, 429, 500, 502, 503, 504)
    },
    **{
        f"{status}": Row([last(status)], ERROR_ONCE, Expected(1, [], status))
        for status in (400, 401, 403, 404, 409, 410, 413, 422, 501, 505)
    },
    "503 every time": Row(
        [last(503)], *gave_up(4, [1.0, 2.0, 4.0], 503, StopReason.SCHEDULE_ENDED)
    ),
    "503 in chunks, kept alive": Row([answer(503, chunked=True), answer()], RETRIED),
    "Retry-After: 5": Row(busy("5"), Expected(2, [5.0], 200)),
    "Retry-After: 5, with 429": Row(busy("5", status=429), Expected(2, [5.0], 200)),
    "Retry-After: 5, with 413": Row(busy("5", status=413), Expected(2, [5.0], 200)),
    "Retry-After: 1.5": Row(busy("1.5"), Expected(2, [1.5], 200)),
    "Retry-After: 0": Row(busy("0"), RETRIED),
    "Retry-After below the schedule": Row(
        busy("3"), Expected(2, [10.0], 200), policy=PLAIN.replace(schedule=[10])
    ),
    "Retry-After is a date": Row(busy(http_date(7)), Expected(2, [7.0], 200)),
    "Retry-After is a date without a zone": Row(
        busy(http_date(7, "").rstrip()), Expected(2, [7.0], 200)
    ),
    "Retry-After is a date in an unknown zone": Row(
        busy(http_date(7, "MOON")), RETRIED
    ),
    "Retry-After is a date of the past": Row(busy(http_date(-7)), RETRIED),
    "Retry-After is sent twice": Row(busy("2", "5"), Expected(2, [5.0], 200)),
    **{
        f"Retry-After: {value!r}": Row(busy(value), RETRIED)
        for value in ("soon", "-5", "1.5.2", "", "+5", "0x10", "1e", "5 5", "\xb2")
    },
    "Retry-After: 9999999": Row(busy("9999999"), *gave_up(1, [], 503, StopReason.HINT)),
    "Retry-After has 5,000 digits": Row(
        busy("9" * 5000), *gave_up(1, [], 503, StopReason.HINT)
    ),
    "Retry-After exceeds the remaining time": Row(
        busy("30"),
        *gave_up(1, [], 503, StopReason.HINT),
        policy=PLAIN.replace(max_elapsed=20),
    ),
    "retry-after-ms, if the policy reads it": Row(
        [last(503, [("Retry-After-Ms", "2500")]), last()],
        Expected(2, [2.5], 200),
        policy=PLAIN.replace(hint=milliseconds("retry-after-ms")),
    ),
    "x-ratelimit-reset, if the policy reads it": Row(
        [
            last(429, [("X-RateLimit-Reset", "9"), ("X-RateLimit-Remaining", "0")]),
            last(),
        ],
        Expected(2, [9.0], 200),
        policy=PLAIN.replace(hint=first_of(reset_at(), retry_after())),
    ),
    "retry-after-ms, if the policy does not read it": Row(
        [last(503, [("Retry-After-Ms", "2500")]), last()], RETRIED
    ),
    "it closes before it answers": Row([close(), last()], RETRIED),
    "it resets before it answers": Row([reset(), last()], RETRIED),
    "it closes in the head": Row([cut_in_head(8), last()], RETRIED),
    "it hangs": Row([hang(), last()], RETRIED),
    "it closes in the body": Row([cut(10), last()], RETRIED, CUT),
    "it closes in the chunks": Row([cut(10, chunked=True), last()], RETRIED, CUT),
    "it resets in the body": Row([reset_in_body(10), last()], RETRIED, CUT),
    "it drops a connection that was kept alive": Row(
        [answer(), close(), last()], Expected(3, [1.0], 200), times=2
    ),
    "it never answers": Row(
        [close()],
        Expected(4, [1.0, 2.0, 4.0], Exception, StopReason.SCHEDULE_ENDED),
    ),
    **{
        f"503 to {method}": Row([last(503), last()], RETRIED, method=method)
        for method in ("HEAD", "OPTIONS", "TRACE", "PUT", "DELETE")
    },
    **{
        f"503 to {method}": Row(
            [last(503), last()],
            RETRIED,
            SENT_ONCE,
            method=method,
            body=lambda: b"order",
        )
        for method in ("POST", "PATCH")
    },
    "503 to POST with a key": Row(
        [last(503), last()], RETRIED, method="POST", headers=KEY, body=lambda: b"order"
    ),
    "503 to PUT of a file": Row(
        [last(503), last()], RETRIED, method="PUT", body=lambda: io.BytesIO(b"order")
    ),
    "503 to PUT of a stream": Row(
        [last(503), last()],
        RETRIED,
        SENT_ONCE,
        method="PUT",
        body=lambda: iter([b"or", b"der"]),
    ),
}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("row", ROWS)
def test_a_fault_of_the_server_has_the_expected_outcome(client, layer, row):
    steps, function, transport, times, policy, *sent = ROWS[row]
    sees_body = layer == "function" or (transport is CUT and client in READS_BODIES)
    expected = function if sees_body or transport is None else transport
    if layer == "transport" and client in NO_FILES and "file" in row:
        expected = SENT_ONCE
    timeout = timeout_for(steps, hang())
    with (
        serve(*steps) as server,
        virtual_time() as clock,
        record() as recorded,
    ):
        call = partial(CLIENTS[client], layer, policy, times, server.url + "/x")
        result = call(*sent, client_timeout=timeout)[-1]
    assert len(server.seen) == expected.requests
    assert {seen.body for seen in server.seen} <= {b"", b"order"}
    assert len({seen.body for seen in server.seen}) == 1
    assert clock.sleeps == expected.delays
    assert result.status == (None if expected.ends is Exception else expected.ends)
    *_, state = (call for call in recorded.calls if not call.depth)
    assert state.stop_reason is expected.reason
    good = expected.reason is StopReason.SUCCEEDED
    assert len(state.failures) == state.attempt - good
    if layer == "transport" and result.error is None:
        assert result.state.to_dict() == state.to_dict()
    if expected.reason is not StopReason.SUCCEEDED and result.error is not None:
        assert result.state.stop_reason is expected.reason


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_redirect_loop_raises_the_clients_own_error(client, layer):
    with serve(redirect("/x")) as server, virtual_time() as clock:
        [result] = CLIENTS[client](
            layer, PLAIN, 1, server.url, "GET", None, lambda: None
        )
    assert result.error is not None
    assert clock.sleeps == []
    # The client follows one loop, up to its own limit.
    assert len(server.seen) <= 31
    if layer == "function":
        assert result.state.stop_reason is StopReason.NOT_RETRYABLE
