"""A server that others have written does what its script says."""

import os
import urllib.error

import pytest

from tests._support import mountebank
from tests._support.mountebank import DROPPED, started
from tests._support.raw_client import left_clean, talk

running = mountebank.running
GET = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"


def ask(url):
    """Return what comes back, and how the connection ends."""
    return talk(int(url.rpartition(":")[2]), GET)


@pytest.fixture
def sane(running):
    with left_clean():
        yield running


def test_it_does_what_the_script_says_over_and_over(sane):
    with sane.imposter(503, 503, DROPPED, 200) as url:
        found = [ask(url) for _ in range(5)]
    assert [data[9:12] for data, _ in found] == [b"503", b"503", b"", b"200", b"503"]
    assert {end for _, end in found} == {"FIN"}


def test_it_sends_the_headers_of_the_script(sane):
    with sane.imposter((429, {"Retry-After": "7"})) as url:
        assert b"\r\nRetry-After: 7\r\n" in ask(url)[0]


def test_an_imposter_is_gone_when_it_is_done(sane):
    with sane.imposter(200) as url:
        assert len(sane.ask("GET", "/imposters")["imposters"]) == 1
    assert sane.ask("GET", "/imposters") == {"imposters": []}
    with pytest.raises(ConnectionRefusedError):
        ask(url)


def test_what_it_refuses_is_an_error(sane):
    with pytest.raises(urllib.error.HTTPError) as refused:
        sane.ask("POST", "/imposters", {"protocol": "none"})
    refused.value.close()


def test_it_ends_with_the_test_that_started_it(tmp_path):
    with left_clean(), started(tmp_path) as server:
        pid = int((tmp_path / "mb.pid").read_text())
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(urllib.error.URLError):
        server.ask("GET", "/")
