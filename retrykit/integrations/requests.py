"""Retries for requests.

Needs the extra ``requests``. Prefer to decorate the function that reads the
response: a decorator also retries truncated bodies::

    from retrykit import retry
    from retrykit.integrations import requests as retries

    @retry(retries.policy(max_attempts=4))
    def fetch(session, url):
        response = session.get(url, timeout=5)
        response.raise_for_status()
        return response.json()

`retrykit.state_of` returns the history of a response or an error. Where a decorator is
not possible, use an adapter, which retries a request until it has the response
headers::

    session = requests.Session()
    session.mount("https://", retries.RetryAdapter(max_attempts=4))

``download`` and ``download_to`` continue a file where its transfer broke off, and
``events`` continues a stream of server-sent events.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Unpack, final
from urllib.parse import urlsplit

from retrykit._core.policy import Policy
from retrykit._core.setting_types import PolicySettings
from retrykit._internal.connection_errors import is_certificate_error
from retrykit._internal.extras import needs
from retrykit._internal.validation import check_instance, invalid_setting, user_facing
from retrykit.integrations._http.bodies import build_rewind
from retrykit.integrations._http.event_streams import ServerSentEvent
from retrykit.integrations._http.policy import (
    IDEMPOTENT,
    Transient,
    check_methods,
    is_transient_status,
    retry_after,
)
from retrykit.integrations._http.range_downloads import Reply
from retrykit.integrations._http.streams import (
    READ_TIMEOUT,
    Request,
    Requester,
    save_download,
    stream_download,
    stream_events,
)
from retrykit.integrations._http.transport import HttpRequest, Sender

with needs("requests"):
    import requests
    from requests.adapters import BaseAdapter, HTTPAdapter
    from requests.exceptions import ChunkedEncodingError, ContentDecodingError
    from urllib3.exceptions import (
        DecodeError,
        HTTPError,
        ProtocolError,
        ReadTimeoutError,
        SSLError,
    )

    from retrykit.integrations.urllib3 import bound_timeout, transient as _of_urllib3

if TYPE_CHECKING:
    from retrykit._core.streams import Stream

__all__ = ["ServerSentEvent", "download", "download_to", "events"]
__all__ += ["IDEMPOTENT", "RetryAdapter", "policy", "request_policy", "retry_after"]
__all__ += ["transient"]


class _Transient(Transient):
    """Condition that matches transient errors and responses of requests.

    Transient errors are failed, broken and reset connections, truncated bodies and
    timeouts of every kind, including the errors of ``response.raw``, but not a rejected
    certificate or a proxy that denies access. Transient responses, and errors of
    ``raise_for_status``, have the status 408, 425, 429, 500, 502, 503 or 504, or 413
    with a ``Retry-After``.
    """

    def __call__(self, outcome: Any, /) -> bool:
        if isinstance(outcome, requests.HTTPError):
            outcome = outcome.response
        if isinstance(outcome, requests.Response):
            return is_transient_status(outcome.status_code, outcome.headers)
        if isinstance(outcome, requests.ConnectionError) and outcome.args:
            # It wraps an error of urllib3, which is more specific.
            cause = outcome.args[0]
            outcome = cause if isinstance(cause, HTTPError) else outcome
        if isinstance(outcome, _TRANSIENT):
            return not is_certificate_error(outcome)
        return _of_urllib3(outcome)

    def release(self, response: requests.Response, /) -> None:
        """Close a response."""
        response.close()


_TRANSIENT = (requests.ConnectionError, requests.Timeout, ChunkedEncodingError)

transient: Final = _Transient()
"""Condition for `on` and `on_result`: matches transient errors and responses."""

policy: Final = transient.policy
"""Returns a policy with `transient` and `retry_after` filled in."""


@contextmanager
def request_policy(policy: Policy | None) -> Iterator[None]:
    """Send the requests of a ``with`` block under another policy.

    requests passes no arguments on to an adapter, so this applies to all requests,
    including redirects, that this thread or task sends through a `RetryAdapter`.

    >>> session = requests.Session()
    >>> session.mount("https://", RetryAdapter(max_attempts=3))
    >>> with request_policy(Policy(max_attempts=9)):
    ...     pass  # session.get(url) is sent up to nine times

    Args:
        policy: As in `RetryAdapter`; with None, each request is sent once.

    Raises:
        ConfigError: *policy* is not a policy. If an adapter does not support it, each
            request raises this error.
    """
    if policy is not None:
        check_instance("policy", policy, Policy, "None sends once")
    token = _request_policy.set((policy,))
    try:
        yield
    finally:
        _request_policy.reset(token)


# The policy of `request_policy`, which may be None, in a tuple; empty if there is none.
_request_policy: ContextVar[tuple[Policy | None, ...]] = ContextVar(
    "retrykit policy of requests", default=()
)


@final
class RetryAdapter(BaseAdapter):
    """Adapter that retries the requests of a session under a policy.

    >>> session = requests.Session()
    >>> session.mount("https://", RetryAdapter(max_attempts=3))

    An attempt ends with the response headers: if the body is truncated after that,
    the client's error is raised, and nothing is retried. Idempotent methods and
    requests with an ``Idempotency-Key`` are retried, if the body can be sent again:
    from memory, or from a seekable file. `state_of` returns the history of every
    response and every error. When the policy gives up, the last response is returned,
    or an error of requests is raised. Each hop of a redirect is a separate call.
    Cookies of retried responses are not kept. `request_policy` gives single requests
    another policy.

    Args:
        policy: As in `policy`.
        adapter: Adapter that sends the requests, and is closed with this one; by
            default ``HTTPAdapter()``.
        methods: HTTP methods to retry; None means all.
        **changes: Settings of `Policy`. ``attempt_timeout=AsArgument("5s")``
            bounds the timeout of requests.

    Raises:
        ConfigError: A setting is invalid, an adapter does not support it, or *adapter*
            retries by itself.
    """

    @user_facing
    def __init__(
        self,
        policy: Policy | None = None,
        adapter: BaseAdapter | None = None,
        *,
        methods: Iterable[str] | None = IDEMPOTENT,
        **changes: Unpack[PolicySettings],
    ) -> None:
        super().__init__()
        inner = HTTPAdapter() if adapter is None else adapter
        self._inner = check_instance("adapter", inner, BaseAdapter)
        retries = getattr(inner, "max_retries", 0)
        if getattr(retries, "total", retries) != 0:
            # Its attempts and ours would multiply.
            rule = "one that does not retry by itself"
            raise invalid_setting(
                "adapter",
                rule,
                inner,
                "leave its max_retries at 0",
                code="other-library",
            )
        policy = transient.policy(policy, **changes)
        names = check_methods(methods)
        self._sender = Sender(policy, partial(_send, inner), transient, names)
        self._arguments = policy, inner, names

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._sender.policy!r})"

    def send(  # noqa: PLR0913, PLR0917  as in requests
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: FBT001, FBT002  as in requests
        timeout: Any = None,
        verify: bool | str = True,  # noqa: FBT001, FBT002  as in requests
        cert: Any = None,
        proxies: Any = None,
    ) -> requests.Response:
        """Send a request, and retry it under the policy."""
        options = {"stream": stream, "timeout": timeout, "verify": verify}
        options |= {"cert": cert, "proxies": proxies}
        sender = self._sender
        if other := _request_policy.get():
            sender = sender.with_policy("policy", *other)
        response: requests.Response = sender.send(
            HttpRequest(
                (request, options),
                request.method or "",
                str(urlsplit(request.url or "").hostname or ""),
                request.headers,
                build_rewind(request.body),
                request.url,
            )
        )
        # Digest authentication sends the request again through it.
        vars(response)["connection"] = self
        return response

    def close(self) -> None:
        """Close the adapter that sends the requests."""
        self._inner.close()

    def __reduce__(self) -> tuple[Any, ...]:
        policy, inner, methods = self._arguments
        return partial(RetryAdapter, methods=methods), (policy, inner)


def _send(
    adapter: BaseAdapter,
    sent: tuple[requests.PreparedRequest, Mapping[str, Any]],
    limit: float | None,
) -> requests.Response:
    request, options = sent
    timeout = options["timeout"]
    if limit is not None:
        timeout = bound_timeout(timeout, limit)
    return adapter.send(request, **{**options, "timeout": timeout})


@user_facing
def download(
    session: requests.Session,
    url: str,
    *,
    policy: Policy | None = None,
    **request: Any,
) -> "Stream[bytes, None, None]":
    """Return the chunks of a file, whose download continues where it was cut off.

    >>> session = requests.Session()
    >>> chunks = download(session, "https://example.com/file.zip", policy=policy())

    Iterate over the stream, in a ``with`` block, which closes it. A request that
    continues asks for the rest with ``Range``, on the condition, in ``If-Range``, that
    the file has not changed. The condition needs a strong ``ETag``, or a
    ``Last-Modified`` that was at least a minute old. If the file has changed, or may
    have, `DownloadError` is raised, since chunks cannot be taken back; `download_to`
    starts such a file over. A body that is shorter than it should be is an error, even
    if requests raises none. The limits of the policy count the failures since the last
    chunk.

    Args:
        session: The session.
        url: The URL of the file.
        policy: As in `policy`; by default ``policy()``.
        **request: Further arguments of ``session.get``, such as ``headers``. The chunks
            are as sent: no ``Content-Encoding`` is requested or decoded.
            Without ``timeout``, the connection breaks when nothing arrives for 60 s.

    Returns:
        A `Stream` of bytes, as they arrive.

    Raises:
        ConfigError: The policy or an argument is invalid.
    """
    of_download = Request.for_download(request)
    stream: Stream[bytes, None, None] = stream_download(
        *_parts(session, url, policy, of_download)
    )
    return stream


@user_facing
def download_to(
    session: requests.Session,
    url: str,
    path: "str | os.PathLike[str]",
    *,
    policy: Policy | None = None,
    **request: Any,
) -> int:
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
    size: int = save_download(*_parts(session, url, policy, of_download), path)
    return size


@user_facing
def events(
    session: requests.Session,
    url: str,
    *,
    last_event_id: str | None = None,
    policy: Policy | None = None,
    **request: Any,
) -> "Stream[ServerSentEvent, None, None]":
    """Return the server-sent events of a URL, across reconnections.

    >>> session = requests.Session()
    >>> prices = events(session, "https://example.com/prices", last_event_id="41")

    Iterate over the stream, in a ``with`` block, which closes it. When the connection
    breaks or the server ends it, the stream reconnects with ``Last-Event-ID``, after
    the delay that ``retry:`` has set, or the policy's delay if that is longer. Each
    event with an id is handed out exactly once, in order. Events that may be lost,
    since the server has sent no id for them, are listed in
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
            ``timeout``, the connection breaks when nothing arrives for 60 s.

    Returns:
        A `Stream` of `ServerSentEvent`.

    Raises:
        ConfigError: The policy or an argument is invalid.
    """
    of_events = Request.for_events(request)
    parts = _parts(session, url, policy, of_events)
    stream: Stream[ServerSentEvent, None, None] = stream_events(*parts, last_event_id)
    return stream


def _parts(
    session: requests.Session, url: str, policy: Policy | None, request: Request
) -> tuple["_Requester", Transient, Policy | None, str | None]:
    check_instance("session", session, requests.Session)
    request.options.setdefault("timeout", READ_TIMEOUT)
    host = urlsplit(url).hostname
    return _Requester(session, url, request), transient, policy, host


class _Requester(Requester):
    def __init__(self, session: requests.Session, url: str, request: Request) -> None:
        self._session = session
        self._url = url
        self._request = request

    @contextmanager
    def get(self, headers: dict[str, str], /) -> Iterator[Reply]:
        # As bytes: the id of an event may be any text.
        encoded = {name: value.encode() for name, value in headers.items()}
        options = self._request.with_headers(encoded)
        with self._session.get(self._url, stream=True, **options) as response:
            chunks = _read(response, decode=not self._request.raw)
            check = response.raise_for_status
            yield Reply(response.status_code, response.headers, chunks, check)

    def ended(self, text: str, /) -> Exception:
        return ChunkedEncodingError(text)


def _read(response: requests.Response, *, decode: bool) -> Iterator[bytes]:
    """Yield parts of a body as they arrive; ``iter_content`` waits for whole chunks.

    The errors are the same as from ``iter_content``.
    """
    try:
        while chunk := response.raw.read1(_CHUNK, decode_content=decode):
            yield chunk
    except ProtocolError as error:
        raise ChunkedEncodingError(error) from error
    except DecodeError as error:
        raise ContentDecodingError(error) from error
    except ReadTimeoutError as error:
        raise requests.ConnectionError(error) from error
    except SSLError as error:
        raise requests.exceptions.SSLError(error) from error


_CHUNK = 65_536
