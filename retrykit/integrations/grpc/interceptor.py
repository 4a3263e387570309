"""Calls of gRPC under a policy: what its interceptors share, in both colours.

How an attempt is made, and what comes of it, is known to them.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, final

import grpc

from retrykit._internal.error_conditions import Condition
from retrykit._internal.validation import invalid_setting
from retrykit.config.grpc_service_config import parts_of_name
from retrykit.execution.call import current_state
from retrykit.execution.callables import check_sync_compatible
from retrykit.execution.drivers import driver_factory
from retrykit.policy.conditions import format_condition
from retrykit.policy.grpc_status import StatusCodes
from retrykit.policy.policy import Policy
from retrykit.policy.timeouts import AsArgument
from retrykit.state.retry_state import RetryState

__all__ = ["CallRunner", "InterceptedCall", "Methods", "changed", "checked"]


class InterceptedCall(ABC):
    """A call of a client, while its attempts are made.

    Args:
        continuation: What makes one, of the details and the request.
        details: Those of the call.
        request: What returns the request of an attempt, or the requests.
        once: Whether there is one attempt only.

    Attributes:
        state: That of the call, from its first attempt on.
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
        self.details = _repeatable(details)
        self.request = request
        self.once = once

    @abstractmethod
    def attempt(self, most: float | None, /) -> Any:
        """Make an attempt, of so many seconds at most; None is unlimited."""

    def pop_state(self) -> Any:
        """Return the state, which is over, and keep it no longer.

        It holds the errors, they hold the frames of attempts, and those this.
        """
        return vars(self).pop("state", None)

    def pass_through(self) -> Any:
        """Return what the continuation gives for the call as it is."""
        return self.continuation(self.details, self.request())

    def begin(self, most: float | None = None) -> Any:
        """Return what the continuation gives for the attempt that begins."""
        self.state = current_state()
        details = _remade(self.details, self.state, most)
        return self.continuation(details, self.request())


@final
class CallRunner:
    """Makes calls, and makes them again when the policy says so.

    The time that a client gives to a call is for all attempts together: none
    starts later, and each has what is left.

    Args:
        policy: What the calls are held to.
        awaited: Whether they are awaited.

    Attributes:
        policy: What they are held to.

    Raises:
        ConfigError: What is async is to be asked by calls that block.
    """

    def __init__(self, policy: Policy, *, awaited: bool) -> None:
        if not awaited:
            suggestion = "what is async needs async_interceptors"
            # gRPC itself ends attempts. What follows hides whether on is async.
            check_sync_compatible(policy, ends=True, suggestion=suggestion)
        timeout = policy.attempt_timeout
        if timeout is not None:
            length = timeout.seconds if isinstance(timeout, AsArgument) else timeout
            # gRPC ends the attempt itself, in both colours, with its own error.
            policy = policy.replace(
                attempt_timeout=AsArgument(length), on=_or_late(policy.on)
            )
        self.policy, self._awaited = policy, awaited
        self._made = self._drivers(policy)
        self._once = self._drivers(policy.replace(max_attempts=1))

    def make(self, making: InterceptedCall) -> Any:
        """Return what the last attempt gives: to be awaited, if calls are.

        Raises:
            grpc.RpcError: That of the last attempt, with its state.
        """
        made, timeout = self._made, making.details.timeout
        if making.once or (timeout is not None and not timeout > 0):
            made = self._once
        elif timeout is not None:
            made = self._within(timeout)
        return made(_path(making.details)[1:], None)(making)

    def _within(self, timeout: float) -> Callable[..., Any]:
        """Return what makes calls that have so many seconds."""
        policy, most = self.policy, self.policy.max_elapsed
        if most is not None and most <= timeout:
            if policy.deadline == "stop":
                return self._made
            timeout = most
        return self._drivers(policy.replace(max_elapsed=timeout, deadline="stop"))

    def _drivers(self, policy: Policy) -> Callable[..., Any]:
        attempt = _aattempt if self._awaited else _attempt
        return driver_factory(policy, attempt, awaited=self._awaited)


def _attempt(making: InterceptedCall, timeout: float | None = None) -> Any:
    return making.attempt(timeout)


async def _aattempt(
    making: InterceptedCall,
    timeout: float | None = None,  # noqa: ASYNC109  gRPC's own timeout
) -> Any:
    return await making.attempt(timeout)


def _or_late(on: Condition) -> Condition:
    """Return a condition that accepts attempts, too, that took too long.

    Where it was the call that took too long, there is no time for another.
    """

    def accepts(error: Exception) -> Any:
        if _late(error):
            return True
        return isinstance(error, on) if isinstance(on, type | tuple) else on(error)

    accepts.__qualname__ = format_condition(on)
    return accepts


_late = StatusCodes(["DEADLINE_EXCEEDED"])


def _repeatable(details: Any) -> Any:
    """Return details whose metadata are there for every attempt.

    What gives them once only is read here.
    """
    given = details.metadata
    if given is None or isinstance(given, tuple | grpc.aio.Metadata):
        return details
    return changed(details, metadata=tuple(given))


def _remade(details: Any, state: RetryState, timeout: float | None) -> Any:
    """Return the details of the attempt that begins, from those of its call.

    It has what is left of the time, and its server is told how many attempts
    there were before.

    Args:
        details: Those of the call: of gRPC, or of another interceptor.
        state: The state of the call.
        timeout: How long the attempt may take, in seconds; None is unlimited.

    Source:
        gRFC A6, "gRPC Retry Design", "Exposed Retry Metadata", 2017.
    """
    changes: dict[str, Any] = {}
    limits = [] if timeout is None else [timeout]
    if details.timeout is not None:
        limits.append(details.timeout - state.elapsed)
    if limits and (timeout is not None or state.attempt > 1):
        changes["timeout"] = min(limits)
    given = details.metadata
    again = state.attempt > 1
    told = ((_PREVIOUS, str(state.attempt - 1)),) if again else ()
    if isinstance(given, grpc.aio.Metadata):
        # An interceptor beneath may add to them: to those of its attempt.
        changes["metadata"] = grpc.aio.Metadata(*given, *told)
    elif again:
        changes["metadata"] = (*(given or ()), *told)
    return changed(details, **changes) if changes else details


_PREVIOUS = "grpc-previous-rpc-attempts"


def changed(details: Any, **changes: Any) -> Any:
    """Return details of a call that differ in some fields."""
    if hasattr(details, "_replace"):
        return details._replace(**changes)
    copied = copy.copy(details)
    vars(copied).update(changes)
    return copied


def checked(policy: Policy) -> Policy:
    """Return a policy that an interceptor can follow.

    Raises:
        ConfigError: It asks for what no caller of gRPC expects.
    """
    if policy.raises != "last":
        rule = "'last' in an interceptor, whose caller expects the errors of gRPC"
        raise invalid_setting("raises", rule, policy.raises)
    if policy.nested == "raise":
        rule = "'respect' or 'retry' in an interceptor, whose caller expects the "
        rule += "errors of gRPC"
        raise invalid_setting("nested", rule, policy.nested)
    if policy.on_result is not None:
        rule = "None in an interceptor, which judges no messages"
        suggestion = "decorate what makes the call"
        raise invalid_setting("on_result", rule, policy.on_result, suggestion)
    return policy


@final
class Methods:
    """The methods that an interceptor is for.

    Args:
        names: As ``package.Service/Method``, or as ``package.Service`` for all
            of a service; None is every method.

    Raises:
        ConfigError: They are no such names, or there is none.
    """

    def __init__(self, names: Iterable[str] | None) -> None:
        self._names: frozenset[str] | None = None
        if names is not None:
            given = [] if isinstance(names, str) else [*names]
            if not given:
                rule, suggestion = (
                    "a list of methods, at least one",
                    "None is every one",
                )
                raise invalid_setting("methods", rule, names, suggestion)
            parts = [parts_of_name(name) for name in given]
            self._names = frozenset(
                f"/{each['service']}/{each.get('method', '')}" for each in parts
            )

    def __contains__(self, details: Any) -> bool:
        path = _path(details)
        service = path[: path.rfind("/") + 1]
        return self._names is None or not self._names.isdisjoint({path, service})


def _path(details: Any) -> str:
    # Of an awaited call it is bytes.
    method: str | bytes = details.method
    return method.decode() if isinstance(method, bytes) else method
