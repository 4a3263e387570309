"""The scripted server does what its steps say, byte by byte, and ends clean."""

import http.client
import socket
import struct
import time
from contextlib import ExitStack, closing
from itertools import count

import pytest

from tests._support.raw_client import GET, connected, left_clean, talk
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


def ask(connection, method="GET", path="/", body=None, **settings):
    connection.request(method, path, body, **settings)
    response = connection.getresponse()
    return response, response.read()


def asked(server, *args, **settings):
    with client(server) as connection:
        return ask(connection, *args, **settings)


def test_it_answers_as_the_step_says():
    headers = [("Retry-After", "1"), ("X-One", "a"), ("Retry-After", "2")]
    with serve(answer(503, headers, b"later")) as server:
        response, body = asked(server)
    assert (response.status, response.reason) == (503, "Service Unavailable")
    assert response.headers.get_all("retry-after") == ["1", "2"]
    assert response.headers["x-one"] == "a"
    assert body == b"later"


def test_a_status_that_nobody_knows_has_a_reason_too():
    with serve(answer(299)) as server:
        assert asked(server)[0].reason == "Unheard Of"


def test_it_has_seen_each_request_as_it_came():
    ticks = count(10.0, 5.0)
    with serve(now=lambda: next(ticks)) as server, client(server) as connection:
        ask(connection, "POST", "/a?b=c", b"sent", headers={"X-Two": " d "})
        ask(connection, "DELETE", "/e")
        first, second = server.seen
    assert (first.method, first.path, first.body) == ("POST", "/a?b=c", b"sent")
    assert first.headers["x-two"] == "d"
    assert first.headers["content-length"] == "4"
    assert (second.method, second.path, second.body) == ("DELETE", "/e", b"")
    assert [first.at, second.at] == [10.0, 15.0]


def test_values_of_a_repeated_header_are_joined():
    with serve(close()) as server:
        talk(server.port, b"GET / HTTP/1.1\r\nA: 1\r\na: 2\r\nB: 3\r\n\r\n")
    assert server.seen[0].headers == {"a": "1, 2", "b": "3"}


def test_each_request_takes_the_next_step_and_the_last_one_stays():
    with serve(answer(500), answer(429), answer(204)) as server:
        with client(server) as connection:
            statuses = [ask(connection)[0].status for _ in range(3)]
        statuses += [asked(server)[0].status for _ in range(2)]
    assert statuses == [500, 429, 204, 204, 204]


def test_a_connection_is_kept_for_the_requests_that_follow():
    with serve() as server, client(server) as connection:
        ask(connection)
        ask(connection)
        assert (server.accepted, server.open) == (1, 1)
        asked(server)
        assert (server.accepted, server.settled(open=1)) == (2, True)
    assert [seen.connection for seen in server.seen] == [1, 1, 2]
    assert server.open == 0


def test_a_connection_is_closed_when_the_answer_says_so():
    with serve(answer(close=True)) as server:
        assert talk(server.port) == (
            OK[:-6] + b"\r\nConnection: close\r\n\r\nok",
            "FIN",
        )
        assert server.settled()


def test_requests_that_come_at_once_are_answered_one_by_one():
    with serve(answer(), answer(close=True)) as server:
        data, end = talk(server.port, GET + GET)
    assert data.startswith(OK)
    assert (len(server.seen), end) == (2, "FIN")


def test_a_body_in_chunks_is_read_to_its_end():
    with serve() as server:
        body = (part for part in (b"one", b"two" * 5000))
        asked(server, "PUT", "/", body, encode_chunked=True)
        sent = CHUNKED + b"2;x=y\r\nab\r\n0\r\nTrailer: z\r\n\r\n"
        with connected(server.port, sent) as sock:
            assert sock.recv(100) == OK
    assert [seen.body for seen in server.seen] == [b"one" + b"two" * 5000, b"ab"]


def test_who_expects_to_be_told_to_continue_is_told():
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
def test_a_request_that_breaks_off_is_none(part):
    with serve() as server:
        with connected(server.port, part):
            assert server.settled(open=1)
        assert server.settled()
        assert server.seen == []


def test_an_answer_in_chunks_comes_in_several():
    with serve(answer(body=b"0123456789", chunked=True)) as server:
        assert asked(server)[1] == b"0123456789"
        with connected(server.port) as sock:
            assert sock.recv(500) == (
                IN_CHUNKS + b"7\r\n0123456\r\n3\r\n789\r\n0\r\n\r\n"
            )


@pytest.mark.parametrize("chunked", [False, True])
def test_the_answer_to_head_has_no_body(chunked):
    step = answer(chunked=chunked)
    head = GET.replace(b"GET", b"HEAD")
    with serve(step) as server, connected(server.port, head) as sock:
        assert sock.recv(500) == step.head


@pytest.mark.parametrize("line", ["204 No Content", "304 Not Modified"])
def test_a_status_without_a_body_has_none(line):
    with serve(drop_after(answer(int(line[:3])))) as server:
        assert talk(server.port) == (f"HTTP/1.1 {line}\r\n\r\n".encode(), "FIN")


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
def test_a_fault_is_exact(step, data, end):
    with serve(step, answer()) as server:
        assert talk(server.port) == (data, end)
        assert len(server.seen) == 1
        assert asked(server)[1] == b"ok"


def test_what_is_slow_comes_in_pieces():
    with serve(slow(0.002, drop_after(answer()))) as server:
        started = time.monotonic()
        assert talk(server.port) == (OK, "FIN")
        assert time.monotonic() - started >= 0.016


def test_there_is_a_pause_before_each_piece():
    class Line:
        def __init__(self):
            self.told = []
            self.pause = self.send = self.told.append

    line = Line()
    assert slow(7.0, answer()).take(line, "GET")
    assert line.told[::2] == [7.0] * 8
    assert b"".join(line.told[1::2]) == OK


def test_who_is_sent_elsewhere_may_come_back_for_ever():
    with serve(redirect("/")) as server:
        found = [asked(server)[0] for _ in range(3)]
    assert {(each.status, each.headers["location"]) for each in found} == {(302, "/")}


def test_a_step_may_be_chosen_by_the_request():
    def echo(seen):
        return answer(body=seen.body) if seen.method == "PUT" else lambda _: reset()

    with serve(echo) as server:
        assert asked(server, "PUT", "/", b"body")[1] == b"body"
        assert talk(server.port) == (b"", "RST")


def test_what_hangs_says_nothing_until_the_client_goes():
    with serve(hang()) as server:
        with connected(server.port) as sock:
            assert server.settled(open=1)
            sock.settimeout(0.02)
            with pytest.raises(TimeoutError):
                sock.recv(1)
        assert server.settled()
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
    ids=["silent", "half sent", "kept", "hanging", "slow", "client does not read"],
)
def test_it_ends_at_once_whatever_its_connections_do(step, sent):
    with left_clean(), ExitStack() as stack:
        with serve(step) as server:
            socks = [stack.enter_context(connected(server.port, sent)) for _ in "abc"]
            assert server.settled(open=3)
            if step == answer() and sent == GET:
                assert [sock.recv(100) for sock in socks] == [OK] * 3
            started = time.monotonic()
        assert time.monotonic() - started < 1
        assert server.open == 0
        with pytest.raises(ConnectionRefusedError):
            talk(server.port)


def test_a_client_that_resets_does_it_no_harm():
    with left_clean(), serve() as server:
        with connected(server.port) as sock:
            assert sock.recv(100) == OK
            linger = struct.pack("ii", 1, 0)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        assert server.settled()
        assert asked(server)[1] == b"ok"
