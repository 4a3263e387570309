"""How many requests SDKs make by themselves, measured at a local endpoint."""

import importlib.metadata
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

from retrykit._internal.durations import duration_in_words
from retrykit._own_retries import find_clients, find_failed_client
from tests._support.scripted_server import answer, serve
from tests.originals.comparison import error_of

__all__ = ["SdkRow", "measure_sdks"]

HEADERS = [("retry-after-ms", "1"), ("Retry-After", "0")]
HEADERS += [("X-Elastic-Product", "Elasticsearch")]
UNAVAILABLE = answer(HTTPStatus.SERVICE_UNAVAILABLE, HEADERS, b"{}", close=True)


class SdkRow(NamedTuple):
    """A row of the table in docs/transient_errors.md."""

    client: str
    requests: str
    measured: str


def _groq(url: str) -> tuple[Any, Callable[[], Any]]:
    import groq

    client = groq.Groq(api_key="key", base_url=url)
    return client, lambda: client.chat.completions.create(model="m", messages=[])


def _together(url: str) -> tuple[Any, Callable[[], Any]]:
    import together

    client = together.Together(api_key="key", base_url=url)
    return client, lambda: client.chat.completions.create(model="m", messages=[])


def _elasticsearch(url: str) -> tuple[Any, Callable[[], Any]]:
    from elasticsearch import Elasticsearch

    client = Elasticsearch(url)
    return client, lambda: client.search(index="i")


def _cohere(url: str) -> tuple[Any, Callable[[], Any]]:
    import cohere

    client = cohere.ClientV2(api_key="key", base_url=url)
    return client, lambda: client.chat(model="m", messages=[])


def _langchain(url: str) -> tuple[Any, Callable[[], Any]]:
    from langchain_openai import ChatOpenAI

    client = ChatOpenAI(api_key="key", base_url=url, model="m")
    return client, lambda: client.invoke("?")


def _azure_storage(url: str) -> tuple[Any, Callable[[], Any]]:
    from azure.storage.blob import BlobServiceClient

    account = {"account_name": "a", "account_key": "a2V5"}
    client = BlobServiceClient(f"{url}/a", credential=account, initial_backoff=0)
    return client, client.get_account_information


def _google_storage(url: str) -> Callable[[], Any]:
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    anonymous = AnonymousCredentials()
    settings = {"api_endpoint": url}
    client = storage.Client("p", credentials=anonymous, client_options=settings)
    return lambda: client.get_bucket("b")


@contextmanager
def _secret_manager(seen: list[object]) -> Iterator[Callable[[], Any]]:
    import grpc
    from google.cloud.secretmanager_v1.services import secret_manager_service

    def refuse(request: object, context: grpc.ServicerContext) -> None:
        seen.append(request)
        context.abort(grpc.StatusCode.UNAVAILABLE, "no")

    class Refusing(grpc.GenericRpcHandler):
        def service(self, _: object) -> Any:
            return grpc.unary_unary_rpc_method_handler(refuse)

    server = grpc.server(futures.ThreadPoolExecutor(1), handlers=[Refusing()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    transport = secret_manager_service.transports.SecretManagerServiceGrpcTransport
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        client = secret_manager_service.SecretManagerServiceClient(
            transport=transport(channel=channel)
        )
        yield lambda: client.access_secret_version(name="projects/p/secrets/s/1")
    server.stop(None)


SDKS = {
    "azure.storage.blob.BlobServiceClient(...)": ("azure-storage-blob", _azure_storage),
    "cohere.ClientV2()": ("cohere", _cohere),
    "elasticsearch.Elasticsearch(...)": ("elasticsearch", _elasticsearch),
    "groq.Groq()": ("groq", _groq),
    "langchain_openai.ChatOpenAI()": ("langchain-openai", _langchain),
    "together.Together()": ("together", _together),
}


def measure_sdks() -> list[SdkRow]:
    """Return a row for each SDK.

    Raises:
        AssertionError: A client makes another number of requests than is read from it,
            or is not found where its error was raised.
    """
    rows = []
    for name, (distribution, make) in SDKS.items():
        with serve(UNAVAILABLE) as server:
            client, call = make(server.url)
            error = error_of(call)
            made = len(server.seen)
        read = {own.count(each) for _, own, each in find_clients([client])}
        assert read == {made}, f"{name} makes {made} requests, and {read} were read"
        found = find_failed_client(error)
        assert found is not None, f"{name} is not found in a traceback"
        _, own, failed = found
        assert own.count(failed) == made, f"{name} is another one in a traceback"
        rows.append(_row(name, str(made), distribution))
    return sorted([*rows, *_measure_google()])


def _measure_google() -> Iterator[SdkRow]:
    """Yield rows of clients of Google Cloud, which only time limits."""
    with serve(UNAVAILABLE) as server:
        limit = _time_limit(_google_storage(server.url), lambda: len(server.seen))
    name = "google.cloud.storage.Client().get_bucket(...)"
    yield _row(name, limit, "google-cloud-storage")
    seen: list[object] = []
    with _secret_manager(seen) as call:
        limit = _time_limit(call, lambda: len(seen))
    name = "SecretManagerServiceClient().access_secret_version(...)"
    name = f"google.cloud.secretmanager.{name}"
    yield _row(name, limit, "google-cloud-secret-manager")


def _time_limit(call: Callable[[], Any], count: Callable[[], int]) -> str:
    """Return for how long a method repeats its request, which is read and measured."""
    from google.api_core.retry import retry_base, retry_unary

    waits: list[float] = []
    clock = SimpleNamespace(sleep=waits.append, monotonic=lambda: sum(waits))
    with (
        mock.patch.object(retry_base, "time", clock),
        mock.patch.object(retry_unary, "time", clock),
    ):
        error = error_of(call)
    found = find_failed_client(error)
    assert found is not None, "no client is found in a traceback"
    _, own, failed = found
    limit = own.time_limit(failed)
    assert limit is not None, "no limit is read"
    assert count() == len(waits) + 1 > 1, f"{count()} requests"
    assert sum(waits) <= limit, f"{sum(waits)} s of {limit} s"
    return f"as many as fit in {duration_in_words(limit)}"


def _row(client: str, requests: str, distribution: str) -> SdkRow:
    version = importlib.metadata.version(distribution)
    return SdkRow(f"`{client}`", requests, f"`{distribution}` {version}")
