"""Mountebank, an independent server, follows the scripts that we give it."""

import os
import urllib.error

import pytest

from tests._support import mountebank
from tests._support.mountebank import DROPPED, started
from tests._support.raw_client import exchange, no_leaks

running = mountebank.running
GET = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"


def get(url):
    """Return the response, and how its connection ended."""
    return exchange(int(url.rpartition(":")[2]), GET)


@pytest.fixture
def running_without_leaks(running):
    with no_leaks():
        yield running


def test_repeats_its_script(running_without_leaks):
    with running_without_leaks.imposter(503, 503, DROPPED, 200) as url:
        found = [get(url) for _ in range(5)]
    assert [data[9:12] for data, _ in found] == [b"503", b"503", b"", b"200", b"503"]
    assert {end for _, end in found} == {"FIN"}


def test_sends_the_headers_of_its_script(running_without_leaks):
    with running_without_leaks.imposter((429, {"Retry-After": "7"})) as url:
        assert b"\r\nRetry-After: 7\r\n" in get(url)[0]


def test_an_imposter_ends_with_its_block(running_without_leaks):
    with running_without_leaks.imposter(200) as url:
        assert len(running_without_leaks.request("GET", "/imposters")["imposters"]) == 1
    assert running_without_leaks.request("GET", "/imposters") == {"imposters": []}
    with pytest.raises(ConnectionRefusedError):
        get(url)


def test_an_invalid_imposter_raises(running_without_leaks):
    with pytest.raises(urllib.error.HTTPError) as error:
        running_without_leaks.request("POST", "/imposters", {"protocol": "none"})
    error.value.close()


def test_the_server_ends_with_its_block(tmp_path):
    with no_leaks(), started(tmp_path) as server:
        pid = int((tmp_path / "mb.pid").read_text())
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(urllib.error.URLError):
        server.request("GET", "/")
