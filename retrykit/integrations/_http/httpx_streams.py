"""Downloads and event streams for httpx and httpx2, which have the same interface."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple

from retrykit._core.policy import Policy
from retrykit._internal.validation import invalid_setting
from retrykit.integrations._http.policy import Transient
from retrykit.integrations._http.range_downloads import Reply
from retrykit.integrations._http.streams import (
    READ_TIMEOUT,
    AsyncRequester,
    Request,
    Requester,
    save_download,
    stream_download,
    stream_events,
)

__all__ = ["HttpxStreams"]


class HttpxStreams(NamedTuple):
    """The download and event streams of httpx or httpx2.

    Attributes:
        library: The module of the library.
        transient: The condition in the integration of the library.
    """

    library: Any
    transient: Transient

    def download(
        self, client: Any, url: Any, policy: Policy | None, options: dict[str, Any]
    ) -> Any:
        """Return a stream of a file's chunks."""
        request = Request.for_download(options)
        return stream_download(*self._parts(client, url, policy, request))

    def download_to(
        self,
        client: Any,
        url: Any,
        path: Any,
        policy: Policy | None,
        options: dict[str, Any],
    ) -> Any:
        """Download a file to a path; return its size in bytes, or an awaitable of it.

        It is an awaitable for an ``AsyncClient``.
        """
        request = Request.for_download(options)
        parts = self._parts(client, url, policy, request)
        return save_download(*parts, path)

    def events(
        self,
        client: Any,
        url: Any,
        last_event_id: str | None,
        policy: Policy | None,
        options: dict[str, Any],
    ) -> Any:
        """Return a stream of a server's events."""
        request = Request.for_events(options)
        parts = self._parts(client, url, policy, request)
        if "timeout" not in request.options:
            # The default of the library is 5 s, in which few servers send anything.
            given = client.timeout
            read = None if given.read is None else max(given.read, READ_TIMEOUT)
            request.options["timeout"] = self.library.Timeout(
                connect=given.connect, read=read, write=given.write, pool=given.pool
            )
        return stream_events(*parts, last_event_id)

    def _parts(
        self, client: Any, url: Any, policy: Policy | None, request: Request
    ) -> tuple[Any, Transient, Policy | None, str | None]:
        awaited = isinstance(client, self.library.AsyncClient)
        if not awaited and not isinstance(client, self.library.Client):
            rule = f"a Client or an AsyncClient of {self.library.__name__}"
            raise invalid_setting("client", rule, client)
        kind: Any = _AsyncRequester if awaited else _Requester
        # With the base URL of the client; an invalid URL raises an error here.
        host = client.build_request("GET", url).url.host or None
        requester = kind(self.library, client, url, request)
        return requester, self.transient, policy, host


class _Requester(Requester):
    def __init__(self, library: Any, client: Any, url: Any, request: Request) -> None:
        self._library = library
        self._client = client
        self._url = url
        self._request = request

    @contextmanager
    def get(self, headers: dict[str, str]) -> Iterator[Reply]:
        options = self._request.with_headers(_encode(headers))
        with self._client.stream("GET", self._url, **options) as response:
            raw = self._request.raw
            chunks = response.iter_raw() if raw else response.iter_bytes()
            yield _reply(response, chunks)

    def ended(self, text: str) -> Exception:
        error: Exception = self._library.RemoteProtocolError(text)
        return error


class _AsyncRequester(AsyncRequester):
    def __init__(self, library: Any, client: Any, url: Any, request: Request) -> None:
        self._library = library
        self._client = client
        self._url = url
        self._request = request

    @asynccontextmanager
    async def get(self, headers: dict[str, str]) -> AsyncIterator[Reply]:
        options = self._request.with_headers(_encode(headers))
        async with self._client.stream("GET", self._url, **options) as response:
            raw = self._request.raw
            chunks = response.aiter_raw() if raw else response.aiter_bytes()
            yield _reply(response, chunks)

    def ended(self, text: str) -> Exception:
        error: Exception = self._library.RemoteProtocolError(text)
        return error


def _reply(response: Any, chunks: Any) -> Reply:
    check = response.raise_for_status
    return Reply(response.status_code, response.headers, chunks, check)


def _encode(headers: dict[str, str]) -> dict[str, Any]:
    """Return headers with values as bytes, since an event id may be any text."""
    return {name: value.encode() for name, value in headers.items()}
