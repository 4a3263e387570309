"""Retries for httpx.

Needs the extra ``retrykit[httpx]``. Best is a decorator around the whole of
what is done with a response, which sees a body that is cut short::

    from retrykit import retry
    from retrykit.integrations import httpx as retries

    @retry(retries.policy(max_attempts=4))
    def fetch(client, url):
        return client.get(url).raise_for_status().json()

Where that cannot be, a transport sends requests again, up to the head of the
response; `state_of` of a response or an error has its history::

    client = httpx.Client(transport=retries.RetryTransport(max_attempts=4))
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self, Unpack, cast, final

import httpx

from retrykit._internal.validation import check_instance
from retrykit.errors import AttemptTimeout
from retrykit.integrations._http.bodies import ready, rewinding, together
from retrykit.integrations._http.policy import (
    IDEMPOTENT,
    Transient,
    merge_client_defaults,
    refuses_certificate,
    retry_after,
    transient_status,
)
from retrykit.integrations._http.transport import AsyncSender, HttpRequest, Sender
from retrykit.policy.policy import Policy
from retrykit.policy.validators import Changes
from retrykit.state.final_error import attach_state, state_of
from retrykit.state.retry_state import RetryState

__all__ = ["IDEMPOTENT", "AsyncRetryTransport", "RetryTransport", "policy"]
__all__ += ["retry_after", "transient"]


@final
class _Transient(Transient):
    """Whether what came of a request is worth another attempt.

    Of errors: connections that fail, break or are reset, answers that are cut
    short, timeouts of every kind; not a certificate that is not accepted. Of
    responses, and of the errors of ``raise_for_status``: the statuses 408, 425,
    429, 500, 502, 503 and 504, and 413 with a ``Retry-After``.
    """

    def __call__(self, outcome: Any, /) -> bool:
        if isinstance(outcome, httpx.HTTPStatusError):
            outcome = outcome.response
        if isinstance(outcome, httpx.Response):
            return transient_status(outcome.status_code, outcome.headers)
        return isinstance(outcome, _PASSING) and not refuses_certificate(outcome)

    def release(self, response: httpx.Response, /) -> Any:
        """Close a response, whichever client it is of; the result may be awaited."""
        if isinstance(response.stream, httpx.SyncByteStream):
            return response.close()
        return response.aclose()


_PASSING = (httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError)

transient: Final = _Transient()
"""The condition of errors and responses: for `on`, and for `on_result`."""


def policy(base: Policy | None = None, /, **changes: Unpack[Changes]) -> Policy:
    """Return a policy for httpx: `transient` and `retry_after` joined to one.

    >>> policy(max_attempts=3)
    Policy(max_attempts=3, on=transient, on_result=transient, hint=retry_after())

    Args:
        base: What it is derived from; by default `Policy()`. What it says itself
            of errors, results and hints is kept.
        **changes: Settings, as for `Policy`.

    Raises:
        ConfigError: A setting is wrong.
    """
    return merge_client_defaults(base, changes, transient)


@final
class RetryTransport(httpx.BaseTransport):
    """Sends the requests of a client again, under a policy.

    >>> client = httpx.Client(transport=RetryTransport(max_attempts=3))

    It ends with the head of a response: a body that is cut short raises the
    client's error, and nothing is sent again. Sent again are idempotent methods
    and what has an ``Idempotency-Key``, with a body that can be read twice: from
    memory, or from a file that can seek. Every response, and every error, has its
    history, which `state_of` reads. When the policy gives up, the last response
    is returned; what is raised is an error of httpx.

    A single request has a policy of its own by ``extensions={"retry": policy}``; with
    None it is sent once. Cookies of responses that another attempt replaces are not
    kept. A client that is given a transport reads no proxies from the environment.

    Args:
        policy: As for `policy`.
        transport: What sends, and is closed with this one; by default
            ``httpx.HTTPTransport()``.
        methods: The HTTP methods that are sent again; None is every one.
        **changes: Settings, as for `Policy`. ``attempt_timeout=AsArgument("5s")``
            bounds the timeouts of httpx.

    Raises:
        ConfigError: A setting is wrong, or a transport cannot follow it.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        transport: httpx.BaseTransport | None = None,
        *,
        methods: Iterable[str] | None = IDEMPOTENT,
        **changes: Unpack[Changes],
    ) -> None:
        inner = httpx.HTTPTransport() if transport is None else transport
        self._inner = check_instance("transport", inner, httpx.BaseTransport)

        def send(request: httpx.Request, most: float | None) -> httpx.Response:
            with _bound(request, most):
                return inner.handle_request(request)

        self._sender = Sender(
            merge_client_defaults(policy, changes, transient), send, transient, methods
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._sender.policy!r})"

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and again when the policy says so."""
        sender = self._sender
        if "retry" in request.extensions:
            sender = sender.under(_POLICY, request.extensions["retry"])
        response: httpx.Response = sender.send(_sending(request))
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
        """Close what sends."""
        self._inner.close()


@final
class AsyncRetryTransport(httpx.AsyncBaseTransport):
    """Sends the requests of an async client again, as `RetryTransport` does.

    >>> client = httpx.AsyncClient(transport=AsyncRetryTransport(max_attempts=3))

    Args:
        policy: As for `policy`.
        transport: What sends, and is closed with this one; by default
            ``httpx.AsyncHTTPTransport()``.
        methods: The HTTP methods that are sent again; None is every one.
        **changes: Settings, as for `Policy`. Where an `attempt_timeout` ends the
            last attempt, ``httpx.ReadTimeout`` is raised.

    Raises:
        ConfigError: A setting is wrong, or a transport cannot follow it.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        *,
        methods: Iterable[str] | None = IDEMPOTENT,
        **changes: Unpack[Changes],
    ) -> None:
        inner = httpx.AsyncHTTPTransport() if transport is None else transport
        self._inner = check_instance("transport", inner, httpx.AsyncBaseTransport)

        async def send(request: httpx.Request, most: float | None) -> httpx.Response:
            with _bound(request, most):
                return await inner.handle_async_request(request)

        self._sender = AsyncSender(
            merge_client_defaults(policy, changes, transient), send, transient, methods
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._sender.policy!r})"

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and again when the policy says so."""
        sender = self._sender
        if "retry" in request.extensions:
            sender = sender.under(_POLICY, request.extensions["retry"])
        try:
            response: httpx.Response = await sender.send(_sending(request))
        except AttemptTimeout as error:
            raise _own(error, request) from error
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
        """Close what sends."""
        await self._inner.aclose()


_POLICY = "extensions['retry']"


def _sending(request: httpx.Request) -> HttpRequest:
    url, headers = request.url, request.headers
    return HttpRequest(
        request, request.method, url.host, headers, _rewind(request.stream)
    )


def _rewind(stream: object) -> Callable[[], object] | None:
    """Return what makes a body ready to be sent again, if that can be done."""
    if isinstance(stream, httpx.ByteStream):
        return ready
    # httpx does not tell what a stream is made of: where its names are others
    # one day, the body counts as one that cannot be sent again.
    fields = getattr(stream, "fields", None)
    if isinstance(fields, list):
        files = (getattr(field, "file", b"") for field in fields)
        return together(map(rewinding, files))
    return rewinding(getattr(stream, "_stream", iter(())))


@contextmanager
def _bound(request: httpx.Request, most: float | None) -> Iterator[None]:
    """Let no phase of a request last longer than an attempt may."""
    given = request.extensions
    if most is not None:
        timeout = given.get("timeout", {})
        lengths = [timeout.get(name) for name in _PHASES]
        least = [most if length is None else min(length, most) for length in lengths]
        # Of none at all a socket understands that it must not wait.
        bound = {name: max(x, 0.001) for name, x in zip(_PHASES, least, strict=True)}
        request.extensions = {**given, "timeout": bound}
    try:
        yield
    finally:
        # The request is its caller's, and may be sent again elsewhere.
        request.extensions = given


_PHASES = ("connect", "read", "write", "pool")


def _own(error: AttemptTimeout, request: httpx.Request) -> httpx.ReadTimeout:
    """Return the client's error for an attempt that was ended, with its state."""
    own = httpx.ReadTimeout(str(error), request=request)
    # Whatever comes out of a sender has one.
    attach_state(own, cast("RetryState", state_of(error)))
    return own
