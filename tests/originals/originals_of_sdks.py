"""The SDKs of services, for Python."""

import dataclasses
import functools
import itertools
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from unittest import mock

from tests.originals.comparison import documented, failing, original


@functools.cache
def client(module: str, name: str) -> Any:
    return getattr(__import__(module), name)(api_key="none")


def generated(module: str, name: str, max_retries: int) -> Iterator[float]:
    """Yield the delays of an SDK that Stainless generates."""
    options = mock.Mock()
    options.get_max_retries.return_value = max_retries
    for remaining in range(max_retries, 0, -1):
        yield client(module, name)._calculate_retry_timeout(remaining, options)


@original("openai", {"max_retries": 9})
def openai_waits(*, max_retries: int = 2) -> Iterator[float]:
    return generated("openai", "OpenAI", max_retries)


@original("anthropic", {"max_retries": 9})
def anthropic_waits(*, max_retries: int = 2) -> Iterator[float]:
    return generated("anthropic", "Anthropic", max_retries)


@original(
    "stainless",
    {"max_retries": 9},
    # The constants of together.
    {"max_retries": 5, "initial_retry_delay": 1.0, "max_retry_delay": 10.0},
    package="groq",
)
def groq_waits(*, max_retries: int = 2, **settings: float) -> Iterator[float]:
    constants = {name.upper(): value for name, value in settings.items()}
    with mock.patch.dict("groq._base_client.__dict__", constants):
        yield from generated("groq", "Groq", max_retries)


@original("fern", {"max_retries": 9}, package="squareup")
def fern_waits(*, max_retries: int = 2) -> Iterator[float]:
    from httpx import Response
    from square.core import http_client

    for retry in range(max_retries):
        yield http_client._retry_timeout(Response(503), retry)


@original("stripe", {"max_network_retries": 7})
def stripe_waits(*, max_network_retries: int = 2) -> Iterator[float]:
    import stripe

    http, response, retries = stripe.HTTPClient(), (b"", 503, {}), 0
    while http._should_retry(response, None, retries, max_network_retries):
        retries += 1
        yield http._sleep_time_seconds(retries)


@original(
    "azure-core",
    {"retry_total": 2},
    {"retry_status": 9, "retry_backoff_factor": 3, "retry_backoff_max": 20},
    {"retry_status": 5, "retry_backoff_factor": 3, "retry_mode": "fixed"},
    {"retry_status": 0},
)
def azure_waits(**settings: Any) -> list[float]:
    from azure.core.pipeline.policies import RetryPolicy

    return pipeline_waits(RetryPolicy(**settings))


@original(
    "azure-storage",
    {"retry_total": 2, "increment_base": 1, "random_jitter_range": 0},
    {"retry_total": 9, "retry_status": 7, "random_jitter_range": 15},
    {"initial_backoff": 4, "increment_base": 2},
    package="azure-storage-blob",
)
def azure_storage_waits(**settings: Any) -> list[float]:
    from azure.storage.blob import ExponentialRetry

    return pipeline_waits(ExponentialRetry(**settings))


def pipeline_waits(policy: Any) -> list[float]:
    """Return the delays of a policy in a pipeline of Azure whose requests all fail."""
    from azure.core.pipeline import Pipeline
    from azure.core.rest import HttpRequest

    waits: list[float] = []
    # The policies do not sleep if a delay is 0.
    policy.sleep = lambda state, *_, **__: waits.append(policy.get_backoff_time(state))
    transport = mock.MagicMock()
    transport.send.return_value = mock.Mock(status_code=503, headers={})
    Pipeline(transport, [policy]).run(HttpRequest("GET", "http://localhost/"))
    return waits


@original(
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
    {"steps": 4, "factor": 5},
    {"steps": 9, "duration": 0.3, "factor": 1.5, "jitter": 2},
    package="kubernetes",
)
def client_go_waits(**settings: float) -> list[float]:
    from kubernetes.utils.retry import DEFAULT_RETRY, on_error

    waits: list[float] = []
    backoff = dataclasses.replace(DEFAULT_RETRY, **settings)
    with suppress(OSError):
        on_error(backoff, lambda _: True, failing(OSError), waits.append)
    return waits


@original(
    "elastic-transport",
    {"max_retries": 7, "retry_backoff_base": 1, "retry_backoff_cap": 9},
    {"max_retries": 5, "retry_backoff_base": 3, "retry_backoff_cap": 2},
    {"max_retries": 2, "retry_backoff_base": 3},
    how="a run",
)
def elastic_waits(*, max_retries: int = 3, **settings: float) -> Iterator[float]:
    import elastic_transport as library

    # Nobody listens there.
    node, waits = library.NodeConfig("http", "127.0.0.1", 9), []
    transport = library.Transport([node], max_retries=max_retries, **settings)
    with mock.patch("elastic_transport._transport.time.sleep", waits.append):
        try:
            transport.perform_request("GET", "/")
        except library.ConnectionError as error:
            # It does not sleep for no time.
            yield from waits or [0.0] * len(error.errors)


@original("pymongo", {"max_adaptive_retries": 9})
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


@original("aws-standard", {"max_attempts": 12}, package="botocore")
@original("aws-adaptive", {"max_attempts": 12}, package="botocore")
def standard_waits(*, max_attempts: int = 3) -> Iterator[float]:
    return botocore_waits("s3", max_attempts)


@original("aws-dynamodb", {"max_attempts": 12}, package="botocore")
def dynamodb_waits(*, max_attempts: int = 4) -> Iterator[float]:
    return botocore_waits("dynamodb", max_attempts)


documented("aws-sdk", "the code of the AWS SDKs, 2025")


@original("aws-legacy", {"service": "dynamodb"}, package="botocore")
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
