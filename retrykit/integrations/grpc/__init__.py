"""Retries for gRPC.

Needs the extra ``grpc``. Prefer to decorate the function that makes the call::

    from retrykit import retry
    from retrykit.integrations import grpc as retries

    @retry(retries.policy(max_attempts=4))
    def fetch(stub, request):
        return list(stub.List(request, timeout=10))

A response stream that breaks off continues after its last message if the service can
begin there. Here the generator cancels a call whose messages are no longer read::

    from retrykit import streams

    def behind(last_item, state):
        return {"request": ListRequest(after=last_item.id)}

    @retry(retries.policy(), stream=streams.resume(behind))
    def items(stub, request):
        call = stub.List(request)
        try:
            yield from call
        finally:
            call.cancel()

An async generator of `grpc.aio` works in the same way, with ``async for``.

`retrykit.state_of` returns the history of an error. Where a decorator is not possible,
use interceptors, which retry a call until it has its response, or the first message of
a stream::

    channel = grpc.insecure_channel(target, [("grpc.enable_retries", 0)])
    channel = grpc.intercept_channel(channel, retries.RetryInterceptor())

The option disables gRPC's own retries, which a service config may enable and which
hide the number of the attempt from servers. retrykit cannot check whether it is set.
Alternatively, let gRPC retry, with a service config from
`retrykit.config.grpc_service_config`. gRPC makes at most five attempts, and `state_of`
has no history of them.
"""

from retrykit._internal.extras import needs

with needs("grpc"):
    from retrykit.integrations.grpc._aio import async_interceptors
    from retrykit.integrations.grpc._policy import policy, retry_after, transient
    from retrykit.integrations.grpc._sync import RetryInterceptor

__all__ = ["RetryInterceptor", "async_interceptors", "policy", "retry_after"]
__all__ += ["transient"]
