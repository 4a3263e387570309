"""What calls of libraries do, in one line."""

import math

import pytest

from retrykit.audit._arguments import MISSING
from retrykit.audit._libraries import LIBRARIES
from tests._support.audited import audit_texts, site_of, sites_of

# By library: an import, then calls and what each does.
IMPORTS = {
    "backoff": "import backoff",
    "stamina": "import stamina",
    "retrying": "from retrying import retry, Retrying",
    "retry": "from retry import retry\nfrom retry.api import retry_call",
    "urllib3": "import urllib3\nfrom urllib3.util import Retry",
    "requests": "import requests\nfrom requests.adapters import HTTPAdapter, Retry",
    "httpx": "import httpx",
    "httpx_retries": "from httpx_retries import Retry, RetryTransport",
    "aiohttp_retry": "from aiohttp_retry import *\nimport aiohttp_retry",
    "google": "from google.api_core import retry\nfrom google.genai import types",
    "opnieuw": "import opnieuw",
    "retryhttp": "import retryhttp",
    "redis": "import redis\nfrom redis.retry import Retry\nfrom redis import backoff",
    "botocore": "from botocore.config import Config",
    "celery": "import celery\napp = celery.Celery()\nfrom celery import shared_task",
    "langchain_core": "from langchain_openai import ChatOpenAI\nmodel = ChatOpenAI()",
    "openai": "import openai",
    "cohere": "import cohere",
    "together": "import together",
    "elasticsearch": "import elasticsearch",
    "stripe": "import stripe",
    "azure": "from azure.storage.blob import BlobServiceClient",
    "kubernetes": "from kubernetes import client",
    "litellm": "import litellm",
    "retrykit": "from retrykit import retry, Policy, aretrying, presets\n"
    "from retrykit.schedules import *\nfrom retrykit import schedules",
    "tenacity": "import tenacity\nfrom tenacity import *\nfrom tenacity import retry",
}
MODELS = (
    "retries APIConnectionError, APITimeoutError, RateLimitError, "
    "InternalServerError, ConflictError"
)
TRANSIENT = (
    "retries InternalServerError, TooManyRequests, ServiceUnavailable, "
    "ConnectionError, ChunkedEncodingError, TransportError"
)
CALLS = {
    "backoff": {
        "backoff.on_exception(backoff.expo, OSError, max_tries=5)": (
            "5 calls; 1 s, 2 s, 4 s ..., with jitter, 15 s in all; retries OSError"
        ),
        "backoff.on_exception(backoff.expo, OSError)": (
            "calls without a limit; 1 s, 2 s, 4 s ..., with jitter; retries OSError"
        ),
        "backoff.on_exception(backoff.expo, (OSError, ValueError), max_tries=3, "
        "factor=2, base=3, max_value=10, jitter=None)": (
            "3 calls; 2 s, 6 s, no jitter, 8 s in all; retries OSError, ValueError"
        ),
        "backoff.on_exception(backoff.constant, OSError, interval=2, max_time=60, "
        "jitter=backoff.random_jitter)": (
            "for 1 min; 3 s, with jitter, 1 min in all; retries OSError"
        ),
        "backoff.on_exception(backoff.fibo, OSError, max_tries=6, jitter=None)": (
            "6 calls; 1 s, 1 s, 2 s ..., no jitter, 12 s in all; retries OSError"
        ),
        "backoff.on_exception(backoff.expo, OSError, max_tries=4, jitter=mine)": (
            "4 calls; delays: ?; retries OSError"
        ),
        "backoff.on_exception(mine, OSError, max_tries=N)": (
            "? calls; random delays; retries OSError"
        ),
        "backoff.on_exception(backoff.runtime, OSError, value=mine, jitter=None)": (
            "calls without a limit; delays: ?, no jitter; retries OSError"
        ),
        "backoff.on_predicate(backoff.constant, max_tries=3, jitter=None)": (
            "3 calls; 1 s, no jitter, 2 s in all; retries results"
        ),
    },
    "stamina": {
        "stamina.retry(on=OSError)": (
            "10 calls for 45 s; 1.1 s, 1.2 s, 1.4 s ... at most 5 s, with jitter, "
            "27.3 s in all; retries OSError"
        ),
        "stamina.retry(OSError, attempts=None, timeout=None, wait_jitter=0)": (
            "calls without a limit; 100 ms, 200 ms, 400 ms ... at most 5 s, no jitter; "
            "retries OSError"
        ),
        "stamina.retry_context(on=is_transient, attempts=3)": (
            "3 calls for 45 s; 1.1 s, 1.2 s, with jitter, 2.3 s in all; retries ?"
        ),
        "stamina.AsyncRetryingCaller(2, 10)": (
            "2 calls for 10 s; 1.1 s, with jitter, 1.1 s in all; retries ?"
        ),
    },
    "retrying": {
        "retry(stop_max_attempt_number=3, wait_fixed=2000)": (
            "3 calls; 2 s, no jitter, 4 s in all; retries Exception"
        ),
        "retry(wait_exponential_multiplier=1000, wait_exponential_max=10000, "
        "stop_max_delay=30000)": (
            "for 30 s; 2 s, 4 s, 8 s ... at most 10 s, no jitter, 30 s in all; "
            "retries Exception"
        ),
        "retry(fetch)": "calls without a limit; no delay; retries Exception",
        "Retrying(wait_random_min=1000, wait_random_max=2000, "
        "stop_max_attempt_number=4)": (
            "4 calls; 2 s, with jitter, 6 s in all; retries Exception"
        ),
        "retry(wait_random_max=500, retry_on_result=is_empty, stop_func=mine)": (
            "? calls; 500 ms, with jitter; retries Exception, results"
        ),
        "retry(wait_incrementing_start=100, wait_incrementing_increment=50, "
        "stop_max_attempt_number=4)": (
            "4 calls; 100 ms, 150 ms, 200 ms, no jitter, 450 ms in all; retries "
            "Exception"
        ),
        "retry(wait_incrementing_increment=50, wait_incrementing_max=80, "
        "wait_fixed=10)": (
            "calls without a limit; delays: ?, no jitter; retries Exception"
        ),
        "retry(wait_func=mine, retry_on_exception=(OSError,))": (
            "calls without a limit; delays: ?; retries OSError"
        ),
        "retry(wait_jitter_max=500, stop_max_attempt_number=2)": (
            "2 calls; 500 ms, with jitter, 500 ms in all; retries Exception"
        ),
        "retry(wait_fixed=0, retry_on_exception=mine, stop_max_attempt_number=2)": (
            "2 calls; no delay; retries ?"
        ),
        "retry(wait_fixed=1000, wait_jitter_max=500, stop_max_attempt_number=3, "
        "wrap_exception=True)": (
            "3 calls; 1.5 s, with jitter, 3 s in all; retries Exception"
        ),
        "retry(wait_exponential_max=800, wrap_exception=mine)": (
            "calls without a limit; 2 ms, 4 ms, 8 ms ... at most 800 ms, no jitter; "
            "retries Exception"
        ),
        "retry(wait_fixed=DELAY, stop_max_attempt_number=3)": (
            "3 calls; constant delays, no jitter; retries Exception"
        ),
    },
    "retry": {
        "retry(tries=3, delay=1)": (
            "3 calls; 1 s, no jitter, 2 s in all; retries Exception"
        ),
        "retry()": "calls without a limit; no delay; retries Exception",
        "retry(OSError, tries=4, delay=1, backoff=2, max_delay=3)": (
            "4 calls; 1 s, 2 s, 3 s, no jitter, 6 s in all; retries OSError"
        ),
        "retry((OSError, ValueError), 4, 1, jitter=2)": (
            "4 calls; 1 s, 3 s, 5 s, no jitter, 9 s in all; retries OSError, ValueError"
        ),
        "retry(tries=4, delay=1, jitter=(1, 3))": (
            "4 calls; random delays; retries Exception"
        ),
        "retry(tries=4, delay=1, jitter=mine, on_exception=mine)": (
            "4 calls; delays: ?; retries Exception"
        ),
        "retry_call(fetch, [1], tries=5)": "5 calls; no delay; retries Exception",
    },
    "urllib3": {
        "Retry(3)": "4 calls; no delay; retries HTTPError",
        "Retry()": "11 calls; no delay; retries HTTPError",
        "Retry(total=5, backoff_factor=0.5, status_forcelist=[500, 503])": (
            "6 calls; 0 s, 1 s, 2 s ... at most 8 s, no jitter, 15 s in all; "
            "retries HTTPError, 500, 503"
        ),
        "Retry(3, backoff_factor=1, backoff_max=3, backoff_jitter=0.5, "
        "status_forcelist=CODES)": (
            "4 calls; 0 s, 2.5 s, 3 s, with jitter, 5.5 s in all; retries HTTPError"
        ),
        "Retry(None)": "calls without a limit; no delay; retries HTTPError",
        "Retry(None, connect=2)": "3 calls; no delay; retries HTTPError",
        "Retry(None, connect=2, read=3)": "? calls; no delay; retries HTTPError",
        "Retry(3, backoff_jitter=1.0)": (
            "4 calls; 1 s, with jitter, 2 s in all; retries HTTPError"
        ),
        "Retry(3, backoff_jitter=mine)": ("4 calls; delays: ?; retries HTTPError"),
        "Retry.from_int(2)": "3 calls; no delay; retries HTTPError",
        "urllib3.PoolManager(retries=4)": "5 calls; no delay; retries HTTPError",
    },
    "requests": {
        "HTTPAdapter(max_retries=3)": "4 calls; no delay; retries HTTPError",
        "HTTPAdapter(max_retries=Retry(2))": "3 calls; no delay; retries HTTPError",
        "HTTPAdapter(max_retries=settings[0])": "? calls; delays: ?; retries ?",
    },
    "httpx": {
        "httpx.HTTPTransport(retries=3)": (
            "4 calls; 0 s, 500 ms, 1 s, no jitter, 1.5 s in all; retries "
            "ConnectError, ConnectTimeout"
        ),
    },
    "httpx_retries": {
        "RetryTransport()": (
            "11 calls; no delay; retries TimeoutException, NetworkError, "
            "RemoteProtocolError, results"
        ),
        "RetryTransport(retry=Retry(total=3, backoff_factor=0.5))": (
            "4 calls; 1 s, 2 s, 4 s, with jitter, 7 s in all; retries "
            "TimeoutException, NetworkError, RemoteProtocolError, results"
        ),
        "Retry(3, backoff_factor=1, backoff_jitter=0, retry_on_exceptions=[OSError])": (
            "4 calls; 2 s, 4 s, 8 s, no jitter, 14 s in all; retries OSError, results"
        ),
        "Retry(3, backoff_factor=mine, backoff_jitter=mine)": (
            "4 calls; exponential delays at most 2 min, jitter: ?; "
            "retries TimeoutException, NetworkError, RemoteProtocolError, results"
        ),
    },
    "aiohttp_retry": {
        "aiohttp_retry.RetryClient()": (
            "3 calls; 200 ms, 400 ms, no jitter, 600 ms in all; retries results"
        ),
        "aiohttp_retry.RetryClient(retry_options="
        "aiohttp_retry.ExponentialRetry(attempts=5, start_timeout=1, factor=3, "
        "exceptions={OSError}))": (
            "5 calls; 3 s, 9 s, 27 s ... at most 30 s, no jitter, 1 min 9 s in all; "
            "retries OSError, results"
        ),
        "aiohttp_retry.JitterRetry(2)": (
            "2 calls; 4.2 s, with jitter, 4.2 s in all; retries results"
        ),
        "aiohttp_retry.RandomRetry(4)": (
            "4 calls; 3 s, with jitter, 9 s in all; retries results"
        ),
        "aiohttp_retry.ListRetry([1, 2, 4])": (
            "3 calls; delays: ?, no jitter; retries results"
        ),
        "aiohttp_retry.FibonacciRetry()": (
            "3 calls; delays: ?, no jitter; retries results"
        ),
    },
    "google": {
        "retry.Retry()": (
            "for 2 min; 1 s, 2 s, 4 s ... at most 1 min, with jitter, 2 min in all; "
            + TRANSIENT
        ),
        "retry.AsyncRetry(predicate=retry.if_exception_type(OSError, ValueError), "
        "initial=0.1, maximum=10, multiplier=1.5, deadline=30)": (
            "for 30 s; 100 ms, 150 ms, 225 ms ... at most 10 s, with jitter, "
            "30 s in all; retries OSError, ValueError"
        ),
        "retry.Retry(retry.if_transient_error, timeout=None)": (
            "calls without a limit; 1 s, 2 s, 4 s ... at most 1 min, with jitter; "
            + TRANSIENT
        ),
        "retry.Retry(predicate=mine.transient(OSError))": (
            "for 2 min; 1 s, 2 s, 4 s ... at most 1 min, with jitter, 2 min in all; "
            "retries ?"
        ),
        "retry.Retry(predicate=lambda error: True)": (
            "for 2 min; 1 s, 2 s, 4 s ... at most 1 min, with jitter, 2 min in all; "
            "retries ?"
        ),
        "types.HttpRetryOptions(attempts=3)": (
            "3 calls; 2 s, 3 s, with jitter, 5 s in all; retries APIError"
        ),
    },
    "opnieuw": {
        "opnieuw.retry(retry_on_exceptions=OSError, max_calls_total=4, "
        "retry_window_after_first_call_in_seconds=70)": (
            "4 calls for 1 min 10 s; 10 s, 20 s, 40 s, with jitter, 1 min 10 s in "
            "all; retries OSError"
        ),
        "opnieuw.retry_async(retry_on_exceptions=OSError, max_calls_total=N)": (
            "? calls for 1 min; exponential delays at most 1 min, with jitter; "
            "retries OSError"
        ),
    },
    "retryhttp": {
        "retryhttp.retry(max_attempt_number=2)": (
            "2 calls; delays: ?; retries HTTPStatusError, HTTPError, "
            "ConnectError, ConnectionError, Timeout"
        ),
        "retryhttp.retry(stop=mine, retry=mine, wait=mine, reraise=mine)": (
            "? calls; delays: ?; retries ?"
        ),
    },
    "redis": {
        "Retry(backoff.ExponentialBackoff(), 3)": (
            "4 calls; 16 ms, 32 ms, 64 ms, no jitter, 112 ms in all; retries "
            "ConnectionError, TimeoutError"
        ),
        "redis.Redis(retry=Retry(backoff.FullJitterBackoff(cap=10, base=1), 2, "
        "(OSError,)))": ("3 calls; 2 s, 4 s, with jitter, 6 s in all; retries OSError"),
        "Retry(backoff.NoBackoff(), -1)": (
            "calls without a limit; no delay; retries ConnectionError, TimeoutError"
        ),
        "Retry(backoff.ConstantBackoff(2), 2)": (
            "3 calls; 2 s, no jitter, 4 s in all; retries ConnectionError, TimeoutError"
        ),
        "Retry(backoff.DecorrelatedJitterBackoff(), 2)": (
            "3 calls; random delays; retries ConnectionError, TimeoutError"
        ),
        "Retry(backoff.default_backoff(), 1)": (
            "2 calls; 16 ms, with jitter, 16 ms in all; retries ConnectionError, "
            "TimeoutError"
        ),
        "Retry(backoff.MyBackoff(base=mine), N)": (
            "? calls; delays: ?; retries ConnectionError, TimeoutError"
        ),
        "Retry(mine, 1)": ("2 calls; delays: ?; retries ConnectionError, TimeoutError"),
        "Retry(backoff.ExponentialBackoff(base=mine), 1)": (
            "2 calls; exponential delays at most 512 ms, no jitter; "
            "retries ConnectionError, TimeoutError"
        ),
        "redis.Redis(retry_on_error=[BusyLoadingError])": (
            "11 calls; 20 ms, 40 ms, 80 ms ... at most 1 s, with jitter, "
            "5.26 s in all; retries ConnectionError, TimeoutError, BusyLoadingError"
        ),
    },
    "botocore": {
        'Config(retries={"max_attempts": 4})': (
            "5 calls; 1 s, 2 s, 4 s ... at most 8 s, with jitter, 15 s in all; "
            "retries ClientError, EndpointConnectionError, HTTPClientError"
        ),
        'Config(retries={"total_max_attempts": 4, "mode": "legacy"})': (
            "4 calls; 1 s, 2 s, 4 s, with jitter, 7 s in all; retries ClientError, "
            "EndpointConnectionError, HTTPClientError"
        ),
        'Config(retries={"mode": "legacy"})': (
            "5 calls; 1 s, 2 s, 4 s ..., with jitter, 15 s in all; "
            "retries ClientError, EndpointConnectionError, HTTPClientError"
        ),
        "Config(retries=RETRIES)": (
            "? calls; random delays; "
            "retries ClientError, EndpointConnectionError, HTTPClientError"
        ),
    },
    "celery": {
        "app.task(autoretry_for=(OSError,), retry_backoff=True)": (
            "4 calls; 1 s, 2 s, 4 s, with jitter, 7 s in all; retries OSError"
        ),
        "shared_task(autoretry_for=(OSError,), max_retries=None, retry_backoff=5, "
        "retry_jitter=False, retry_backoff_max=60)": (
            "calls without a limit; 5 s, 10 s, 20 s ... at most 1 min, no jitter; "
            "retries OSError"
        ),
        "imported_application.task(autoretry_for=(OSError,))": (
            "4 calls; 3 min, no jitter, 9 min in all; retries OSError"
        ),
        'shared_task(autoretry_for=(Exception,), retry_kwargs={"max_retries": 5, '
        '"countdown": 0})': "6 calls; no delay; retries Exception",
    },
    "langchain_core": {
        "model.with_retry()": (
            "3 calls; 2 s, 3 s, with jitter, 5 s in all; retries Exception"
        ),
        "other.with_retry(stop_after_attempt=2, wait_exponential_jitter=False, "
        "retry_if_exception_type=(OSError,))": "2 calls; no delay; retries OSError",
        "model.with_retry(exponential_jitter_params=mine)": (
            "3 calls; exponential delays, jitter: ?; retries Exception"
        ),
    },
    "openai": {
        "openai.OpenAI(max_retries=4)": (
            "5 calls; 500 ms, 1 s, 2 s ... at most 4 s, with jitter, 7.5 s in all; "
            + MODELS
        ),
    },
    "cohere": {
        "cohere.AsyncClientV2(max_retries=1)": (
            "2 calls; 1.1 s, with jitter, 1.1 s in all; retries ApiError"
        ),
    },
    "together": {
        "together.Together(max_retries=1)": (
            "2 calls; 1 s, with jitter, 1 s in all; " + MODELS
        ),
    },
    "elasticsearch": {
        "elasticsearch.Elasticsearch(max_retries=5)": (
            "6 calls; no delay; retries ConnectionError, TransportError, ApiError"
        ),
    },
    "stripe": {
        "stripe.StripeClient(key, max_network_retries=2)": (
            "3 calls; 500 ms, 1 s, with jitter, 1.5 s in all; retries "
            "APIConnectionError, StripeError"
        ),
    },
    "azure": {
        "BlobServiceClient(url, retry_total=2)": (
            "3 calls; 0 s, 1.6 s, no jitter, 1.6 s in all; retries AzureError, "
            "HttpResponseError, ServiceRequestError"
        ),
    },
    "kubernetes": {
        "client.Configuration(retries=2)": ("3 calls; no delay; retries MaxRetryError"),
    },
    "litellm": {
        "litellm.completion(model, num_retries=3)": ("6 calls; delays: ?; " + MODELS),
        "litellm.Router(num_retries=3)": "4 calls; delays: ?; " + MODELS,
    },
    "retrykit": {
        "retry()": (
            "5 calls for 1 min; 750 ms, 1.12 s, 1.69 s ... at most 2.53 s, with "
            "jitter, 6.09 s in all; retries errors but bugs"
        ),
        'retry(schedule=schedules.exponential("500ms").cap("30s").full_jitter(), '
        "max_attempts=4, on=OSError)": (
            "4 calls; 500 ms, 1 s, 2 s, with jitter, 3.5 s in all; retries OSError"
        ),
        'Policy(schedule=[1, 5, "1m"], on=OSError)': (
            "4 calls; 1 s, 5 s, 1 min, no jitter, 1 min 6 s in all; retries OSError"
        ),
        'Policy(max_elapsed="10s", schedule=schedules.constant(1).equal_jitter())': (
            "for 10 s; 1 s, with jitter, 10 s in all; retries errors but bugs"
        ),
        "Policy(max_attempts=None, max_elapsed=None)": (
            "calls without a limit; 750 ms, 1.12 s, 1.69 s ... at most 1 min 30 s, "
            "with jitter; retries errors but bugs"
        ),
        'aretrying(max_attempts=3, schedule=schedules.linear("2s"), on_result=bad)': (
            "3 calls; 2 s, 4 s, no jitter, 6 s in all; retries errors but bugs, results"
        ),
        "Policy(schedule=schedules.fibonacci().take(3), on=OSError)": (
            "4 calls; 1 s, 1 s, 2 s, no jitter, 4 s in all; retries OSError"
        ),
        "Policy(schedule=schedules.uniform(1, 2), max_attempts=3, on=OSError)": (
            "3 calls; 2 s, with jitter, 4 s in all; retries OSError"
        ),
        "Policy(schedule=schedules.decorrelated(1), max_attempts=3, on=OSError)": (
            "3 calls; random delays; retries OSError"
        ),
        "Policy(schedule=schedules.sequence([0, 0]), on=OSError)": (
            "3 calls; no delay; retries OSError"
        ),
        "Policy(schedule=schedules.sequence(mine), on=OSError, max_attempts=N)": (
            "? calls; delays: ?; retries OSError"
        ),
        "Policy(schedule=schedules.exponential(1).jitter(0.1).at_least(2), "
        "max_attempts=4, on=OSError)": (
            "4 calls; 2 s, 2.2 s, 4.4 s, with jitter, 8.6 s in all; retries OSError"
        ),
        "Policy(on=OSError, schedule=schedules.linear(1).jitter(0.5).take(2))": (
            "3 calls; 1.5 s, 3 s, with jitter, 4.5 s in all; retries OSError"
        ),
        "Policy(schedule=schedules.exponential(mine).jitter(0.5).cap(mine), "
        "max_attempts=3, on=OSError)": (
            "3 calls; exponential delays, with jitter; retries OSError"
        ),
        "Policy(schedule=schedules.constant(1).within(mine), on=OSError, "
        "max_elapsed=mine)": ("? calls for ? s; 1 s, no jitter; retries OSError"),
        "Policy(schedule=schedules.other(1).other(), max_attempts=3, on=OSError)": (
            "3 calls; delays: ?; retries OSError"
        ),
        'Policy(schedule=schedules.constant("one second"), on=OSError, '
        "max_attempts=3)": "3 calls; constant delays, no jitter; retries OSError",
        "Policy(schedule=schedules.constant(1).take(N), on=OSError)": (
            "? calls; 1 s, no jitter; retries OSError"
        ),
        "Policy(schedule=[0, mine], on=OSError)": (
            "3 calls; delays: ?, no jitter; retries OSError"
        ),
        "Policy(schedule=mine, on=OSError)": ("? calls; delays: ?; retries OSError"),
        "Policy(schedule=mine(1)(2), on=OSError)": (
            "? calls; delays: ?; retries OSError"
        ),
        "Policy(schedule=schedules.constant(1)" + ".cap(2)" * 35 + ", on=OSError)": (
            "? calls; delays: ?; retries OSError"
        ),
        "Policy(schedule=schedules.exponential(1, factor=mine), on=OSError)": (
            "5 calls; exponential delays, no jitter; retries OSError"
        ),
        "retry(presets.urllib3())": "? calls for ? s; delays: ?; retries ?",
    },
    "tenacity": {
        "tenacity.retry(stop=tenacity.stop_all(tenacity.stop_after_attempt(3), "
        "tenacity.stop_after_delay(60)))": ("? calls; no delay; retries Exception"),
        "tenacity.retry(stop=tenacity.stop_any(tenacity.stop_after_attempt(3), "
        "tenacity.stop_before_delay(60)), wait=0)": (
            "3 calls for 1 min; no delay; retries Exception"
        ),
        "tenacity.Retrying(stop=tenacity.stop_when_event_set(event), "
        "retry=tenacity.retry_if_not_exception_type(ValueError))": (
            "? calls; no delay; retries ?"
        ),
        "tenacity.AsyncRetrying(wait=tenacity.wait_exponential(multiplier=1, min=4, "
        "max=10), stop=tenacity.stop_after_attempt(5), reraise=True)": (
            "5 calls; 4 s, 4 s, 4 s ... at most 8 s, no jitter, 20 s in all; "
            "retries Exception"
        ),
        "tenacity.retry(sleep=tenacity.nap.sleep_using_event(event), "
        "wait=tenacity.wait.wait_fixed(1) + tenacity.wait.wait_random(0, 2), "
        "stop=tenacity.stop_after_attempt(2))": (
            "2 calls; 3 s, with jitter, 3 s in all; retries Exception"
        ),
    },
}


UNKNOWN_SETTINGS = "tenacity: ? calls; delays: ?; retries ?"


def lines_of(text):
    return [str(each).partition(": ")[2] for each in sites_of(text)]


@pytest.mark.parametrize(
    ("library", "call", "expected"),
    [
        pytest.param(library, call, expected, id=call)
        for library, calls in CALLS.items()
        for call, expected in calls.items()
    ],
)
def test_a_call_is_told_in_one_line(library, call, expected):
    [line] = lines_of(f"{IMPORTS[library]}\nmade = {call}\n")
    assert line.partition(": ")[2] == expected
    assert line.partition(": ")[0] in (library, "urllib3", "requests")


TENACITY = {
    "stop=stop_after_attempt(3) | stop_after_delay(timedelta(minutes=1))": (
        "3 calls for 1 min; no delay; retries Exception"
    ),
    "stop=stop_after_attempt(3) & stop_after_attempt(4)": (
        "4 calls; no delay; retries Exception"
    ),
    "stop=stop_after_attempt(3) | stop_after_attempt(n)": (
        "3 calls; no delay; retries Exception"
    ),
    "stop=stop_after_attempt(3) & stop_after_delay(60)": (
        "? calls; no delay; retries Exception"
    ),
    "stop=stop_after_attempt(3) & stop_never": (
        "calls without a limit; no delay; retries Exception"
    ),
    "stop=stop_after_attempt(n) & stop_after_attempt(m)": (
        "? calls; no delay; retries Exception"
    ),
    "stop=stop_after_attempt(n) | stop_never": "? calls; no delay; retries Exception",
    "stop=stop_any()": "? calls; no delay; retries Exception",
    "stop=stop_after_delay(timedelta(0, 1, 0, 500))": (
        "for 1.5 s; no delay; retries Exception"
    ),
    "stop=stop_after_delay(timedelta(months=1))": (
        "for ? s; no delay; retries Exception"
    ),
    "stop=stop_after_delay(timedelta(days=n))": "for ? s; no delay; retries Exception",
    "stop=stop_after_delay(duration(3))": "for ? s; no delay; retries Exception",
    "stop=None, retry=retry_never": "calls without a limit; no delay",
    "retry=retry_if_exception_type()": (
        "calls without a limit; no delay; retries Exception"
    ),
    "retry=retry_if_exception_type((OSError, my_error))": (
        "calls without a limit; no delay; retries ?"
    ),
    "retry=retry_if_exception_type(FIRST + (OSError,))": (
        "calls without a limit; no delay; retries ?"
    ),
    "retry=retry_if_exception_type(mine.Errors + mine.Others)": (
        "calls without a limit; no delay; retries Errors, Others"
    ),
    "retry=retry_if_exception_type(socket.timeout)": (
        "calls without a limit; no delay; retries timeout"
    ),
    "retry=retry_if_exception_type(OSError) | retry_if_result(bool)": (
        "calls without a limit; no delay; retries OSError, results"
    ),
    "retry=retry_if_exception_type(OSError) & retry_if_exception_message('x')": (
        "calls without a limit; no delay; retries ?"
    ),
    "retry=retry_any(retry_if_exception_type(OSError), retry_if_not_result(bool))": (
        "calls without a limit; no delay; retries OSError, results"
    ),
    "retry=retry_any(retry_if_exception_type(OSError), retry_if_exception(mine))": (
        "calls without a limit; no delay; retries ?"
    ),
    "retry=retry_always": (
        "calls without a limit; no delay; retries BaseException, results"
    ),
    "retry=mine": "calls without a limit; no delay; retries ?",
    "wait=wait_random(n, 3)": (
        "calls without a limit; 3 s, with jitter; retries Exception"
    ),
    "wait=wait_exponential(min=n, max=m)": (
        "calls without a limit; exponential delays, no jitter; retries Exception"
    ),
    "wait=wait_fixed(1) + wait_none()": (
        "calls without a limit; 1 s, no jitter; retries Exception"
    ),
    "wait=wait_fixed(1) + wait_random(0, n)": (
        "calls without a limit; 1 s, with jitter; retries Exception"
    ),
    "wait=wait_fixed(1) + wait_exponential()": (
        "calls without a limit; delays: ?, no jitter; retries Exception"
    ),
    "wait=wait_fixed(1) + wait_random(1, 2)": (
        "calls without a limit; random delays; retries Exception"
    ),
    "wait=wait_chain(wait_fixed(1), wait_random(0, 5))": (
        "calls without a limit; 1 s, 5 s ..., with jitter; retries Exception"
    ),
    "wait=wait_chain(wait_fixed(1), mine)": (
        "calls without a limit; delays: ?; retries Exception"
    ),
    "wait=wait_chain(wait_fixed(1), wait_fixed(n))": (
        "calls without a limit; delays: ?, no jitter; retries Exception"
    ),
    "wait=wait_chain(*[wait_fixed(1) for _ in range(3)])": (
        "calls without a limit; delays: ?; retries Exception"
    ),
    "wait=wait_fixed(0)": "calls without a limit; no delay; retries Exception",
    "wait=wait_exception(mine)": (
        "calls without a limit; delays: ?; retries Exception"
    ),
    "wait=mine": "calls without a limit; delays: ?; retries Exception",
    "reraise=mine": "calls without a limit; no delay; retries Exception",
    "retry_error_callback=mine": "calls without a limit; no delay; retries Exception",
    '**{"wait": wait_fixed(1), name: 3}': ("? calls; 1 s, no jitter; retries ?"),
    "**settings": "? calls; delays: ?; retries ?",
}


@pytest.mark.parametrize("settings", TENACITY)
def test_settings_of_tenacity(settings):
    text = (
        "from datetime import timedelta\nimport mine, socket\nfrom tenacity import *\n"
        f"from tenacity import retry\nretry({settings})"
    )
    assert str(site_of(text)).partition("tenacity: ")[2] == TENACITY[settings]


def test_a_decorator_without_settings():
    texts = ["@retry\ndef fetch(): ...", "fetch = retry(load)"]
    for text in texts:
        site = site_of(f"from tenacity import retry\n{text}")
        assert str(site).endswith("calls without a limit; no delay; retries Exception")
        assert site.behavior.ending == "wrapped"


def test_an_argument_that_is_missing_has_a_name():
    assert repr(MISSING) == "MISSING"


NO_SITES = {
    "openai": ["openai.OpenAI()", "openai.OpenAI(max_retries=0)"],
    "urllib3": ["Retry(0)", "Retry(False)", "urllib3.PoolManager()"],
    "requests": ["HTTPAdapter()", "HTTPAdapter(max_retries=0)", "requests.Session()"],
    "httpx": ["httpx.HTTPTransport()", "httpx.Client()"],
    "redis": ["redis.Redis()", "Retry(backoff.NoBackoff(), 0)"],
    "botocore": ["Config()", 'Config(retries={"total_max_attempts": 1})'],
    "celery": ["shared_task()", "app.task(bind=True)"],
    "kubernetes": ["client.CoreV1Api()", "client.Configuration()", "client.V1Pod()"],
    "azure": ["BlobServiceClient(url)", "BlobServiceClient(url, retry_policy=mine)"],
    "litellm": ["litellm.completion(model)", "litellm.Router()"],
    "stripe": ["stripe.Charge.create()", "stripe.StripeClient(key)"],
    "retrykit": ["schedules.constant(1)", "schedules.constant(1).replace(first=2)"],
    "tenacity": ["unknown()()().retry()", "(1).retry()"],
    "google": ["types.HttpRetryOptions(attempts=1)"],
}


@pytest.mark.parametrize(
    ("library", "call"),
    [(library, call) for library, calls in NO_SITES.items() for call in calls],
)
def test_a_client_that_only_has_defaults_is_no_site(library, call):
    assert sites_of(f"{IMPORTS[library]}\nmade = {call}\n") == ()


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("import backoff\nbackoff.on_exception(backoff.expo, OSError)", "raises"),
        (
            (
                "import backoff\n"
                "backoff.on_exception(backoff.expo, OSError, raise_on_giveup=False)"
            ),
            "hidden",
        ),
        (
            (
                "import backoff\n"
                "backoff.on_exception(backoff.expo, OSError, raise_on_giveup=x)"
            ),
            "?",
        ),
        ("from retrying import retry\nretry(wrap_exception=True)", "wrapped"),
        ("from retrying import retry\nretry(wrap_exception=x)", "?"),
        ("from retrying import retry\nretry(wait_fixed=1)", "raises"),
        ("import retryhttp\nretryhttp.retry(reraise=True)", "raises"),
        ("import retryhttp\nretryhttp.retry(reraise=x)", "?"),
        ("from retrykit import retry\nretry(fallback=None)", "?"),
        ("from retrykit import retry\nretry(raises='group')", "wrapped"),
        ("from retrykit import retry\nretry(raises=x)", "?"),
    ],
)
def test_what_happens_to_the_last_error(text, ending):
    assert site_of(text).behavior.ending == ending


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("from urllib3 import Retry\nRetry(3)", True),
        (
            "from urllib3 import Retry\nRetry(3, respect_retry_after_header=False)",
            False,
        ),
        ("from urllib3 import Retry\nRetry(3, respect_retry_after_header=x)", None),
        ("from aiohttp_retry import RandomRetry\nRandomRetry()", False),
        ("from httpx_retries import Retry\nRetry(respect_retry_after_header=x)", None),
        ("from retrykit import retry, hints\nretry(hint=hints.retry_after)", True),
    ],
)
def test_whether_retry_after_is_obeyed(text, hint):
    assert site_of(text).behavior.hint is hint


IDEMPOTENT = {"HEAD", "GET", "PUT", "DELETE", "OPTIONS", "TRACE"}


@pytest.mark.parametrize(
    ("text", "methods"),
    [
        ("from urllib3 import Retry\nRetry(3)", IDEMPOTENT),
        ("from urllib3 import Retry\nRetry(3, allowed_methods=None)", None),
        ("from urllib3 import Retry\nRetry(3, method_whitelist=False)", None),
        ("from urllib3 import Retry\nRetry(3, allowed_methods=['get'])", {"GET"}),
        (
            "from urllib3 import Retry\nRetry(3, allowed_methods=frozenset({'GET'}))",
            {"GET"},
        ),
        ("from urllib3 import Retry\nRetry(3, allowed_methods=set())", None),
        ("from urllib3 import Retry\nRetry(3, allowed_methods=x)", ()),
    ],
)
def test_the_methods_that_are_retried(text, methods):
    found = site_of(text).behavior.methods
    if methods == ():
        assert found is None
    else:
        assert found == (methods or IDEMPOTENT | {"POST", "PATCH"})


def test_a_retry_of_a_task_has_the_settings_of_its_decorator():
    text = """
    from celery import shared_task

    @shared_task(bind=True, max_retries=7, default_retry_delay=20)
    def load(self):
        try:
            fetch()
        except OSError as error:
            raise self.retry(exc=error)
    """
    site = site_of(text)
    told = "8 calls; 20 s, no jitter, 2 min 20 s in all; retries OSError"
    assert str(site).endswith(told)
    assert site.functions == ("module.load",)
    assert site.behavior.ending == "raises"


@pytest.mark.parametrize(
    ("countdown", "delays"),
    [
        ("countdown=2 ** self.request.retries", "1 s, 2 s, 4 s, no jitter"),
        ("countdown=60 * (3 ** self.request.retries)", "1 min, 3 min, 9 min, no"),
        (
            "countdown=min(2 ** self.request.retries, 3)",
            "1 s, 2 s, 3 s, no",
        ),
        ("countdown=int(random.uniform(2, 4))", "random delays"),
        ("countdown=2 ** self.request.retries + random.uniform(0, 1)", "1 s, 2 s, 4 s"),
        ("countdown=self.request.retries * minutes", "delays: ?"),
        ("countdown=self.request.retries - 1", "delays: ?"),
        ("countdown=60 * self.request.retries", "delays: ?"),
        ("countdown=60 * (self.request.retries - 1)", "delays: ?"),
        ("countdown=self.request.retries + random.uniform(0, 1)", "delays: ?"),
        ("countdown=self.request.retries + 1", "delays: ?"),
        ("countdown=delay()", "delays: ?"),
        ("countdown=min(first, second)", "delays: ?"),
        ("countdown=(1).real()", "delays: ?"),
        ("countdown=0", "no delay"),
        ("eta=tomorrow", "delays: ?"),
        ("max_retries=None", "3 min, no jitter"),
    ],
)
def test_countdowns_of_tasks(countdown, delays):
    text = f"""
    import random
    from celery import Celery
    app = Celery()

    class Load(celery.Task):
        pass

    @app.task(bind=True)
    def load(self):
        raise self.retry({countdown})
    """
    assert f"; {delays}" in str(site_of(text))


def test_a_task_that_is_a_class_retries():
    text = """
    import celery

    class Load(celery.Task):
        def run(self):
            self.retry(countdown=5)
    """
    assert site_of(text).library == "celery"


def test_a_partial_of_a_decorator_is_completed():
    text = """
    from functools import partial
    from tenacity import retry, stop_after_attempt, wait_fixed

    retry_soon = partial(retry, stop=stop_after_attempt(3), wait=wait_fixed(1))

    @retry_soon(wait=wait_fixed(2))
    def fetch(): ...
    """
    site = site_of(text)
    assert "3 calls; 2 s, no jitter" in str(site)
    assert site.functions == ("module.fetch",)


def test_retry_with_changes_the_settings_of_a_function():
    text = """
    from tenacity import retry, stop_after_attempt, wait_fixed

    @retry(stop=stop_after_attempt(3), wait=wait_fixed(2))
    def fetch(): ...

    quick = fetch.retry_with(wait=wait_fixed(1))
    unknown = other.retry_with(stop=stop_after_attempt(2))
    """
    lines = lines_of(text)
    assert "3 calls; 1 s" in lines[1]
    assert "2 calls; delays: ?" in lines[2]


def test_a_decorator_with_a_name_knows_its_functions():
    text = """
    from tenacity import retry, stop_after_attempt

    robust = retry(stop=stop_after_attempt(3))

    @robust
    async def fetch(): ...

    @robust
    def store(): ...
    """
    site = site_of(text)
    assert site.functions == ("module.fetch", "module.store")
    assert site.is_async
    assert site.line == 4


def test_a_policy_with_a_name_knows_its_functions():
    text = """
    from retrykit import Policy, retry

    patient = Policy(max_attempts=3)
    more_patient = patient.replace(max_attempts=9)

    @retry(patient)
    def fetch(): ...

    @retry(policy=patient)
    def store(): ...

    @retry
    def load(): ...
    """
    policy, replaced, alone = sites_of(text)
    assert policy.functions == ("module.fetch", "module.store")
    assert replaced.behavior.calls == 9.0
    assert alone.functions == ("module.load",)


def test_what_replace_is_called_on_must_be_a_policy():
    text = """
    import retrykit
    made = retrykit.schedules.linear(1).replace(max_attempts=3)
    other = retrykit.schedules.linear(1)[0].replace(max_attempts=3)
    """
    assert sites_of(text) == ()


def test_a_client_of_a_session_has_its_configuration():
    text = """
    import boto3
    from botocore.config import Config

    settings = Config(retries={"max_attempts": 2, "mode": "unheard of"})
    s3 = boto3.session.Session().client("s3", config=settings)
    """
    assert "3 calls; random delays;" in str(site_of(text))


def test_every_reader_answers_when_nothing_is_known():
    # Whatever it says, it says so without an error.
    for library, readers in LIBRARIES.items():
        for name in readers:
            if name != "*":
                text = f"import {library}\nretries = {library}.{name}(*given, **more)\n"
                for site in sites_of(text):
                    assert site.behavior.calls is None or site.behavior.calls > 1


def test_delays_beyond_any_number_are_infinite():
    text = "import backoff\nbackoff.on_exception(backoff.expo, OSError, max_tries=9000)"
    assert site_of(text).behavior.delays.longest(8000) == math.inf


@pytest.mark.parametrize(
    ("change", "summary"),
    [
        ("", "tenacity: calls without a limit; 1 s, no jitter; retries Exception"),
        ("if {}: {}['stop'] = stop_after_attempt(3)", UNKNOWN_SETTINGS),
        ("{}.update(stop=stop_after_attempt(3))", UNKNOWN_SETTINGS),
        ("{}.setdefault('stop', stop_after_attempt(3))", UNKNOWN_SETTINGS),
    ],
)
@pytest.mark.parametrize("owner", ["settings", "self.settings"])
def test_a_dictionary_that_is_changed_later_is_not_known(owner, change, summary):
    text = f"""
from tenacity import *
class Shop:
    def begin(self):
        {owner} = dict(wait=wait_fixed(1))
        {change.replace("{}", owner)}
        @retry(**{owner})
        def call(): ...
"""
    assert lines_of(text) == [summary]


def test_an_import_with_a_substitute_stays_the_import_for_other_modules():
    compat = """
    try:
        from tenacity import retry
    except ImportError:
        retry = None
    """
    text = """
    from compat import retry

    @retry
    def f(): ...
    """
    [site], _ = audit_texts(compat=compat, module=text)
    assert site.library == "tenacity"


def test_a_cancellation_among_the_errors_is_swallowed():
    errors = "(OSError, asyncio.CancelledError)"
    text = f"import asyncio, backoff\nbackoff.on_exception(backoff.expo, {errors})"
    assert site_of(text).behavior.swallows


def test_errors_that_giveup_tells_apart_are_not_all_retried():
    text = "import backoff\nbackoff.on_exception(backoff.expo, {}, giveup=is_fatal)"
    assert site_of(text.format("Exception")).behavior.retried is None
    assert site_of(text.format("BaseException")).behavior.retried is None
    assert site_of(text.format("OSError")).behavior.retried == ("OSError",)


@pytest.mark.parametrize(("maker", "found"), [("ours.parse", 0), ("llms.Model", 1)])
def test_an_object_of_another_library_is_no_runnable(maker, found):
    source = f"import ours, langchain_openai as llms\nx = {maker}(name).with_retry()"
    assert len(sites_of(source)) == found


SLEEPING = {
    "for attempt in tenacity.Retrying(wait=tenacity.wait_fixed(1))": True,
    "for attempt in stamina.retry_context(OSError)": True,
    "for attempt in tenacity.Retrying()": False,
    "async for attempt in tenacity.AsyncRetrying(wait=tenacity.wait_fixed(1))": False,
    "async for attempt in stamina.retry_context(OSError)": False,
}


@pytest.mark.parametrize("kind", ["async def", "def"])
@pytest.mark.parametrize(("loop", "sleeps"), SLEEPING.items(), ids=SLEEPING)
def test_a_loop_over_attempts_blocks_a_coroutine_unless_it_is_async(loop, sleeps, kind):
    text = f"""
import stamina, tenacity
{kind} fetch():
    {loop}:
        with attempt:
            send()
"""
    if kind == "def" and loop.startswith("async"):
        pytest.skip("no valid code")
    rules = {each.rule for each in audit_texts(module=text)[1]}
    assert ("blocking-sleep" in rules) is (sleeps and kind == "async def")


EXCLUDING = {
    "retry_if_not_exception_type(ValueError)": True,
    "retry_unless_exception_type(ValueError)": True,
    "retry_if_result(bool) | retry_if_not_exception_type((KeyError, OSError))": True,
    "retry_if_not_exception_type((ValueError, KeyboardInterrupt))": False,
    "retry_if_not_exception_type(ERRORS_OF_DATA)": False,
    "retry_if_result(bool) & retry_if_not_exception_type(ValueError)": False,
    "retry_if_exception_type(OSError)": False,
}


@pytest.mark.parametrize(("condition", "found"), EXCLUDING.items(), ids=EXCLUDING)
def test_tenacity_retries_a_cancellation_if_it_retries_all_errors_but_some(
    condition, found
):
    """As `test_libraries_themselves` shows."""
    text = f"from mine import *\nfrom tenacity import *\nRetrying(retry={condition})"
    rules = {each.rule for each in audit_texts(module=text)[1]}
    assert ("cancellation-swallowed" in rules) is found
