"""Transports and a condition for httpx and httpx2, which have the same interface.

The integration of each library passes the library's module; nothing here imports
either.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar, Unpack, cast

from retrykit._core.final_error import attach_state, state_of
from retrykit._core.policy import Policy
from retrykit._core.retry_state import RetryState
from retrykit._core.setting_types import PolicySettings
from retrykit._internal.connection_errors import is_certificate_error
from retrykit._internal.validation import check_instance, user_facing
from retrykit.errors import AttemptTimeout
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
)
from retrykit.integrations._http.transport import AsyncSender, HttpRequest, Sender

__all__ = ["AsyncTransport", "HttpxTransient", "SyncTransport"]

_Sender = TypeVar("_Sender", Sender, AsyncSender)
_Inner = TypeVar("_Inner")
_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class HttpxTransient(Transient):
    """Condition that matches transient errors and responses of httpx or httpx2.

    Args:
        library: The module of the library.
    """

    def __init__(self, library: Any) -> None:
        self._status_error = library.HTTPStatusError
        self._response = library.Response
        self._sync_stream = library.SyncByteStream
        self._errors = (
            library.TimeoutException,
            library.NetworkError,
            library.RemoteProtocolError,
        )

    def __call__(self, outcome: Any, /) -> bool:
        if isinstance(outcome, self._status_error):
            outcome = outcome.response
        if isinstance(outcome, self._response):
            return is_transient_status(outcome.status_code, outcome.headers)
        return isinstance(outcome, self._errors) and not is_certificate_error(outcome)

    def release(self, response: Any, /) -> Any:
        """Close a response; return None, or an awaitable for a purely async stream."""
        if isinstance(response.stream, self._sync_stream):
            return response.close()
        return response.aclose()

    def copy_request(self, request: Any, /) -> Any:
        """Return a copy of a request, with the same body and extensions."""
        other = copy(request)
        # `copy` leaves out what is not pickled.
        other.stream, other.extensions = request.stream, request.extensions
        return other


class SyncTransport(Generic[_Inner, _Request, _Response]):
    """Base class of `RetryTransport`; each subclass sets its library and condition."""

    _library: ClassVar[Any]
    _transient: ClassVar[HttpxTransient]

    @user_facing
    def __init__(
        self,
        policy: Policy | None = None,
        transport: _Inner | None = None,
        *,
        methods: Iterable[str] | None = IDEMPOTENT,
        **changes: Unpack[PolicySettings],
    ) -> None:
        inner: Any = self._library.HTTPTransport() if transport is None else transport
        self._inner: Any = check_instance(
            "transport", inner, self._library.BaseTransport
        )

        def send(request: Any, limit: float | None) -> Any:
            if limit is None:
                return inner.handle_request(request)
            with _bound_timeouts(request, limit):
                return inner.handle_request(request)

        policy = self._transient.policy(policy, **changes)
        self._sender = Sender(policy, send, self._transient, methods)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._sender.policy!r})"

    def handle_request(self, request: _Request) -> _Response:
        """Send a request, and retry it under the policy."""
        sender = _sender_of(self._sender, request)
        response: _Response = sender.send(_as_http_request(self._library, request))
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


class AsyncTransport(Generic[_Inner, _Request, _Response]):
    """Base class of `AsyncRetryTransport`; each subclass sets library and condition."""

    _library: ClassVar[Any]
    _transient: ClassVar[HttpxTransient]

    @user_facing
    def __init__(
        self,
        policy: Policy | None = None,
        transport: _Inner | None = None,
        *,
        methods: Iterable[str] | None = IDEMPOTENT,
        **changes: Unpack[PolicySettings],
    ) -> None:
        inner: Any = (
            self._library.AsyncHTTPTransport() if transport is None else transport
        )
        self._inner: Any = check_instance(
            "transport", inner, self._library.AsyncBaseTransport
        )

        async def send(request: Any, limit: float | None) -> Any:
            if limit is None:
                return await inner.handle_async_request(request)
            with _bound_timeouts(request, limit):
                return await inner.handle_async_request(request)

        policy = self._transient.policy(policy, **changes)
        self._sender = AsyncSender(policy, send, self._transient, methods)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._sender.policy!r})"

    async def handle_async_request(self, request: _Request) -> _Response:
        """Send a request, and retry it under the policy."""
        sender = _sender_of(self._sender, request)
        try:
            response: _Response = await sender.send(
                _as_http_request(self._library, request)
            )
        except AttemptTimeout as error:
            # The error of the library, with the same state and note.
            timeout = self._library.ReadTimeout(str(error), request=request)
            attach_state(timeout, cast("RetryState", state_of(error)))
            timeout.__notes__ = vars(error).pop("__notes__", [])
            raise timeout from error
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


def _sender_of(sender: _Sender, request: Any) -> _Sender:
    """Return the sender for a request, whose extensions may have another policy."""
    if "retry" not in request.extensions:
        return sender
    return sender.with_policy("extensions['retry']", request.extensions["retry"])


def _as_http_request(library: Any, request: Any) -> HttpRequest:
    url, rewind = request.url, _build_rewind(library, request.stream)
    method, headers = request.method, request.headers
    return HttpRequest(request, method, url.host, headers, rewind, url)


def _build_rewind(library: Any, stream: object) -> Rewind | None:
    """Return a function that rewinds a body; None if it cannot be sent again."""
    if isinstance(stream, library.ByteStream):
        return no_rewind
    # The parts of a stream have no public names. If a library renames them, streams
    # are not sent again.
    fields = getattr(stream, "fields", None)
    if isinstance(fields, list):
        files = (getattr(field, "file", b"") for field in fields)
        return combine_rewinds(map(build_rewind, files))
    return build_rewind(getattr(stream, "_stream", iter(())))


@contextmanager
def _bound_timeouts(request: Any, limit: float) -> Iterator[None]:
    """Limit each timeout of a request in a block to *limit* seconds, at least 1 ms."""
    extensions = request.extensions
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
