"""How many requests SDKs make by themselves, measured at a local endpoint."""

import importlib.metadata
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any, NamedTuple

from retrykit._own_retries import find_clients
from tests._support.scripted_server import answer, serve

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
    return client, lambda: [*client.list_containers()]


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
        AssertionError: A client makes another number of requests than is read from it.
    """
    rows = []
    for name, (distribution, make) in SDKS.items():
        with serve(UNAVAILABLE) as server:
            client, call = make(server.url)
            with suppress(Exception):
                call()
            made = len(server.seen)
        read = {own.count(each) for _, own, each in find_clients([client])}
        assert read == {made}, f"{name} makes {made} requests, and {read} were read"
        version = importlib.metadata.version(distribution)
        rows.append(SdkRow(f"`{name}`", str(made), f"`{distribution}` {version}"))
    return rows
