"""Retries for aiohttp.

Needs the extra ``aiohttp``. Prefer to decorate the function that reads the
response: a decorator also retries truncated bodies::

    from retrykit import retry
    from retrykit.integrations import aiohttp as retries

    @retry(retries.policy(max_attempts=4))
    async def fetch(session, url):
        async with session.get(url) as response:
            response.raise_for_status()
            return await response.json()

By itself aiohttp sends an idempotent request again if its connection breaks before the
response, so an attempt may be two requests. The middleware disables that, even with
``max_attempts=1``. `retrykit.state_of` returns the history of a response or an error.
The middleware retries a request until it has the response headers::

    retrying = retries.RetryMiddleware(max_attempts=4)
    session = aiohttp.ClientSession(middlewares=[retrying])

``download`` and ``download_to`` continue a file where its transfer broke off, and
``events`` continues a stream of server-sent events.
"""

import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from copy import copy
from typing import TYPE_CHECKING, Any, Final, NoReturn, Unpack, cast, final
from urllib.parse import urlsplit
from weakref import ref

from retrykit._core.final_error import attach_state, state_of
from retrykit._core.policy import Policy
from retrykit._core.retry_state import RetryState
from retrykit._core.setting_types import PolicySettings
from retrykit._core.timeouts import AsArgument
from retrykit._internal.connection_errors import is_certificate_error
from retrykit._internal.extras import needs
from retrykit._internal.validation import check_instance, invalid_setting, user_facing
from retrykit.errors import GiveUp
from retrykit.integrations._http.bodies import (
    Rewind,
    build_rewind,
    combine_rewinds,
    no_rewind,
)
from retrykit.integrations._http.event_streams import ServerSentEvent
from retrykit.integrations._http.policy import (
    IDEMPOTENT,
    Transient,
    is_transient_status,
    retry_after,
)
from retrykit.integrations._http.range_downloads import Reply
from retrykit.integrations._http.streams import (
    READ_TIMEOUT,
    AsyncRequester,
    Request,
    save_download,
    stream_download,
    stream_events,
)
from retrykit.integrations._http.transport import AsyncSender, HttpRequest

with needs("aiohttp"):
    import aiohttp

if TYPE_CHECKING:
    from yarl import URL

    from retrykit._core.async_streams import AsyncStream

__all__ = ["ServerSentEvent", "download", "download_to", "events"]
__all__ += ["IDEMPOTENT", "RetryMiddleware", "policy", "retry_after", "transient"]


class _Transient(Transient):
    """Condition that matches transient errors and responses of aiohttp.

    Transient errors are failed, broken and reset connections, truncated bodies and
    timeouts of every kind, but not a rejected certificate or fingerprint, nor misuse
    of a connection by the program. Transient responses, and errors with
    a status, have the status 408, 425, 429, 500, 502, 503 or 504, or 413 with a
    ``Retry-After``.
    """

    def __call__(self, outcome: Any, /) -> bool:
        if isinstance(outcome, aiohttp.ClientResponse | aiohttp.ClientResponseError):
            return is_transient_status(outcome.status, outcome.headers)
        return isinstance(outcome, _TRANSIENT) and not is_certificate_error(outcome)

    def release(self, response: aiohttp.ClientResponse, /) -> None:
        """Return the connection of a response to the pool, or close it."""
        response.release()

    def copy_request(
        self, sent: tuple[aiohttp.ClientRequest, aiohttp.ClientHandlerType], /
    ) -> tuple[aiohttp.ClientRequest, aiohttp.ClientHandlerType]:
        """Return a copy of a request, with its own headers and state of sending."""
        request, handler = copy(sent[0]), sent[1]
        request.headers = request.headers.copy()
        return request, handler


_TRANSIENT = (
    aiohttp.ClientOSError,
    aiohttp.ClientPayloadError,
    aiohttp.ServerDisconnectedError,
    ConnectionError,
    TimeoutError,
)

transient: Final = _Transient()
"""Condition for `on` and `on_result`: matches transient errors and responses."""

policy: Final = transient.policy
"""Returns a policy with `transient` and `retry_after` filled in."""


@final
class RetryMiddleware:
    """Middleware that retries the requests of a session under a policy.

    Pass it in ``middlewares`` of a session or a request, as the first, so that the
    others see each attempt. Connection errors need care in a middleware around this
    one: on an error of an established connection, aiohttp itself would restart the
    whole call. So ``await handler(request)`` does not raise that error, but returns an
    object that raises a ``ClientConnectionError``, with the error as its
    ``__cause__``, when any of its public attributes except ``close`` is used. If the
    object is returned unused, the caller gets the original error.

    An attempt ends with the response headers: if the body is truncated after that, the
    client's error is raised, and nothing is retried. Idempotent methods and requests
    with an ``Idempotency-Key`` are retried, if the body can be sent again: from memory,
    or from a seekable file. `state_of` returns the history of every response and every
    error, including those of ``raise_for_status``, which also have the response as
    their ``response``. When the policy gives up, the last response is returned, or an
    error of aiohttp or a `TimeoutError` is raised, as without the middleware; any other
    `OSError` is raised as the ``ClientOSError`` that aiohttp makes from it. Each hop of
    a redirect is a separate call. Cookies of retried responses are not kept.

    The ``total`` of ``aiohttp.ClientTimeout`` bounds all attempts and the delays
    between them; if it ends a delay, the error's ``__cause__`` has the history. Any
    other `TimeoutError` also ends a call, except a ``ServerTimeoutError`` or one with
    an ``errno``. To bound each attempt, set `attempt_timeout` in the policy.

    Args:
        policy: As in `policy`.
        methods: HTTP methods to retry; None means all. Other methods are retried with
            an ``Idempotency-Key``.
        **changes: Settings of `Policy`.

    Raises:
        ConfigError: A setting is invalid, or a middleware does not support it, such
            as ``nested="raise"``.
    """

    @user_facing
    def __init__(
        self,
        policy: Policy | None = None,
        *,
        methods: Iterable[str] | None = IDEMPOTENT,
        **changes: Unpack[PolicySettings],
    ) -> None:
        policy = transient.policy(policy, **changes)
        timeout = policy.attempt_timeout
        if isinstance(timeout, AsArgument):
            rule = "a duration in a middleware, which cannot set aiohttp's timeouts"
            suggestion = f"write attempt_timeout={timeout.seconds}"
            raise invalid_setting(
                "attempt_timeout", rule, timeout, suggestion, code="not-here"
            )
        self._sender = AsyncSender(policy, _send, transient, methods)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._sender.policy!r})"

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Send a request, and retry it under the policy.

        Returns:
            The response; after an error that aiohttp would handle itself, an object in
            its place that raises an error when it is used.
        """
        http_request = HttpRequest(
            (request, handler),
            request.method,
            request.url.host or "",
            request.headers,
            _build_rewind(request.body),
            request.url,
        )
        try:
            response: aiohttp.ClientResponse = await self._sender.send(http_request)
            vars(response)["raise_for_status"] = _raise_for_status(response)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
            # Not assigned to a variable: the error's traceback holds this frame.
            return cast("aiohttp.ClientResponse", _FailedResponse(error))
        except aiohttp.ClientError:
            raise
        except OSError as error:
            if error.errno is None and isinstance(error, TimeoutError):
                raise
            # From code inside, such as another middleware. If it were raised, aiohttp
            # would raise another error, which has no history.
            failed = _FailedResponse(_as_client_error(error))
            return cast("aiohttp.ClientResponse", failed)
        return response


async def _send(
    sent: tuple[aiohttp.ClientRequest, aiohttp.ClientHandlerType], _: object, /
) -> Any:
    request, handler = sent
    try:
        response: Any = await handler(request)
    except TimeoutError as error:
        if isinstance(error, aiohttp.ServerTimeoutError) or error.errno is not None:
            raise
        # The total timeout: another request would be sent, and fail.
        raise GiveUp from error
    # From another middleware of retrykit, inside this one.
    return response.raise_error() if type(response) is _FailedResponse else response


def _build_rewind(body: object) -> Rewind | None:
    """Return a function that rewinds a body; None if it cannot be sent again.

    aiohttp also rewinds files, but sends an empty body if it cannot.
    """
    if isinstance(body, aiohttp.MultipartWriter):
        return combine_rewinds(_build_rewind(part) for part, *_ in body)
    if isinstance(body, aiohttp.IOBasePayload):
        # The file has no public name. If aiohttp renames it, the body is not sent
        # again.
        return build_rewind(getattr(body, "_value", iter(())))
    return no_rewind if isinstance(body, bytes | aiohttp.BytesPayload) else None


def _raise_for_status(response: aiohttp.ClientResponse) -> Callable[[], None]:
    """Return a ``raise_for_status`` whose error has the response and its state."""
    # Weak, since the response holds this function, and its deletion frees the
    # connection.
    reference = ref(response)

    def raise_for_status() -> None:
        response: Any = reference()
        try:
            type(response).raise_for_status(response)
        except aiohttp.ClientResponseError as error:
            # As in other clients; outer calls find the state there.
            vars(error)["response"] = response
            attach_state(error, cast("RetryState", state_of(response)))
            raise

    return raise_for_status


class _FailedResponse:
    """Stands in for the response of a failed request; using it raises the error.

    Reading a private attribute raises the error itself; reading a public one, except
    ``close``, raises a ``ClientConnectionError``. If a middleware raised the error
    itself, aiohttp would blame a stale connection of its pool, and restart all
    attempts.
    """

    def __init__(self, error: Exception) -> None:
        self._error = error

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def raise_error(self) -> NoReturn:
        """Raise the error itself and forget it, since its frames hold this object."""
        error, self._error = self._error, aiohttp.ClientConnectionError("broken")
        try:
            raise error
        finally:
            del error

    def __getattr__(self, name: str) -> NoReturn:
        # aiohttp itself uses a private attribute first, after the point where it
        # would restart the call. A middleware uses public ones.
        if name.startswith("_"):
            self.raise_error()
        raise _as_connection_error(self._error) from self._error


def _as_client_error(error: OSError) -> Exception:
    """Return the error that aiohttp raises for a system error, with its state."""
    other = aiohttp.ClientOSError(*error.args)
    other.__cause__ = error
    return _with_state(other, error)


def _as_connection_error(error: Exception) -> Exception:
    """Return an error with the same text and state, which does not restart the call."""
    return _with_state(aiohttp.ClientConnectionError(str(error)), error)


def _with_state(other: Exception, error: Exception) -> Exception:
    state = state_of(error)
    if state is not None:
        attach_state(other, state)
    return other


@user_facing
def download(
    session: aiohttp.ClientSession,
    url: "str | URL",
    *,
    policy: Policy | None = None,
    **request: Any,
) -> "AsyncStream[bytes, None]":
    """Return the chunks of a file, whose download continues where it was cut off.

    ::

        async with download(session, "https://example.com/file.zip") as chunks:
            async for chunk in chunks:
                file.write(chunk)

    Iterate over the stream, in an ``async with`` block, which closes it. A request that
    continues asks for the rest with ``Range``, on the condition, in ``If-Range``, that
    the file has not changed. The condition needs a strong ``ETag``, or a
    ``Last-Modified`` that was at least a minute old. If the file has changed, or may
    have, `DownloadError` is raised, since chunks cannot be taken back; `download_to`
    starts such a file over. A body that is shorter than it should be is an error, even
    if aiohttp raises none. The limits of the policy count the failures since the last
    chunk.

    Args:
        session: The session.
        url: The URL of the file.
        policy: As in `policy`; by default ``policy()``.
        **request: Further arguments of ``session.get``, such as ``headers``. The chunks
            are as sent: no ``Content-Encoding`` is requested or decoded.
            Without ``timeout``, the connection breaks when nothing arrives for 60 s, or
            for the ``sock_read`` of the session; its ``total`` of 5 minutes does not
            apply.

    Returns:
        An `AsyncStream` of bytes, as they arrive.

    Raises:
        ConfigError: The policy or an argument is invalid.
    """
    of_download = Request.for_download(request)
    stream: AsyncStream[bytes, None] = stream_download(
        *_parts(session, url, policy, of_download)
    )
    return stream


@user_facing
def download_to(
    session: aiohttp.ClientSession,
    url: "str | URL",
    path: "str | os.PathLike[str]",
    *,
    policy: Policy | None = None,
    **request: Any,
) -> "Coroutine[Any, Any, int]":
    """Download a file to a path, as `download` does, and return its size in bytes.

    The file is written beside the path, under a hidden name, and replaces what is at
    the path when it is complete; if the download fails, no part of it is left. If the
    file has changed, its download starts over, up to ten times.

    Args:
        session: The session.
        url: The URL of the file.
        path: The path to write.
        policy: As in `download`.
        **request: As in `download`.

    Raises:
        ConfigError: The policy or an argument is invalid.
    """
    of_download = Request.for_download(request)
    parts = _parts(session, url, policy, of_download)
    size: Coroutine[Any, Any, int] = save_download(*parts, path)
    return size


@user_facing
def events(
    session: aiohttp.ClientSession,
    url: "str | URL",
    *,
    last_event_id: str | None = None,
    policy: Policy | None = None,
    **request: Any,
) -> "AsyncStream[ServerSentEvent, None]":
    """Return the server-sent events of a URL, across reconnections.

    ::

        async with events(session, "https://example.com/prices") as prices:
            async for price in prices:
                print(price.data)

    Iterate over the stream, in an ``async with`` block, which closes it. When the
    connection breaks or the server ends it, the stream reconnects with
    ``Last-Event-ID``, after the delay that ``retry:`` has set, or the policy's delay if
    that is longer. Each event with an id is handed out exactly once, in order. Events
    that may be lost, since the server has sent no id for them, are listed in
    ``stream.state.stream.gaps``. The status 204 ends the stream; so do 400 and 410,
    with an `EventStreamError` that says what is lost, if there is a last id, or an
    event was handed out. The limits of the policy count the failures since the last
    event, or the last comment that kept the connection alive.

    Args:
        session: The session.
        url: The URL of the events.
        last_event_id: The `id` of the last event that was handled, to continue after
            it; by default the server chooses.
        policy: As in `policy`; by default ``policy(max_attempts=5)``.
        **request: Further arguments of ``session.get``, such as ``headers``. Without
            ``timeout``, the connection breaks when nothing arrives for 60 s, or for the
            ``sock_read`` of the session; its ``total`` does not apply.

    Returns:
        An `AsyncStream` of `ServerSentEvent`.

    Raises:
        ConfigError: The policy or an argument is invalid.
    """
    of_events = Request.for_events(request)
    parts = _parts(session, url, policy, of_events)
    stream: AsyncStream[ServerSentEvent, None] = stream_events(*parts, last_event_id)
    return stream


def _parts(
    session: aiohttp.ClientSession, url: object, policy: Policy | None, request: Request
) -> tuple["_Requester", Transient, Policy | None, str | None]:
    check_instance("session", session, aiohttp.ClientSession)
    if "timeout" not in request.options:
        given = session.timeout
        # Its total of 5 minutes would end a stream that still has data.
        request.options["timeout"] = aiohttp.ClientTimeout(
            connect=given.connect,
            sock_connect=given.sock_connect,
            sock_read=READ_TIMEOUT if given.sock_read is None else given.sock_read,
        )
    host = urlsplit(str(url)).hostname
    return _Requester(session, url, request), transient, policy, host


class _Requester(AsyncRequester):
    def __init__(
        self, session: aiohttp.ClientSession, url: Any, request: Request
    ) -> None:
        self._session = session
        self._url = url
        self._request = request

    @asynccontextmanager
    async def get(self, headers: dict[str, str], /) -> AsyncIterator[Reply]:
        options = self._request.with_headers(headers)
        if self._request.raw:
            options["auto_decompress"] = False
        async with self._session.get(self._url, **options) as response:
            chunks = response.content.iter_any()
            check = response.raise_for_status
            yield Reply(response.status, response.headers, chunks, check)

    def ended(self, text: str, /) -> Exception:
        return aiohttp.ClientPayloadError(text)
