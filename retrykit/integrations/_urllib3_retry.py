"""A urllib3 ``Retry`` that follows a policy."""

import math
from collections.abc import Collection
from copy import copy
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, Unpack, cast
from urllib.parse import urlsplit

from retrykit._core.drivers import check_no_hedge, check_sync_compatible
from retrykit._core.manual import ManualCall
from retrykit._core.policy import Policy
from retrykit._core.setting_types import PolicySettings
from retrykit._internal.clocks import sync_clock
from retrykit._internal.extras import needs
from retrykit._internal.validation import check_instance, invalid_setting, user_facing
from retrykit.errors import GiveUp, RetryAfter
from retrykit.integrations._http.policy import check_client_policy

with needs("urllib3"):
    import urllib3
    from urllib3.connectionpool import ConnectionPool
    from urllib3.exceptions import MaxRetryError, ResponseError

__all__ = ["PolicyRetry", "RetryOptions"]


class RetryOptions(PolicySettings, total=False):
    """Settings of a policy, and the arguments of ``Retry`` that stay urllib3's."""

    connect: bool | int | None
    read: bool | int | None
    redirect: bool | int | None
    status: int | None
    other: int | None
    allowed_methods: Collection[str] | None
    status_forcelist: Collection[int] | None
    raise_on_redirect: bool
    raise_on_status: bool
    respect_retry_after_header: bool
    remove_headers_on_redirect: Collection[str]
    retry_after_max: int


_OPTIONS: Final = RetryOptions.__annotations__.keys() - PolicySettings.__annotations__


class PolicyRetry(urllib3.Retry):
    """A urllib3 ``Retry`` whose limits and delays come from a policy.

    Use it like any other ``Retry``: as ``max_retries`` of a requests adapter, and as
    ``retries`` of a pool, a pool manager or a request.

    >>> retry = PolicyRetry(max_attempts=4, status_forcelist=[502, 503])
    >>> retry.total
    3

    urllib3 makes the attempts and decides what has failed, and its own errors are
    raised at the end: a ``MaxRetryError``, from which requests makes a ``RetryError``
    or a ``ConnectionError``. Without a `hint` of the policy, a ``Retry-After`` replaces
    the schedule's delay, and is waited for exactly. Redirects count as attempts; each
    begins a new call. urllib3 reports nothing before the first failure, so
    `max_elapsed` counts from there. Prefer `RetryPoolManager`, or `RetryAdapter` for
    requests, in new code: with them, responses have a history, too.

    Args:
        policy: The policy; by default ``Policy()``. Its `on` and `give_up_on` may
            exclude errors that urllib3 retries.
        **options: Settings of `Policy`, and the arguments of ``Retry``, with the
            same defaults, except ``history``; ``total``, which is *max_attempts* less
            one, or None; and ``backoff_factor``, ``backoff_max`` and
            ``backoff_jitter``, which *schedule* replaces.

    Raises:
        ConfigError: A setting is invalid, or urllib3 does not support it.
    """

    @user_facing
    def __init__(
        self, policy: Policy | None = None, **options: Unpack[RetryOptions]
    ) -> None:
        given = cast("dict[str, Any]", options)
        own = {name: given.pop(name) for name in _OPTIONS & given.keys()}
        base = Policy() if policy is None else check_instance("policy", policy, Policy)
        base = base.replace(**cast("PolicySettings", given))
        _check(base)
        most = base.max_attempts
        super().__init__(None if most is None else most - 1, **own)
        self._most = math.inf if most is None else most
        self._policy = base if base.hint else base.replace(hint=self._requested)
        self._call: ManualCall | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._policy!r})"

    def new(self, **changes: Any) -> Self:
        """Return a copy with some attributes changed, such as the counts."""
        made = copy(self)
        vars(made).update(changes)
        return made

    def is_retry(
        self,
        method: str,
        status_code: int,
        has_retry_after: bool = False,  # noqa: FBT001, FBT002  as in urllib3
    ) -> bool:
        """Return whether a response is retried; if not, the call has succeeded."""
        retried = super().is_retry(method, status_code, has_retry_after)
        if not retried:
            self._accept()
        return retried

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: urllib3.BaseHTTPResponse | None = None,
        error: Exception | None = None,
        _pool: ConnectionPool | None = None,
        _stacktrace: TracebackType | None = None,
    ) -> Self:
        """Return the ``Retry`` for the next attempt, or raise the final error."""
        count = partial(
            super().increment, method, url, response, error, _pool, _stacktrace
        )
        if error is None and response is not None and response.get_redirect_location():
            self._accept()
            return count().new(_call=None)
        call = self._call or self._begin(f"{method} {_host(_pool, url)}")
        try:
            following = count()
            if response is not None and self.respect_retry_after_header:
                # Raises an error if it cannot read the header.
                self.get_retry_after(response)
        except MaxRetryError as ended:
            if call.attempt < self._most:
                # Redirects, or one of the other limits of urllib3, used it up.
                error = GiveUp(ended.reason or ended)
            call.fail(error, response)
            raise
        except BaseException as ended:
            call.abort(ended)
            raise
        if isinstance(call.fail(error, response), Exception):
            raise _exhausted(following, _pool)
        return following.new(_call=call)

    def sleep(self, response: urllib3.BaseHTTPResponse | None = None) -> None:
        """Wait for the policy's delay, or after a redirect as urllib3 does.

        Raises:
            MaxRetryError: A stop event of the policy has ended the call.
        """
        call = self._call
        if call is None:
            super().sleep(response)
            return
        try:
            stopped = call.pause(call.next_delay or 0.0)
        except BaseException as error:
            call.abort(error)
            raise
        if stopped is not None:
            raise _exhausted(self, None)

    def _begin(self, name: str) -> ManualCall:
        return ManualCall(self._policy, name, sync_clock)

    def _accept(self) -> None:
        """End the call, if there is one: its last response is not retried."""
        if self._call is not None and self._call.running:
            self._call.accept()

    def _requested(self, outcome: object) -> RetryAfter | None:
        """Return the delay that a response requests, to replace the schedule's.

        None for an error, and if nothing is requested or ``Retry-After`` is ignored.
        """
        if not self.respect_retry_after_header:
            return None
        if not isinstance(outcome, urllib3.BaseHTTPResponse):
            return None
        seconds = self.get_retry_after(outcome)
        return RetryAfter(seconds) if seconds else None


def _exhausted(retry: urllib3.Retry, pool: ConnectionPool | None) -> MaxRetryError:
    """Return the error that urllib3 raises for the last failure in the history."""
    last = retry.history[-1]  # pyright: ignore[reportGeneralTypeIssues]
    text = ResponseError.SPECIFIC_ERROR.format(status_code=last.status)
    reason = last.error or ResponseError(text)
    error = MaxRetryError(cast("ConnectionPool", pool), last.url or "", reason)
    error.__cause__ = reason
    return error


def _host(pool: ConnectionPool | None, url: str | None) -> str:
    return str(getattr(pool, "host", None) or urlsplit(url or "").hostname or "")


def _check(policy: Policy) -> None:
    """Raise a ConfigError if urllib3 does not support a setting of a policy."""
    check_client_policy(policy)
    check_sync_compatible(policy)
    check_no_hedge(policy, _INSTEAD)
    rule = "left out where urllib3 makes the attempts"
    if policy.attempt_timeout is not None:
        timeout = policy.attempt_timeout
        raise invalid_setting(
            "attempt_timeout", rule, timeout, _INSTEAD, code="not-here"
        )
    if policy.admission:
        raise invalid_setting(
            "admission", rule, policy.admission, _INSTEAD, code="not-here"
        )


_INSTEAD: Final = "RetryPoolManager and RetryAdapter support it"
