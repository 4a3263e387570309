"""Retries for urllib3.

Needs the extra ``urllib3``. Prefer to decorate the function that reads the
response, and use this pool manager, since others retry three times by themselves::

    from retrykit import retry
    from retrykit.integrations import urllib3 as retries

    pool = retries.RetryPoolManager(max_attempts=1)

    @retry(retries.policy(max_attempts=4))
    def fetch(url):
        return pool.request("GET", url)

`retrykit.state_of` returns the history of a response or an error. Where a decorator is
not possible, let the pool manager retry::

    pool = retries.RetryPoolManager(max_attempts=4)

Where only a ``Retry`` of urllib3 can be passed, use a `PolicyRetry`.
"""

import ssl
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Final, Self, Unpack, final

from retrykit._core.policy import Policy
from retrykit._core.setting_types import PolicySettings
from retrykit._internal.connection_errors import is_certificate_error
from retrykit._internal.extras import needs
from retrykit._internal.validation import check_instance, invalid_setting, user_facing
from retrykit.integrations._http.bodies import build_rewind
from retrykit.integrations._http.policy import (
    IDEMPOTENT,
    Transient,
    is_transient_status,
    retry_after,
)
from retrykit.integrations._http.transport import HttpRequest, Sender
from retrykit.integrations._urllib3_retry import PolicyRetry

with needs("urllib3"):
    import urllib3
    from urllib3.connectionpool import ConnectionPool
    from urllib3.exceptions import (
        EmptyPoolError,
        IncompleteRead,
        InvalidChunkLength,
        MaxRetryError,
        ProtocolError,
        ProxyError,
        SSLError,
        TimeoutError as _TimeoutError,
    )
    from urllib3.util import parse_url

__all__ = ["IDEMPOTENT", "PolicyRetry", "RetryPoolManager", "policy", "retry_after"]
__all__ += ["transient"]


class _Transient(Transient):
    """Condition that matches transient errors and responses of urllib3.

    Transient errors are failed, broken and reset connections, truncated bodies and
    timeouts of every kind, but not a rejected certificate. A ``MaxRetryError`` is
    judged by its reason. Transient responses have the status 408, 425, 429, 500,
    502, 503 or 504, or 413 with a ``Retry-After``.
    """

    def __call__(self, outcome: Any, /) -> bool:
        if isinstance(outcome, urllib3.BaseHTTPResponse):
            return is_transient_status(outcome.status, outcome.headers)
        reason = _find_reason(outcome)
        return isinstance(reason, _TRANSIENT) and not is_certificate_error(reason)

    def release(self, response: urllib3.BaseHTTPResponse, /) -> None:
        """Close a response and return its connection to the pool."""
        response.close()
        response.release_conn()


# Errors about proxies and TLS wrap the error of the connection. If urllib3 itself
# rejects a certificate, they wrap a string or a ValueError, which are not transient.
_TRANSIENT = (
    _TimeoutError,
    EmptyPoolError,
    ProtocolError,
    IncompleteRead,
    InvalidChunkLength,
    ConnectionError,
    TimeoutError,
    ssl.SSLError,
)


def _find_reason(error: Any) -> Any:
    """Return the innermost of the errors that urllib3 wraps in one another."""
    while True:
        if isinstance(error, MaxRetryError):
            error = error.reason
        elif isinstance(error, ProxyError):
            error = error.original_error
        elif isinstance(error, SSLError):
            error = error.args[0] if error.args else None
        else:
            return error


transient: Final = _Transient()
"""Condition for `on` and `on_result`: matches transient errors and responses."""

policy: Final = transient.policy
"""Returns a policy with `transient` and `retry_after` filled in."""


@final
class RetryPoolManager(urllib3.PoolManager):
    """Pool manager that retries its requests under a policy.

    >>> pool = RetryPoolManager(max_attempts=3)

    Idempotent methods and requests with an ``Idempotency-Key`` are retried, if the
    body can be sent again: from memory, or from a seekable file. `state_of` returns
    the history of every response and every error. When the policy gives up, the last
    response is returned, or the error of urllib3 is raised as it is, such as a
    ``ProtocolError``, and not within a ``MaxRetryError``. Only too many redirects
    raise a ``MaxRetryError``.

    An attempt includes the redirects, which urllib3 follows and counts, and, unless
    ``preload_content=False``, reading the body.

    Pass ``request(..., policy=policy)`` to give a request another policy, or None to
    send it once. A request with ``retries=False``, or with a ``Retry`` that allows only
    redirects, is also sent once, unless it is given a policy.

    Args:
        policy: As in `policy`.
        manager: Pool manager that sends the requests, such as a ``ProxyManager``. Its
            pools, headers and settings are shared. By default ``PoolManager()``.
        methods: HTTP methods to retry; None means all.
        **changes: Settings of `Policy`. ``attempt_timeout=AsArgument("5s")``
            bounds the timeout of urllib3.

    Raises:
        ConfigError: A setting is invalid, a pool manager does not support the policy,
            or *manager* retries by itself. A request raises it if its own *retries*
            argument asks for retries.
    """

    @user_facing
    def __init__(
        self,
        policy: Policy | None = None,
        manager: urllib3.PoolManager | None = None,
        *,
        methods: Iterable[str] | None = IDEMPOTENT,
        **changes: Unpack[PolicySettings],
    ) -> None:
        inner = urllib3.PoolManager() if manager is None else manager
        self._inner = check_instance("manager", inner, urllib3.PoolManager)
        # Share the pools and settings of the inner manager.
        vars(self).update(vars(inner))
        pool_options = self.connection_pool_kw
        self._retries = _redirects_only(pool_options.get("retries"))

        def send(
            sent: tuple[tuple[Any, ...], dict[str, Any]], limit: float | None
        ) -> urllib3.BaseHTTPResponse:
            args, options = sent
            if limit is not None:
                timeout = options.get("timeout", pool_options.get("timeout"))
                options = {**options, "timeout": bound_timeout(timeout, limit)}
            return inner.urlopen(*args, **options)

        policy = transient.policy(policy, **changes)
        self._sender = Sender(policy, send, transient, methods)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._sender.policy!r})"

    def connection_from_host(
        self,
        host: str | None,
        port: int | None = None,
        scheme: str | None = "http",
        pool_kwargs: dict[str, Any] | None = None,
    ) -> urllib3.HTTPConnectionPool:
        """Return the connection pool of a host; its own requests are not retried."""
        return self._inner.connection_from_host(host, port, scheme, pool_kwargs)

    def urlopen(
        self, method: str, url: str, *args: Any, **kw: Any
    ) -> urllib3.BaseHTTPResponse:
        """Send a request, and retry it under the policy."""
        sender, given = self._sender, kw.get("retries")
        if "policy" in kw:
            sender = sender.with_policy("policy", kw.pop("policy"))
        elif given is not None:
            # It allows no retries, or is rejected below.
            sender = sender.with_policy("retries", None)
        kw["retries"] = self._retries if given is None else _redirects_only(given)
        headers = urllib3.HTTPHeaderDict(kw.setdefault("headers", self.headers))
        host, rewind = parse_url(url).host or "", build_rewind(kw.get("body"))
        sent = (method, url, *args), kw
        response: urllib3.BaseHTTPResponse = sender.send(
            HttpRequest(sent, method, host, headers, rewind, url)
        )
        return response


class _RedirectsOnly(urllib3.Retry):
    """A ``Retry`` that counts redirects, and retries nothing."""

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: urllib3.BaseHTTPResponse | None = None,
        error: Exception | None = None,
        _pool: ConnectionPool | None = None,
        _stacktrace: TracebackType | None = None,
    ) -> Self:
        """Count a redirect; raise any error as it is, without a ``MaxRetryError``."""
        if error is not None:
            raise error.with_traceback(_stacktrace)
        return super().increment(method, url, response, None, _pool)


def _redirects_only(retries: urllib3.Retry | int | None) -> urllib3.Retry:
    """Return a ``Retry`` with the redirect limits of another one, and no retries.

    Raises:
        ConfigError: *retries* asks for retries.
    """
    given = urllib3.Retry.from_int(retries)
    limits = given.connect, given.read, given.status, given.other
    retrying = given.total != 0 and any(
        (given.total if limit is None else limit) != 0 for limit in limits
    )
    if retries is not None and retrying:
        rule = "False, or a Retry that limits all but redirects to 0"
        suggestion = "leave it out, since the policy retries"
        raise invalid_setting(
            "retries", rule, retries, suggestion, code="other-library"
        )
    return _RedirectsOnly(
        given.total,
        redirect=given.redirect,
        raise_on_redirect=given.raise_on_redirect,
        remove_headers_on_redirect=given.remove_headers_on_redirect,
        respect_retry_after_header=False,
    )


def bound_timeout(timeout: Any, limit: float) -> Any:
    """Return a timeout whose parts, or whose total, are at most *limit* seconds.

    Each of them is at least a millisecond: urllib3 raises a ValueError for 0.
    """
    if isinstance(timeout, tuple):
        return tuple(bound_timeout(part, limit) for part in timeout)
    if isinstance(timeout, urllib3.Timeout):
        bound = timeout.clone()
        bound.total = bound_timeout(timeout.total, limit)
        return bound
    bounded = min(timeout, limit) if isinstance(timeout, int | float) else limit
    return max(bounded, 0.001)
