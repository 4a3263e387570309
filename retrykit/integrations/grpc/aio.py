"""The interceptors of awaited calls of gRPC."""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Unpack, final

import grpc
from grpc import aio

from retrykit.integrations.grpc.interceptor import (
    CallRunner,
    InterceptedCall,
    Methods,
    checked,
)
from retrykit.integrations.grpc.policy import policy as joined
from retrykit.policy.policy import Policy
from retrykit.policy.validators import Changes
from retrykit.state.final_error import attach_state
from retrykit.state.retry_state import RetryState

__all__ = ["async_interceptors"]


def async_interceptors(
    policy: Policy | None = None,
    *,
    methods: Iterable[str] | None = None,
    **changes: Unpack[Changes],
) -> list[aio.ClientInterceptor]:
    """Return what makes the calls of an async channel again, under a policy.

    They are four, since gRPC has one for each form of calls here:

    >>> again = async_interceptors(max_attempts=4, methods=["shop.Cart/List"])
    >>> len(again)
    4

    Pass them as the first of ``interceptors`` to ``grpc.aio.insecure_channel`` or
    ``secure_channel``, with the option ``("grpc.enable_retries", 0)``. They do what
    `RetryInterceptor` does. The call object, which gRPC makes before them, tells
    of a call when it is over, or has its first message; its state is left on
    errors, and observers are told of it. That of a stream is of its opening: one
    that breaks off later has succeeded there. Cancelling a call goes through at once.
    Requests that are a list or tuple are sent again; calls whose requests are
    written one by one, or come from anything else, are left alone.

    Args:
        policy: As for `policy`.
        methods: As for `RetryInterceptor`.
        **changes: Settings, as for `Policy`.

    Raises:
        ConfigError: A setting is wrong, or no interceptor can follow it.
    """
    whole, chosen = checked(joined(policy, **changes)), Methods(methods)
    single = AsyncCallFactory(CallRunner(whole, awaited=True), chosen, _Response)
    streams = CallRunner(whole.replace(attempt_timeout=None), awaited=True)
    many = AsyncCallFactory(streams, chosen, _Stream)
    found: list[aio.ClientInterceptor] = [_UnaryUnary(single), _StreamUnary(single)]
    return [*found, _UnaryStream(many), _StreamStream(many)]


@final
class _Response(InterceptedCall):
    """A call with one response."""

    async def attempt(self, most: float | None, /) -> Any:
        """Return the call object, when it has the response."""
        call = await self.begin(most)
        await call
        return call


@final
class _Stream(InterceptedCall):
    """A call with many responses."""

    async def attempt(self, most: float | None, /) -> Any:
        """Return the messages, when the first one has come, or their end."""
        rest = aiter(await self.begin(most))
        first = await anext(rest, _END)
        head = [] if first is _END else [first]
        return _Messages(head, rest, self.state)


_END = object()


@final
class _Messages:
    """The messages of a stream that is no longer made again.

    Args:
        head: The first one, if there is one.
        rest: The others.
        state: The state of the call, for an error that ends them.
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


@final
class AsyncCallFactory:
    """Makes the calls of an interceptor.

    Args:
        calls: What makes their attempts.
        methods: Those that are made again.
        kind: What they are while they are made.
    """

    def __init__(
        self, calls: CallRunner, methods: Methods, kind: type[InterceptedCall]
    ) -> None:
        self._calls = calls
        self._methods = methods
        self._kind = kind

    async def once(self, continuation: Any, details: Any, request: Any) -> Any:
        """Return what a call with one request gives."""
        if details not in self._methods:
            return await continuation(details, request)
        call = self._kind(continuation, details, lambda: request)
        return await self._calls.make(call)

    async def streamed(self, continuation: Any, details: Any, requests: Any) -> Any:
        """Return what a call with many requests gives."""
        # gRPC waits for its interceptors before it reads what is written to a
        # call: they must not wait for an answer to it.
        if not isinstance(requests, Sequence):
            return await continuation(details, requests)
        return await self.once(continuation, details, requests)


class _Interceptor:
    def __init__(self, made: AsyncCallFactory) -> None:
        self._made = made


@final
class _UnaryUnary(_Interceptor, aio.UnaryUnaryClientInterceptor):
    async def intercept_unary_unary(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:
        return await self._made.once(continuation, client_call_details, request)


@final
class _UnaryStream(_Interceptor, aio.UnaryStreamClientInterceptor):
    async def intercept_unary_stream(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:
        return await self._made.once(continuation, client_call_details, request)


@final
class _StreamUnary(_Interceptor, aio.StreamUnaryClientInterceptor):
    async def intercept_stream_unary(
        self, continuation: Any, client_call_details: Any, request_iterator: Any
    ) -> Any:
        made = self._made.streamed
        return await made(continuation, client_call_details, request_iterator)


@final
class _StreamStream(_Interceptor, aio.StreamStreamClientInterceptor):
    async def intercept_stream_stream(
        self, continuation: Any, client_call_details: Any, request_iterator: Any
    ) -> Any:
        made = self._made.streamed
        return await made(continuation, client_call_details, request_iterator)
