"""Secrets in the URLs of HTTP clients are in no text of retrykit."""

import asyncio
import json
import logging
import pickle
import traceback

import aiohttp
import httpx
import httpx2
import pytest
import requests
import urllib3

from retrykit import Policy, observe, retry, state_of
from retrykit._internal.error_texts import error_text
from retrykit.durable import Job
from retrykit.integrations.logging import observer
from retrykit.testing import virtual_time
from tests._support.http_clients import CLIENTS, LAYERS
from tests._support.ports import free_port
from tests._support.scripted_server import answer, cut, reset, serve

SECRET = "S3CRET"  # noqa: S105  what is looked for
POLICY = Policy(schedule=[1, 2])
FAULTS = {"503": answer(503, close=True), "reset": reset(), "cut": cut(40)}


def with_secrets(url):
    scheme, rest = url.split("://")
    return f"{scheme}://bob:{SECRET}@{rest}/bot7:{SECRET}/p?token={SECRET}"


def written_texts(result, caplog):
    """Yield all texts that were written about a failed call."""
    formatter = logging.Formatter()
    # urllib3's own logger writes the queries of retried requests.
    ours = [entry for entry in caplog.records if entry.name.startswith("retrykit")]
    yield from map(formatter.format, ours)
    if result.error is not None:
        yield from getattr(result.error, "__notes__", ())
    if result.state is not None:
        yield json.dumps(result.state.to_dict())
        yield repr(result.state)
        yield pickle.dumps(result.state).decode("latin-1")


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("fault", FAULTS)
def test_no_text_about_a_failed_call_has_a_secret(client, layer, fault, caplog):
    caplog.set_level(logging.DEBUG, "retrykit")
    with serve(FAULTS[fault]) as server, virtual_time(), observe(observer()):
        url = with_secrets(server.url)
        [result] = CLIENTS[client](layer, POLICY, 1, url, "GET", None, lambda: None)
    assert caplog.records != [] or fault == "cut"
    texts = [*written_texts(result, caplog)]
    assert [text for text in texts if SECRET in text] == []


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("client", CLIENTS)
def test_no_text_about_a_refused_connection_has_a_secret(client, layer, caplog):
    with virtual_time(), observe(observer()):
        url = with_secrets(f"http://127.0.0.1:{free_port()}")
        [result] = CLIENTS[client](layer, POLICY, 1, url, "GET", None, lambda: None)
    assert len(caplog.records) >= 3
    texts = [*written_texts(result, caplog)]
    assert [text for text in texts if SECRET in text] == []


def get_with_httpx(url):
    httpx.get(url, trust_env=False).raise_for_status()


def get_with_httpx2(url):
    httpx2.get(url, trust_env=False).raise_for_status()


def get_with_requests(url):
    with requests.Session() as session:
        session.trust_env = False
        session.get(url, timeout=5).raise_for_status()


def get_with_urllib3(url):
    pool = urllib3.PoolManager(retries=urllib3.Retry(0, status_forcelist=[503]))
    with pool:
        pool.request("GET", url)


def get_with_aiohttp(url):
    async def get():
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            response.raise_for_status()

    asyncio.run(get())


GETS = {
    get_with_httpx: "httpx.HTTPStatusError: GET {}/*/p, status 503",
    get_with_httpx2: "httpx2.HTTPStatusError: GET {}/*/p, status 503",
    get_with_requests: "requests.exceptions.HTTPError: GET {}/*/p, status 503",
    get_with_urllib3: "urllib3.exceptions.MaxRetryError: {}/*/p",
    get_with_aiohttp: "aiohttp.client_exceptions.ClientResponseError: GET {}/*/p, "
    "status 503",
}


@pytest.mark.parametrize(("get", "summary"), GETS.items(), ids=lambda x: str(x)[:30])
def test_an_error_is_shown_by_type_method_place_and_status(get, summary, caplog):
    policy = Policy(schedule=[0], observers=[observer()])
    with serve(answer(503, close=True)) as server:
        with pytest.raises(Exception) as caught:
            policy.call(get, with_secrets(server.url))
    summary = summary.format(server.url.removeprefix("http://"))
    retried, gave_up = caplog.messages
    assert retried.endswith(f" in 0 s after {summary} (attempt 2 of 2)")
    assert gave_up.endswith(f"; {summary}")
    state = state_of(caught.value)
    assert state.failures[-1].describe() == summary
    record = state.to_dict()["failures"][-1]["error"]
    assert f"{record['type']}: {record['message']}" == summary
    assert SECRET not in record["traceback"]


@pytest.mark.parametrize("get", GETS)
def test_the_users_error_is_unchanged(get):
    with serve(answer(503, close=True)) as server:
        url = with_secrets(server.url)
        with pytest.raises(Exception) as plain:
            get(url)
        with pytest.raises(Exception) as retried:
            Policy(schedule=[0]).call(get, url)
    assert str(retried.value) == str(plain.value)


@pytest.mark.parametrize("get", GETS)
def test_redact_false_writes_whole_texts(get, caplog):
    policy = Policy(schedule=[0], redact=False, observers=[observer()])
    with serve(answer(503, close=True)) as server:
        with pytest.raises(Exception) as caught:
            policy.call(get, with_secrets(server.url))
    whole = " ".join(str(caught.value).split())
    retried, gave_up = caplog.messages
    assert retried.endswith(f"{whole} (attempt 2 of 2)")
    assert gave_up.endswith(whole)
    state = state_of(caught.value)
    record = state.to_dict()["failures"][0]["error"]
    assert record["message"] == str(caught.value)
    assert record["traceback"].count(record["message"]) >= 1
    # It stays the same after pickling.
    again = pickle.loads(pickle.dumps(state))  # noqa: S301
    assert again.failures[0].describe().endswith(record["message"])


@pytest.mark.parametrize("get", GETS)
@pytest.mark.parametrize("raises", ["last", "retry_error", "group"])
def test_a_durable_history_has_no_secret(get, raises):
    job = Job(get, Policy(schedule=[0], raises=raises), "fetch")
    envelope = job.envelope("fetch-7")
    with serve(answer(503, close=True)) as server:
        while envelope.status == "waiting":
            result = job.attempt(envelope, [with_secrets(server.url)], {})
            envelope = result.envelope
            assert SECRET not in json.dumps(envelope.to_dict())
            assert SECRET not in envelope.describe()


@pytest.mark.parametrize("redact", [True, False])
def test_redact_false_stores_whole_texts_in_a_durable_history(redact):
    job = Job(get_with_httpx, Policy(schedule=[0], redact=redact), "fetch")
    with serve(answer(503, close=True)) as server:
        url = with_secrets(server.url)
        result = job.attempt(job.envelope("fetch-7"), [url], {})
        result = job.attempt(result.envelope, [url], {})
    first, last = result.envelope.to_dict()["state"]["failures"]
    assert (SECRET in first["error"]["message"]) is not redact
    assert (SECRET in last["error"]["traceback"]) is not redact


def test_an_httpx_error_without_a_request_is_shown_by_its_message():
    error = httpx.ConnectError("to http://bob:S3CRET@host/S3CRET/p?token=S3CRET")
    with pytest.raises(RuntimeError):
        error.request  # noqa: B018  a property that fails
    assert error_text(error) == "to http://host/*/p?..."


def test_nested_calls_of_a_client_log_no_secret(caplog):
    inner = retry(Policy(schedule=[0], raises="retry_error"))(get_with_httpx)
    outer = Policy(schedule=[0], nested="retry", observers=[observer()])
    with serve(answer(503, close=True)) as server:
        with pytest.raises(Exception) as caught:
            outer.call(inner, with_secrets(server.url))
    assert "HTTPStatusError: GET 127.0.0.1:" in str(caught.value)
    assert str(caught.value).endswith("/*/p, status 503")
    assert SECRET not in caplog.text
    assert SECRET in "".join(traceback.format_exception(caught.value))
