"""Retries for httpx.

Needs the extra ``retrykit[httpx]``. Prefer to decorate the function that reads the
response: a decorator also retries truncated bodies::

    from retrykit import retry
    from retrykit.integrations import httpx as retries

    @retry(retries.policy(max_attempts=4))
    def fetch(client, url):
        return client.get(url).raise_for_status().json()

`retrykit.state_of` returns the history of a response or an error. Where a decorator is
not possible, use a transport, which retries a request until it has the response
headers::

    client = httpx.Client(transport=retries.RetryTransport(max_attempts=4))
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self, TypeVar, Unpack, cast, final

from retrykit._internal.user_facing import user_facing
from retrykit._internal.validation import check_instance
from retrykit.errors import AttemptTimeout
from retrykit.integrations._connection_errors import is_certificate_error
from retrykit.integrations._extras import needs
from retrykit.integrations._http.bodies import (
    Rewind,
    build_rewind,
    combine_rewinds,
    no_rewind,
)
from retrykit.integrations._http.policy import (
    IDEMPOTENT,
    Transient,
    is_transient_status,
    retry_after,
)
from retrykit.integrations._http.transport import AsyncSender, HttpRequest, Sender
from retrykit.policy.policy import Policy
from retrykit.policy.validators import PolicySettings
from retrykit.state.final_error import attach_state, state_of
from retrykit.state.retry_state import RetryState

with needs("httpx"):
    import httpx

__all__ = ["IDEMPOTENT", "AsyncRetryTransport", "RetryTransport", "policy"]
__all__ += ["retry_after", "transient"]


class _Transient(Transient):
    """Condition that matches transient errors and responses of httpx.

    Transient errors are failed, broken and reset connections, truncated bodies and
    timeouts of every kind, but not a rejected certificate. Transient responses, and
    errors of ``raise_for_status``, have the status 408, 425, 429, 500, 502, 503 or
    504, or 413 with a ``Retry-After``.
    """

    def __call__(self, outcome: Any, /) -> bool:
        if isinstance(outcome, httpx.HTTPStatusError):
            outcome = outcome.response
        if isinstance(outcome, httpx.Response):
            return is_transient_status(outcome.status_code, outcome.headers)
        return isinstance(outcome, _TRANSIENT) and not is_certificate_error(outcome)

    def release(self, response: httpx.Response, /) -> Any:
        """Close a response of either client; the result may be awaitable."""
        if isinstance(response.stream, httpx.SyncByteStream):
            return response.close()
        return response.aclose()


_TRANSIENT = (httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError)

_Sender = TypeVar("_Sender", Sender, AsyncSender)

transient: Final = _Transient()
"""Condition for `on` and `on_result`: matches transient errors and responses."""

policy = transient.policy
"""Returns a policy with `transient` and `retry_after` filled in."""


@final
class RetryTransport(httpx.BaseTransport):
    """Transport that retries the requests of a client under a policy.

    >>> client = httpx.Client(transport=RetryTransport(max_attempts=3))

    An attempt ends with the response headers: if the body is truncated after that,
    the client's error is raised, and nothing is retried. Idempotent methods and
    requests with an ``Idempotency-Key`` are retried, if the body can be sent again:
    from memory, or from a seekable file. `state_of` returns the history of every
    response and every error. When the policy gives up, the last response is returned,
    or an error of httpx is raised.

    Pass ``extensions={"retry": policy}`` with a request to give it another policy, or
    None to send it once. Cookies of retried responses are not kept. A client with a
    custom transport ignores the proxies that environment variables name.

    Args:
        policy: As for `policy`.
        transport: Transport that sends the requests, and is closed with this one; by
            default ``httpx.HTTPTransport()``.
        methods: HTTP methods to retry; None means all.
        **changes: Settings, as for `Policy`. ``attempt_timeout=AsArgument("5s")``
            bounds the timeouts of httpx.

    Raises:
        ConfigError: A setting is invalid, or a transport does not support it.
    """

    @user_facing
    def __init__(
        self,
        policy: Policy | None = None,
        transport: httpx.BaseTransport | None = None,
        *,
        methods: Iterable[str] | None = IDEMPOTENT,
        **changes: Unpack[PolicySettings],
    ) -> None:
        inner = httpx.HTTPTransport() if transport is None else transport
        self._inner = check_instance("transport", inner, httpx.BaseTransport)

        def send(request: httpx.Request, limit: float | None) -> httpx.Response:
            with _bound_timeouts(request, limit):
                return inner.handle_request(request)

        policy = transient.policy(policy, **changes)
        self._sender = Sender(policy, send, transient, methods)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._sender.policy!r})"

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and retry it under the policy."""
        response: httpx.Response = _sender_of(self._sender, request).send(
            _as_http_request(request)
        )
        return response

    def __enter__(self) -> Self:
        self._inner.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        self._inner.__exit__(kind, error, trace)

    def close(self) -> None:
        """Close the transport that sends the requests."""
        self._inner.close()


@final
class AsyncRetryTransport(httpx.AsyncBaseTransport):
    """Transport that retries the requests of an async client, as `RetryTransport` does.

    >>> client = httpx.AsyncClient(transport=AsyncRetryTransport(max_attempts=3))

    Its arguments and errors are those of `RetryTransport`; *transport* is
    ``httpx.AsyncHTTPTransport()`` by default. If the last attempt exceeds its
    `attempt_timeout`, ``httpx.ReadTimeout`` is raised.
    """

    @user_facing
    def __init__(
        self,
        policy: Policy | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        *,
        methods: Iterable[str] | None = IDEMPOTENT,
        **changes: Unpack[PolicySettings],
    ) -> None:
        inner = httpx.AsyncHTTPTransport() if transport is None else transport
        self._inner = check_instance("transport", inner, httpx.AsyncBaseTransport)

        async def send(request: httpx.Request, limit: float | None) -> httpx.Response:
            with _bound_timeouts(request, limit):
                return await inner.handle_async_request(request)

        policy = transient.policy(policy, **changes)
        self._sender = AsyncSender(policy, send, transient, methods)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._sender.policy!r})"

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and retry it under the policy."""
        sender = _sender_of(self._sender, request)
        try:
            response: httpx.Response = await sender.send(_as_http_request(request))
        except AttemptTimeout as error:
            raise _as_read_timeout(error, request) from error
        return response

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        await self._inner.__aexit__(kind, error, trace)

    async def aclose(self) -> None:
        """Close the transport that sends the requests."""
        await self._inner.aclose()


def _sender_of(sender: _Sender, request: httpx.Request) -> _Sender:
    """Return the sender for a request, which may have another policy."""
    if "retry" not in request.extensions:
        return sender
    return sender.with_policy("extensions['retry']", request.extensions["retry"])


def _as_http_request(request: httpx.Request) -> HttpRequest:
    host, rewind = request.url.host, _build_rewind(request.stream)
    url = request.url
    return HttpRequest(request, request.method, host, request.headers, rewind, url)


def _build_rewind(stream: object) -> Rewind | None:
    """Return a function that rewinds a body; None if it cannot be sent again."""
    if isinstance(stream, httpx.ByteStream):
        return no_rewind
    # httpx has no public names for the parts of a stream. If it renames them, streams
    # are not sent again.
    fields = getattr(stream, "fields", None)
    if isinstance(fields, list):
        files = (getattr(field, "file", b"") for field in fields)
        return combine_rewinds(map(build_rewind, files))
    return build_rewind(getattr(stream, "_stream", iter(())))


@contextmanager
def _bound_timeouts(request: httpx.Request, limit: float | None) -> Iterator[None]:
    """Limit each timeout of a request to that of the attempt, in seconds."""
    extensions = request.extensions
    if limit is not None:
        given = extensions.get("timeout", {})
        timeouts = {phase: given.get(phase) for phase in _PHASES}
        # A socket with a timeout of 0 would not wait at all.
        bound = {
            phase: max(limit if timeout is None else min(timeout, limit), 0.001)
            for phase, timeout in timeouts.items()
        }
        request.extensions = {**extensions, "timeout": bound}
    try:
        yield
    finally:
        # The request belongs to its caller, who may send it again.
        request.extensions = extensions


_PHASES = ("connect", "read", "write", "pool")


def _as_read_timeout(
    error: AttemptTimeout, request: httpx.Request
) -> httpx.ReadTimeout:
    """Return the error of httpx for an attempt timeout, with the same state."""
    timeout = httpx.ReadTimeout(str(error), request=request)
    attach_state(timeout, cast("RetryState", state_of(error)))
    return timeout
