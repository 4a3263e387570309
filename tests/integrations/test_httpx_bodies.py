"""Which requests of httpx are sent again, and how their bodies are rewound."""

import io
import logging

import httpx
import pytest

from retrykit import Policy, RetryError, StopReason, state_of
from retrykit.integrations.httpx import RetryTransport
from tests._support.scripted_server import answer, close, serve

QUICK = Policy(schedule=[0, 0])


def client(policy=QUICK, **given):
    return httpx.Client(transport=RetryTransport(policy, **given))


def test_a_post_is_sent_once_and_its_error_says_why():
    with serve(close()) as server, client() as http:
        with pytest.raises(httpx.RemoteProtocolError) as caught:
            http.post(server.url, json={})
    assert len(server.seen) == 1
    [note] = caught.value.__notes__
    assert note == (
        "retrykit: gave up after 1 attempt: POST is retried only with an "
        "Idempotency-Key, or if methods includes it"
    )


def test_an_error_that_is_not_retryable_has_no_such_note():
    with client() as http, pytest.raises(httpx.UnsupportedProtocol) as caught:
        http.post("gopher://127.0.0.1/")
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize(
    ("methods", "sent"), [(["post"], 3), (None, 3), ({"GET"}, 1)], ids=str
)
def test_the_methods_setting_selects_the_retried_requests(methods, sent):
    with serve(answer(503)) as server, client(methods=methods) as http:
        http.post(server.url, content=b"order")
    assert [seen.body for seen in server.seen] == [b"order"] * sent


def test_a_stream_is_sent_once_and_a_warning_says_why(caplog):
    with serve(answer(503)) as server, client() as http:
        response = http.put(server.url, content=iter([b"or", b"der"]))
    assert [seen.body for seen in server.seen] == [b"order"]
    assert response.status_code == 503
    [line] = caplog.records
    assert line.levelno == logging.WARNING
    place = server.url.removeprefix("http://").rstrip("/")
    assert f"PUT {place} gave up after 1 attempt" in line.getMessage()
    assert "pass bytes, a str or a seekable file" in line.getMessage()


def test_a_stream_that_does_not_fail_logs_nothing(caplog):
    with serve() as server, client() as http:
        assert http.put(server.url, content=iter([b"order"])).status_code == 200
    assert caplog.records == []


def test_a_rejected_post_is_logged_at_debug_level(caplog):
    caplog.set_level(logging.DEBUG, "retrykit")
    with serve(answer(503)) as server, client() as http:
        http.post(server.url)
    [line] = [x for x in caplog.records if x.name == "retrykit"]
    assert line.levelno == logging.DEBUG


def test_files_of_a_form_are_sent_again_from_their_start():
    file = io.BytesIO(b"picture")
    with serve(answer(503), answer()) as server, client() as http:
        http.put(server.url, files={"file": file, "note": b"plain"}, data={"a": "b"})
    one, two = server.seen
    assert one.body == two.body
    assert b"picture" in two.body


def test_a_form_with_a_stream_is_sent_once():
    class Pipe:
        def __init__(self):
            self.left = [b"piece"]

        def read(self, _size=-1):
            return self.left.pop() if self.left else b""

    with serve(answer(503)) as server, client() as http:
        http.put(server.url, files={"file": Pipe()})
    assert len(server.seen) == 1


def test_a_file_that_fails_to_rewind_raises_the_clients_error():
    class ClosedFile(io.BytesIO):
        def seek(self, *_):
            raise OSError("gone")

        def seekable(self):
            return True

    with serve(close()) as server, client() as http:
        with pytest.raises(httpx.RemoteProtocolError) as caught:
            http.put(
                server.url, content=ClosedFile(b""), headers={"content-length": "0"}
            )
    assert len(server.seen) == 1
    assert state_of(caught.value).stop_reason is StopReason.GAVE_UP


def test_a_file_of_a_form_that_cannot_be_rewound_is_sent_once():
    """If a file cannot seek, httpx sends the rest of it, which is nothing."""

    class NotSeekable(io.BytesIO):
        def seek(self, *_):
            raise io.UnsupportedOperation("it is a pipe")

    with serve(close()) as server, client() as http:
        with pytest.raises(httpx.RemoteProtocolError):
            http.put(server.url, files={"file": NotSeekable(b"picture")})
    assert len(server.seen) == 1


def test_a_file_closed_before_a_retry_raises_its_own_error():
    file = io.BytesIO(b"order")

    def respond(_request):
        file.close()
        return httpx.Response(503)

    with client(transport=httpx.MockTransport(respond)) as http:
        with pytest.raises(ValueError, match="closed file"):
            http.put("http://127.0.0.1/", content=file)


def test_a_retry_error_of_another_call_is_raised_unchanged():
    other = RetryError(
        Policy(on_result=lambda _: True, max_attempts=1).run(lambda: 1).state
    )

    def respond(_request):
        raise other

    with client(transport=httpx.MockTransport(respond)) as http:
        with pytest.raises(RetryError) as caught:
            http.get("http://127.0.0.1/")
    assert caught.value is other
