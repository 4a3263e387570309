"""The log lines of HTTP clients: which request, and which answer."""

import logging

import httpx
import pytest

from retrykit import Policy, observe, retry
from retrykit.integrations import httpx as retries
from retrykit.integrations.logging import observer
from retrykit.testing import virtual_time
from tests._support.http_clients import CLIENTS
from tests._support.scripted_server import answer, serve

POLICY = Policy(schedule=[1, 2], max_attempts=3)
PATH = "/orders/42?token=S3CRET"


def requested(client, server, policy=POLICY, path=PATH):
    url = f"{server.url}{path}"
    sent = "GET", None, lambda: None
    [result] = CLIENTS[client]("transport", policy, 1, url, *sent)
    return result


def place_of(server):
    return server.url.removeprefix("http://")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_retry_tells_the_request_and_the_status(client, caplog):
    with serve(answer(503), answer()) as server, virtual_time():
        requested(client, server)
    lines = [each.message for each in caplog.records if each.name == "retrykit.retries"]
    line = f"retrying GET {place_of(server)}/orders/42 in 1 s after status 503"
    assert lines == [f"{line} (attempt 2 of 3)"]


@pytest.mark.parametrize("client", CLIENTS)
def test_two_paths_of_a_host_can_be_told_apart(client, caplog):
    with serve(*[answer(503), answer()] * 2) as server, virtual_time():
        requested(client, server, path="/orders")
        requested(client, server, path="/carts/b0t:S3CRET/items")
    first, second = (x.message for x in caplog.records if x.name == "retrykit.retries")
    assert f"GET {place_of(server)}/orders in" in first
    assert f"GET {place_of(server)}/carts/*/items in" in second


@pytest.mark.parametrize("client", CLIENTS)
def test_an_observer_that_logs_tells_the_same(client, caplog):
    with serve(answer(503)) as server, virtual_time(), observe(observer()):
        requested(client, server)
    *_, line = [each for each in caplog.records if each.name == "retrykit"]
    assert line.message == (
        f"GET {place_of(server)}/orders/42 gave up after 3 attempts in 3 s: "
        "max_attempts=3 reached; status 503"
    )
    # Metrics and fields have few distinct names.
    assert line.retrykit["name"] == "GET 127.0.0.1"


def test_a_request_that_is_not_repeatable_is_named(caplog):
    caplog.set_level(logging.DEBUG, "retrykit")
    with serve(answer(503)) as server:
        with httpx.Client(transport=retries.RetryTransport(POLICY)) as client:
            client.post(f"{server.url}/orders/42")
    [line] = [each.message for each in caplog.records if each.name == "retrykit"]
    assert line.startswith(
        f"POST {place_of(server)}/orders/42 gave up after 1 attempt with status 503: "
    )


@pytest.mark.parametrize(
    ("settings", "title"),
    [
        ({"name": "orders"}, "orders"),
        ({"redact": False}, "GET http://{}/orders/42?token=S3CRET"),
        ({"redact": lambda text: text.replace("/42", "/*")}, "GET {}/orders/*"),
    ],
    ids=["a name", "whole texts", "a function"],
)
def test_a_policy_may_name_or_redact_its_requests(settings, title, caplog):
    with serve(answer(503), answer()) as server, virtual_time():
        requested("httpx", server, POLICY.replace(**settings))
    [line] = [
        each.message for each in caplog.records if each.name == "retrykit.retries"
    ]
    assert line.startswith(f"retrying {title.format(place_of(server))} in 1 s after")


def test_a_function_around_a_client_tells_the_request(caplog):
    @retry(retries.policy(schedule=[1]))
    def load(client, url):
        return client.get(url).raise_for_status()

    with serve(answer(503), answer()) as server, virtual_time(), httpx.Client() as http:
        load(http, f"{server.url}/orders/42")
    [line] = [
        each.message for each in caplog.records if each.name == "retrykit.retries"
    ]
    assert f"HTTPStatusError: GET {place_of(server)}/orders/42, status 503 (" in line


def test_another_status_is_not_one_of_http(caplog):
    class Job:
        def __init__(self):
            self.status = 7

    policy = Policy(on_result=lambda job: isinstance(job, Job), schedule=[0])
    policy.run(Job)
    [line] = [each.message for each in caplog.records]
    assert "after a rejected result (status 7) (attempt 2" in line
