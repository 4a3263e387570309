"""Retries for httpx2, the client of OpenAI's and Anthropic's SDKs.

Needs the extra ``httpx2``. Prefer to decorate the function that reads the
response: a decorator also retries truncated bodies::

    from retrykit import retry
    from retrykit.integrations import httpx2 as retries

    @retry(retries.policy(max_attempts=4))
    def fetch(client, url):
        return client.get(url).raise_for_status().json()

`retrykit.state_of` returns the history of a response or an error. Where a decorator is
not possible, use a transport, which retries a request until it has the response
headers::

    client = httpx2.Client(transport=retries.RetryTransport(max_attempts=4))

``download`` and ``download_to`` continue a file where its transfer broke off, and
``events`` continues a stream of server-sent events.
"""

import os
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, ClassVar, Final, final, overload

from retrykit._core.policy import Policy
from retrykit._internal.extras import needs
from retrykit._internal.validation import user_facing
from retrykit.integrations._http.event_streams import ServerSentEvent
from retrykit.integrations._http.httpx_streams import HttpxStreams
from retrykit.integrations._http.httpx_transports import (
    AsyncTransport,
    HttpxTransient,
    SyncTransport,
)
from retrykit.integrations._http.policy import IDEMPOTENT, retry_after

with needs("httpx2"):
    import httpx2

if TYPE_CHECKING:
    from retrykit._core.async_streams import AsyncStream
    from retrykit._core.streams import Stream

__all__ = ["IDEMPOTENT", "AsyncRetryTransport", "RetryTransport", "policy"]
__all__ += ["ServerSentEvent", "download", "download_to", "events"]
__all__ += ["retry_after", "transient"]


class _Transient(HttpxTransient):
    """Condition that matches transient errors and responses of httpx2.

    Transient errors are failed, broken and reset connections, truncated bodies and
    timeouts of every kind, but not a rejected certificate. Transient responses, and
    errors of ``raise_for_status``, have the status 408, 425, 429, 500, 502, 503 or
    504, or 413 with a ``Retry-After``.
    """


transient: Final = _Transient(httpx2)
"""Condition for `on` and `on_result`: matches transient errors and responses."""

policy: Final = transient.policy
"""Returns a policy with `transient` and `retry_after` filled in."""


@final
class RetryTransport(
    SyncTransport[httpx2.BaseTransport, httpx2.Request, httpx2.Response],
    httpx2.BaseTransport,
):
    """Transport that retries the requests of a client under a policy.

    >>> client = httpx2.Client(transport=RetryTransport(max_attempts=3))

    An attempt ends with the response headers: if the body is truncated after that,
    the client's error is raised, and nothing is retried. Idempotent methods and
    requests with an ``Idempotency-Key`` are retried, if the body can be sent again:
    from memory, or from a seekable file. `state_of` returns the history of every
    response and every error. When the policy gives up, the last response is returned,
    or an error of httpx2 is raised.

    Pass ``extensions={"retry": policy}`` with a request to give it another policy, or
    None to send it once. Cookies of retried responses are not kept. A client with a
    custom transport ignores the proxies that environment variables name.

    Args:
        policy: As in `policy`.
        transport: Transport that sends the requests, and is closed with this one; by
            default ``httpx2.HTTPTransport()``.
        methods: HTTP methods to retry; None means all.
        **changes: Settings of `Policy`. ``attempt_timeout=AsArgument("5s")``
            bounds the timeouts of httpx2.

    Raises:
        ConfigError: A setting is invalid, or a transport does not support it.
    """

    _library: ClassVar = httpx2
    _transient: ClassVar = transient


@final
class AsyncRetryTransport(
    AsyncTransport[httpx2.AsyncBaseTransport, httpx2.Request, httpx2.Response],
    httpx2.AsyncBaseTransport,
):
    """Transport that retries the requests of an async client, as `RetryTransport` does.

    >>> client = httpx2.AsyncClient(transport=AsyncRetryTransport(max_attempts=3))

    It takes the arguments of `RetryTransport`, and raises the same errors; *transport*
    is ``httpx2.AsyncHTTPTransport()`` by default. If the last attempt exceeds its
    `attempt_timeout`, ``httpx2.ReadTimeout`` is raised.
    """

    _library: ClassVar = httpx2
    _transient: ClassVar = transient


_streams = HttpxStreams(httpx2, transient)


@overload
def download(
    client: httpx2.Client,
    url: httpx2.URL | str,
    *,
    policy: Policy | None = None,
    **request: Any,
) -> "Stream[bytes, None, None]": ...
@overload
def download(
    client: httpx2.AsyncClient,
    url: httpx2.URL | str,
    *,
    policy: Policy | None = None,
    **request: Any,
) -> "AsyncStream[bytes, None]": ...
@user_facing
def download(
    client: httpx2.Client | httpx2.AsyncClient,
    url: httpx2.URL | str,
    *,
    policy: Policy | None = None,
    **request: Any,
) -> Any:
    """Return the chunks of a file, whose download continues where it was cut off.

    >>> client = httpx2.Client()
    >>> chunks = download(client, "https://example.com/file.zip", policy=policy())

    Iterate over the stream, in a ``with`` or ``async with`` block, which closes it. A
    request that continues asks for the rest with ``Range``, on the condition, in
    ``If-Range``, that the file has not changed. The condition needs a strong ``ETag``,
    or a ``Last-Modified`` that was at least a minute old. If the file has changed, or
    may have, `DownloadError` is raised, since chunks cannot be taken back;
    `download_to` starts such a file over. A body that is shorter than it should be is
    an error, even if httpx2 raises none. The limits of the policy count the failures
    since the last chunk.

    Args:
        client: The client, sync or async.
        url: The URL of the file.
        policy: As in `policy`; by default ``policy()``.
        **request: Further arguments of ``client.stream``, such as ``headers``. The
            chunks are as sent: no ``Content-Encoding`` is requested or decoded.

    Returns:
        A `Stream` of bytes, as they arrive; for an async client, an `AsyncStream`.

    Raises:
        ConfigError: The policy or an argument is invalid.
    """
    return _streams.download(client, url, policy, request)


@overload
def download_to(
    client: httpx2.Client,
    url: httpx2.URL | str,
    path: "str | os.PathLike[str]",
    *,
    policy: Policy | None = None,
    **request: Any,
) -> int: ...
@overload
def download_to(
    client: httpx2.AsyncClient,
    url: httpx2.URL | str,
    path: "str | os.PathLike[str]",
    *,
    policy: Policy | None = None,
    **request: Any,
) -> "Coroutine[Any, Any, int]": ...
@user_facing
def download_to(
    client: httpx2.Client | httpx2.AsyncClient,
    url: httpx2.URL | str,
    path: "str | os.PathLike[str]",
    *,
    policy: Policy | None = None,
    **request: Any,
) -> Any:
    """Download a file to a path, as `download` does, and return its size in bytes.

    The file is written beside the path, under a hidden name, and replaces what is at
    the path when it is complete; if the download fails, no part of it is left. If the
    file has changed, its download starts over, up to ten times. With an async client,
    await the result.

    Args:
        client: The client, sync or async.
        url: The URL of the file.
        path: The path to write.
        policy: As in `download`.
        **request: As in `download`.

    Raises:
        ConfigError: The policy or an argument is invalid.
    """
    return _streams.download_to(client, url, path, policy, request)


@overload
def events(
    client: httpx2.Client,
    url: httpx2.URL | str,
    *,
    last_event_id: str | None = None,
    policy: Policy | None = None,
    **request: Any,
) -> "Stream[ServerSentEvent, None, None]": ...
@overload
def events(
    client: httpx2.AsyncClient,
    url: httpx2.URL | str,
    *,
    last_event_id: str | None = None,
    policy: Policy | None = None,
    **request: Any,
) -> "AsyncStream[ServerSentEvent, None]": ...
@user_facing
def events(
    client: httpx2.Client | httpx2.AsyncClient,
    url: httpx2.URL | str,
    *,
    last_event_id: str | None = None,
    policy: Policy | None = None,
    **request: Any,
) -> Any:
    """Return the server-sent events of a URL, across reconnections.

    >>> client = httpx2.Client()
    >>> prices = events(client, "https://example.com/prices", last_event_id="41")

    Iterate over the stream, in a ``with`` or ``async with`` block, which closes it.
    When the connection breaks or the server ends it, the stream reconnects with
    ``Last-Event-ID``, after the delay that ``retry:`` has set, or the policy's delay if
    that is longer. Each event with an id is handed out exactly once, in order. Events
    that may be lost, since the server has sent no id for them, are listed in
    ``stream.state.stream.gaps``. The status 204 ends the stream; so do 400 and 410,
    with an `EventStreamError` that says what is lost, if there is a last id, or an
    event was handed out. The limits of the policy count the failures since the last
    event, or the last comment that kept the connection alive.

    Args:
        client: The client, sync or async.
        url: The URL of the events.
        last_event_id: The `id` of the last event that was handled, to continue after
            it; by default the server chooses.
        policy: As in `policy`; by default ``policy(max_attempts=5)``.
        **request: Further arguments of ``client.stream``, such as ``headers``. Without
            ``timeout``, the connection breaks when nothing arrives for 60 s, or longer
            if the client has a longer limit or none.

    Returns:
        A `Stream` of `ServerSentEvent`; for an async client, an `AsyncStream`.

    Raises:
        ConfigError: The policy or an argument is invalid.
    """
    return _streams.events(client, url, last_event_id, policy, request)
