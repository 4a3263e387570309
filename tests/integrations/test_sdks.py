"""Calls through SDKs, to a server that fails as it is told."""

import json
import logging
import pickle
import re
from pathlib import Path

import pytest
from boto3.exceptions import S3UploadFailedError
from google.api_core.retry import Retry

from retrykit import observe, state_of
from retrykit.integrations import botocore as for_botocore
from retrykit.integrations.logging import observer
from retrykit.testing import virtual_time
from tests._support.ports import free_port
from tests._support.scripted_server import (
    answer,
    close,
    cut,
    garbage,
    reset,
    reset_in_body,
    serve,
)
from tests._support.sdk_clients import SDKS, SECRET, aws
from tests._support.tls_server import self_signed, serve_tls

all_sdks = pytest.mark.parametrize("sdk", SDKS.values(), ids=SDKS)


@pytest.fixture
def clock():
    # An idle connection must not stop virtual time for long.
    with virtual_time(stall_timeout=0.02) as clock:
        yield clock


def failure(status, *headers):
    body = b'{"error": {"message": "no"}}'
    return answer(status, [*headers, ("Set-Cookie", SECRET)], body, close=True)


SUCCESS = answer(body=b'{"items": []}', close=True)
FAULTS = {
    "429": failure(429),
    "500": failure(500),
    "503": failure(503),
    "reset": reset(),
    "closed": close(),
    "garbage": garbage(),
}


@all_sdks
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_transient_fault_is_retried(sdk, fault, clock):
    with serve(fault, fault, SUCCESS) as server:
        sdk.module.policy(schedule=[1, 2, 4]).call(sdk.client(server.url))
    assert len(server.seen) == 3
    assert clock.sleeps == [1.0, 2.0]


@all_sdks
@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_permanent_status_is_not_retried(sdk, status, clock):
    with serve(failure(status)) as server, pytest.raises(Exception) as caught:
        sdk.module.policy().call(sdk.client(server.url))
    assert not sdk.module.transient(caught.value)
    assert len(server.seen) == 1


CUT = {
    "truncated": cut(9),
    "truncated, chunked": cut(9, chunked=True),
    "reset": reset_in_body(9),
}
# The service of the one parses what it got, and the other does not retry it.
READERS = sorted(SDKS.keys() - {"botocore", "stripe"})


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("fault", CUT.values(), ids=CUT)
def test_a_truncated_body_is_retried(name, fault, clock):
    sdk = SDKS[name]
    with serve(fault, SUCCESS) as server:
        sdk.module.policy(schedule=[1]).call(sdk.client(server.url))
    assert len(server.seen) == 2


def test_a_truncated_object_of_s3_is_retried(clock):
    with serve(cut(9), answer(close=True)) as server:
        client = aws("s3", server.url)
        body = for_botocore.policy(schedule=[1]).call(read_object, client)
    assert body == b"ok"
    assert [seen.path for seen in server.seen] == ["/bucket/key"] * 2


def test_an_upload_of_a_file_to_s3_is_retried(clock, tmp_path):
    """boto3 raises an S3UploadFailedError around the error of the client."""
    file = tmp_path / "file"
    file.write_text("data")
    with serve(failure(503), answer(body=b"", close=True)) as server:
        client = aws("s3", server.url)
        policy = for_botocore.policy(schedule=[1])
        policy.call(client.upload_file, str(file), "bucket", "key")
    assert [seen.path for seen in server.seen] == ["/bucket/key"] * 2


def test_an_upload_that_is_not_allowed_is_not_retried(clock, tmp_path):
    with serve(failure(403)) as server, pytest.raises(S3UploadFailedError):
        for_botocore.policy(schedule=[1]).call(
            aws("s3", server.url).upload_file, __file__, "bucket", "key"
        )
    assert len(server.seen) == 1


def read_object(client):
    return client.get_object(Bucket="bucket", Key="key")["Body"].read()


@all_sdks
def test_a_refused_connection_is_retried(sdk, clock):
    call = sdk.client(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(Exception):  # noqa: B017  of the SDK
        sdk.module.policy(schedule=[1, 2]).call(call)
    assert clock.sleeps == [1.0, 2.0]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return self_signed(tmp_path_factory.mktemp("tls"))


@all_sdks
def test_a_rejected_certificate_is_not_retried(sdk, certificate, clock):
    with serve_tls(certificate) as server, pytest.raises(Exception) as caught:
        sdk.module.policy().call(sdk.client(server.url))
    assert "certif" in "".join(map(str, causes(caught.value))).lower()
    assert server.accepted == 1


def causes(error):
    """Yield an error and the errors behind it."""
    while error is not None:
        yield error
        inner = getattr(error, "inner_exception", None)
        error = error.__cause__ or error.__context__ or inner


@all_sdks
def test_the_requested_delay_is_obeyed(sdk, clock):
    name, value = sdk.hint
    delay = 2.0 if value == "2" else 1.5
    with serve(failure(429, (name, value)), SUCCESS) as server:
        sdk.module.policy(schedule=[1], hint_jitter=0).call(sdk.client(server.url))
    assert clock.sleeps == [delay]


# The delays of their own retries are set by the response, or are short.
AT_ONCE = [("retry-after-ms", "1"), ("x-amz-retry-after", "1"), ("Retry-After", "0")]
OWN = {
    "anthropic": (failure(503, *AT_ONCE), 2),
    "azure-core": (failure(503, *AT_ONCE), 2),
    "botocore": (failure(503, *AT_ONCE), 2),
    "kubernetes": (failure(503, *AT_ONCE), 2),
    "openai": (failure(503, *AT_ONCE), 2),
    "stripe": (failure(503), 1),
}


@pytest.mark.parametrize("name", OWN)
def test_own_retries_multiply_the_attempts(name):
    fault, retries = OWN[name]
    policy = SDKS[name].module.policy(schedule=[0, 0])
    for own in (0, retries):
        with serve(fault) as server, pytest.raises(Exception) as caught:
            policy.call(SDKS[name].client(server.url, own))
        assert state_of(caught.value).attempt == 3
        assert len(server.seen) == 3 * (1 + own)


def test_an_error_that_google_has_retried_until_its_timeout_is_not_retried():
    own = Retry(initial=0.01, maximum=0.01, timeout=0.1)
    sdk = SDKS["google-api-core"]
    with serve(failure(503)) as server, pytest.raises(Exception) as caught:
        sdk.module.policy(schedule=[0, 0]).call(own(sdk.client(server.url)))
    assert state_of(caught.value).attempt == 1
    assert len(server.seen) > 1


@pytest.mark.parametrize("key", [None, "order-7"])
def test_attempts_of_stripe_share_an_idempotency_key_that_is_given(key, clock):
    sdk = SDKS["stripe"]
    with serve(failure(503), SUCCESS) as server:
        call = sdk.client(server.url)
        options = None if key is None else {"idempotency_key": key}
        sdk.module.policy(schedule=[1]).call(call, options)
    keys = [seen.headers["idempotency-key"] for seen in server.seen]
    assert len({*keys}) == (2 if key is None else 1)
    assert key in {None, *keys}


PAGE = Path(__file__).parents[2] / "docs" / "transient_errors.md"
TEXT = {"type": "output_text", "text": "Hi", "annotations": []}
MESSAGE = {"type": "message", "role": "assistant", "content": [TEXT]}


def test_the_example_of_the_page_runs(clock):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    [example] = [block for block in blocks if "def ask" in block]
    names = {}
    exec(compile(example, PAGE, "exec"), names)  # noqa: S102  our own
    done = answer(body=json.dumps({"output": [MESSAGE]}).encode(), close=True)
    with serve(failure(429, ("retry-after", "9")), done) as server:
        names["client"] = names["client"].with_options(base_url=server.url)
        assert names["ask"]("Why?") == "Hi"
    [waited] = clock.sleeps
    assert 9.0 <= waited <= 9.9


@all_sdks
def test_the_page_says_how_to_switch_off_own_retries(sdk):
    text = PAGE.read_text("utf-8")
    name = sdk.module.__name__.rpartition(".")[2]
    [row] = re.findall(rf"^\| `{name}` \| .*\| `(.+?)`.*\|$", text, re.MULTILINE)
    assert row == sdk.module.transient.own_retries.text


TEXTS = {
    "anthropic": "POST {}/v1/messages, status 503",
    "azure-core": "GET {}/p, status 503",
    "botocore": "An error occurred (503) when calling the ListTables operation",
    "google-api-core": "GET {}/p, status 503",
    "google-genai": "POST {}/v1/models/*, status 503",
    "kubernetes": "status 503",
    "openai": "POST {}/v1/chat/completions, status 503",
    "stripe": "no",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("fault", ["503", "reset"])
def test_no_log_note_or_history_has_a_secret(name, fault, clock, caplog):
    caplog.set_level(logging.DEBUG, "retrykit")
    sdk = SDKS[name]
    policy = sdk.module.policy(schedule=[1])
    with serve(FAULTS[fault]) as server, observe(observer()):
        with pytest.raises(Exception) as caught:
            policy.call(sdk.client(server.url))
    state = state_of(caught.value)
    described = state.failures[-1].describe()
    place = server.url.removeprefix("http://")
    assert fault == "reset" or f": {TEXTS[name].format(place)}" in described
    ours = [record for record in caplog.records if record.name.startswith("retrykit")]
    assert len(ours) >= 2
    again = pickle.loads(pickle.dumps(state))  # noqa: S301  our own
    assert [each.describe() for each in again.failures] == [described] * 2
    texts = [*map(logging.Formatter().format, ours), *caught.value.__notes__]
    texts += [described, repr(state), pickle.dumps(state).decode("latin-1")]
    texts += [json.dumps(state.to_dict())]
    assert [text for text in texts if SECRET in text] == []
