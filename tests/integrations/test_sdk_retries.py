"""What the page says of the SDKs' own retries, measured with the SDKs."""

import asyncio
import re
from functools import partial
from importlib import metadata
from pathlib import Path

import anthropic
import boto3
import kubernetes.client
import openai
import pytest
import redis
import requests
import stripe
import urllib3
from azure.core import PipelineClient
from azure.core.pipeline.policies import RetryPolicy
from azure.core.rest import HttpRequest
from botocore.config import Config
from google.api_core import gapic_v1
from google.api_core.exceptions import NotFound
from google.api_core.retry import Retry as GoogleRetry
from packaging.version import Version
from pymongo import MongoClient
from redis.backoff import NoBackoff
from redis.retry import Retry
from requests.adapters import BaseAdapter, HTTPAdapter

from retrykit import Policy
from retrykit._core import ineffective
from retrykit._core.layers import clients_of
from retrykit._own_retries import OWN_RETRIES, find_clients
from retrykit._throttling import throttling
from retrykit.integrations import google_api_core, stripe as for_stripe
from retrykit.integrations.requests import RetryAdapter
from retrykit.integrations.urllib3 import RetryPoolManager
from tests._support.scripted_server import answer, serve
from tests._support.sdk_clients import MESSAGES, aws, call_genai

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "transient_errors.md").read_text("utf-8")
# Headers that make the delays of the SDKs short.
AT_ONCE = [("retry-after-ms", "1"), ("x-amz-retry-after", "1"), ("Retry-After", "0")]
BODY = b'{"error": {"message": "no"}}'
UNAVAILABLE = answer(503, AT_ONCE, BODY, close=True)


def call_openai(url):
    client = openai.OpenAI(api_key="key", base_url=f"{url}/v1", timeout=5)
    return partial(client.chat.completions.create, model="m", messages=MESSAGES)


def call_anthropic(url):
    client = anthropic.Anthropic(api_key="key", base_url=url, timeout=5)
    return partial(client.messages.create, model="m", max_tokens=9, messages=MESSAGES)


def call_azure(url):
    client = PipelineClient(url, policies=[RetryPolicy(retry_backoff_factor=0)])
    request = HttpRequest("GET", f"{url}/p")
    return lambda: client.send_request(request).raise_for_status()


def call_aws(service, method, url):
    client = boto3.client(
        service,
        region_name="eu-west-1",
        endpoint_url=url,
        aws_access_key_id="key",
        aws_secret_access_key="key",  # noqa: S106  no server checks it
        config=Config(proxies={}),
    )
    return getattr(client, method)


def call_kubernetes(url):
    configuration = kubernetes.client.Configuration(host=url)
    api = kubernetes.client.CoreV1Api(kubernetes.client.ApiClient(configuration))
    return partial(api.list_namespace, _request_timeout=5)


class AtOnce(stripe.RequestsClient):
    """A client whose delays are zero, as no header of Stripe makes them."""

    def _sleep_time_seconds(self, *_args, **_settings):
        return 0


def call_stripe(url):
    client = stripe.StripeClient(
        "key", base_addresses={"api": url}, http_client=AtOnce(timeout=5)
    )
    return partial(client.v1.customers.create, {"name": "Ada"})


@pytest.fixture(autouse=True)
def _restored_settings_of_stripe():
    names = ["api_key", "api_base", "default_http_client", "max_network_retries"]
    before = {name: getattr(stripe, name) for name in names}
    yield
    for name, value in before.items():
        setattr(stripe, name, value)


def call_stripe_module(url):
    stripe.api_key, stripe.api_base = "key", url
    stripe.default_http_client = AtOnce(timeout=5)
    return partial(stripe.Customer.create, name="Ada")


CLIENTS = {
    "anthropic.Anthropic()": call_anthropic,
    "azure.core.PipelineClient(...)": call_azure,
    'boto3.client("dynamodb")': partial(call_aws, "dynamodb", "list_tables"),
    'boto3.client("s3")': partial(call_aws, "s3", "list_buckets"),
    "google.genai.Client()": call_genai,
    "kubernetes.client.ApiClient()": call_kubernetes,
    "openai.OpenAI()": call_openai,
    "stripe.Customer.create()": call_stripe_module,
    "stripe.StripeClient(...)": call_stripe,
}
ROW = r"^\| `(.+?)`.* \| ([0-9]+) \| `(.+)` ([0-9.]+) \|$"
# The others are measured by `nox -s originals`.
HERE = PAGE.partition("<!-- originals -->")[0]
MEASURED = {
    client: (int(requests), library, version)
    for client, requests, library, version in re.findall(ROW, HERE, re.MULTILINE)
}


def requests_of(call, step=UNAVAILABLE):
    """Return how many requests a call makes that fails every time."""
    with serve(step) as server:
        with pytest.raises(Exception):  # noqa: B017  of the SDK
            call(server.url)()
        return len(server.seen)


def skip_before(library, version):
    """Skip a test of the page, which is about this version, if an older one is here."""
    if Version(metadata.version(library)) < Version(version):
        pytest.skip(f"the page is about {library} {version}")


def test_every_row_of_the_page_is_measured():
    assert MEASURED.keys() == CLIENTS.keys()


@pytest.mark.parametrize("client", CLIENTS)
def test_an_sdk_makes_as_many_requests_as_the_page_says(client):
    requests, library, version = MEASURED[client]
    skip_before(library, version)
    installed = metadata.version(library)
    made = requests_of(CLIENTS[client])
    assert made == requests, (
        f"{library} {installed} makes {made} requests, and {version} made {requests}: "
        "change docs/transient_errors.md and the docstring of the integration"
    )


@pytest.mark.parametrize("client", CLIENTS)
def test_the_page_names_the_version_that_the_gate_installs(client):
    _, library, version = MEASURED[client]
    pins = (ROOT / ".ci" / "pins.txt").read_text("utf-8").splitlines()
    assert f"{library}=={version}" in pins, f"measure {library} again"


KNOWN = [name for name in CLIENTS if "genai" not in name]


@pytest.mark.parametrize("client", KNOWN)
def test_the_number_of_requests_is_read_from_the_client(client):
    with serve(UNAVAILABLE) as server:
        call = CLIENTS[client](server.url)
        function = call.func if isinstance(call, partial) else call
        arguments = (stripe,) if "Customer" in client else ()
        [(_, own, found)] = clients_of(function, arguments, {})
        with pytest.raises(Exception):  # noqa: B017  of the SDK
            call()
        assert own.count(found) == len(server.seen)


# The function itself raises the error of a response that PipelineClient returns.
RAISING = [name for name in KNOWN if "azure" not in name]


@pytest.mark.parametrize("client", RAISING)
def test_a_client_that_is_made_in_a_function_is_warned_of(client, caplog):
    requests = MEASURED[client][0]

    def call(url):
        return CLIENTS[client](url)()

    with serve(UNAVAILABLE) as server, pytest.raises(Exception):  # noqa: B017  of the SDK
        Policy(on=Exception, schedule=[0], name=client).call(call, server.url)
    assert len(server.seen) == 2 * requests
    texts = [x.getMessage() for x in caplog.records if x.name == "retrykit"]
    if requests == 1:
        assert texts == []
    else:
        product = f"{requests} requests in each of 2 attempts: 2 x {requests} = "
        assert product in texts.pop()
        assert texts == []


@pytest.fixture(autouse=True)
def _no_warnings():
    ineffective.warned.clear()
    ineffective.searched.clear()


def test_a_copy_without_retries_is_not_warned_of(caplog):
    with serve(UNAVAILABLE) as server:
        client = openai.OpenAI(api_key="key", base_url=f"{server.url}/v1", timeout=5)

        def ask():
            client.with_options(max_retries=0).models.list()

        with pytest.raises(openai.InternalServerError):
            Policy(on=Exception, schedule=[0]).call(ask)
    assert len(server.seen) == 2
    assert [x for x in caplog.records if x.name == "retrykit"] == []


class Shelf:
    """As a client of Google Cloud, with retries for one method."""

    def get(self, retry=None):
        method = gapic_v1.method.wrap_method(self._fail, default_retry=GoogleRetry())
        return method(retry=retry)

    def _fail(self, **_):
        msg = "no shelf"
        raise NotFound(msg)


Shelf.__module__ = "google.cloud.shelves"


@pytest.mark.parametrize(("retry", "warned"), [(None, False), (GoogleRetry(), True)])
def test_the_retries_of_a_method_of_google_cloud_are_warned_of(retry, warned, caplog):
    with pytest.raises(NotFound):
        Policy(on=NotFound, schedule=[0]).call(Shelf().get, retry)
    texts = [x.getMessage() for x in caplog.records if x.name == "retrykit"]
    text = (
        "google.cloud.shelves.Shelf retries by itself for up to 2 min in each of 2 "
        "attempts; retry=None makes one request"
    )
    assert [each.partition(": ")[2] for each in texts] == [text] * warned
    own = google_api_core.transient.own_retries
    assert (own.count(GoogleRetry()), own.time_limit(GoogleRetry())) == (None, 120.0)


SWITCHED_OFF = {
    "anthropic": lambda: anthropic.AsyncAnthropic(api_key="key"),
    "openai": lambda: openai.AsyncOpenAI(api_key="key"),
}


@pytest.mark.parametrize("library", SWITCHED_OFF)
def test_a_copy_of_a_client_makes_one_request(library):
    own, client = OWN_RETRIES[library], SWITCHED_OFF[library]()
    assert own.count(own.off(client)) == 1
    assert own.count(client) == 3


CONFIGURED = {
    "boto3, three attempts": lambda: boto({"total_max_attempts": 3}),
    "boto3, legacy": lambda: boto({"mode": "legacy"}),
    "boto3, one attempt": lambda: boto({"total_max_attempts": 1}),
    "pymongo": lambda: MongoClient(connect=False),
    "pymongo, none": lambda: MongoClient(
        connect=False, retryReads=False, retryWrites=False
    ),
    "redis": redis.Redis,
    "redis, none": lambda: redis.Redis(retry=Retry(NoBackoff(), 0)),
    "requests": requests.Session,
    "requests, three": lambda: mounted(3),
    "urllib3": urllib3.PoolManager,
    "urllib3, none": lambda: urllib3.PoolManager(retries=False),
    "urllib3, two": lambda: urllib3.PoolManager(retries=urllib3.Retry(2)),
}
READ = [*zip(CONFIGURED.values(), [3, 5, 1, 2, 1, 11, 1, 1, 4, 4, 1, 3], strict=True)]


def boto(retries):
    return boto3.client(
        "s3",
        region_name="eu-west-1",
        aws_access_key_id="key",
        aws_secret_access_key="key",  # noqa: S106  no server checks it
        config=Config(retries=retries),
    )


def mounted(retries):
    session = requests.Session()
    given = isinstance(retries, BaseAdapter)
    adapter = retries if given else HTTPAdapter(max_retries=retries)
    session.mount("https://", adapter)
    return session


@pytest.mark.parametrize(("make", "requests_"), READ, ids=CONFIGURED)
def test_the_settings_of_a_client_are_read(make, requests_):
    [(_, own, client)] = find_clients([make()])
    assert own.count(client) == requests_


@pytest.mark.parametrize("make", [RetryPoolManager, lambda: mounted(RetryAdapter())])
def test_the_clients_of_integrations_have_no_retries_but_those_of_their_policy(make):
    counts = [own.count(client) for _, own, client in find_clients([make()])]
    assert counts in ([], [1])


def test_the_switch_of_stripe_reaches_the_functions_of_the_module():
    call = call_stripe_module
    exec(for_stripe.transient.own_retries.text, {"stripe": stripe})  # noqa: S102  ours
    assert requests_of(call) == 1
    assert requests_of(call, answer(429, [], BODY, close=True)) == 1


def test_openai_gives_up_above_two_minutes():
    # Older ones do not wait above one minute, and repeat the request at once.
    skip_before("openai", "3.57.0")
    step = answer(429, [("retry-after", "121")], BODY, close=True)
    assert requests_of(call_openai, step) == 1


def test_anthropic_waits_however_long_it_is_asked_to():
    async def main():
        loop, answered = asyncio.get_running_loop(), asyncio.Event()

        def step(_request):
            loop.call_soon_threadsafe(answered.set)
            return answer(429, [("retry-after", "3600")], BODY, close=True)

        with serve(step) as server:
            client = anthropic.AsyncAnthropic(api_key="key", base_url=server.url)
            task = asyncio.ensure_future(
                client.messages.create(model="m", max_tokens=9, messages=MESSAGES)
            )
            await answered.wait()
            # It raises the error within milliseconds, if at all.
            done, _ = await asyncio.wait([task], timeout=0.3)
            task.cancel()
            return done, len(server.seen)

    assert asyncio.run(main()) == (set(), 1)


def caught(call):
    with pytest.raises(Exception) as raised:
        call()
    return raised.value


THROTTLED = {
    "an empty body": ("s3", "list_buckets", b"", True),
    "an unknown code": ("dynamodb", "list_tables", b'{"__type": "Overload"}', True),
    "a code of throttling": (
        "dynamodb",
        "list_tables",
        b'{"__type": "ThrottlingException"}',
        True,
    ),
    "a code of the model": (
        "dynamodb",
        "list_tables",
        b'{"__type": "ResourceNotFoundException"}',
        False,
    ),
}


@pytest.mark.parametrize(
    ("service", "method", "body", "expected"), THROTTLED.values(), ids=THROTTLED
)
def test_a_429_is_throttling_unless_the_model_has_its_code(
    service, method, body, expected
):
    with serve(answer(429, [], body, close=True)) as server:
        error = caught(getattr(aws(service, server.url), method))
    assert throttling(error) is expected
    with serve(answer(503, [], b"", close=True)) as server:
        assert not throttling(caught(aws("s3", server.url).list_buckets))
