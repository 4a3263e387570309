"""One table for all HTTP clients: what a server does, and what is to come of it."""

import io
from collections.abc import Callable
from email.utils import formatdate
from typing import NamedTuple

import pytest

from retrykit import Policy, StopReason
from retrykit.hints import first_of, milliseconds, reset_at, retry_after
from retrykit.testing import record, virtual_time
from tests._support.http_clients import CLIENTS, NO_FILES, READS_BODIES, WAYS
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

PLAIN = Policy(schedule=[1, 2, 4], max_elapsed=3600, hint_cap="30m")
NOON = 1_800_000_000


class Expected(NamedTuple):
    """What the server sees, what is waited between, and how it ends.

    It ends with a status, or with an error of the client's own.
    """

    requests: int
    delays: list[float]
    ends: int | type[Exception]
    reason: StopReason = StopReason.SUCCEEDED


class Row(NamedTuple):
    """What a server does, and what is to come of it in each way."""

    steps: list
    whole: Expected
    transport: Expected | None = None  # the same
    times: int = 1
    policy: Policy = PLAIN
    method: str = "GET"
    headers: dict | None = None
    body: Callable = lambda: None


def last(status=200, headers=()):
    """An answer after which the connection is closed, as the server says."""
    return answer(status, headers, close=True)


def busy(*values, status=503):
    """A server that is busy once, and says for how long."""
    at = ("Date", formatdate(NOON, usegmt=True))
    headers = [at, *(("Retry-After", value) for value in values)]
    return [last(status, headers), last()]


def date(seconds, zone="GMT"):
    return formatdate(NOON + seconds, usegmt=True).replace("GMT", zone)


ONCE = Expected(1, [], 200)
AGAIN = Expected(2, [1.0], 200)
ERROR_ONCE = Expected(1, [], Exception, StopReason.NOT_RETRYABLE)
# A transport has done its part when the head is there.
CUT = Expected(1, [], Exception)


ALONE = Expected(1, [], 503, StopReason.ATTEMPTS)
KEY = {"Idempotency-Key": "8e03978e"}


def given_up(requests, delays, status, reason):
    """What ends with an error where the whole is tried, and with an answer else."""
    whole = Expected(requests, delays, Exception, reason)
    return whole, whole._replace(ends=status)


ROWS = {
    "it answers": Row([answer()], ONCE),
    "it answers in chunks": Row([answer(chunked=True)], ONCE),
    "it answers slowly": Row([slow(0.01, answer())], ONCE),
    **{
        f"{status}, then it answers": Row([last(status), last()], AGAIN)
        for status in (408, 425, 429, 500, 502, 503, 504)
    },
    **{
        f"{status}": Row([last(status)], ERROR_ONCE, Expected(1, [], status))
        for status in (400, 401, 403, 404, 409, 410, 413, 422, 501, 505)
    },
    "503 for good": Row(
        [last(503)], *given_up(4, [1.0, 2.0, 4.0], 503, StopReason.SCHEDULE_ENDED)
    ),
    "503 in chunks, kept alive": Row([answer(503, chunked=True), answer()], AGAIN),
    "Retry-After: 5": Row(busy("5"), Expected(2, [5.0], 200)),
    "Retry-After: 5, with 429": Row(busy("5", status=429), Expected(2, [5.0], 200)),
    "Retry-After: 5, with 413": Row(busy("5", status=413), Expected(2, [5.0], 200)),
    "Retry-After: 0": Row(busy("0"), AGAIN),
    "Retry-After below the schedule": Row(
        busy("3"), Expected(2, [10.0], 200), policy=PLAIN.replace(schedule=[10])
    ),
    "Retry-After is a date": Row(busy(date(7)), Expected(2, [7.0], 200)),
    "Retry-After is a date without a zone": Row(
        busy(date(7, "").rstrip()), Expected(2, [7.0], 200)
    ),
    "Retry-After is a date in an unknown zone": Row(busy(date(7, "MOON")), AGAIN),
    "Retry-After is a date of the past": Row(busy(date(-7)), AGAIN),
    "Retry-After is sent twice": Row(busy("2", "5"), Expected(2, [5.0], 200)),
    **{
        f"Retry-After: {value!r}": Row(busy(value), AGAIN)
        for value in ("soon", "-5", "1.5", "", "+5", "0x10", "1e3", "5 5", "\xb2")
    },
    "Retry-After: 9999999": Row(
        busy("9999999"), *given_up(1, [], 503, StopReason.HINT)
    ),
    "Retry-After has 5,000 digits": Row(
        busy("9" * 5000), *given_up(1, [], 503, StopReason.HINT)
    ),
    "Retry-After goes beyond the time that is left": Row(
        busy("30"),
        *given_up(1, [], 503, StopReason.HINT),
        policy=PLAIN.replace(max_elapsed=20),
    ),
    "retry-after-ms, for who asks for it": Row(
        [last(503, [("Retry-After-Ms", "2500")]), last()],
        Expected(2, [2.5], 200),
        policy=PLAIN.replace(hint=milliseconds("retry-after-ms")),
    ),
    "x-ratelimit-reset, for who asks for it": Row(
        [
            last(429, [("X-RateLimit-Reset", "9"), ("X-RateLimit-Remaining", "0")]),
            last(),
        ],
        Expected(2, [9.0], 200),
        policy=PLAIN.replace(hint=first_of(reset_at(), retry_after())),
    ),
    "retry-after-ms, for who does not": Row(
        [last(503, [("Retry-After-Ms", "2500")]), last()], AGAIN
    ),
    "it closes before it answers": Row([close(), last()], AGAIN),
    "it resets before it answers": Row([reset(), last()], AGAIN),
    "it closes in the head": Row([cut_in_head(8), last()], AGAIN),
    "it hangs": Row([hang(), last()], AGAIN),
    "it closes in the body": Row([cut(10), last()], AGAIN, CUT),
    "it closes in the chunks": Row([cut(10, chunked=True), last()], AGAIN, CUT),
    "it resets in the body": Row([reset_in_body(10), last()], AGAIN, CUT),
    "it drops a connection that was kept alive": Row(
        [answer(), close(), last()], Expected(3, [1.0], 200), times=2
    ),
    "it never answers": Row(
        [close()],
        Expected(4, [1.0, 2.0, 4.0], Exception, StopReason.SCHEDULE_ENDED),
    ),
    **{
        f"503 to {method}": Row([last(503), last()], AGAIN, method=method)
        for method in ("HEAD", "OPTIONS", "TRACE", "PUT", "DELETE")
    },
    **{
        f"503 to {method}": Row(
            [last(503), last()], AGAIN, ALONE, method=method, body=lambda: b"order"
        )
        for method in ("POST", "PATCH")
    },
    "503 to POST with a key": Row(
        [last(503), last()], AGAIN, method="POST", headers=KEY, body=lambda: b"order"
    ),
    "503 to PUT of a file": Row(
        [last(503), last()], AGAIN, method="PUT", body=lambda: io.BytesIO(b"order")
    ),
    "503 to PUT of a stream": Row(
        [last(503), last()],
        AGAIN,
        ALONE,
        method="PUT",
        body=lambda: iter([b"or", b"der"]),
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("row", ROWS)
def test_table(client, way, row):
    steps, whole, transport, times, policy, *sent = ROWS[row]
    sees_all = way == "whole" or (transport is CUT and client in READS_BODIES)
    expected = whole if sees_all or transport is None else transport
    if way == "transport" and client in NO_FILES and "file" in row:
        expected = ALONE
    hangs = any(step == hang() for step in steps)
    stall_timeout = 1.2 if hangs else 5
    with (
        serve(*steps) as server,
        virtual_time(stall_timeout=stall_timeout) as clock,
        record() as recorded,
    ):
        came = CLIENTS[client](way, policy, times, server.url + "/x", *sent)[-1]
    assert len(server.seen) == expected.requests
    assert {seen.body for seen in server.seen} <= {b"", b"order"}
    assert len({seen.body for seen in server.seen}) == 1
    assert clock.sleeps == expected.delays
    assert came.status == (None if expected.ends is Exception else expected.ends)
    *_, state = (call for call in recorded.calls if not call.depth)
    assert state.stop_reason is expected.reason
    good = expected.reason is StopReason.SUCCEEDED
    assert len(state.failures) == state.attempt - good
    if way == "transport" and came.error is None:
        assert came.state.to_dict() == state.to_dict()
    if expected.reason is not StopReason.SUCCEEDED and came.error is not None:
        assert came.state.stop_reason is expected.reason


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_redirect_loop_ends_with_the_clients_own_error(client, way):
    with serve(redirect("/x")) as server, virtual_time() as clock:
        [came] = CLIENTS[client](way, PLAIN, 1, server.url, "GET", None, lambda: None)
    assert came.error is not None
    assert clock.sleeps == []
    # As many as the client follows by itself, which is once.
    assert len(server.seen) <= 31
    if way == "whole":
        assert came.state.stop_reason is StopReason.NOT_RETRYABLE
