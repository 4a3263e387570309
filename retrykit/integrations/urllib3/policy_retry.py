"""A ``Retry`` of urllib3 that asks a policy. It sends nothing itself."""

import inspect
from collections.abc import Iterable
from copy import copy
from types import FrameType, TracebackType
from typing import Any, Self, Unpack, cast, final

import urllib3
from urllib3 import HTTPHeaderDict
from urllib3.connectionpool import ConnectionPool
from urllib3.exceptions import MaxRetryError
from urllib3.util.retry import RequestHistory

from retrykit._internal.clocks import sync_clock
from retrykit._internal.validation import invalid_setting
from retrykit.execution.callables import check_sync_compatible
from retrykit.execution.manual import ManualCall
from retrykit.integrations._http.bodies import rewinding
from retrykit.integrations._http.policy import (
    IDEMPOTENT,
    checked_methods,
    merge_client_defaults,
)
from retrykit.integrations._http.transport import HttpRequest, outcome
from retrykit.integrations.urllib3.transient import transient
from retrykit.policy.policy import Policy
from retrykit.policy.validators import Changes
from retrykit.state.final_error import attach_state
from retrykit.state.retry_state import RetryState

__all__ = ["PolicyRetry"]


@final
class PolicyRetry(urllib3.Retry):
    """A ``urllib3.Retry`` that asks a policy.

    >>> pool = urllib3.PoolManager(retries=PolicyRetry(max_attempts=3))

    It stands where a ``Retry`` does: for a pool, for a manager, for one request,
    and as `max_retries` of an adapter of requests, whose errors have the history
    on ``error.args[0]``. Like one it is never changed, and is shared by requests
    and threads.

    Sent again are idempotent methods and what has an ``Idempotency-Key``, with a
    body that can be read twice: from memory, or from a file that can seek. What a
    request comes to has its history, which `state_of` reads; only a redirect that
    is returned has none, nor has a loop of redirects before anything failed. When
    the policy gives up, the last response is returned; what is raised is a
    ``MaxRetryError`` with its reason. A body that urllib3 reads at once, as it
    does unless ``preload_content=False``, is part of the attempt.

    Redirects are counted by urllib3, are no failures, and are followed at once.
    That an attempt begins is told by urllib3 for retries only: the first one
    counts as begun when it fails, and `max_elapsed` runs from there.

    Args:
        policy: As for `policy`.
        methods: The HTTP methods that are sent again; None is every one.
        redirect: How many redirects are followed; as for ``Retry``.
        **changes: Settings, as for `Policy`, without `attempt_timeout`: urllib3
            takes a timeout of its own. Of `max_attempts` none means 200, and
            more than 200 do too: urllib3 makes each retry inside of the last.

    Raises:
        ConfigError: A setting is wrong, or a ``Retry`` cannot follow it.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        methods: Iterable[str] | None = IDEMPOTENT,
        redirect: bool | int | None = 10,
        **changes: Unpack[Changes],
    ) -> None:
        self._policy = _checked(merge_client_defaults(policy, changes, transient))
        self._single = self._policy.replace(max_attempts=1)
        self._call: ManualCall | None = None
        self._methods = checked_methods(methods)
        super().__init__(
            None,
            redirect=redirect,
            allowed_methods=self._methods,
            raise_on_status=False,
        )

    @property
    def state(self) -> RetryState | None:
        """The history of the request that this is for, between its attempts.

        None else: what a request came to, `state_of` reads.
        """
        return self._call.state if self._call and self._call.running else None

    def __repr__(self) -> str:
        if self.state is None:
            return f"PolicyRetry({self._policy!r})"
        return f"<PolicyRetry of {self.state.name}: {self.state.describe()}>"

    def new(self, **kw: Any) -> Self:
        """Return this with other redirects, or another history.

        Raises:
            ConfigError: Another setting is to be changed; the policy has them.
        """
        changed = {name for name in kw if kw[name] != vars(self).get(name)}
        if not changed <= _OWN:
            rule = f"changed in {', '.join(sorted(_OWN))} only"
            raise invalid_setting(
                "PolicyRetry", rule, kw, "what else there is, its policy has"
            )
        return self._with(**kw)

    def _with(self, **parts: Any) -> Self:
        made = copy(self)
        vars(made).update(parts)
        return made

    def is_retry(
        self,
        method: str,  # noqa: ARG002  as urllib3 asks
        status_code: int,
        has_retry_after: bool = False,  # noqa: ARG002, FBT001, FBT002  as urllib3 asks
    ) -> bool:
        """Return whether a response is judged: every one that is no redirect.

        It is judged in `increment`, which is shown it.
        """
        return status_code not in urllib3.BaseHTTPResponse.REDIRECT_STATUSES

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: urllib3.BaseHTTPResponse | None = None,
        error: Exception | None = None,
        _pool: ConnectionPool | None = None,
        _stacktrace: TracebackType | None = None,
    ) -> Self:
        """Return what the next attempt is made with.

        Raises:
            MaxRetryError: There is none. Of a response it says that this one is
                to be returned, which urllib3 does then.
        """
        told = method, url, response, error, _pool, _stacktrace
        if response is not None and response.get_redirect_location():
            return self._redirected(told)
        sending = _sending(method, _pool, inspect.currentframe())
        once = sending.not_repeatable_because(self._methods)
        policy = self._policy if once is None else self._single
        call = _continued(policy, f"{sending.method} {sending.host}", self._call)
        state = call.state
        last_error = _ask(call, error, response)
        if isinstance(last_error, float):
            status = None if response is None else response.status
            last = RequestHistory(method, url, error, status, None)
            return self._with(history=(*self.history, last), _call=call)
        try:
            raise self._ending(told, once, state, last_error)
        finally:
            # What is raised holds this frame, and must not be held by it.
            del told, state, error, response, sending, last_error

    def _ending(
        self,
        told: tuple[Any, ...],
        once: str | None,
        state: RetryState,
        last_error: Exception | None,
    ) -> Exception:
        """Return what ends the attempts; of a response, it is told to return it."""
        _, url, response, error, pool, trace = told
        if error is None and last_error is not None:
            outcome(last_error, once, state)
        elif error is None:
            attach_state(response, state)
        if error is None:
            return MaxRetryError(pool, url)
        outcome(error, once, state)
        if once is not None and self._is_read_error(error):
            # It may have been carried out: so urllib3 does with it.
            return cast("Exception", error.with_traceback(trace))
        ended = MaxRetryError(pool, url, error)
        ended.__cause__ = error
        vars(ended)["__notes__"] = [*vars(error).get("__notes__", ())]
        attach_state(ended, state)
        return ended

    def _redirected(self, told: tuple[Any, ...]) -> Self:
        try:
            return super().increment(*told)
        except MaxRetryError as error:
            if self._call and self._call.running:
                self._call.abort(error)
            raise

    def sleep(
        self,
        response: urllib3.BaseHTTPResponse | None = None,  # noqa: ARG002  as urllib3 asks
    ) -> None:
        """Wait as long as the policy says, by the clock of retrykit."""
        if self._call and self.state is not None and self.state.next_delay is not None:
            try:
                sync_clock.sleep(self.state.next_delay)
            except BaseException as exit_:
                self._call.abort(exit_)
                raise
            self._call.next()

    def sleep_for_retry(
        self,
        response: urllib3.BaseHTTPResponse,  # noqa: ARG002  as urllib3 asks
    ) -> bool:
        """Wait for nothing: what a response asks for is read by the policy's hint."""
        return False


def _continued(policy: Policy, name: str, call: ManualCall | None) -> ManualCall:
    other = ManualCall(policy, name, sync_clock)
    if call is None or not call.running:
        other.start()
        return other
    call._controller = call._call.controller = other._controller  # noqa: SLF001
    return call


def _ask(
    call: ManualCall, error: Exception | None, result: Any
) -> float | Exception | None:
    try:
        if error is None and call.succeed(result):
            return None
        return call.fail(error, result)
    except BaseException as exit_:
        call.abort(exit_)
        raise


# Well below the thousand frames that Python allows, so that callers have some too.
_MOST = 200

_OWN = {"history", "raise_on_redirect", "redirect", "remove_headers_on_redirect"}


def _checked(policy: Policy) -> Policy:
    """Return a policy that a ``Retry`` can follow."""
    expected = "in a Retry, whose caller expects the errors of urllib3"
    if policy.raises != "last":
        raise invalid_setting("raises", f"'last' {expected}", policy.raises)
    if policy.nested == "raise":
        raise invalid_setting(
            "nested", f"'respect' or 'retry' {expected}", policy.nested
        )
    if policy.attempt_timeout is not None:
        rule = "None in a Retry, which does not send"
        suggestion = "give urllib3 its own timeout"
        raise invalid_setting(
            "attempt_timeout", rule, policy.attempt_timeout, suggestion
        )
    check_sync_compatible(policy)
    if policy.max_attempts is None or policy.max_attempts > _MOST:
        return policy.replace(max_attempts=_MOST)
    return policy


def _sending(
    method: str | None, pool: ConnectionPool | None, asked: FrameType | None
) -> HttpRequest:
    """Return the request that a ``Retry`` is asked about.

    It is shown neither headers nor body, and an iterator would be sent again
    without what was read of it: they are read where they are parameters, in the
    ``urlopen`` that asks. Where they are not, the request is sent once only.
    """
    caller = asked and asked.f_back
    sent = caller.f_locals if caller else {}
    headers = HTTPHeaderDict(sent.get("headers"))
    rewind = rewinding(sent.get("body", iter(())))
    host = "" if pool is None else pool.host
    return HttpRequest(None, method or "", host, headers, rewind)
