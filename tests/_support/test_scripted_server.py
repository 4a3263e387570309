"""The scripted server follows its steps exactly and releases its resources."""

import http.client
import socket
import struct
import time
from contextlib import ExitStack, closing
from itertools import count

import pytest

from tests._support.raw_client import GET, connected, exchange, no_leaks
from tests._support.scripted_server import (
    Step,
    answer,
    close,
    cut,
    cut_in_head,
    drop_after,
    garbage,
    hang,
    redirect,
    reset,
    reset_in_body,
    serve,
    slow,
)

CHUNKED = b"POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
IN_CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def client(server):
    return closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=5))


def send(connection, method="GET", path="/", body=None, **settings):
    connection.request(method, path, body, **settings)
    response = connection.getresponse()
    return response, response.read()


def request(server, *args, **settings):
    with client(server) as connection:
        return send(connection, *args, **settings)


def test_sends_the_response_of_the_step():
    headers = [("Retry-After", "1"), ("X-One", "a"), ("Retry-After", "2")]
    with serve(answer(503, headers, b"later")) as server:
        response, body = request(server)
    assert (response.status, response.reason) == (503, "Service Unavailable")
    assert response.headers.get_all("retry-after") == ["1", "2"]
    assert response.headers["x-one"] == "a"
    assert body == b"later"


def test_an_unknown_status_has_a_reason_phrase():
    with serve(answer(299)) as server:
        assert request(server)[0].reason == "Unheard Of"


def test_records_each_request():
    ticks = count(10.0, 5.0)
    with serve(now=lambda: next(ticks)) as server, client(server) as connection:
        send(connection, "POST", "/a?b=c", b"sent", headers={"X-Two": " d "})
        send(connection, "DELETE", "/e")
        first, second = server.seen
    assert (first.method, first.path, first.body) == ("POST", "/a?b=c", b"sent")
    assert first.headers["x-two"] == "d"
    assert first.headers["content-length"] == "4"
    assert (second.method, second.path, second.body) == ("DELETE", "/e", b"")
    assert [first.at, second.at] == [10.0, 15.0]


def test_values_of_a_repeated_header_are_joined():
    with serve(close()) as server:
        exchange(server.port, b"GET / HTTP/1.1\r\nA: 1\r\na: 2\r\nB: 3\r\n\r\n")
    assert server.seen[0].headers == {"a": "1, 2", "b": "3"}


def test_repeats_the_last_step():
    with serve(answer(500), answer(429), answer(204)) as server:
        with client(server) as connection:
            statuses = [send(connection)[0].status for _ in range(3)]
        statuses += [request(server)[0].status for _ in range(2)]
    assert statuses == [500, 429, 204, 204, 204]


def test_keeps_a_connection_alive():
    with serve() as server, client(server) as connection:
        send(connection)
        send(connection)
        assert (server.accepted, server.open) == (1, 1)
        request(server)
        assert (server.accepted, server.wait_for_open(1)) == (2, True)
    assert [seen.connection for seen in server.seen] == [1, 1, 2]
    assert server.open == 0


def test_closes_a_connection_if_the_response_says_so():
    with serve(answer(close=True)) as server:
        assert exchange(server.port) == (
            OK[:-6] + b"\r\nConnection: close\r\n\r\nok",
            "FIN",
        )
        assert server.wait_for_open()


def test_responds_to_pipelined_requests_in_order():
    with serve(answer(), answer(close=True)) as server:
        data, end = exchange(server.port, GET + GET)
    assert data.startswith(OK)
    assert (len(server.seen), end) == (2, "FIN")


def test_reads_chunked_bodies():
    with serve() as server:
        body = (part for part in (b"one", b"two" * 5000))
        request(server, "PUT", "/", body, encode_chunked=True)
        sent = CHUNKED + b"2;x=y\r\nab\r\n0\r\nTrailer: z\r\n\r\n"
        with connected(server.port, sent) as sock:
            assert sock.recv(100) == OK
    assert [seen.body for seen in server.seen] == [b"one" + b"two" * 5000, b"ab"]


def test_responds_to_expect_with_100_continue():
    head = b"PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
    with serve() as server, connected(server.port, head) as sock:
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert server.seen == []
        sock.sendall(b"abc")
        assert sock.recv(100) == OK
    assert server.seen[0].body == b"abc"


@pytest.mark.parametrize(
    "part",
    [
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: h\r\n",
        b"PUT / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab",
        CHUNKED,
        CHUNKED + b"3\r\nab",
        CHUNKED + b"0\r\n",
    ],
    ids=["line", "fields", "body", "no chunk", "chunk", "no end"],
)
def test_an_incomplete_request_is_not_recorded(part):
    with serve() as server:
        with connected(server.port, part):
            assert server.wait_for_open(1)
        assert server.wait_for_open()
        assert server.seen == []


def test_sends_chunked_responses():
    with serve(answer(body=b"0123456789", chunked=True)) as server:
        assert request(server)[1] == b"0123456789"
        with connected(server.port) as sock:
            assert sock.recv(500) == (
                IN_CHUNKS + b"7\r\n0123456\r\n3\r\n789\r\n0\r\n\r\n"
            )


@pytest.mark.parametrize("chunked", [False, True])
def test_a_response_to_head_has_no_body(chunked):
    step = answer(chunked=chunked)
    head = GET.replace(b"GET", b"HEAD")
    with serve(step) as server, connected(server.port, head) as sock:
        assert sock.recv(500) == step.head


@pytest.mark.parametrize("line", ["204 No Content", "304 Not Modified"])
def test_a_status_without_a_body_is_sent_without_one(line):
    with serve(drop_after(answer(int(line[:3])))) as server:
        assert exchange(server.port) == (f"HTTP/1.1 {line}\r\n\r\n".encode(), "FIN")


@pytest.mark.parametrize(
    ("step", "data", "end"),
    [
        (drop_after(answer()), OK, "FIN"),
        (close(), b"", "FIN"),
        (reset(), b"", "RST"),
        (cut(0), HEAD, "FIN"),
        (cut(12), HEAD + b"012345678901", "FIN"),
        (cut(9, chunked=True), IN_CHUNKS + b"7\r\n0123456\r\n2\r\n78\r\n", "FIN"),
        (reset_in_body(3), HEAD + b"012", "RST"),
        (reset_in_body(3, chunked=True), IN_CHUNKS + b"3\r\n012\r\n", "RST"),
        (cut_in_head(13), b"HTTP/1.1 200 ", "FIN"),
        (cut_in_head(20), HEAD[:20], "FIN"),
        (garbage(), b"\x16\x03 no HTTP at all\r\n\r\n\x00\xff", "FIN"),
    ],
    ids=lambda value: "" if isinstance(value, Step) else str(value)[-12:],
)
def test_a_fault_sends_exactly_its_bytes(step, data, end):
    with serve(step, answer()) as server:
        assert exchange(server.port) == (data, end)
        assert len(server.seen) == 1
        assert request(server)[1] == b"ok"


def test_slow_responses_are_sent_in_pieces():
    with serve(slow(0.002, drop_after(answer()))) as server:
        started = time.monotonic()
        assert exchange(server.port) == (OK, "FIN")
        assert time.monotonic() - started >= 0.016


def test_pauses_before_each_piece():
    class Line:
        def __init__(self):
            self.calls = []
            self.pause = self.send = self.calls.append

    line = Line()
    assert slow(7.0, answer()).take(line, "GET")
    assert line.calls[::2] == [7.0] * 8
    assert b"".join(line.calls[1::2]) == OK


def test_a_redirect_can_point_to_itself():
    with serve(redirect("/")) as server:
        found = [request(server)[0] for _ in range(3)]
    assert {(each.status, each.headers["location"]) for each in found} == {(302, "/")}


def test_a_step_can_depend_on_the_request():
    def echo(seen):
        return answer(body=seen.body) if seen.method == "PUT" else lambda _: reset()

    with serve(echo) as server:
        assert request(server, "PUT", "/", b"body")[1] == b"body"
        assert exchange(server.port) == (b"", "RST")


def test_hang_sends_nothing_until_the_client_closes():
    with serve(hang()) as server:
        with connected(server.port) as sock:
            assert server.wait_for_open(1)
            sock.settimeout(0.02)
            with pytest.raises(TimeoutError):
                sock.recv(1)
        assert server.wait_for_open()
        assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("step", "sent"),
    [
        (answer(), b""),
        (answer(), CHUNKED + b"9\r\nab"),
        (answer(), GET),
        (hang(), GET),
        (slow(60, answer()), GET),
        (answer(body=bytes(10_000_000)), GET),
    ],
    ids=["silent", "half sent", "idle", "hanging", "slow", "client does not read"],
)
def test_ends_at_once_in_every_state_of_its_connections(step, sent):
    with no_leaks(), ExitStack() as stack:
        with serve(step) as server:
            socks = [stack.enter_context(connected(server.port, sent)) for _ in "abc"]
            assert server.wait_for_open(3)
            if step == answer() and sent == GET:
                assert [sock.recv(100) for sock in socks] == [OK] * 3
            started = time.monotonic()
        assert time.monotonic() - started < 1
        assert server.open == 0
        with pytest.raises(ConnectionRefusedError):
            exchange(server.port)


def test_survives_a_reset_by_the_client():
    with no_leaks(), serve() as server:
        with connected(server.port) as sock:
            assert sock.recv(100) == OK
            linger = struct.pack("ii", 1, 0)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        assert server.wait_for_open()
        assert request(server)[1] == b"ok"
