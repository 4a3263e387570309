"""Senders of an HTTP client's requests under a policy, sync and async.

A sender decides whether a request may be retried, and which response or error its
caller gets. The client's module sends the request.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, Self, cast

from retrykit._conditions import format_value
from retrykit._core.admission import at_host
from retrykit._core.call import Entry, RetryCall, current_entry, running_call
from retrykit._core.drivers import check_sync_compatible, driver_factory
from retrykit._core.failures import Failure, StopReason
from retrykit._core.final_error import attach_record
from retrykit._core.limits import override
from retrykit._core.nesting import copy_state
from retrykit._core.policy import Policy
from retrykit._core.result_conditions import ResultCondition
from retrykit._core.retry_log import describe_last_failure, title_of
from retrykit._internal.tracebacks import add_note_once
from retrykit._internal.validation import check_instance
from retrykit.errors import GiveUp, RetryError
from retrykit.integrations._http.bodies import Rewind, no_rewind
from retrykit.integrations._http.policy import (
    Transient,
    check_client_policy,
    check_methods,
)

__all__ = ["AsyncSender", "HttpRequest", "ReleasingCondition", "Sender"]


class HttpRequest(NamedTuple):
    """A request of a client.

    Attributes:
        request: The client's own request.
        method: The HTTP method.
        host: The host name.
        headers: The headers, case-insensitive.
        rewind: Makes the body ready to be sent again; None if that is impossible.
        url: The URL, only for messages.
    """

    request: Any
    method: str
    host: str
    headers: Mapping[str, Any]
    rewind: Rewind | None
    url: object = None

    def not_repeatable_because(self, methods: frozenset[str] | None) -> str | None:
        """Return why the request must not be retried; None if it may be."""
        method = self.method.upper()
        idempotent = methods is None or method in methods
        if not idempotent and not self.headers.get("Idempotency-Key"):
            return f"{method} {_NO_KEY}"
        return _ONE_SHOT if self.rewind is None else None


_MAX_DRIVERS = 256

_NO_KEY = "is retried only with an Idempotency-Key, or if methods includes it"
_ONE_SHOT = (
    "its body is a stream that cannot be sent again; "
    "pass bytes, a str or a seekable file"
)


class _BaseSender:
    """The part of a sender that its sync and async forms share.

    Args:
        policy: The policy of the requests.
        send: Sends a request once. Its arguments are the request and its timeout, in
            seconds or None.
        transient: The client's condition, which releases its responses.
        methods: HTTP methods to retry; None means all. Requests with another method are
            retried if they have an ``Idempotency-Key``.
    """

    _awaited: bool

    def __init__(
        self,
        policy: Policy,
        send: Callable[[Any, float | None], Any],
        transient: Transient,
        methods: Iterable[str] | None,
    ) -> None:
        check_client_policy(policy)
        if not self._awaited:
            check_sync_compatible(policy)
        self.policy = policy = _with_releases(policy, transient)
        self._send = send
        self._transient = transient
        self._methods = check_methods(methods)
        # So that an error is raised here, and not by the first request.
        self._factory(at_host(policy, None))
        # Keyed by the name of their calls: each may be made twice, by several threads.
        self._drivers: dict[tuple[bool, str, str], Callable[..., Any]] = {}

    def with_policy(self, name: str, policy: Policy | None) -> Self:
        """Return a sender of the same client with another policy.

        Args:
            name: The name of the argument, for errors.
            policy: The policy; None sends each request once.

        Raises:
            ConfigError: The policy is invalid in this client.
        """
        if policy is None:
            policy = _sent_once(self.policy)
        else:
            check_instance(name, policy, Policy, "None sends once")
            policy = self._transient.policy(policy)
        return type(self)(policy, self._send, self._transient, self._methods)

    def _driver(self, request: HttpRequest, *, repeatable: bool) -> Callable[..., Any]:
        key = repeatable, request.method, request.host
        driver = self._drivers.get(key)
        if driver is None:
            if len(self._drivers) >= _MAX_DRIVERS:
                self._drivers.clear()
            policy = at_host(self.policy, request.host)
            if not repeatable:
                policy = _sent_once(policy)
            driver = self._factory(policy)(f"{request.method} {request.host}", None)
            self._drivers[key] = driver
        return driver

    def _factory(self, policy: Policy) -> Callable[..., Callable[..., Any]]:
        attempt, hedging = _aattempt if self._awaited else _attempt, None
        if policy.hedge is not None:
            # Imported here: few policies hedge.
            from retrykit.integrations._http.hedging import hedge_requests  # noqa: PLC0415

            hedging = partial(hedge_requests, self._transient)
        return driver_factory(policy, attempt, awaited=self._awaited, hedging=hedging)


def _sent_once(policy: Policy) -> Policy:
    """Return a policy for a request that must not be sent again."""
    return override(policy, max_attempts=1, limits="any", hedge=None)


class Sender(_BaseSender):
    """Sends requests under a policy."""

    _awaited = False

    def send(self, request: HttpRequest) -> Any:
        """Send a request; return its response, to which the call's state is attached.

        This is the accepted response, or a rejected one if the call ended with it.
        """
        reason = request.not_repeatable_because(self._methods)
        in_flight, response = _InFlight(self.policy), None
        try:
            driver = self._driver(request, repeatable=reason is None)
            response = driver(self._send, request, in_flight)
            attach_record(response, cast("RetryCall", in_flight.call))
        except Exception as error:
            response = _final_response(error, reason, in_flight.call)
            if response is None:
                raise
        finally:
            if response is None and in_flight.response is not None:
                with suppress(Exception):
                    self._transient.release(in_flight.response)
            in_flight.clear()
        return response


class AsyncSender(_BaseSender):
    """Sends requests under a policy, asynchronously."""

    _awaited = True

    async def send(self, request: HttpRequest) -> Any:
        """Send a request, and return its response, as `Sender.send` does."""
        reason = request.not_repeatable_because(self._methods)
        in_flight, response = _InFlight(self.policy), None
        try:
            driver = self._driver(request, repeatable=reason is None)
            response = await driver(self._send, request, in_flight)
            attach_record(response, cast("RetryCall", in_flight.call))
        except Exception as error:
            response = _final_response(error, reason, in_flight.call)
            if response is None:
                raise
        finally:
            if response is None and in_flight.response is not None:
                with suppress(Exception):
                    released = self._transient.release(in_flight.response)
                    if released is not None:
                        await released
            in_flight.clear()
        return response


class _InFlight:
    """A request that is being sent.

    Attributes:
        call: The call that sends it; None until the first attempt begins.
        response: The response of the current attempt, once it has arrived. It must be
            released if the call ends without returning it, because a condition has
            raised an error, or the call was cancelled.
    """

    call: RetryCall | None = None
    response: Any = None

    def __init__(self, policy: Policy) -> None:
        self._named = policy.name is not None

    def start_attempt(self, request: HttpRequest) -> None:
        """Note the running call, and rewind the body unless this is the first attempt.

        Raises:
            GiveUp: The body cannot be rewound; its `cause` is the previous error.
            Exception: The body cannot be rewound after a rejected response.
        """
        self.response = None
        # Within a driver, there always is one.
        call = cast("RetryCall", running_call(cast("Entry", current_entry.get())))
        self.call, last = call, call.last_failure
        if last is None:
            if not self._named and request.url is not None:
                call.request = request.method, request.url
            return
        try:
            (request.rewind or no_rewind)()
        except Exception as fault:
            if isinstance(last.error, Exception):
                # The caller should see why the request failed, not why its body
                # could not be rewound.
                raise GiveUp(last.error) from fault
            raise

    def clear(self) -> None:
        """Break a reference cycle: the frames of the call's errors hold this object."""
        vars(self).clear()


def _attempt(
    send: Callable[..., Any],
    request: HttpRequest,
    in_flight: _InFlight,
    timeout: float | None = None,
) -> Any:
    in_flight.start_attempt(request)
    in_flight.response = send(request.request, timeout)
    return in_flight.response


async def _aattempt(
    send: Callable[..., Any],
    request: HttpRequest,
    in_flight: _InFlight,
    timeout: float | None = None,  # noqa: ASYNC109  the client's own timeout
) -> Any:
    in_flight.start_attempt(request)
    in_flight.response = await send(request.request, timeout)
    return in_flight.response


def _final_response(
    error: Exception, reason: str | None, call: RetryCall | None
) -> Any:
    """Return the response to return in place of an error; None to raise the error.

    If the request was not retried because it is not repeatable, a note of the error, or
    a log record, says why.

    Args:
        error: The error that ended the call.
        reason: Why the request was not repeatable; None if it was.
        call: The call; None if no attempt was made.
    """
    if call is None:
        return None
    not_retried = reason is not None and call.stop_reason is StopReason.ATTEMPTS
    if not isinstance(error, RetryError) or error.state._record is not call:
        if not_retried:
            # Replaces the note that max_attempts=1 was reached.
            add_note_once(error, f"gave up after 1 attempt: {reason}")
        return None
    response = cast("Failure", call.last_failure).result
    if not_retried:
        level = logging.WARNING if reason is _ONE_SHOT else logging.DEBUG
        text = "%s gave up after 1 attempt with %s: %s"
        logging.getLogger("retrykit").log(
            level, text, title_of(call), describe_last_failure(call), reason
        )
    # From then on, the record does not show the response.
    copy_state(response, error)
    return response


def _with_releases(policy: Policy, transient: Transient) -> Policy:
    """Return a policy whose conditions on results release the responses they reject."""

    def releasing(condition: ResultCondition | None) -> ResultCondition | None:
        if condition is None or hasattr(condition, "release"):
            return condition
        return ReleasingCondition(condition, transient)

    rules = [x.replace(on_result=releasing(x.on_result)) for x in policy.rules]
    return policy.replace(on_result=releasing(policy.on_result), rules=rules)


class ReleasingCondition:
    """A user's condition, with the client's function to release a response."""

    def __init__(self, condition: ResultCondition, transient: Transient) -> None:
        self._condition = condition
        self.release = transient.release

    def __call__(self, result: Any, /) -> Any:
        """Return the condition's answer, which may be awaitable."""
        return self._condition(result)

    def __repr__(self) -> str:
        return format_value(self._condition)
