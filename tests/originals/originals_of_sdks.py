"""The SDKs of services, for Python."""

import functools
import itertools
import random
from collections.abc import Iterator
from typing import Any
from unittest import mock

from tests.originals.comparison import documented, original


@functools.cache
def client(module: str, name: str) -> Any:
    return getattr(__import__(module), name)(api_key="none")


def generated(module: str, name: str, max_retries: int) -> Iterator[float]:
    """Yield the delays of an SDK that Stainless generates."""
    options = mock.Mock()
    options.get_max_retries.return_value = max_retries
    for remaining in range(max_retries, 0, -1):
        yield client(module, name)._calculate_retry_timeout(remaining, options)


@original("openai", "openai", {"max_retries": 9})
def openai_waits(*, max_retries: int = 2) -> Iterator[float]:
    return generated("openai", "OpenAI", max_retries)


@original("anthropic", "anthropic", {"max_retries": 9})
def anthropic_waits(*, max_retries: int = 2) -> Iterator[float]:
    return generated("anthropic", "Anthropic", max_retries)


@original(
    "stainless",
    "groq",
    {"max_retries": 9},
    # The constants of together.
    {"max_retries": 5, "initial_retry_delay": 1.0, "max_retry_delay": 10.0},
)
def groq_waits(
    *,
    max_retries: int = 2,
    initial_retry_delay: float = 0.5,
    max_retry_delay: float = 8.0,
) -> Iterator[float]:
    from groq import _base_client as module

    module.INITIAL_RETRY_DELAY = initial_retry_delay
    module.MAX_RETRY_DELAY = max_retry_delay
    return generated("groq", "Groq", max_retries)


@original("fern", "squareup", {"max_retries": 9})
def fern_waits(*, max_retries: int = 2) -> Iterator[float]:
    from httpx import Response
    from square.core import http_client

    for retry in range(max_retries):
        yield http_client._retry_timeout(Response(503), retry)


@original("stripe", "stripe", {"max_network_retries": 7})
def stripe_waits(*, max_network_retries: int = 2) -> Iterator[float]:
    import stripe

    http, response, retries = stripe.HTTPClient(), (b"", 503, {}), 0
    while http._should_retry(response, None, retries, max_network_retries):
        retries += 1
        yield http._sleep_time_seconds(retries)


@original(
    "azure-core",
    "azure-core",
    {"retry_total": 2},
    {"retry_status": 9, "retry_backoff_factor": 3, "retry_backoff_max": 20},
    {"retry_status": 5, "retry_backoff_factor": 3, "retry_mode": "fixed"},
    {"retry_status": 0},
)
def azure_waits(**settings: Any) -> Iterator[float]:
    from azure.core.pipeline import PipelineResponse
    from azure.core.pipeline.policies import RetryPolicy

    request, answer = mock.Mock(body=None, files=None), mock.Mock(status_code=503)
    response = PipelineResponse(request, answer, mock.Mock())
    policy = RetryPolicy(**settings)
    state = policy.configure_retries({})
    while policy.increment(state, response=response):
        yield policy.get_backoff_time(state)


@original(
    "azure-storage",
    "azure-storage-blob",
    {"retry_total": 2, "increment_base": 1, "random_jitter_range": 0},
    {"retry_total": 9, "retry_status": 7, "random_jitter_range": 15},
    {"initial_backoff": 4, "increment_base": 2},
)
def azure_storage_waits(**settings: Any) -> Iterator[float]:
    from azure.storage.blob import ExponentialRetry

    policy = ExponentialRetry(**settings)
    request = mock.Mock(**{"http_request.body": None, "context.options": {}})
    state = policy.configure_retries(request)
    # It makes a source of random numbers for each delay.
    source = "azure.storage.blob._shared.policies.random.Random"
    with mock.patch(source, return_value=random):
        while policy.increment(state, request.http_request, mock.Mock()):
            yield policy.get_backoff_time(state)


@original(
    "google-genai",
    "google-genai",
    {"attempts": 9},
    {"initial_delay": 2, "exp_base": 3, "jitter": 5, "max_delay": 20},
)
def genai_waits(**settings: Any) -> Iterator[float]:
    from google.genai import _api_client, types

    arguments = _api_client.retry_args(types.HttpRetryOptions(**settings))
    state = mock.Mock(attempt_number=1)
    while not arguments["stop"](state):
        yield arguments["wait"](state)
        state.attempt_number += 1


@original(
    "client-go",
    "kubernetes",
    {"steps": 4, "factor": 5},
    {"steps": 9, "duration": 0.3, "factor": 1.5, "jitter": 2},
)
def client_go_waits(
    *, steps: int = 5, duration: float = 0.01, factor: float = 1, jitter: float = 0.1
) -> Iterator[float]:
    from kubernetes.utils.retry import Backoff, on_error

    waits: list[float] = []
    backoff = Backoff(steps, duration, factor, jitter)
    try:
        on_error(backoff, lambda _: True, lambda: 1 / 0, waits.append, random.random)
    except ZeroDivisionError:
        yield from waits


@original(
    "elastic-transport",
    "elastic-transport",
    {"max_retries": 7, "retry_backoff_base": 1, "retry_backoff_cap": 9},
    {"max_retries": 5, "retry_backoff_base": 3, "retry_backoff_cap": 2},
    {"max_retries": 2, "retry_backoff_base": 3},
    how="a run",
)
def elastic_waits(*, max_retries: int = 3, **settings: float) -> Iterator[float]:
    import elastic_transport

    # Nobody listens there.
    node = elastic_transport.NodeConfig("http", "127.0.0.1", 9)
    transport = elastic_transport.Transport([node], max_retries=max_retries, **settings)
    waits: list[float] = []
    with mock.patch("elastic_transport._transport.time.sleep", waits.append):
        try:
            transport.perform_request("GET", "/")
        except elastic_transport.ConnectionError as error:
            # It does not sleep for no time.
            yield from waits or [0.0] * len(error.errors)


@original("pymongo", "pymongo", {"max_adaptive_retries": 9})
def pymongo_waits(*, max_adaptive_retries: int = 2) -> Iterator[float]:
    from pymongo.helpers_shared import _RetryPolicy

    policy, retry = _RetryPolicy(max_adaptive_retries), 1
    while policy.should_retry(retry, delay := policy.backoff(retry)):
        yield delay
        retry += 1


def botocore_waits(service: str, max_attempts: int) -> Iterator[float]:
    """Yield the delays of the standard mode of botocore."""
    from botocore.retries import standard

    checker = standard.MaxAttemptsChecker(max_attempts)
    backoff = standard.ExponentialBackoff(service_name=service)
    for attempt in itertools.count(1):
        context = standard.RetryContext(attempt)
        if not checker.is_retryable(context):
            return
        yield backoff.delay_amount(context)


@original("aws-standard", "botocore", {"max_attempts": 12})
@original("aws-adaptive", "botocore", {"max_attempts": 12})
def standard_waits(*, max_attempts: int = 3) -> Iterator[float]:
    return botocore_waits("s3", max_attempts)


@original("aws-dynamodb", "botocore", {"max_attempts": 12})
def dynamodb_waits(*, max_attempts: int = 4) -> Iterator[float]:
    return botocore_waits("dynamodb", max_attempts)


documented("aws-sdk", "the code of the AWS SDKs, 2025")


@original("aws-legacy", "botocore", {"service": "dynamodb"})
def legacy_waits(*, service: str = "other") -> Iterator[float]:
    from botocore import retryhandler

    config = legacy_config(service)
    wait = retryhandler.create_retry_action_from_config(config)
    for attempt in range(1, config["__default__"]["max_attempts"]):
        yield wait(attempts=attempt)


@functools.cache
def legacy_config(service: str) -> Any:
    from botocore import loaders, translate

    model = loaders.create_loader().load_data("_retry")
    return translate.build_retry_config(service, model["retry"], model["definitions"])
