"""The HTTP clients against mountebank, a third-party server."""

import pytest

from retrykit import Policy
from retrykit.testing import virtual_time
from tests._support import mountebank
from tests._support.http_clients import CLIENTS, LAYERS
from tests._support.mountebank import DROPPED

PLAIN = Policy(schedule=[1, 2, 4], max_elapsed=3600, hint_jitter=0)

running = mountebank.running


SCRIPTS = {
    "503, 503, dropped, 200": ([503, 503, DROPPED, 200], [1.0, 2.0, 4.0], 200),
    "429 with Retry-After": ([(429, {"Retry-After": "9"}), 200], [9.0], 200),
    "429 with a bad Retry-After": (
        [(429, {"Retry-After": "-9"}), 200],
        [1.0],
        200,
    ),
    "404": ([404], [], 404),
}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_mountebank_sees_the_expected_requests(running, client, layer, script):
    steps, delays, ends = SCRIPTS[script]
    with running.imposter(*steps) as url, virtual_time() as clock:
        [result] = CLIENTS[client](layer, PLAIN, 1, url, "GET", None, lambda: None)
        imposter = running.request("GET", f"/imposters/{url.rpartition(':')[2]}")
    assert imposter["numberOfRequests"] == len(delays) + 1
    assert clock.sleeps == delays
    assert result.status == (None if layer == "function" and ends == 404 else ends)
