"""Interceptor that retries sync gRPC calls."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Unpack, final

import grpc

from retrykit._core.call import current_state
from retrykit._core.final_error import attach_state
from retrykit._core.policy import Policy
from retrykit._core.retry_state import StopReason
from retrykit._core.setting_types import PolicySettings
from retrykit._internal.tracebacks import add_note_once
from retrykit._internal.validation import user_facing
from retrykit.errors import GiveUp
from retrykit.integrations.grpc._interceptor import (
    CallRunner,
    InterceptedCall,
    Methods,
    replace_details,
)
from retrykit.integrations.grpc._policy import policy as client_policy

__all__ = ["RetryInterceptor"]


@final
class RetryInterceptor(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    """Interceptor that retries the calls of a channel under a policy.

    >>> channel = grpc.insecure_channel("localhost:1", [("grpc.enable_retries", 0)])
    >>> retrying = RetryInterceptor(max_attempts=4, methods=["shop.Cart/List"])
    >>> with grpc.intercept_channel(channel, retrying) as channel:
    ...     pass  # create stubs from it

    Make it the first interceptor of a channel, so that the others see every attempt.
    `state_of` returns the history of gRPC errors, and of the call object that
    ``with_call`` returns. The timeout of a call is for all attempts together.

    A stream of responses is retried until its first message arrives, while the caller
    waits for it. Until then the call object reflects the current attempt. The state
    covers only the opening of the stream: if the stream breaks off later, the status of
    the state is still ``succeeded``. A stream that is cancelled during a delay ends
    after the delay, with the error of the last attempt.

    A stream of requests is sent again only if it is a sequence, such as a list, since
    another iterable may be exhausted. A call that is made with ``future`` is not
    retried either, since nothing waits for its result here. For a future that is
    retried, submit the call to an executor.

    Args:
        policy: As in `policy`.
        methods: The methods to retry, as ``package.Service/Method``, or as
            ``package.Service`` for all methods of a service. None means all methods, as
            in a service config of gRPC: names do not show which are idempotent.
        **changes: Settings of `Policy`. An `attempt_timeout` bounds each attempt of a
            call with a single response, but not those of a stream of responses.

    Raises:
        ConfigError: A setting is invalid, or an interceptor does not support it.
    """

    @user_facing
    def __init__(
        self,
        policy: Policy | None = None,
        *,
        methods: Iterable[str] | None = None,
        **changes: Unpack[PolicySettings],
    ) -> None:
        policy = client_policy(policy, **changes)
        self._methods = Methods(methods)
        self._runner = CallRunner(policy, awaited=False)
        self._stream_runner = CallRunner(
            policy.replace(attempt_timeout=None), awaited=False
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._runner.policy!r})"

    def intercept_unary_unary(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:
        """Make a call, and retry it under the policy."""
        return self._run(
            _ResponseCall(continuation, client_call_details, lambda: request)
        )

    def intercept_stream_unary(
        self, continuation: Any, client_call_details: Any, request_iterator: Any
    ) -> Any:
        """Make a call, and retry it if its requests can be sent again."""
        requests, once = partial(iter, request_iterator), _one_shot(request_iterator)
        return self._run(
            _ResponseCall(continuation, client_call_details, requests, once=once)
        )

    def intercept_unary_stream(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:
        """Start a call, which is retried until its first message arrives."""
        return self._open(
            _StreamCall(continuation, client_call_details, lambda: request)
        )

    def intercept_stream_stream(
        self, continuation: Any, client_call_details: Any, request_iterator: Any
    ) -> Any:
        """Start a call, which is retried until its first message arrives.

        It is retried only if its requests can be sent again.
        """
        requests, once = partial(iter, request_iterator), _one_shot(request_iterator)
        return self._open(
            _StreamCall(continuation, client_call_details, requests, once=once)
        )

    def _run(self, call: "_ResponseCall") -> Any:
        if call.details not in self._methods:
            return call.pass_through()
        outcome = _run(self._runner, call)
        if not _unfinished(outcome):
            attach_state(outcome, call.pop_state())
        return outcome

    def _open(self, call: "_StreamCall") -> Any:
        call.attempt_call = call.pass_through()
        if call.details not in self._methods:
            return call.attempt_call
        return _Messages(call, partial(_run, self._stream_runner, call))


class _ResponseCall(InterceptedCall):
    """A call with a single response."""

    def attempt(self, timeout: float | None, /) -> Any:
        """Return the call object, which may be unfinished if ``future`` made the call.

        Raises:
            RpcError: The attempt failed.
        """
        outcome = self.begin(timeout)
        if not isinstance(outcome, grpc.RpcError) or _unfinished(outcome):
            return outcome
        try:
            raise outcome
        finally:
            # A reference cycle: the error's traceback holds this frame.
            del outcome


def _unfinished(outcome: Any) -> bool:
    """Return whether a call was made with ``future``, and may still be running.

    The result of such a call is an iterator, even if the call is done already.
    """
    return isinstance(outcome, Iterator) or not outcome.done()


class _StreamCall(InterceptedCall):
    """A call with a stream of responses, until the first one arrives.

    Attributes:
        attempt_call: The call object of the last attempt. The first one is started
            before the caller waits for a message.
        cancelled: Whether the caller has cancelled the call.
    """

    attempt_call: Any
    cancelled = False

    def attempt(self, timeout: float | None, /) -> list[Any]:
        """Return the first message in a list, which is empty for an empty stream.

        Raises:
            GiveUp: The caller has cancelled the call.
        """
        self.state = current_state()
        if self.state.attempt > 1 and not self.cancelled:
            self.attempt_call = self.begin(timeout)
        if self.cancelled:
            # The caller cancelled while this attempt began, and reached only the
            # previous one.
            self.attempt_call.cancel()
        try:
            return [*islice(self.attempt_call, 1)]
        except grpc.RpcError as error:
            if self.cancelled:
                raise GiveUp(error) from None
            raise


@grpc.Call.register
class _Messages:
    """The call object that the caller of a stream gets.

    Attributes that it does not define come from the call object of the last attempt.
    """

    def __init__(self, call: _StreamCall, open_: Callable[[], list[Any]]) -> None:
        self._call = call
        self._open: Callable[[], list[Any]] | None = open_
        self._head: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        call = self._call
        if self._open is not None:
            open_, self._open = self._open, None
            if call.details.timeout is not None:
                left = call.attempt_call.time_remaining()
                call.details = replace_details(call.details, timeout=left)
            self._head = open_()
            attach_state(call.attempt_call, call.state)
            attach_state(self, call.pop_state())
        return self._head.pop() if self._head else next(call.attempt_call)

    def cancel(self) -> Any:
        """Cancel the call: no further attempt is made."""
        self._call.cancelled = True
        return self._call.attempt_call.cancel()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call.attempt_call, name)


def _run(runner: CallRunner, call: InterceptedCall) -> Any:
    try:
        return runner.run(call)
    except grpc.RpcError as error:
        reason = call.pop_state().stop_reason
        if call.once and reason is StopReason.ATTEMPTS:
            # Replaces the note that max_attempts=1 was reached.
            add_note_once(error, f"gave up after 1 attempt: {_ONE_SHOT}")
        raise


_ONE_SHOT = "only requests in a sequence, such as a list, can be sent again"


def _one_shot(requests: Any) -> bool:
    return not isinstance(requests, Sequence)
