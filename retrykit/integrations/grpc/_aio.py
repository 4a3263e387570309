"""Interceptors that retry async gRPC calls."""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Unpack

import grpc
from grpc import aio

from retrykit._core.final_error import attach_state
from retrykit._core.policy import Policy
from retrykit._core.retry_state import RetryState
from retrykit._core.setting_types import PolicySettings
from retrykit._internal.validation import user_facing
from retrykit.integrations.grpc._interceptor import CallRunner, InterceptedCall, Methods
from retrykit.integrations.grpc._policy import policy as client_policy

__all__ = ["async_interceptors"]


@user_facing
def async_interceptors(
    policy: Policy | None = None,
    *,
    methods: Iterable[str] | None = None,
    **changes: Unpack[PolicySettings],
) -> list[aio.ClientInterceptor]:
    """Return interceptors that retry the calls of an async channel under a policy.

    There are four, since gRPC has one for each combination of unary and streaming:

    >>> interceptors = async_interceptors(max_attempts=4, methods=["shop.Cart/List"])
    >>> len(interceptors)
    4

    Put them first in the ``interceptors`` of ``grpc.aio.insecure_channel`` or
    ``secure_channel``, with the option ``("grpc.enable_retries", 0)``. They work as
    `RetryInterceptor` does, with these differences. gRPC creates the call object before
    they run, so the object reflects the call only once the call has ended, or has its
    first message; only errors and observers get the state. Cancelling a call takes
    effect at once. Requests are sent again if they are a sequence, such as a list;
    calls whose requests are written one by one, or come from any other iterable, are
    not retried.

    Args:
        policy: As in `policy`.
        methods: As in `RetryInterceptor`.
        **changes: Settings of `Policy`.

    Raises:
        ConfigError: A setting is invalid, or an interceptor does not support it.
    """
    policy, retried = client_policy(policy, **changes), Methods(methods)
    runner = CallRunner(policy, awaited=True)
    stream_runner = CallRunner(policy.replace(attempt_timeout=None), awaited=True)
    return [
        _UnaryUnary(runner, retried, _ResponseCall),
        _StreamUnary(runner, retried, _ResponseCall),
        _UnaryStream(stream_runner, retried, _StreamCall),
        _StreamStream(stream_runner, retried, _StreamCall),
    ]


class _ResponseCall(InterceptedCall):
    """A call with a single response."""

    async def attempt(self, timeout: float | None, /) -> Any:  # noqa: ASYNC109  gRPC's own
        """Return the call object, once it has the response."""
        call = await self.begin(timeout)
        await call
        return call


class _StreamCall(InterceptedCall):
    """A call with a stream of responses."""

    async def attempt(self, timeout: float | None, /) -> Any:  # noqa: ASYNC109  gRPC's own
        """Return the messages, once the first one or the end has arrived."""
        rest = aiter(await self.begin(timeout))
        first = await anext(rest, _END)
        head = [] if first is _END else [first]
        return _Messages(head, rest, self.state)


_END = object()


class _Messages:
    """The messages of an open stream, which is no longer retried.

    Args:
        head: The first message, if there is one.
        rest: The other messages.
        state: The state of the call, for an error that ends the stream.
    """

    def __init__(
        self, head: list[Any], rest: AsyncIterator[Any], state: RetryState
    ) -> None:
        self._head = head
        self._rest = rest
        self._state = state

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        if self._head:
            return self._head.pop()
        try:
            return await anext(self._rest)
        except grpc.RpcError as error:
            attach_state(error, self._state)
            raise


class _Interceptor:
    """Base class of the four interceptors."""

    def __init__(
        self, runner: CallRunner, methods: Methods, kind: type[InterceptedCall]
    ) -> None:
        self._runner = runner
        self._methods = methods
        self._kind = kind

    async def _unary(self, continuation: Any, details: Any, request: Any) -> Any:
        """Return the result of a call whose request can be sent again."""
        if details not in self._methods:
            return await continuation(details, request)
        return await self._runner.run(
            self._kind(continuation, details, lambda: request)
        )

    async def _stream(self, continuation: Any, details: Any, requests: Any) -> Any:
        """Return the result of a call with a stream of requests."""
        # gRPC waits for its interceptors before it sends requests that are written to
        # the call, so they must not wait for a response to them.
        if not isinstance(requests, Sequence):
            return await continuation(details, requests)
        return await self._unary(continuation, details, requests)


class _UnaryUnary(_Interceptor, aio.UnaryUnaryClientInterceptor):
    async def intercept_unary_unary(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:
        return await self._unary(continuation, client_call_details, request)


class _UnaryStream(_Interceptor, aio.UnaryStreamClientInterceptor):
    async def intercept_unary_stream(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:
        return await self._unary(continuation, client_call_details, request)


class _StreamUnary(_Interceptor, aio.StreamUnaryClientInterceptor):
    async def intercept_stream_unary(
        self, continuation: Any, client_call_details: Any, request_iterator: Any
    ) -> Any:
        return await self._stream(continuation, client_call_details, request_iterator)


class _StreamStream(_Interceptor, aio.StreamStreamClientInterceptor):
    async def intercept_stream_stream(
        self, continuation: Any, client_call_details: Any, request_iterator: Any
    ) -> Any:
        return await self._stream(continuation, client_call_details, request_iterator)
