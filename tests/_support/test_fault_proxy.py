"""The fault proxy follows its plans exactly and releases its resources."""

import socket
import time
from contextlib import ExitStack

import pytest

from tests._support.fault_proxy import (
    cut_down,
    delay,
    hang,
    proxy,
    refused,
    reset_at_once,
    slow,
    through,
)
from tests._support.raw_client import GET, connected, exchange, no_leaks, read_to_end
from tests._support.scripted_server import (
    answer,
    close,
    drop_after,
    hang as hanging,
    reset,
    reset_in_body,
    serve,
)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ENDING = drop_after(answer())


def outcome(faults):
    """Return the response to a request and the end of its connection, or "refused"."""
    try:
        return exchange(faults.port)
    except ConnectionRefusedError:
        return "refused"


def report_outcomes(faults, count):
    """Return the outcomes of requests; report each to the proxy as a failure."""
    found = []
    for _ in range(count):
        found.append(outcome(faults))
        faults.attempt_failed()
    return found


@pytest.fixture
def server():
    with serve(ENDING) as server:
        yield server


def test_forwards_requests_and_responses_unchanged():
    big = bytes(range(256)) * 4000

    def echo(seen):
        return drop_after(answer(body=seen.body))

    with serve(echo) as server, proxy(server.port) as faults:
        head = f"PUT / HTTP/1.1\r\nContent-Length: {len(big)}\r\n\r\n".encode()
        data, end = exchange(faults.port, head + big)
    assert (data.endswith(b"\r\n\r\n" + big), end) == (True, "FIN")


def test_keeps_connections_alive():
    with serve() as server, proxy(server.port) as faults:
        with connected(faults.port) as sock:
            assert sock.recv(100) == OK
            sock.sendall(GET)
            assert sock.recv(100) == OK
            assert (faults.accepted, faults.open) == (1, 1)
        assert faults.wait_for_open()
        assert server.wait_for_open()
    assert [seen.connection for seen in server.seen] == [1, 1]


@pytest.mark.parametrize(
    ("step", "end"),
    [
        (close(), (b"", "FIN")),
        (reset(), (b"", "RST")),
        (
            reset_in_body(1),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0", "RST"),
        ),
    ],
    ids=["closed", "reset", "reset in the body"],
)
def test_forwards_the_end_of_the_server(step, end):
    with serve(step) as server, proxy(server.port, through()) as faults:
        assert exchange(faults.port) == end


def test_the_client_may_close_its_side_first(server):
    with proxy(server.port) as faults, connected(faults.port, b"") as sock:
        sock.sendall(GET)
        sock.shutdown(socket.SHUT_WR)
        assert read_to_end(sock) == (OK, "FIN")


@pytest.mark.parametrize(
    ("plan", "end"),
    [
        (cut_down(0), (b"", "FIN")),
        (cut_down(20), (OK[:20], "FIN")),
        (cut_down(39), (OK[:39], "FIN")),
        (cut_down(0, reset=True), (b"", "RST")),
        (cut_down(20, reset=True), (OK[:20], "RST")),
        (cut_down(100), (OK, "FIN")),
        (cut_down(100, reset=True), (OK, "FIN")),
    ],
    ids=str,
)
def test_cuts_a_response_after_some_bytes(server, plan, end):
    with proxy(server.port, plan, through()) as faults:
        assert report_outcomes(faults, 2) == [end, (OK, "FIN")]
    assert len(server.seen) == 2


def test_resets_before_the_server_gets_a_connection(server):
    with proxy(server.port, reset_at_once(), through()) as faults:
        assert outcome(faults) == (b"", "RST")
        assert server.accepted == 0
        assert outcome(faults) == (OK, "FIN")


def test_repeats_the_last_plan(server):
    with proxy(server.port, through(), cut_down(9)) as faults:
        assert report_outcomes(faults, 3) == [
            (OK, "FIN"),
            (OK[:9], "FIN"),
            (OK[:9], "FIN"),
        ]
        assert faults.accepted == 3


def test_refuses_connections_until_listen_is_called(server):
    with proxy(server.port, refused(), through()) as faults:
        assert [outcome(faults) for _ in range(3)] == ["refused"] * 3
        faults.listen()
        assert outcome(faults) == (OK, "FIN")
        assert faults.accepted == 1


def test_each_refused_plan_lasts_for_one_failed_attempt(server):
    plans = [refused(), refused(), cut_down(9), refused(), through()]
    with proxy(server.port, *plans) as faults:
        assert report_outcomes(faults, 6) == [
            "refused",
            "refused",
            (OK[:9], "FIN"),
            "refused",
            (OK, "FIN"),
            (OK, "FIN"),
        ]


def test_refuses_before_a_client_can_reconnect(server):
    for _ in range(50):
        with proxy(server.port, cut_down(9), refused(), through()) as faults:
            assert [outcome(faults) for _ in range(2)] == [(OK[:9], "FIN"), "refused"]


def test_refuse_and_listen_apply_at_once(server):
    with proxy(server.port, through(), cut_down(9)) as faults:
        for _ in range(20):
            faults.refuse()
            faults.refuse()
            assert outcome(faults) == "refused"
            faults.listen()
            faults.listen()
        assert faults.accepted == 0
        assert report_outcomes(faults, 2) == [(OK, "FIN"), (OK[:9], "FIN")]


def test_open_connections_stay_open_while_it_refuses_others():
    with serve() as server, proxy(server.port) as faults:
        with connected(faults.port) as sock:
            assert sock.recv(100) == OK
            faults.refuse()
            assert outcome(faults) == "refused"
            sock.sendall(GET)
            assert sock.recv(100) == OK
        assert faults.wait_for_open()


def test_refuses_forever_if_that_is_the_last_plan(server):
    with proxy(server.port, through(), refused()) as faults:
        assert report_outcomes(faults, 4) == [
            (OK, "FIN"),
            "refused",
            "refused",
            "refused",
        ]


def test_resets_connections_if_the_server_is_gone():
    with serve() as server:
        pass
    with proxy(server.port) as faults:
        assert outcome(faults) == (b"", "RST")


@pytest.mark.parametrize("plan", [delay(0.02), slow(10, 0.005)], ids=str)
def test_delays_the_response(server, plan):
    with proxy(server.port, plan) as faults:
        started = time.monotonic()
        assert exchange(faults.port) == (OK, "FIN")
        assert time.monotonic() - started >= 0.02


def test_hang_accepts_connections_and_sends_nothing(server):
    with proxy(server.port, hang()) as faults:
        with connected(faults.port) as sock:
            assert faults.wait_for_open(1)
            sock.settimeout(0.02)
            with pytest.raises(TimeoutError):
                sock.recv(1)
        assert faults.wait_for_open()
    assert server.accepted == 0


@pytest.mark.parametrize(
    ("plan", "step", "sent"),
    [
        (through(), answer(), b""),
        (through(), hanging(), GET),
        (hang(), answer(), GET),
        (delay(60), answer(), GET),
        (slow(1, 60), answer(), GET),
        (through(), answer(body=bytes(10_000_000)), GET),
        (refused(), answer(), None),
    ],
    ids=["silent", "server hangs", "hang", "delay", "slow", "not read", "refused"],
)
def test_ends_at_once_in_every_state_of_its_connections(plan, step, sent):
    with no_leaks(), serve(step) as server, ExitStack() as stack:
        with proxy(server.port, plan) as faults:
            if sent is not None:
                for _ in range(3):
                    stack.enter_context(connected(faults.port, sent))
                assert faults.wait_for_open(3)
            started = time.monotonic()
        assert time.monotonic() - started < 1
        assert faults.open == 0
        assert server.wait_for_open()
        assert outcome(faults) == "refused"


def test_ends_at_once_if_the_server_never_responds():
    with (
        no_leaks(),
        socket.create_server(("127.0.0.1", 0)) as silent,
        ExitStack() as stack,
    ):
        with proxy(silent.getsockname()[1]) as faults:
            stack.enter_context(connected(faults.port))
            stack.callback(silent.accept()[0].close)
            started = time.monotonic()
        assert time.monotonic() - started < 1
