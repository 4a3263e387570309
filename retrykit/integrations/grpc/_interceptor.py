"""Runner of gRPC calls under a policy, for the sync and async interceptors."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import grpc

from retrykit._conditions import Condition, format_value
from retrykit._core.call import current_state
from retrykit._core.drivers import (
    check_no_hedge,
    check_sync_compatible,
    driver_factory,
)
from retrykit._core.limits import override
from retrykit._core.policy import Policy
from retrykit._core.retry_state import RetryState
from retrykit._core.rules import Rule
from retrykit._core.timeouts import AsArgument
from retrykit._internal.validation import invalid_setting
from retrykit.config.grpc_service_config import parts_of_name
from retrykit.hints.grpc import StatusCodes
from retrykit.integrations._http.policy import check_client_policy

__all__ = ["CallRunner", "InterceptedCall", "Methods", "replace_details"]


class InterceptedCall(ABC):
    """A call of a client, which may take several attempts.

    Args:
        continuation: Starts an attempt with details and a request.
        details: The details of the call.
        request: Returns the request of an attempt, or its stream of requests.
        once: Whether the call must not be retried.

    Attributes:
        state: The state of the call, from its first attempt until `pop_state`.
    """

    state: RetryState

    def __init__(
        self,
        continuation: Callable[[Any, Any], Any],
        details: Any,
        request: Callable[[], Any],
        *,
        once: bool = False,
    ) -> None:
        self.continuation = continuation
        self.details = _with_reusable_metadata(details)
        self.request = request
        self.once = once

    @abstractmethod
    def attempt(self, timeout: float | None, /) -> Any:
        """Make an attempt with its own *timeout*, in seconds; None means no timeout."""

    def pop_state(self) -> Any:
        """Return the state of the ended call, and drop it; None if it has none.

        This breaks a reference cycle: the state holds the errors, and their frames
        hold this object.
        """
        return vars(self).pop("state", None)

    def pass_through(self) -> Any:
        """Return the continuation's result for the unchanged call."""
        return self.continuation(self.details, self.request())

    def begin(self, timeout: float | None = None) -> Any:
        """Start the current attempt, and return the continuation's result."""
        self.state = current_state()
        details = _attempt_details(self.details, self.state, timeout)
        return self.continuation(details, self.request())


class CallRunner:
    """Makes calls under a policy.

    The timeout of a call is for all attempts together: no attempt starts after it,
    and each one gets at most the remaining time.

    Args:
        policy: The policy.
        awaited: Whether the calls are async.

    Raises:
        ConfigError: An interceptor does not support the policy.
    """

    def __init__(self, policy: Policy, *, awaited: bool) -> None:
        check_client_policy(policy)
        check_no_hedge(policy, "decorate the function that makes the call")
        conditions: tuple[Policy | Rule, ...] = (policy, *policy.rules)
        for each in conditions:
            if each.on_result is not None:
                rule = "None in an interceptor, which does not check messages"
                suggestion = "decorate the function that makes the call"
                raise invalid_setting(
                    "on_result", rule, each.on_result, suggestion, code="not-here"
                )
        if policy.limits == "all":
            rule = "'any' in an interceptor, since the timeout of a call ends it"
            suggestion = "decorate the function that makes the call"
            raise invalid_setting(
                "limits", rule, policy.limits, suggestion, code="not-here"
            )
        if not awaited:
            suggestion = "async functions need async_interceptors"
            # Checked before _or_timeout hides an async condition. Even in a thread,
            # gRPC can end an attempt.
            check_sync_compatible(policy, can_cancel=True, suggestion=suggestion)
        timeout = policy.attempt_timeout
        if timeout is not None:
            seconds = timeout.seconds if isinstance(timeout, AsArgument) else timeout
            # gRPC itself ends the attempt, sync or async, with its own error.
            policy = policy.replace(
                attempt_timeout=AsArgument(seconds), on=_or_timeout(policy.on)
            )
        self.policy, self._awaited = policy, awaited
        self._retrying = self._driver_factory(policy)
        self._single = self._driver_factory(
            override(policy, max_attempts=1, limits="any")
        )

    def run(self, call: InterceptedCall) -> Any:
        """Make a call, and return its result, or an awaitable if calls are async."""
        factory, timeout = self._retrying, call.details.timeout
        if call.once or (timeout is not None and not timeout > 0):
            factory = self._single
        elif timeout is not None:
            factory = self._limited_to(timeout)
        return factory(_path(call.details)[1:], None)(call)

    def _limited_to(self, timeout: float) -> Callable[..., Any]:
        """Return a factory of drivers for calls with this timeout, in seconds."""
        policy, limit = self.policy, self.policy.max_elapsed
        if limit is not None and limit <= timeout:
            if policy.deadline == "stop":
                return self._retrying
            timeout = limit
        return self._driver_factory(
            override(policy, max_elapsed=timeout, deadline="stop")
        )

    def _driver_factory(self, policy: Policy) -> Callable[..., Any]:
        attempt = _aattempt if self._awaited else _attempt
        return driver_factory(policy, attempt, awaited=self._awaited)


def _attempt(call: InterceptedCall, timeout: float | None = None) -> Any:
    return call.attempt(timeout)


async def _aattempt(
    call: InterceptedCall,
    timeout: float | None = None,  # noqa: ASYNC109  gRPC's own timeout
) -> Any:
    return await call.attempt(timeout)


def _or_timeout(on: Condition) -> Condition:
    """Return a condition that also matches the errors of attempts that timed out.

    After the timeout of the call itself, no time is left for another attempt.
    """

    def accepts(error: Exception) -> Any:
        if _is_timeout(error):
            return True
        return isinstance(error, on) if isinstance(on, type | tuple) else on(error)

    accepts.__qualname__ = format_value(on)
    return accepts


_is_timeout = StatusCodes(["DEADLINE_EXCEEDED"])


def _with_reusable_metadata(details: Any) -> Any:
    """Return details whose metadata can be iterated for every attempt."""
    metadata = details.metadata
    if metadata is None or isinstance(metadata, tuple | grpc.aio.Metadata):
        return details
    return replace_details(details, metadata=tuple(metadata))


def _attempt_details(details: Any, state: RetryState, timeout: float | None) -> Any:
    """Return the details of an attempt: its timeout, and how many attempts precede it.

    Source:
        gRFC A6, "gRPC Retry Design", "Exposed Retry Metadata", 2017.
    """
    changes: dict[str, Any] = {}
    retrying = state.attempt > 1
    limits = [] if timeout is None else [timeout]
    if details.timeout is not None:
        limits.append(details.timeout - state.elapsed)
    if limits and (timeout is not None or retrying):
        changes["timeout"] = min(limits)
    metadata = details.metadata
    added = ((_PREVIOUS_ATTEMPTS, str(state.attempt - 1)),) if retrying else ()
    if isinstance(metadata, grpc.aio.Metadata):
        # A copy, since an inner interceptor may add to it.
        changes["metadata"] = grpc.aio.Metadata(*metadata, *added)
    elif retrying:
        changes["metadata"] = (*(metadata or ()), *added)
    return replace_details(details, **changes) if changes else details


_PREVIOUS_ATTEMPTS = "grpc-previous-rpc-attempts"


def replace_details(details: Any, **changes: Any) -> Any:
    """Return a copy of the details of a call with some fields changed."""
    if hasattr(details, "_replace"):
        return details._replace(**changes)
    copied = copy.copy(details)
    vars(copied).update(changes)
    return copied


class Methods:
    """The methods that an interceptor retries.

    Args:
        names: As ``package.Service/Method``, or as ``package.Service`` for all
            methods of a service; None means all methods.
    """

    def __init__(self, names: Iterable[str] | None) -> None:
        self._names: frozenset[str] | None = None
        if names is not None:
            listed = [] if isinstance(names, str) else [*names]
            if not listed:
                rule = "a list of methods, at least one"
                raise invalid_setting("methods", rule, names, "None means every method")
            parts = [parts_of_name(name) for name in listed]
            self._names = frozenset(
                f"/{each['service']}/{each.get('method', '')}" for each in parts
            )

    def __contains__(self, details: Any) -> bool:
        path = _path(details)
        service = path[: path.rfind("/") + 1]
        return self._names is None or not self._names.isdisjoint({path, service})


def _path(details: Any) -> str:
    # Async calls have it as bytes.
    method: str | bytes = details.method
    return method.decode() if isinstance(method, bytes) else method
