"""Requests that are sent under a policy: what the transports share.

A transport tells what a request is and how it is sent; what is decided here is
whether it may be sent again, and what comes out. No client is imported.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Self, final

from retrykit._internal.exceptions import add_note_once
from retrykit._internal.validation import check_instance, invalid_setting
from retrykit.execution.call import current_state
from retrykit.execution.callables import check_sync_compatible
from retrykit.execution.drivers import driver_factory
from retrykit.execution.nesting import copy_state
from retrykit.integrations._http.bodies import ready
from retrykit.integrations._http.policy import (
    Transient,
    checked_methods,
    merge_client_defaults,
)
from retrykit.policy.conditions import ResultCondition, format_condition
from retrykit.policy.policy import Policy
from retrykit.state.final_error import RetryError, attach_state
from retrykit.state.retry_state import RetryState, StopReason
from retrykit.state.signals import GiveUp

__all__ = ["AsyncSender", "HttpRequest", "ReleasingCondition", "Sender", "outcome"]


class HttpRequest(NamedTuple):
    """One request of a client.

    Attributes:
        request: The request, as the client has it.
        method: Its HTTP method.
        host: The host that it goes to.
        headers: Its headers, by their names in any case.
        rewind: What makes its body ready to be sent again; None if it cannot be
            sent twice.
    """

    request: Any
    method: str
    host: str
    headers: Mapping[str, Any]
    rewind: Callable[[], object] | None

    def not_repeatable_because(self, methods: frozenset[str] | None) -> str | None:
        """Return why it is sent once only; None if it may be sent again.

        Args:
            methods: Those that may be sent again; None is every one.
        """
        method = self.method.upper()
        again = methods is None or method in methods
        if not again and not self.headers.get("Idempotency-Key"):
            return f"{method} {_KEYLESS}"
        return _ONE_SHOT if self.rewind is None else None


_KEYLESS = "is sent again only with an Idempotency-Key, or where methods has it"
_ONE_SHOT = (
    "its body is a stream that cannot be sent again; "
    "pass bytes, text or a file that can seek"
)


class _Senders:
    """What both colours are; no request is sent here.

    Args:
        policy: What the requests are sent under.
        send: Sends a request once. It takes the request, and how long that may
            take, in seconds, or None.
        transient: Releases the responses of the client.
        methods: The HTTP methods that may be sent again; None is every one.

    Attributes:
        policy: What they are sent under.

    Raises:
        ConfigError: A transport cannot follow the policy, or *methods* are
            none.
    """

    _awaited: bool

    def __init__(
        self,
        policy: Policy,
        send: Callable[[Any, float | None], Any],
        transient: Transient,
        methods: Iterable[str] | None,
    ) -> None:
        whose = "in a transport, whose caller expects the client's errors"
        if policy.raises != "last":
            raise invalid_setting("raises", f"'last' {whose}", policy.raises)
        if policy.nested == "raise":
            raise invalid_setting(
                "nested", f"'respect' or 'retry' {whose}", policy.nested
            )
        if not self._awaited:
            check_sync_compatible(policy)
        if policy.on_result is not None and not hasattr(policy.on_result, "release"):
            policy = policy.replace(
                on_result=ReleasingCondition(policy.on_result, transient)
            )
        self.policy = policy
        self._send = send
        self._transient = transient
        self._release = transient.release
        self._methods = checked_methods(methods)
        single = policy.replace(max_attempts=1)
        attempt = _aattempt if self._awaited else _attempt
        self._many = driver_factory(policy, attempt, awaited=self._awaited)
        self._single = driver_factory(single, attempt, awaited=self._awaited)

    def under(self, name: str, policy: Policy | None) -> Self:
        """Return one that sends the same under another policy.

        Args:
            name: The parameter as its user typed it.
            policy: The policy, to which the parts of the client are joined; None is
                this one's with a single attempt.

        Raises:
            ConfigError: *policy* is none, or a transport cannot follow it.
        """
        if policy is None:
            policy = self.policy.replace(max_attempts=1)
        else:
            check_instance(name, policy, Policy, "None sends once")
            policy = merge_client_defaults(policy, {}, self._transient)
        return type(self)(policy, self._send, self._transient, self._methods)

    def _call(self, sending: HttpRequest, once: str | None) -> Callable[..., Any]:
        made = self._many if once is None else self._single
        return made(f"{sending.method} {sending.host}", None)


@final
class Sender(_Senders):
    """Sends requests, and again when the policy says so."""

    _awaited = False

    def send(self, sending: HttpRequest) -> Any:
        """Return the response, with its state: the last one, if none is good.

        Raises:
            Exception: The client's own error, with its state.
        """
        once, course, response = (
            sending.not_repeatable_because(self._methods),
            _InFlight(),
            None,
        )
        try:
            response = self._call(sending, once)(self._send, sending, course)
            attach_state(response, course.state)
        except Exception as error:
            response = outcome(error, once, course.state)
            if response is None:
                raise
        finally:
            if response is None and course.response is not None:
                with suppress(Exception):
                    self._release(course.response)
            course.clear()
        return response


@final
class AsyncSender(_Senders):
    """Sends requests, and again when the policy says so, awaited."""

    _awaited = True

    async def send(self, sending: HttpRequest) -> Any:
        """Return the response, with its state, as that of `Sender` does."""
        once, course, response = (
            sending.not_repeatable_because(self._methods),
            _InFlight(),
            None,
        )
        try:
            response = await self._call(sending, once)(self._send, sending, course)
            attach_state(response, course.state)
        except Exception as error:
            response = outcome(error, once, course.state)
            if response is None:
                raise
        finally:
            if response is None and course.response is not None:
                with suppress(Exception):
                    released = self._release(course.response)
                    if released is not None:
                        await released
            course.clear()
        return response


@final
class _InFlight:
    """What becomes of a request, while it is sent.

    Attributes:
        state: The state of its call.
        response: The response of the attempt that runs, when it is there. Who
            leaves the call without it, by an error of a condition or by a
            cancellation, must close it.
    """

    state: RetryState
    response: Any = None

    def clear(self) -> None:
        """Let go of all: the state has the errors, and they the frames of this."""
        vars(self).clear()


def _attempt(
    send: Callable[..., Any],
    sending: HttpRequest,
    course: _InFlight,
    timeout: float | None = None,
) -> Any:
    _begin(sending, course)
    course.response = send(sending.request, timeout)
    return course.response


async def _aattempt(
    send: Callable[..., Any],
    sending: HttpRequest,
    course: _InFlight,
    timeout: float | None = None,  # noqa: ASYNC109  the client's own timeout
) -> Any:
    _begin(sending, course)
    course.response = await send(sending.request, timeout)
    return course.response


def _begin(sending: HttpRequest, course: _InFlight) -> None:
    course.response = None
    course.state = current_state()
    if course.state.attempt == 1:
        return
    try:
        (sending.rewind or ready)()
    except Exception as fault:
        last = course.state.failures[-1].error
        if isinstance(last, Exception):
            # Its caller is to see why it failed, not why it was not sent again.
            raise GiveUp(last) from fault
        raise


def outcome(error: Exception, once: str | None, state: RetryState) -> Any:
    """Return the response that comes out in place of an error, or None.

    Args:
        error: What the call let out; it gets a note, if it comes out itself.
        once: Why the request is sent once only; None if it may be sent again.
        state: The state of the call.
    """
    alone = once is not None and state.stop_reason is StopReason.ATTEMPTS
    if not isinstance(error, RetryError) or error.state is not state:
        if alone:
            # In place of the note that all attempts, which is one, are used up.
            add_note_once(error, f"gave up after 1 attempt: {once}")
        return None
    response = state.failures[-1].result
    copy_state(response, error)
    if alone:
        told = state.failures[-1].describe()
        level = logging.WARNING if once is _ONE_SHOT else logging.DEBUG
        log = logging.getLogger("retrykit")
        log.log(level, "%s gave up after 1 attempt with %s: %s", state.name, told, once)
    return response


@final
class ReleasingCondition:
    """A condition of the user's, with the client's way to release a response.

    Args:
        condition: Of responses.
        transient: The client's own condition.
    """

    def __init__(self, condition: ResultCondition, transient: Transient) -> None:
        self._condition = condition
        self.release = transient.release

    def __call__(self, result: Any, /) -> Any:
        """Return what the user's condition says, which may be awaited."""
        return self._condition(result)

    def __repr__(self) -> str:
        return format_condition(self._condition)
