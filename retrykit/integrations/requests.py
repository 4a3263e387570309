"""Retries for requests.

Needs the extra ``retrykit[requests]``. Best is a decorator around the whole of
what is done with a response, which sees a body that is cut short::

    from retrykit import retry
    from retrykit.integrations import requests as retries

    @retry(retries.policy(max_attempts=4))
    def fetch(session, url):
        response = session.get(url, timeout=5)
        response.raise_for_status()
        return response.json()

Where that cannot be, an adapter sends requests again, up to the head of the
response; `state_of` of a response or an error has its history::

    session = requests.Session()
    session.mount("https://", retries.RetryAdapter(max_attempts=4))
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, Unpack, final
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter, HTTPAdapter
from requests.exceptions import ChunkedEncodingError
from urllib3.exceptions import HTTPError

from retrykit._internal.validation import check_instance, invalid_setting
from retrykit.integrations._http.bodies import rewinding
from retrykit.integrations._http.policy import (
    IDEMPOTENT,
    Transient,
    checked_methods,
    merge_client_defaults,
    refuses_certificate,
    retry_after,
    transient_status,
)
from retrykit.integrations._http.transport import HttpRequest, Sender
from retrykit.integrations.urllib3 import bound_timeout, transient as _of_urllib3
from retrykit.policy.policy import Policy
from retrykit.policy.validators import Changes

__all__ = ["IDEMPOTENT", "RetryAdapter", "policy", "request_policy", "retry_after"]
__all__ += ["transient"]


@final
class _Transient(Transient):
    """Whether what came of a request is worth another attempt.

    Of errors: connections that fail, break or are reset, answers that are cut
    short, timeouts of every kind, those of ``response.raw`` too; not a
    certificate that is not accepted, nor a proxy that says no. Of responses, and
    of the errors of ``raise_for_status``: the statuses 408, 425, 429, 500, 502,
    503 and 504, and 413 with a ``Retry-After``.
    """

    def __call__(self, outcome: Any, /) -> bool:
        if isinstance(outcome, requests.HTTPError):
            outcome = outcome.response
        if isinstance(outcome, requests.Response):
            return transient_status(outcome.status_code, outcome.headers)
        if isinstance(outcome, requests.ConnectionError) and outcome.args:
            # It stands around an error of urllib3, which tells more.
            cause = outcome.args[0]
            outcome = cause if isinstance(cause, HTTPError) else outcome
        if isinstance(outcome, _PASSING):
            return not refuses_certificate(outcome)
        return _of_urllib3(outcome)

    def release(self, response: requests.Response, /) -> None:
        """Close a response."""
        response.close()


_PASSING = (requests.ConnectionError, requests.Timeout, ChunkedEncodingError)

transient: Final = _Transient()
"""The condition of errors and responses: for `on`, and for `on_result`."""


def policy(base: Policy | None = None, /, **changes: Unpack[Changes]) -> Policy:
    """Return a policy for requests: `transient` and `retry_after` joined to one.

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


@contextmanager
def request_policy(policy: Policy | None) -> Iterator[None]:
    """Send the requests of a ``with`` block under another policy.

    It holds for what this thread or task sends through a `RetryAdapter`, redirects
    included, since requests hands no arguments on to an adapter.

    >>> session = requests.Session()
    >>> session.mount("https://", RetryAdapter(max_attempts=3))
    >>> with request_policy(Policy(max_attempts=9)):
    ...     pass  # session.get(url) is sent up to nine times

    Args:
        policy: As for `RetryAdapter`; with None, each request is sent once.

    Raises:
        ConfigError: *policy* is none. If an adapter cannot follow it, each request
            raises this.
    """
    if policy is not None:
        check_instance("policy", policy, Policy, "None sends once")
    token = _request_policy.set((policy,))
    try:
        yield
    finally:
        _request_policy.reset(token)


# What `request_policy` holds, or nothing.
_request_policy: ContextVar[tuple[Policy | None, ...]] = ContextVar(
    "retrykit policy of requests", default=()
)


@final
class RetryAdapter(BaseAdapter):
    """Sends the requests of a session again, under a policy.

    >>> session = requests.Session()
    >>> session.mount("https://", RetryAdapter(max_attempts=3))

    It ends with the head of a response: a body that is cut short raises the
    client's error, and nothing is sent again. Sent again are idempotent methods
    and what has an ``Idempotency-Key``, with a body that can be read twice: from
    memory, or from a file that can seek. Every response, and every error, has its
    history, which `state_of` reads. When the policy gives up, the last response
    is returned; what is raised is an error of requests. Each request that a
    redirect leads to is a call of its own. Cookies of responses that another attempt
    replaces are not kept. `request_policy` gives single requests another policy.

    Args:
        policy: As for `policy`.
        adapter: What sends, and is closed with this one; by default
            ``HTTPAdapter()``.
        methods: The HTTP methods that are sent again; None is every one.
        **changes: Settings, as for `Policy`. ``attempt_timeout=AsArgument("5s")``
            bounds the timeout of requests.

    Raises:
        ConfigError: A setting is wrong, or an adapter cannot follow it, or the
            one that sends would retry by itself.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        adapter: BaseAdapter | None = None,
        *,
        methods: Iterable[str] | None = IDEMPOTENT,
        **changes: Unpack[Changes],
    ) -> None:
        super().__init__()
        inner = HTTPAdapter() if adapter is None else adapter
        self._inner = check_instance("adapter", inner, BaseAdapter)
        _check_alone(inner)
        joint = merge_client_defaults(policy, changes, transient)
        names = checked_methods(methods)
        self._sender = Sender(joint, partial(_send, inner), transient, names)
        self._parts = joint, inner, names

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._sender.policy!r})"

    def send(  # noqa: PLR0913, PLR0917  as requests asks
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: FBT001, FBT002  as requests asks
        timeout: Any = None,
        verify: bool | str = True,  # noqa: FBT001, FBT002  as requests asks
        cert: Any = None,
        proxies: Any = None,
    ) -> requests.Response:
        """Send a request, and again when the policy says so."""
        given = {"stream": stream, "timeout": timeout, "verify": verify}
        given |= {"cert": cert, "proxies": proxies}
        sender = self._sender
        if other := _request_policy.get():
            sender = sender.under("policy", *other)
        response: requests.Response = sender.send(_sending(request, given))
        # Who sends again by the response, as for a digest, comes here again.
        vars(response)["connection"] = self
        return response

    def close(self) -> None:
        """Close what sends."""
        self._inner.close()

    def __reduce__(self) -> tuple[Any, ...]:
        policy, inner, methods = self._parts
        return partial(RetryAdapter, methods=methods), (policy, inner)


def _check_alone(adapter: BaseAdapter) -> None:
    """Refuse an adapter that retries: its attempts and ours would multiply."""
    retries = getattr(adapter, "max_retries", 0)
    if getattr(retries, "total", retries) != 0:
        rule = "one that does not retry by itself"
        raise invalid_setting("adapter", rule, adapter, "leave its max_retries at 0")


def _sending(
    request: requests.PreparedRequest, given: Mapping[str, Any]
) -> HttpRequest:
    host = urlsplit(request.url or "").hostname or ""
    method = request.method or ""
    rewind = rewinding(request.body)
    return HttpRequest((request, given), method, str(host), request.headers, rewind)


def _send(
    adapter: BaseAdapter,
    what: tuple[requests.PreparedRequest, Mapping[str, Any]],
    most: float | None,
) -> requests.Response:
    request, given = what
    timeout = (
        given["timeout"] if most is None else bound_timeout(given["timeout"], most)
    )
    return adapter.send(request, **{**given, "timeout": timeout})
