"""Which requests of aiohttp are sent again, and how their bodies are rewound."""

import asyncio
import io
import logging

import aiohttp
import pytest

from retrykit import StopReason
from tests._support.aiohttp_sessions import fetch, fetch_error, session
from tests._support.scripted_server import answer, close, reset, serve


async def pieces():
    yield b"head, "
    yield b"body"


class OneShotFile(io.RawIOBase):
    """A file that can be read once, as from a network."""

    def __init__(self):
        self.chunks = [b"body", b""]

    def readable(self):
        return True

    def readinto(self, buffer):
        piece = self.chunks.pop(0)
        buffer[: len(piece)] = piece
        return len(piece)


class NotSeekable(io.BytesIO):
    """A file that claims to be seekable, and is not."""

    def seek(self, *_):
        raise io.UnsupportedOperation("it is a pipe")


def form(value):
    data = aiohttp.FormData()
    data.add_field("name", "value")
    data.add_field("file", value, filename="f", content_type="text/plain")
    return data


def partly_read(file):
    """Read the start of a file, and return the file."""
    file.read(6)
    return file


def open_file(folder):
    path = folder / "body"
    path.write_bytes(b"head, " + b"body" * 50_000)
    return path.open("rb")


class TestABody:
    @pytest.mark.parametrize(
        "step", [answer(503), close(), reset()], ids=["status", "closed", "reset"]
    )
    @pytest.mark.parametrize(
        ("body", "text"),
        [
            (lambda _: None, b""),
            (lambda _: b"body", b"body"),
            (lambda _: "body", b"body"),
            (lambda _: {"a": "b"}, b"a=b"),
            (lambda _: aiohttp.JsonPayload({"a": 1}), b'{"a": 1}'),
            (lambda _: partly_read(io.BytesIO(b"head, body")), b"body"),
            (lambda _: io.StringIO("body"), b"body"),
            (lambda folder: partly_read(open_file(folder)), b"body" * 50_000),
            (lambda folder: form(partly_read(open_file(folder))), None),
            (lambda _: form(b"body"), None),
        ],
        ids=[
            "none",
            "bytes",
            "text",
            "fields",
            "json",
            "bytes in a file",
            "text in a file",
            "file",
            "file in a form",
            "bytes in a form",
        ],
    )
    def test_that_can_be_rewound_is_sent_again(self, tmp_path, step, body, text):
        with serve(step, answer()) as server:
            status, *_ = fetch(server.url, "PUT", data=body(tmp_path))
        first, second = server.seen
        assert status == 200
        assert first.body == second.body
        assert first.headers == second.headers
        assert text is None or first.body == text
        assert text is not None or b"body" in first.body

    @pytest.mark.parametrize(
        "body",
        [pieces, OneShotFile, lambda: form(pieces()), lambda: form(OneShotFile())],
        ids=["generator", "file", "generator in a form", "file in a form"],
    )
    def test_that_can_be_read_once_is_sent_once(self, caplog, body):
        note = (
            "gave up after 1 attempt{}: its body is a stream that cannot be sent "
            "again; pass bytes, a str or a seekable file"
        )
        with serve(close()) as server:
            error, sleeps = fetch_error(server.url, "PUT", data=body())
        assert isinstance(error, aiohttp.ServerDisconnectedError)
        assert error.__notes__ == [f"retrykit: {note.format('')}"]
        assert (sleeps, len(server.seen)) == ([], 1)
        with serve(answer(503)) as server:
            status, _, state, _ = fetch(server.url, "PUT", data=body())
        assert (status, state.attempt, len(server.seen)) == (503, 1, 1)
        assert b"body" in server.seen[0].body
        assert caplog.messages[-1].endswith(note.format("").partition("attempt")[2])

    @pytest.mark.parametrize("step", [close(), answer(503)], ids=["closed", "status"])
    @pytest.mark.parametrize(
        "settings", [{}, {"compress": True}, {"chunked": True}], ids=str
    )
    @pytest.mark.parametrize("form", [form, lambda file: file], ids=["form", "file"])
    def test_of_a_file_that_fails_to_rewind_is_sent_once(self, step, settings, form):
        """Sent again, it would be empty, and overwrite the data on the server."""

        async def put(url):
            async with session(schedule=[0]) as client:
                await client.put(url, data=form(NotSeekable(b"body")), **settings)

        with serve(step) as server, pytest.raises(aiohttp.ClientConnectionError):
            asyncio.run(put(server.url))
        assert len(server.seen) == 1

    def test_is_sent_again_while_the_last_one_is_still_being_written(self, tmp_path):
        """A server may answer before it has read all of a body."""
        path = tmp_path / "body"
        text = b"0123456789" * 2_000_000
        path.write_bytes(text)
        got = []

        async def meet(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            if got:
                got.append(await reader.readexactly(len(text)))
            else:
                got.append(None)
            status = b"503 Busy" if len(got) == 1 else b"200 OK"
            writer.write(b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % status)
            await writer.drain()
            writer.close()
            await writer.wait_closed()

        async def main():
            server = await asyncio.start_server(meet, "127.0.0.1", 0)
            host, port = server.sockets[0].getsockname()
            async with server, session(schedule=[0]) as client:
                with path.open("rb") as file:
                    async with client.put(f"http://{host}:{port}", data=file) as answer:
                        return answer.status

        assert asyncio.run(main()) == 200
        assert got == [None, text]


class TestAMethod:
    @pytest.mark.parametrize(
        "method", ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]
    )
    def test_that_is_idempotent_is_sent_again(self, method):
        with serve(answer(503), answer()) as server:
            assert fetch(server.url, method)[0] == 200
        assert [seen.method for seen in server.seen] == [method, method]

    @pytest.mark.parametrize("method", ["POST", "PATCH", "CONVERT"])
    def test_that_is_not_idempotent_is_sent_once(self, caplog, method):
        caplog.set_level(logging.DEBUG, "retrykit")
        note = (
            f"{method} is retried only with an Idempotency-Key, or if methods "
            "includes it"
        )
        with serve(close()) as server:
            error, _ = fetch_error(server.url, method)
        assert error.__notes__ == [f"retrykit: gave up after 1 attempt: {note}"]
        assert len(server.seen) == 1
        with serve(answer(503)) as server:
            status, _, state, sleeps = fetch(server.url, method, data=b"body")
        assert (status, state.attempt, sleeps, len(server.seen)) == (503, 1, [], 1)
        assert [line.endswith(note) for line in caplog.messages] == [True]

    @pytest.mark.parametrize(
        "settings",
        [
            {"headers": {"idempotency-key": "1"}},
            {"methods": {"post"}},
            {"methods": None},
        ],
        ids=["with a key", "where methods has it", "where every one is"],
    )
    def test_that_is_not_idempotent_is_sent_again_if_the_policy_allows(self, settings):
        with serve(reset(), answer()) as server:
            assert fetch(server.url, "POST", data=b"body", **settings)[0] == 200
        assert [seen.body for seen in server.seen] == [b"body", b"body"]


class TestRetryAfter:
    @pytest.mark.parametrize(
        ("values", "nap"),
        [
            (["5"], 5),
            (["0"], 1),
            (["Mon, 06 Nov 2000 08:49:37 GMT"], 1),
            (["soon"], 1),
            (["-5"], 1),
            (["1.5"], 1.5),
            ([""], 1),
            (["Mon, 06 Nov 2000 08:49:37 XYZ"], 1),
            (["5", "7"], 7),
        ],
        ids=[
            "seconds",
            "zero",
            "a date that is past",
            "no number",
            "negative",
            "a fraction",
            "empty",
            "a date in no zone",
            "twice",
        ],
    )
    def test_is_obeyed_if_it_is_valid(self, values, nap):
        headers = [("Retry-After", value) for value in values]
        with serve(answer(429, headers), answer()) as server:
            assert fetch(server.url, hint_jitter=0)[::3] == (200, [nap])

    @pytest.mark.parametrize(
        "value",
        ["3600", "9" * 30, "Fri, 31 Dec 9999 23:59:59 GMT"],
        ids=["beyond the time that remains", "absurd", "a date far ahead"],
    )
    def test_beyond_the_remaining_time_ends_the_call_at_once(self, value):
        with serve(answer(503, [("Retry-After", value)], b"busy")) as server:
            status, body, state, sleeps = fetch(
                server.url, max_elapsed=60, hint_cap=None
            )
        assert (status, body, sleeps, len(server.seen)) == (503, b"busy", [], 1)
        assert state.stop_reason is StopReason.HINT
