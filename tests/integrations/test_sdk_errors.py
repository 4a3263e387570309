"""Which errors of SDKs are transient, and the delays that they request."""

import asyncio
import importlib
import pickle
import ssl
from types import SimpleNamespace

import anthropic
import botocore.exceptions as of_botocore
import openai
import pytest
import requests
import stripe
import urllib3.exceptions as of_urllib3
from azure.core import exceptions as of_azure
from google.api_core import exceptions as of_google
from google.auth import exceptions as of_google_auth
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from kubernetes.client import ApiException

from retrykit import Policy, RetryAfter
from retrykit.integrations import (
    anthropic as for_anthropic,
    azure_core as for_azure,
    botocore as for_botocore,
    google_api_core as for_google,
    kubernetes as for_kubernetes,
    openai as for_openai,
    stripe as for_stripe,
)
from tests._support.scripted_server import answer, cut, serve
from tests._support.sdk_clients import MESSAGES, SDKS, SECRET


def http_of(sdk):
    """Return the HTTP client of an SDK: httpx2, or httpx in older versions."""
    return importlib.import_module(sdk.DefaultHttpxClient.__base__.__module__)


http = http_of(openai)
REQUEST = http.Request("POST", "https://host/p")
CERTIFICATE = ssl.SSLCertVerificationError(1, "self-signed")


def caused_by(error, cause):
    error.__cause__ = cause
    return error


def response(status, headers=(), body=None):
    return http.Response(status, headers=dict(headers), json=body, request=REQUEST)


def of_openai(status=429, headers=(), **body):
    answer = response(status, headers, {"error": body})
    return openai.APIStatusError("no", response=answer, body=body)


def of_anthropic(status=429, headers=(), **error):
    body = {"type": "error", "error": error}
    answer = response(status, headers, body)
    return anthropic.APIStatusError("no", response=answer, body=body)


def both(error, passes):
    """Return rows for an error that both SDKs have."""
    return [
        (for_openai, error(openai, http_of(openai)), passes),
        (for_anthropic, error(anthropic, http_of(anthropic)), passes),
    ]


def of_both(status, passes, headers=()):
    return [
        (for_openai, of_openai(status, headers), passes),
        (for_anthropic, of_anthropic(status, headers), passes),
    ]


def connection(sdk, cause):
    return caused_by(sdk.APIConnectionError(request=REQUEST), cause)


def in_stream(**error):
    return openai.APIError("no", REQUEST, body=error)


GENERATED = [
    *both(lambda sdk, _: sdk.APITimeoutError(REQUEST), True),
    *both(lambda sdk, _: connection(sdk, None), True),
    *both(lambda sdk, http: connection(sdk, http.ConnectError("refused")), True),
    *both(lambda sdk, http: connection(sdk, http.RemoteProtocolError("closed")), True),
    *both(lambda sdk, _: connection(sdk, ConnectionResetError()), True),
    *both(
        lambda sdk, http: connection(
            sdk, caused_by(http.ConnectError("no"), CERTIFICATE)
        ),
        False,
    ),
    *both(lambda sdk, http: connection(sdk, http.UnsupportedProtocol("htp://")), False),
    *both(
        lambda sdk, http: connection(sdk, http.LocalProtocolError("a header")), False
    ),
    *both(lambda _, http: http.ReadTimeout("in a stream"), True),
    *both(lambda _, http: http.RemoteProtocolError("in a stream"), True),
    *both(lambda _, http: http.InvalidURL("no"), False),
    *both(lambda sdk, _: sdk.APIResponseValidationError(response(200), None), False),
    *both(lambda *_: ConnectionResetError(), False),
    *both(lambda *_: ValueError("429"), False),
    *both(lambda *_: None, False),
    *(
        row
        for status in (408, 409, 429, 500, 502, 529)
        for row in of_both(status, True)
    ),
    *(
        row
        for status in (400, 401, 403, 404, 413, 422)
        for row in of_both(status, False)
    ),
    *of_both(400, True, {"x-should-retry": "true"}),
    *of_both(503, False, {"x-should-retry": "false"}),
    *of_both(503, True, {"x-should-retry": "perhaps"}),
    (for_openai, of_openai(code="rate_limit_exceeded"), True),
    (for_openai, of_openai(code="slow_down", type="rate_limit_error"), True),
    (for_openai, of_openai(code="insufficient_quota"), False),
    (for_openai, of_openai(type="insufficient_quota", code="later_name"), False),
    (for_openai, of_openai(code="project_spend_limit_exceeded"), False),
    (for_openai, of_openai(code=["a", "list"], type={"a": "dict"}), True),
    (for_openai, in_stream(type="server_error"), True),
    (for_openai, in_stream(code="rate_limit_exceeded"), True),
    (for_openai, in_stream(code="insufficient_quota"), False),
    (for_openai, in_stream(code="invalid_prompt"), False),
    (for_openai, openai.APIError("no", REQUEST, body="text"), False),
    (for_openai, openai.OpenAIError("no API key"), False),
    (for_anthropic, of_anthropic(type="rate_limit_error"), True),
    *(
        (for_anthropic, of_anthropic(details={"error_code": code}), passes)
        for code, passes in {
            "enforced_spend_limit_reached": False,
            "contract_spend_limit_reached": False,
            "ramp_limit_exceeded": True,
        }.items()
    ),
    (for_anthropic, of_anthropic(200, type="overloaded_error"), True),
    (for_anthropic, of_anthropic(200, type="invalid_request_error"), False),
    (for_anthropic, of_anthropic(200, type=["a", "list"]), False),
    # Older versions have no middleware.
    *(
        (for_anthropic, kind("of a middleware"), True)
        for kind in [getattr(anthropic, "RetryableError", None)]
        if kind is not None
    ),
    (for_anthropic, anthropic.AnthropicError("no API key"), False),
]


def of_aws(code=None, status=400, **others):
    metadata = {"HTTPStatusCode": status} | others
    error = {"Error": {"Code": code}, "ResponseMetadata": metadata}
    return of_botocore.ClientError(error, "PutItem")


BOTOCORE = [
    *(
        (for_botocore, of_aws(code), passes)
        for code, passes in {
            "ThrottlingException": True,
            "ProvisionedThroughputExceededException": True,
            "TransactionInProgressException": True,
            "SlowDown": True,
            "RequestTimeout": True,
            "PriorRequestNotComplete": True,
            "IDPCommunicationError": True,
            "ConditionalCheckFailedException": False,
            "ExpiredToken": False,
            "UnrecognizedClientException": False,
            "ValidationException": False,
        }.items()
    ),
    *((for_botocore, of_aws("x", status), True) for status in (429, 500, 503, 509)),
    *((for_botocore, of_aws("x", status), False) for status in (400, 403, 409, 501)),
    (for_botocore, of_botocore.ClientError({}, "PutItem"), False),
    (for_botocore, of_botocore.ClientError({"Error": {"Code": 7}}, "PutItem"), False),
    (for_botocore, of_botocore.EventStreamError({}, "Converse"), False),
    (for_botocore, of_botocore.EndpointConnectionError(endpoint_url="/"), True),
    (for_botocore, of_botocore.ConnectTimeoutError(endpoint_url="/"), True),
    (for_botocore, of_botocore.ConnectionClosedError(endpoint_url="/"), True),
    (for_botocore, of_botocore.ReadTimeoutError(endpoint_url="/"), True),
    (for_botocore, of_botocore.ResponseStreamingError(error="cut"), True),
    (
        for_botocore,
        of_botocore.IncompleteReadError(actual_bytes=1, expected_bytes=2),
        True,
    ),
    (for_botocore, of_botocore.SSLError(endpoint_url="/", error="eof"), True),
    (
        for_botocore,
        caused_by(of_botocore.SSLError(endpoint_url="/", error="no"), CERTIFICATE),
        False,
    ),
    (for_botocore, of_botocore.NoCredentialsError(), False),
    (for_botocore, of_botocore.ParamValidationError(report="no"), False),
    (for_botocore, ConnectionResetError(), False),
]


def by_azure(kind=of_azure.HttpResponseError, status=503, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return kind(
        response=SimpleNamespace(status_code=status, reason="no", headers=headers)
    )


def wrapped(kind, inner):
    return kind(str(inner), error=inner)


AZURE = [
    *((for_azure, by_azure(status=code), True) for code in (408, 429, 500, 502, 504)),
    *((for_azure, by_azure(status=code), False) for code in (400, 404, 409, 412, 501)),
    (for_azure, by_azure(status=409, **{"Retry-After": "1"}), True),
    (for_azure, by_azure(of_azure.ResourceExistsError, 409), False),
    (for_azure, by_azure(of_azure.ClientAuthenticationError, 401), False),
    (
        for_azure,
        by_azure(of_azure.ClientAuthenticationError, 403, **{"Retry-After": "1"}),
        False,
    ),
    (for_azure, of_azure.HttpResponseError("no response"), False),
    (for_azure, of_azure.ServiceRequestError("refused"), True),
    (for_azure, of_azure.ServiceRequestTimeoutError("late"), True),
    (for_azure, of_azure.ServiceResponseError("closed"), True),
    (for_azure, of_azure.ServiceResponseTimeoutError("late"), True),
    (for_azure, of_azure.IncompleteReadError("cut"), True),
    (for_azure, wrapped(of_azure.HttpResponseError, requests.ConnectionError()), True),
    (
        for_azure,
        wrapped(of_azure.HttpResponseError, requests.exceptions.ChunkedEncodingError()),
        True,
    ),
    (for_azure, wrapped(of_azure.DecodeError, ValueError("no JSON")), False),
    (
        for_azure,
        wrapped(of_azure.ServiceResponseError, requests.exceptions.MissingSchema()),
        False,
    ),
    (for_azure, wrapped(of_azure.ServiceRequestError, CERTIFICATE), False),
    (for_azure, of_azure.SerializationError("no"), False),
    (for_azure, None, False),
]


def by_stripe(kind=stripe.APIError, status=500, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return kind("no", http_status=status, headers=headers)


STRIPE = [
    (for_stripe, stripe.APIConnectionError("refused", should_retry=True), True),
    (for_stripe, stripe.APIConnectionError("strange"), False),
    (
        for_stripe,
        caused_by(stripe.APIConnectionError("no", should_retry=True), CERTIFICATE),
        False,
    ),
    *((for_stripe, by_stripe(status=code), True) for code in (409, 500, 502, 503)),
    *((for_stripe, by_stripe(status=code), False) for code in (400, 401, 402, 404)),
    (for_stripe, by_stripe(stripe.RateLimitError, 429), True),
    (for_stripe, by_stripe(stripe.RateLimitError, 400), True),
    (for_stripe, by_stripe(stripe_should_retry="false"), False),
    (for_stripe, by_stripe(status=400, stripe_should_retry="true"), True),
    (for_stripe, by_stripe(stripe.IdempotencyError, 400), False),
    (
        for_stripe,
        stripe.CardError("declined", "card", "declined", http_status=402),
        False,
    ),
    (for_stripe, stripe.StripeError(), False),
    (for_stripe, ValueError(), False),
]

KUBERNETES = [
    *((for_kubernetes, ApiException(x), True) for x in (429, 500, 502, 503, 504)),
    *((for_kubernetes, ApiException(x), False) for x in (0, 400, 401, 403, 404, 422)),
    (for_kubernetes, ApiException(409, "Conflict"), False),
    (for_kubernetes, ApiException(410, "Expired"), False),
    (for_kubernetes, ApiException(), False),
    (
        for_kubernetes,
        of_urllib3.MaxRetryError(None, "/", of_urllib3.NewConnectionError(None, "")),
        True,
    ),
    (for_kubernetes, of_urllib3.ProtocolError("closed"), True),
    (for_kubernetes, of_urllib3.SSLError(CERTIFICATE), False),
    (for_kubernetes, ValueError(), False),
    (for_kubernetes, None, False),
]


def by_google(status, **others):
    return of_google.from_http_status(status, "no", **others)


GOOGLE = [
    *((for_google, by_google(code), True) for code in (408, 429, 500, 502, 503, 504)),
    *((for_google, by_google(code), False) for code in (400, 401, 403, 404, 409, 501)),
    (for_google, of_google.ResourceExhausted("quota"), True),
    (for_google, of_google.Aborted("begin anew"), False),
    (for_google, of_google.DeadlineExceeded("its own timeout"), False),
    (for_google, of_google.Unknown("no"), False),
    (for_google, of_google.RetryError("late", of_google.ServiceUnavailable("")), False),
    (for_google, of_google_auth.TransportError("refused"), True),
    (for_google, caused_by(of_google_auth.TransportError("no"), CERTIFICATE), False),
    (for_google, of_google_auth.RefreshError("no"), False),
    (for_google, requests.ConnectionError("refused"), True),
    (for_google, requests.ReadTimeout(), True),
    (for_google, requests.exceptions.ChunkedEncodingError(), True),
    (for_google, requests.exceptions.InvalidURL(), False),
    (for_google, None, False),
]
EVERY = [*GENERATED, *BOTOCORE, *AZURE, *STRIPE, *KUBERNETES, *GOOGLE]


@pytest.mark.parametrize(
    ("module", "error", "passes"),
    EVERY,
    ids=[f"{each[0].__name__.rpartition('.')[2]}-{each[1]!r:.60}" for each in EVERY],
)
def test_transient_errors(module, error, passes):
    assert module.transient(error) is passes


MODULES = [sdk.module for sdk in SDKS.values()]


@pytest.mark.parametrize("module", MODULES, ids=SDKS)
def test_errors_of_other_libraries_are_not_transient(module):
    foreign = [error for other, error, _ in EVERY if other is not module]
    shared = (
        http.HTTPError,
        http_of(anthropic).HTTPError,
        requests.RequestException,
        of_urllib3.HTTPError,
    )
    # The last one is raised by requests and urllib3 as it is.
    shared += (anthropic.AnthropicError, openai.OpenAIError, ConnectionError)
    # Both modules of Google know it.
    shared += (of_google_auth.TransportError,)
    for error in [*foreign, OSError(), BaseException(), object(), 503, "503"]:
        if not isinstance(error, shared):
            assert module.transient(error) is False


@pytest.mark.parametrize("module", MODULES, ids=SDKS)
def test_the_condition_and_the_policy_can_be_pickled(module):
    assert pickle.loads(pickle.dumps(module.transient)) is module.transient  # noqa: S301  our own
    policy = module.policy(max_attempts=3)
    assert pickle.loads(pickle.dumps(policy)) == policy  # noqa: S301
    expected = Policy(max_attempts=3, on=module.transient, hint=module.retry_after)
    assert policy == expected


SOON = {"retry-after": "7", "retry-after-ms": "250"}
LIMIT = "x-ratelimit-{}-requests"
DATED = {"date": "Mon, 03 Nov 2025 12:34:00 GMT"}
NEXT = "2025-11-03T12:34:56Z"
HINTS = [
    *both(lambda *_: ConnectionResetError(), None),
    (for_openai, of_openai(headers=SOON), 0.25),
    (for_openai, of_openai(headers={"retry-after": "7"}), 7.0),
    (for_openai, of_openai(headers={"x-ratelimit-reset-tokens": "6m0s"}), 360.0),
    (for_openai, of_openai(headers={LIMIT.format("reset"): "120ms"}), 0.12),
    (
        for_openai,
        of_openai(
            headers={LIMIT.format("reset"): "1s", LIMIT.format("remaining"): "59"}
        ),
        None,
    ),
    (for_anthropic, of_anthropic(headers=SOON), 0.25),
    (
        for_anthropic,
        of_anthropic(headers={"anthropic-ratelimit-requests-reset": NEXT} | DATED),
        56.0,
    ),
    (
        for_anthropic,
        of_anthropic(headers={"anthropic-ratelimit-input-tokens-reset": NEXT} | DATED),
        56.0,
    ),
    (for_botocore, of_aws(HTTPHeaders={"x-amz-retry-after": "250"}), 0.25),
    (for_botocore, of_aws(HTTPHeaders={"retry-after": "7"}), 7.0),
    (for_botocore, of_aws(), None),
    (for_azure, by_azure(**SOON), 7.0),
    (for_azure, by_azure(retry_after_ms="250"), 0.25),
    (for_azure, by_azure(x_ms_retry_after_ms="250"), 0.25),
    (for_azure, of_azure.ServiceRequestError("refused"), None),
    (for_openai, of_openai(headers={"retry-after": "2.5"}), 2.5),
    (for_anthropic, of_anthropic(headers={"retry-after": "2.0"}), 2.0),
    (for_botocore, of_aws(HTTPHeaders={"retry-after": "0.129"}), 0.129),
    (for_azure, by_azure(retry_after="2.5"), 2.5),
    (for_stripe, by_stripe(retry_after="2.5"), 2.5),
    (
        for_google,
        by_google(503, response=SimpleNamespace(headers={"Retry-After": "2.5"})),
        2.5,
    ),
    (for_stripe, by_stripe(retry_after="7"), 7.0),
    (for_kubernetes, ApiException(429), None),
    (for_google, by_google(503), None),
    (for_google, ValueError(), None),
    (
        for_google,
        by_google(503, response=SimpleNamespace(headers={"Retry-After": "7"})),
        7.0,
    ),
    *(
        (for_google, by_google(429, details=[{"reason": "first"}, detail]), delay)
        for detail, delay in [
            (
                {
                    "@type": "type.googleapis.com/google.rpc.RetryInfo",
                    "retryDelay": "3.5s",
                },
                3.5,
            ),
            ({"@type": "type.googleapis.com/google.rpc.RetryInfo"}, None),
            (
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": 3},
                None,
            ),
            (
                {"@type": "type.googleapis.com/google.rpc.Other", "retryDelay": "1s"},
                None,
            ),
            (RetryInfo(retry_delay=Duration(seconds=2, nanos=500_000_000)), 2.5),
            ("text", None),
        ]
    ),
]


@pytest.mark.parametrize(
    ("module", "error", "delay"),
    HINTS,
    ids=[f"{row[0].__name__.rpartition('.')[2]}-{row[2]}" for row in HINTS],
)
def test_requested_delays(module, error, delay):
    state = Policy(on=Exception, schedule=[0], hint=module.retry_after, hint_cap=0)
    failed = state.run(raising(error)).state
    assert failed.failures[0].hint == delay


def raising(error):
    def fail():
        raise error

    return fail


OVERLOADED = {
    "openai": b'data: {"error": {"type": "server_error", "message": "no"}}\n\n',
    "anthropic": b'event: error\ndata: {"type": "error", "error": '
    b'{"type": "overloaded_error", "message": "no"}}\n\n',
}
EVENTS = [("Content-Type", "text/event-stream")]


@pytest.mark.parametrize("name", OVERLOADED)
@pytest.mark.parametrize("fault", ["event", "cut"])
def test_a_stream_that_breaks_is_begun_anew(name, fault):
    sdk = SDKS[name]
    broken = answer(200, EVENTS, OVERLOADED[name], close=True)
    done = answer(200, EVENTS, b"", close=True)
    with serve(cut(9) if fault == "cut" else broken, done) as server:
        call = sdk.client(server.url)
        sdk.module.policy(schedule=[0]).call(lambda: list(call(stream=True)))
    assert len(server.seen) == 2


FAILED = {
    "error": b'{"type": "error", "code": "server_error", "message": "no", '
    b'"param": null, "sequence_number": 1}',
    "response.failed": b'{"type": "response.failed", "sequence_number": 1, '
    b'"response": {"error": {"code": "server_error", "message": "no"}}}',
    "response.incomplete": b'{"type": "response.incomplete", "sequence_number": 1, '
    b'"response": {"incomplete_details": {"reason": "max_output_tokens"}}}',
}


@pytest.mark.parametrize("kind", FAILED)
def test_a_function_must_raise_an_error_for_an_event_that_openai_yields(kind):
    def read(*, raises):
        client = openai.OpenAI(api_key=SECRET, base_url=server.url, max_retries=0)
        kinds = []
        with client:
            for event in client.responses.create(model="m", input="Why?", stream=True):
                kinds.append(event.type)
                if raises and event.type == kind:
                    raise RetryAfter
        return kinds

    failed = answer(200, EVENTS, b"data: " + FAILED[kind] + b"\n\n", close=True)
    done = answer(200, EVENTS, b"", close=True)
    policy = for_openai.policy(schedule=[0])
    with serve(failed, failed, done) as server:
        assert policy.call(read, raises=False) == [kind]
        assert policy.call(read, raises=True) == []
    assert len(server.seen) == 3


async def ask(url):
    client = openai.AsyncOpenAI(api_key=SECRET, base_url=url, max_retries=0)
    async with client:
        return await client.chat.completions.create(model="m", messages=MESSAGES)


def test_async_clients_are_retried():
    with serve(answer(503), answer(body=b"{}")) as server:
        asyncio.run(for_openai.policy(schedule=[0]).acall(ask, server.url))
    assert len(server.seen) == 2
