"""The interceptor of blocking calls of gRPC."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Unpack, final

import grpc

from retrykit._internal.exceptions import add_note_once
from retrykit.execution.call import current_state
from retrykit.integrations.grpc.interceptor import (
    CallRunner,
    InterceptedCall,
    Methods,
    changed,
    checked,
)
from retrykit.integrations.grpc.policy import policy as joined
from retrykit.policy.policy import Policy
from retrykit.policy.validators import Changes
from retrykit.state.final_error import attach_state
from retrykit.state.retry_state import StopReason
from retrykit.state.signals import GiveUp

__all__ = ["RetryInterceptor"]


@final
class RetryInterceptor(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    """Makes the calls of a channel again, under a policy.

    >>> channel = grpc.insecure_channel("localhost:1", [("grpc.enable_retries", 0)])
    >>> again = RetryInterceptor(max_attempts=4, methods=["shop.Cart/List"])
    >>> with grpc.intercept_channel(channel, again) as channel:
    ...     pass  # make stubs of it

    Make it the first of a channel's interceptors: the others then see every
    attempt. What is raised is the error of gRPC, with its state; the call object
    that ``with_call`` returns has its state, too. The timeout of a call is the
    time of all attempts together.

    A stream of responses is made again until it has given its first message:
    by the loop that waits for it. Until then the call object tells of the attempt
    under way. Its state is that of the opening of the stream: one that breaks off
    later has succeeded there. A stream that is cancelled during a delay ends when
    the delay is over, with the error of the attempt before.

    Requests that are a list or tuple are sent again; others are sent once, since
    what can be iterated need not begin anew. So is a call that is made with
    ``future``, since nobody waits for it where it is made: hand the method to an
    executor, to have a future that is made again.

    Args:
        policy: As for `policy`.
        methods: The methods that are made again, as ``package.Service/Method``,
            or as ``package.Service`` for all of a service. None is every one,
            as in a service config of gRPC: which methods may be carried out
            twice is not told by their names.
        **changes: Settings, as for `Policy`. An `attempt_timeout` bounds each
            attempt of a call with one response; those of streams are not.

    Raises:
        ConfigError: A setting is wrong, or no interceptor can follow it.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        methods: Iterable[str] | None = None,
        **changes: Unpack[Changes],
    ) -> None:
        whole = checked(joined(policy, **changes))
        self._methods = Methods(methods)
        self._calls = CallRunner(whole, awaited=False)
        self._streams = CallRunner(whole.replace(attempt_timeout=None), awaited=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._calls.policy!r})"

    def intercept_unary_unary(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:
        """Make a call, and again when the policy says so."""
        return self._answered(
            _Response(continuation, client_call_details, lambda: request)
        )

    def intercept_stream_unary(
        self, continuation: Any, client_call_details: Any, request_iterator: Any
    ) -> Any:
        """Make a call, and again if its requests can be sent again."""
        requests, once = partial(iter, request_iterator), _once(request_iterator)
        return self._answered(
            _Response(continuation, client_call_details, requests, once=once)
        )

    def intercept_unary_stream(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:
        """Make a call, and again until its first message has come."""
        return self._opened(_Stream(continuation, client_call_details, lambda: request))

    def intercept_stream_stream(
        self, continuation: Any, client_call_details: Any, request_iterator: Any
    ) -> Any:
        """Make a call, and again until its first message has come."""
        requests, once = partial(iter, request_iterator), _once(request_iterator)
        return self._opened(
            _Stream(continuation, client_call_details, requests, once=once)
        )

    def _answered(self, making: "_Response") -> Any:
        if making.details not in self._methods:
            return making.pass_through()
        outcome = _made(self._calls, making)
        if not _unfinished(outcome):
            attach_state(outcome, making.pop_state())
        return outcome

    def _opened(self, making: "_Stream") -> Any:
        making.call = making.pass_through()
        if making.details not in self._methods:
            return making.call
        return _Messages(making, partial(_made, self._streams, making))


@final
class _Response(InterceptedCall):
    """A call with one response."""

    def attempt(self, most: float | None, /) -> Any:
        """Return the call object, when it has the response."""
        outcome = self.begin(most)
        if not isinstance(outcome, grpc.RpcError) or _unfinished(outcome):
            return outcome
        try:
            raise outcome
        finally:
            # Or its traceback, which holds this frame, would hold the error.
            del outcome


def _unfinished(outcome: Any) -> bool:
    """Return whether it is what ``future`` gives, for which nobody waits here.

    By chance it may be done already, and is known by its messages.
    """
    return isinstance(outcome, Iterator) or not outcome.done()


@final
class _Stream(InterceptedCall):
    """A call with many responses, until it has the first one.

    Attributes:
        call: The call object of the last attempt: of the first one it is there
            before anybody waits for a message.
        cancelled: Whether its caller wants no other one.
    """

    call: Any
    cancelled = False

    def attempt(self, most: float | None, /) -> list[Any]:
        """Return the first message; none where the stream has ended well."""
        self.state = current_state()
        if self.state.attempt > 1 and not self.cancelled:
            self.call = self.begin(most)
        if self.cancelled:
            # While it began, its caller could cancel the one before only.
            self.call.cancel()
        try:
            return [*islice(self.call, 1)]
        except grpc.RpcError as error:
            if self.cancelled:
                raise GiveUp(error) from None
            raise


@grpc.Call.register
@final
class _Messages:
    """The call object of a stream, as its caller has it.

    What is not told here, the call object of the last attempt tells.

    Args:
        making: The call.
        open_: What waits for the first message, and returns it in a list.
    """

    def __init__(self, making: _Stream, open_: Callable[[], list[Any]]) -> None:
        self._making = making
        self._open: Callable[[], list[Any]] | None = open_
        self._head: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        making = self._making
        if self._open is not None:
            open_, self._open = self._open, None
            if making.details.timeout is not None:
                left = making.call.time_remaining()
                making.details = changed(making.details, timeout=left)
            self._head = open_()
            attach_state(making.call, making.state)
            attach_state(self, making.pop_state())
        return self._head.pop() if self._head else next(making.call)

    def cancel(self) -> Any:
        """End the call; no other attempt is made."""
        self._making.cancelled = True
        return self._making.call.cancel()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._making.call, name)


def _made(calls: CallRunner, making: InterceptedCall) -> Any:
    try:
        return calls.make(making)
    except grpc.RpcError as error:
        reason = making.pop_state().stop_reason
        if making.once and reason is StopReason.ATTEMPTS:
            # In place of the note that all attempts, which is one, are used up.
            add_note_once(error, f"gave up after 1 attempt: {_ONE_SHOT}")
        raise


_ONE_SHOT = "only requests that are a list or tuple are sent again"


def _once(requests: Any) -> bool:
    return not isinstance(requests, Sequence)
