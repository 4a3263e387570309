"""Retries for httpx2, the client of the SDKs of OpenAI and Anthropic.

Needs the extra ``retrykit[httpx2]``. Prefer to decorate the function that reads the
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
"""

from typing import ClassVar, Final, final

from retrykit._internal.extras import needs
from retrykit.integrations._http.httpx_transports import (
    AsyncTransport,
    HttpxTransient,
    SyncTransport,
)
from retrykit.integrations._http.policy import IDEMPOTENT, retry_after

with needs("httpx2"):
    import httpx2

__all__ = ["IDEMPOTENT", "AsyncRetryTransport", "RetryTransport", "policy"]
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
        policy: As for `policy`.
        transport: Transport that sends the requests, and is closed with this one; by
            default ``httpx2.HTTPTransport()``.
        methods: HTTP methods to retry; None means all.
        **changes: Settings, as for `Policy`. ``attempt_timeout=AsArgument("5s")``
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

    Its arguments and errors are those of `RetryTransport`; *transport* is
    ``httpx2.AsyncHTTPTransport()`` by default. If the last attempt exceeds its
    `attempt_timeout`, ``httpx2.ReadTimeout`` is raised.
    """

    _library: ClassVar = httpx2
    _transient: ClassVar = transient
