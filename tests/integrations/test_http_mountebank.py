"""The clients and a server that others have written."""

import pytest

from retrykit import Policy
from retrykit.testing import virtual_time
from tests._support import mountebank
from tests._support.http_clients import CLIENTS, WAYS
from tests._support.mountebank import DROPPED

PLAIN = Policy(schedule=[1, 2, 4], max_elapsed=3600)

running = mountebank.running


SCRIPTS = {
    "503, 503, dropped, 200": ([503, 503, DROPPED, 200], [1.0, 2.0, 4.0], 200),
    "429 with Retry-After": ([(429, {"Retry-After": "9"}), 200], [9.0], 200),
    "429 with a wrong Retry-After": ([(429, {"Retry-After": "-9"}), 200], [1.0], 200),
    "404": ([404], [], 404),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_server_that_others_have_written_sees_the_same(running, client, way, script):
    steps, delays, ends = SCRIPTS[script]
    with running.imposter(*steps) as url, virtual_time() as clock:
        [came] = CLIENTS[client](way, PLAIN, 1, url, "GET", None, lambda: None)
        imposter = running.ask("GET", f"/imposters/{url.rpartition(':')[2]}")
    assert imposter["numberOfRequests"] == len(delays) + 1
    assert clock.sleeps == delays
    assert came.status == (None if way == "whole" and ends == 404 else ends)
