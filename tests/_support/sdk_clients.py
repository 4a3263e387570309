"""One call through each SDK, to a server of a test.

    call = SDKS["openai"].client(server.url)
    call()

Each call sends the secret in its credentials, and one request, or as many as the own
retries of the SDK make.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType

import anthropic
import boto3
import kubernetes.client
import openai
import requests
import stripe
from azure.core import PipelineClient
from azure.core.pipeline.policies import HeadersPolicy, RetryPolicy
from azure.core.rest import HttpRequest
from botocore.config import Config
from google import genai
from google.api_core.exceptions import from_http_response

from retrykit.integrations import (
    anthropic as for_anthropic,
    azure_core as for_azure,
    botocore as for_botocore,
    google_api_core as for_google,
    google_genai as for_genai,
    kubernetes as for_kubernetes,
    openai as for_openai,
    stripe as for_stripe,
)

__all__ = ["MESSAGES", "SDKS", "SECRET", "Sdk", "aws"]

SECRET = "S3CRET"  # noqa: S105  what is looked for
MESSAGES = [{"role": "user", "content": "Why?"}]


@dataclass(frozen=True)
class Sdk:
    """An integration, and a function that returns a call to the server at a URL.

    *hint* is a header by which its service requests 1.5 or 2 s.
    """

    module: ModuleType
    client: Callable[..., Callable[[], object]]
    hint: tuple[str, str]


def call_openai(url, retries=0):
    client = openai.OpenAI(
        api_key=SECRET, base_url=f"{url}/v1", max_retries=retries, timeout=5
    )
    return partial(client.chat.completions.create, model="m", messages=MESSAGES)


def call_anthropic(url, retries=0):
    client = anthropic.Anthropic(
        api_key=SECRET, base_url=url, max_retries=retries, timeout=5
    )
    return partial(client.messages.create, model="m", max_tokens=9, messages=MESSAGES)


def aws(service, url, retries=0):
    attempts = {"total_max_attempts": retries + 1, "mode": "standard"}
    return boto3.client(
        service,
        region_name="eu-west-1",
        endpoint_url=url,
        aws_access_key_id=SECRET,
        aws_secret_access_key=SECRET,
        config=Config(retries=attempts, proxies={}),
    )


def call_botocore(url, retries=0):
    return aws("dynamodb", url, retries).list_tables


def call_stripe(url, retries=0):
    client = stripe.StripeClient(
        SECRET,
        base_addresses={"api": url},
        max_network_retries=retries,
        http_client=stripe.RequestsClient(timeout=5),
    )
    return partial(client.v1.customers.create, {"name": "Ada"})


def call_azure(url, retries=0):
    policies = [
        HeadersPolicy({"Authorization": SECRET}),
        RetryPolicy(retry_total=retries, retry_backoff_factor=0),
    ]
    client = PipelineClient(url, policies=policies)

    def call():
        client.send_request(
            HttpRequest("GET", f"{url}/p?sig={SECRET}")
        ).raise_for_status()

    return call


def call_kubernetes(url, retries=0):
    configuration = kubernetes.client.Configuration(host=url)
    configuration.retries = retries or False
    configuration.api_key = {"authorization": SECRET}
    api = kubernetes.client.CoreV1Api(kubernetes.client.ApiClient(configuration))
    return partial(api.list_namespace, label_selector=SECRET, _request_timeout=5)


def call_google(url):
    """Return a call as those of clients of Google Cloud without retries."""

    def call():
        with requests.Session() as session:
            session.trust_env = False
            response = session.get(f"{url}/p?key={SECRET}", timeout=5)
            if not response.ok:
                raise from_http_response(response)

    return call


def call_genai(url):
    client = genai.Client(api_key=SECRET, http_options={"base_url": url})
    # Its parts do not keep the client, which closes its connections when it is freed.
    return lambda: client.models.generate_content(model="m", contents="Why?")


SDKS = {
    "anthropic": Sdk(for_anthropic, call_anthropic, ("retry-after-ms", "1500")),
    "azure-core": Sdk(for_azure, call_azure, ("x-ms-retry-after-ms", "1500")),
    "botocore": Sdk(for_botocore, call_botocore, ("x-amz-retry-after", "1500")),
    "google-api-core": Sdk(for_google, call_google, ("Retry-After", "2")),
    "google-genai": Sdk(for_genai, call_genai, ("Retry-After", "2")),
    "kubernetes": Sdk(for_kubernetes, call_kubernetes, ("Retry-After", "2")),
    "openai": Sdk(for_openai, call_openai, ("x-ratelimit-reset-requests", "1s500ms")),
    "stripe": Sdk(for_stripe, call_stripe, ("Retry-After", "2")),
}
