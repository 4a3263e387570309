"""The fault proxy does what its plans say, byte by byte, and ends clean."""

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
from tests._support.raw_client import GET, connected, ending, left_clean, talk
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
    """Return what comes of a request, or that nobody listens."""
    try:
        return talk(faults.port)
    except ConnectionRefusedError:
        return "refused"


def outcomes(faults, count):
    """Return what comes of requests that are told of as failures."""
    found = []
    for _ in range(count):
        found.append(outcome(faults))
        faults.failed()
    return found


@pytest.fixture
def server():
    with serve(ENDING) as server:
        yield server


def test_what_goes_through_is_what_was_sent():
    big = bytes(range(256)) * 4000

    def echo(seen):
        return drop_after(answer(body=seen.body))

    with serve(echo) as server, proxy(server.port) as faults:
        head = f"PUT / HTTP/1.1\r\nContent-Length: {len(big)}\r\n\r\n".encode()
        data, end = talk(faults.port, head + big)
    assert (data.endswith(b"\r\n\r\n" + big), end) == (True, "FIN")


def test_a_connection_is_kept_through_it():
    with serve() as server, proxy(server.port) as faults:
        with connected(faults.port) as sock:
            assert sock.recv(100) == OK
            sock.sendall(GET)
            assert sock.recv(100) == OK
            assert (faults.accepted, faults.open) == (1, 1)
        assert faults.settled()
        assert server.settled()
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
def test_the_end_that_the_server_makes_goes_through(step, end):
    with serve(step) as server, proxy(server.port, through()) as faults:
        assert talk(faults.port) == end


def test_the_client_may_end_its_side_first(server):
    with proxy(server.port) as faults, connected(faults.port, b"") as sock:
        sock.sendall(GET)
        sock.shutdown(socket.SHUT_WR)
        assert ending(sock) == (OK, "FIN")


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
def test_it_cuts_after_so_many_bytes(server, plan, end):
    with proxy(server.port, plan, through()) as faults:
        assert outcomes(faults, 2) == [end, (OK, "FIN")]
    assert len(server.seen) == 2


def test_it_resets_before_the_server_knows(server):
    with proxy(server.port, reset_at_once(), through()) as faults:
        assert outcome(faults) == (b"", "RST")
        assert server.accepted == 0
        assert outcome(faults) == (OK, "FIN")


def test_the_last_plan_is_for_all_that_follow(server):
    with proxy(server.port, through(), cut_down(9)) as faults:
        assert outcomes(faults, 3) == [(OK, "FIN"), (OK[:9], "FIN"), (OK[:9], "FIN")]
        assert faults.accepted == 3


def test_nobody_listens_until_it_is_told_to(server):
    with proxy(server.port, refused(), through()) as faults:
        assert [outcome(faults) for _ in range(3)] == ["refused"] * 3
        faults.listen()
        assert outcome(faults) == (OK, "FIN")
        assert faults.accepted == 1


def test_each_plan_that_refuses_refuses_once_more(server):
    plans = [refused(), refused(), cut_down(9), refused(), through()]
    with proxy(server.port, *plans) as faults:
        assert outcomes(faults, 6) == [
            "refused",
            "refused",
            (OK[:9], "FIN"),
            "refused",
            (OK, "FIN"),
            (OK, "FIN"),
        ]


def test_it_refuses_before_anyone_can_come_back(server):
    for _ in range(50):
        with proxy(server.port, cut_down(9), refused(), through()) as faults:
            assert [outcome(faults) for _ in range(2)] == [(OK[:9], "FIN"), "refused"]


def test_it_refuses_from_the_moment_it_is_told(server):
    with proxy(server.port, through(), cut_down(9)) as faults:
        for _ in range(20):
            faults.refuse()
            faults.refuse()
            assert outcome(faults) == "refused"
            faults.listen()
            faults.listen()
        assert faults.accepted == 0
        assert outcomes(faults, 2) == [(OK, "FIN"), (OK[:9], "FIN")]


def test_connections_that_are_open_stay_so_while_it_refuses():
    with serve() as server, proxy(server.port) as faults:
        with connected(faults.port) as sock:
            assert sock.recv(100) == OK
            faults.refuse()
            assert outcome(faults) == "refused"
            sock.sendall(GET)
            assert sock.recv(100) == OK
        assert faults.settled()


def test_as_the_last_plan_it_refuses_for_ever(server):
    with proxy(server.port, through(), refused()) as faults:
        assert outcomes(faults, 4) == [(OK, "FIN"), "refused", "refused", "refused"]


def test_where_no_server_is_the_connection_is_reset():
    with serve() as server:
        pass
    with proxy(server.port) as faults:
        assert outcome(faults) == (b"", "RST")


@pytest.mark.parametrize("plan", [delay(0.02), slow(10, 0.005)], ids=str)
def test_it_takes_its_time(server, plan):
    with proxy(server.port, plan) as faults:
        started = time.monotonic()
        assert talk(faults.port) == (OK, "FIN")
        assert time.monotonic() - started >= 0.02


def test_what_hangs_is_accepted_and_hears_nothing(server):
    with proxy(server.port, hang()) as faults:
        with connected(faults.port) as sock:
            assert faults.settled(open=1)
            sock.settimeout(0.02)
            with pytest.raises(TimeoutError):
                sock.recv(1)
        assert faults.settled()
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
def test_it_ends_at_once_whatever_its_connections_do(plan, step, sent):
    with left_clean(), serve(step) as server, ExitStack() as stack:
        with proxy(server.port, plan) as faults:
            if sent is not None:
                for _ in range(3):
                    stack.enter_context(connected(faults.port, sent))
                assert faults.settled(open=3)
            started = time.monotonic()
        assert time.monotonic() - started < 1
        assert faults.open == 0
        assert server.settled()
        assert outcome(faults) == "refused"


def test_it_ends_at_once_before_a_server_that_never_answers():
    with (
        left_clean(),
        socket.create_server(("127.0.0.1", 0)) as deaf,
        ExitStack() as on,
    ):
        with proxy(deaf.getsockname()[1]) as faults:
            on.enter_context(connected(faults.port))
            on.callback(deaf.accept()[0].close)
            started = time.monotonic()
        assert time.monotonic() - started < 1
