"""Downloads and event streams of every HTTP client, from servers that cut them off."""

import asyncio
import gzip
import hashlib
import os
import random
import re
import threading

import aiohttp
import httpx
import httpx2
import pytest
import requests
from requests.adapters import HTTPAdapter

from retrykit import ConfigError, Policy, StopReason
from retrykit.errors import DownloadError, EventStreamError
from retrykit.integrations import (
    aiohttp as for_aiohttp,
    httpx as for_httpx,
    httpx2 as for_httpx2,
    requests as for_requests,
)
from retrykit.schedules import constant
from retrykit.testing import virtual_time
from tests._support.optional_trio import trio
from tests._support.scripted_server import Step, answer, serve, slow
from tests._support.stream_clients import STREAMS

# httpx leaves the generators of a body to the event loop, which Trio tells.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <async_generator object"
)

PATIENT = Policy(schedule=constant(0))

CANCELLABLE = {
    "aiohttp": (for_aiohttp, aiohttp.ClientSession),
    "httpx": (for_httpx, httpx.AsyncClient),
    "httpx2": (for_httpx2, httpx2.AsyncClient),
}

clients = pytest.mark.parametrize("client", STREAMS)


class Files:
    """Serves files of drawn bytes, and cuts each connection off at a drawn one.

    The path of a file is its seed.
    """

    def __init__(self, cuts=3, size=40_000):
        self.cuts, self.size = cuts, size
        self.sent, self.lock = {}, threading.Lock()
        self.drawn = random.Random(7)  # noqa: S311  drawn again by the test

    def content(self, path):
        drawn = random.Random(path)  # noqa: S311  drawn again by the test
        return drawn.randbytes(drawn.randint(1, self.size))

    def __call__(self, seen):
        content = self.content(seen.path)
        with self.lock:
            count = self.sent[seen.path] = self.sent.get(seen.path, 0) + 1
            ends = "kept"
            if count <= self.cuts:
                ends = self.drawn.choice(["closed", "reset"])
            step = self.answer(seen, content)
            if ends == "kept":
                return step
            cut = self.drawn.randint(0, len(step.body))
            chunked = self.drawn.random() < 0.3
            if not chunked or step.head.startswith(b"HTTP/1.1 416"):
                return Step(step.head, step.body[:cut], ends)
            # A whole chunk, without the one that ends the body.
            coding = b"Transfer-Encoding: chunked"
            head = re.sub(rb"Content-Length: \d+", coding, step.head)
            chunk = b"%x\r\n%b\r\n" % (cut, step.body[:cut])
            return Step(head, chunk if cut else b"", ends)

    @staticmethod
    def answer(seen, content):
        tag = f'"{hashlib.sha256(content).hexdigest()}"'
        headers = [("ETag", tag)]
        start = re.fullmatch(r"bytes=(\d+)-", seen.headers.get("range", ""))
        if start is None or seen.headers["if-range"] != tag:
            return answer(200, headers, content)
        start = int(start[1])
        if start >= len(content):
            return answer(416, [("Content-Range", f"bytes */{len(content)}")], b"")
        last = f"bytes {start}-{len(content) - 1}/{len(content)}"
        return answer(206, [*headers, ("Content-Range", last)], content[start:])


def digest(data):
    return hashlib.sha256(data).hexdigest()


counts = pytest.mark.parametrize(
    "count", [5, pytest.param(75, marks=pytest.mark.thorough)]
)
"""Downloads, or event streams, of each client: 1,050 in all, if thorough."""


@counts
@clients
def test_a_download_that_is_cut_off_is_whole(client, count):
    files = Files()
    paths = [f"/{client.replace(', ', '-')}/{number}" for number in range(count)]
    with serve(files) as server, virtual_time():
        urls = [server.url + path for path in paths]
        every = STREAMS[client]("download", urls, policy=PATIENT)
        for path, got in zip(paths, every, strict=True):
            assert got.error is None
            assert digest(b"".join(got.items)) == digest(files.content(path))
            assert got.state.stop_reason is StopReason.SUCCEEDED
        # urllib3 keeps a connection for as long as an error refers to its pool.
        del every, got
        assert server.wait_for_open(0)
    assert len(server.seen) >= 2 * count
    assert {each.headers["accept-encoding"] for each in server.seen} == {"identity"}


@clients
def test_a_file_is_written_whole_and_nothing_else_is_left(client, tmp_path):
    files, path = Files(), tmp_path / "file"
    path.write_bytes(b"of before")
    with serve(files) as server, virtual_time():
        [got] = STREAMS[client](
            "download_to", [f"{server.url}/1"], policy=PATIENT, path=path
        )
    assert path.read_bytes() == files.content("/1")
    assert got.items == [len(files.content("/1"))]
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
ABC, DEF = answer(200, [("ETag", '"1"')], b"abcdef"), b"ghijkl"
CUT = Step(ABC.head, b"abc")
NEW = answer(200, [("ETag", '"2"')], DEF)


@clients
def test_a_changed_file_is_never_mixed(client, tmp_path):
    with serve(CUT, NEW) as server, virtual_time():
        [got] = STREAMS[client]("download", [server.url], policy=PATIENT)
    assert b"".join(got.items) == b"abc"
    assert str(got.error).startswith(
        "the download cannot continue after 3 bytes: the file has changed"
    )
    assert isinstance(got.error, DownloadError)
    assert server.seen[1].headers["range"] == "bytes=3-"
    assert server.seen[1].headers["if-range"] == '"1"'


@pytest.mark.parametrize("new", [DEF, b"d", b""], ids=["longer", "shorter", "empty"])
@clients
def test_a_changed_file_is_begun_anew_on_disk(client, new, tmp_path):
    path = tmp_path / "file"
    changed = answer(200, [("ETag", '"2"')], new)
    with serve(CUT, changed) as server, virtual_time():
        [got] = STREAMS[client]("download_to", [server.url], policy=PATIENT, path=path)
    assert (got.items, path.read_bytes()) == ([len(new)], new)


@clients
def test_a_download_that_fails_leaves_the_file_of_before(client, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"of before")
    with serve(answer(404)) as server:
        [got] = STREAMS[client]("download_to", [server.url], path=path)
    assert type(got.error).__name__ in {
        "HTTPStatusError",
        "HTTPError",
        "ClientResponseError",
    }
    assert len(server.seen) == 1
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"of before"]


@clients
def test_a_download_that_had_all_bytes_when_it_was_cut_off_is_complete(client):
    """A body in chunks, without the chunk that ends it."""
    tag = ("ETag", '"1"')
    first = Step(answer(200, [tag], chunked=True).head, b"3\r\nabc\r\n")
    rest = [tag, ("Content-Range", "bytes 3-5/6")]
    steps = {
        "asked": [first, answer(416, [("Content-Range", "bytes */3")])],
        "known": [
            first,
            Step(answer(206, rest, chunked=True).head, b"3\r\ndef\r\n"),
        ],
    }
    for name, body in (("asked", b"abc"), ("known", b"abcdef")):
        with serve(*steps[name]) as server, virtual_time():
            [got] = STREAMS[client]("download", [server.url], policy=PATIENT)
        assert (got.error, b"".join(got.items)) == (None, body)
        assert len(server.seen) == 2


def test_a_short_body_of_which_the_client_says_nothing_is_continued():
    def answer_part(request):
        start = int(request.headers.get("range", "bytes=0-")[6:-1])
        rest = {"content-range": f"bytes {start}-9/10", "etag": '"1"'}
        whole = {"content-length": "10", "etag": '"1"'}
        headers, status = (rest, 206) if start else (whole, 200)
        part = httpx.ByteStream(b"0123456789"[start : start + 4])
        return httpx.Response(status, headers=headers, stream=part)

    async def main():
        async with httpx.AsyncClient(transport=transport) as opened:
            stream = for_httpx.download(opened, "http://[::1]/", policy=PATIENT)
            async with stream:
                return b"".join([chunk async for chunk in stream])

    transport = httpx.MockTransport(answer_part)
    with virtual_time():
        with httpx.Client(transport=transport) as opened:
            with for_httpx.download(opened, "http://[::1]/", policy=PATIENT) as stream:
                assert b"".join(stream) == b"0123456789"
        assert "after 4 of 10 bytes" in str(stream.state.failures[0].error)
        assert asyncio.run(main()) == b"0123456789"


@clients
def test_the_content_coding_of_a_file_is_left_as_it_is(client):
    body = gzip.compress(b"abc" * 100)
    coded = [("Content-Encoding", "gzip"), ("ETag", '"1"')]
    whole = answer(200, coded, body)
    rest = [*coded, ("Content-Range", f"bytes 9-{len(body) - 1}/{len(body)}")]
    with (
        serve(Step(whole.head, body[:9]), answer(206, rest, body[9:])) as server,
        virtual_time(),
    ):
        [got] = STREAMS[client]("download", [server.url], policy=PATIENT)
    assert (got.error, b"".join(got.items)) == (None, body)


@clients
def test_the_statuses_of_the_client_are_retried_as_its_policy_says(client):
    busy = answer(503, [("Retry-After", "7")])
    with serve(busy, ABC) as server, virtual_time() as clock:
        [got] = STREAMS[client](
            "download", [server.url], policy=Policy(schedule=[1], hint_jitter=0)
        )
    assert b"".join(got.items) == b"abcdef"
    assert clock.sleeps == [7.0]
    assert got.state.name == "GET 127.0.0.1"


@clients
def test_a_consumer_that_stops_leaves_no_connection(client):
    endless = Step(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        b"Content-Length: 1000\r\n\r\n",
        b"id: 1\ndata: one\n\n",
        "hanging",
    )
    for what in ("download", "events"):
        with serve(endless) as server:
            [got] = STREAMS[client](what, [server.url], take=1)
            assert server.wait_for_open(0)
        assert len(got.items) == len(server.seen) == 1
        assert got.error is None


@pytest.mark.parametrize("what", ["download", "events"])
@pytest.mark.parametrize("client", CANCELLABLE)
def test_a_cancelled_stream_leaves_no_task_and_no_connection(client, what):
    library, kind = CANCELLABLE[client]
    endless = Step(STREAM, b"id: 1\ndata: one\n\n", "hanging")

    async def main(server):
        async with kind() as opened:
            arrived = asyncio.Event()

            async def consume():
                async with getattr(library, what)(opened, server.url) as stream:
                    async for _ in stream:
                        arrived.set()

            task = asyncio.create_task(consume())
            await arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert asyncio.all_tasks() == {asyncio.current_task()}
            # While the client is open: it is not the pool that closes it.
            assert await asyncio.to_thread(server.wait_for_open, 0)

    with serve(endless) as server:
        asyncio.run(main(server))


def test_a_cancelled_download_leaves_no_file_and_no_connection(tmp_path):
    asked = threading.Event()

    def endless(_):
        asked.set()
        return Step(ABC.head, b"abc", "hanging")

    async def main(server):
        async with httpx.AsyncClient() as opened:
            target = tmp_path / "file"
            download = for_httpx.download_to(opened, server.url, target)
            task = asyncio.create_task(download)
            assert await asyncio.to_thread(asked.wait, 10)
            assert len([*tmp_path.iterdir()]) == 1
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(server.wait_for_open, 0)

    with serve(endless) as server:
        asyncio.run(main(server))
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("what", ["download", "events"])
def test_a_stream_whose_scope_is_cancelled_leaves_no_connection(what):
    async def main(server):
        async with httpx.AsyncClient() as opened:
            with trio.CancelScope() as scope:
                async with getattr(for_httpx, what)(opened, server.url) as stream:
                    async for _ in stream:
                        scope.cancel()
            assert scope.cancelled_caught
            assert await trio.to_thread.run_sync(server.wait_for_open, 0)

    with serve(Step(STREAM, b"id: 1\ndata: one\n\n", "hanging")) as server:
        trio.run(main, server)


class Log:
    """Serves events behind the last id, and cuts each connection off at a drawn byte.

    When a client has them all, it ends the stream.
    """

    def __init__(self, count=12, cuts=3):
        self.count, self.cuts = count, cuts
        self.sent, self.lock = {}, threading.Lock()
        self.drawn = random.Random(11)  # noqa: S311  drawn again by the test

    def data(self, path):
        return [
            f"{path} {number}\nline \u20ac {number}" for number in range(self.count)
        ]

    def __call__(self, seen):
        start = int(seen.headers.get("last-event-id", "0"))
        if start == self.count:
            return answer(204)
        with self.lock:
            count = self.sent[seen.path] = self.sent.get(seen.path, 0) + 1
            end = self.drawn.choice(["\n", "\r", "\r\n"])
            frames = [f":{' ' * 99}{end}retry: 20{end}{end}"]
            for number, text in [*enumerate(self.data(seen.path), 1)][start:]:
                first, second = text.split("\n")
                lines = [f"id: {number}", f"data: {first}", f"data:{second}", "", ""]
                frames.append(end.join(lines))
            body = "".join(frames).encode()
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            if count > self.cuts:
                return Step(head + b"\r\n", body)
            body = body[: self.drawn.randint(0, len(body))]
            ends = self.drawn.choice(["closed", "reset"])
            if not self.drawn.randint(0, 1):
                return Step(head + b"\r\n", body, ends)
            head += b"Transfer-Encoding: chunked\r\n\r\n"
            size = 50
            chunks = [body[at : at + size] for at in range(0, len(body), size)]
            return Step(
                head, b"".join(b"%x\r\n%b\r\n" % (len(x), x) for x in chunks), ends
            )


@counts
@clients
def test_each_event_of_a_stream_that_is_cut_off_is_seen_once_in_order(client, count):
    log = Log()
    paths = [f"/{client.replace(', ', '-')}/{number}" for number in range(count)]
    with serve(log) as server, virtual_time():
        urls = [server.url + path for path in paths]
        every = STREAMS[client]("events", urls, policy=PATIENT)
        for path, got in zip(paths, every, strict=True):
            assert got.error is None
            assert [each.data for each in got.items] == log.data(path)
            ids = [str(number) for number in range(1, log.count + 1)]
            assert [each.id for each in got.items] == ids
            assert got.state.stream.gaps == ()
        del every, got
        assert server.wait_for_open(0)


def events(text, status=200, kind="text/event-stream; charset=utf-8"):
    return answer(status, [("Content-Type", kind)], text.encode(), close=True)


GONE = answer(204)


def collect(client, *steps, policy=PATIENT, **settings):
    with serve(*steps) as server, virtual_time() as clock:
        [got] = STREAMS[client]("events", [server.url], policy=policy, **settings)
    ids = [each.headers.get("last-event-id") for each in server.seen]
    return got, ids, clock.sleeps


@clients
def test_an_empty_id_clears_the_cursor_and_the_gap_is_told(client):
    first, second = events("id: 1\ndata: a\n\n"), events("id\ndata: b\n\n")
    got, ids, _ = collect(client, first, second, GONE)
    assert [(each.data, each.id) for each in got.items] == [("a", "1"), ("b", "")]
    assert ids == [None, "1", None]
    assert got.state.stream.gaps == (
        "events of the time without a connection: the last id is empty",
    )
    assert got.state.stream.positions == (
        {"last_event_id": "1", "seen": 1},
        {"last_event_id": "", "seen": 2},
    )


@clients
def test_frames_without_an_id_do_not_move_the_cursor_and_are_told(client):
    first, second = events("id: 1\ndata: a\n\ndata: b\n\n"), events("data: c\n\n")
    got, ids, _ = collect(client, first, second, GONE)
    assert [(each.data, each.id) for each in got.items] == [
        ("a", "1"),
        ("b", "1"),
        ("c", "1"),
    ]
    assert ids == [None, "1", "1"]
    behind = "events behind id '1' had no id: they may come again, or be lost"
    assert got.state.stream.gaps == (behind, behind)


@clients
def test_the_server_sets_the_delay_of_the_reconnection(client):
    steps = [events("retry: 2500\n\n"), events("retry: x\nid: 1\ndata: a\n\n")]
    steps += [answer(503, [("Retry-After", "9")]), GONE]
    policy = Policy(schedule=constant(1), hint_jitter=0)
    got, _, sleeps = collect(client, *steps, policy=policy)
    assert got.error is None
    assert sleeps == [2.5, 2.5, 9.0]


@pytest.mark.parametrize("status", [400, 410])
@clients
def test_a_server_that_lost_the_last_id_ends_the_stream(client, status):
    first = events("id: 1\ndata: a\n\n")
    got, *_ = collect(client, first, answer(status))
    assert len(got.items) == 1
    assert isinstance(got.error, EventStreamError)
    assert str(got.error) == (
        "the event stream cannot continue: the server answered with status "
        f"{status}: events behind id '1' are lost"
    )
    assert got.error.last_event_id == "1"
    assert got.error.__cause__ is not None


@clients
def test_a_client_error_without_a_last_id_is_that_of_the_client(client):
    got, ids, _ = collect(client, answer(410))
    assert not isinstance(got.error, EventStreamError)
    assert "410" in str(got.error)
    got, ids, _ = collect(client, answer(410), last_event_id="7")
    assert (isinstance(got.error, EventStreamError), ids) == (True, ["7"])


@clients
def test_an_answer_that_is_no_event_stream_ends_it(client):
    got, ids, _ = collect(client, events("<html>", kind="text/html"))
    assert str(got.error) == (
        "the event stream cannot continue: the server answered with status 200 and "
        "content type 'text/html', not with events"
    )
    assert len(ids) == 1


@clients
def test_the_content_coding_of_events_is_undone(client):
    kind = [("Content-Type", "text/event-stream"), ("Content-Encoding", "gzip")]
    body = gzip.compress(b"id: 1\ndata: a\n\n" * 2)
    got, *_ = collect(client, answer(200, kind, body, close=True), GONE)
    assert (got.error, [each.data for each in got.items]) == (None, ["a", "a"])


@clients
def test_an_id_may_be_any_text(client):
    got, ids, _ = collect(client, events("id: é €\ndata: a\n\n"), GONE)
    assert got.error is None
    assert ids[1].encode("latin-1").decode() == "é €"


@clients
def test_headers_of_the_user_are_sent_with_each_request(client):
    first = events("id: 1\ndata: a\n\n")
    with serve(first, GONE) as server, virtual_time():
        STREAMS[client](
            "events",
            [server.url],
            policy=PATIENT,
            headers={"X-Key": "k", "Accept": "a"},
        )
    assert [each.headers["x-key"] for each in server.seen] == ["k", "k"]
    assert [each.headers["accept"] for each in server.seen] == ["text/event-stream"] * 2


@clients
def test_a_stream_that_ends_at_once_again_and_again_is_given_up(client):
    got, ids, _ = collect(client, events(": nothing\n\n"), policy=None)
    assert len(ids) == 5
    assert got.state.stop_reason is StopReason.ATTEMPTS


@clients
def test_a_quiet_stream_is_not_given_up_as_long_as_its_server_sends_comments(client):
    quiet = slow(0.002, events(": still here\n" * 99))
    steps = [quiet] * 9 + [events("id: 1\ndata: a\n\n"), GONE]
    policy = Policy(schedule=constant(30), max_attempts=4, max_elapsed=60)
    got, ids, _ = collect(client, *steps, policy=policy)
    assert (got.error, len(got.items), len(ids)) == (None, 1, 11)


def test_a_quiet_connection_has_a_time_limit():
    timeouts = []

    def note(request):
        timeouts.append(request.extensions["timeout"])
        return httpx.Response(204)

    transport = httpx.MockTransport(note)
    for given in (5, 90, None):
        with httpx.Client(transport=transport, timeout=given) as client:
            assert [*for_httpx.events(client, "http://[::1]/")] == []
    with httpx.Client(transport=transport) as client:
        assert [*for_httpx.events(client, "http://[::1]/", timeout=7)] == []
    assert [each["read"] for each in timeouts] == [60, 90, None, 7]
    assert [each["connect"] for each in timeouts] == [5, 90, None, 7]


def test_a_session_of_requests_gets_a_time_limit():
    timeouts = []

    class Noted(HTTPAdapter):
        def send(self, *args, timeout=None, **kwargs):
            timeouts.append(timeout)
            return super().send(*args, timeout=timeout, **kwargs)

    with serve(GONE) as server, requests.Session() as session:
        session.mount("http://", Noted())
        assert [*for_requests.events(session, server.url)] == []
        assert [*for_requests.events(session, server.url, timeout=(3, None))] == []
    assert timeouts == [60, (3, None)]


def test_the_total_timeout_of_a_session_of_aiohttp_does_not_end_a_stream_that_flows():
    async def main(server):
        timeout = aiohttp.ClientTimeout(total=0.1)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            stream = for_aiohttp.download(session, server.url, policy=PATIENT)
            async with stream:
                return b"".join([chunk async for chunk in stream])

    with serve(slow(0.03, ABC)) as server:
        assert asyncio.run(main(server)) == b"abcdef"
        assert len(server.seen) == 1


def serving(body, seen=None):
    """Return a client of httpx, and what it has sent."""

    def answer(request):
        if seen is not None:
            seen.append(request.headers)
        return httpx.Response(200, stream=httpx.ByteStream(body))

    return httpx.Client(transport=httpx.MockTransport(answer))


def test_a_folder_is_refused_before_anything_is_sent(tmp_path):
    seen = []
    with serving(b"data", seen) as client, pytest.raises(IsADirectoryError):
        for_httpx.download_to(client, "http://localhost/file", tmp_path)
    assert seen == []


@pytest.mark.skipif(os.name != "posix", reason="needs permissions")
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path):
    path = tmp_path / "file"
    path.write_text("old", "utf-8")
    path.chmod(0o600)
    with serving(b"data") as client:
        assert for_httpx.download_to(client, "http://localhost/file", path) == 4
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"data", 0o600)


def test_names_of_headers_may_be_bytes():
    seen = []
    with serving(b"data", seen) as client:
        headers = {b"X-Key": b"1"}
        url = "http://localhost/file"
        assert [*for_httpx.download(client, url, headers=headers)] == [b"data"]
        with pytest.raises(ConfigError, match="headers without 'range'"):
            for_httpx.download(client, url, headers={b"Range": b"bytes=1-"})
    assert seen[0]["x-key"] == "1"
