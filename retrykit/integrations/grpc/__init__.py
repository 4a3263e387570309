"""Retries for gRPC.

Needs the extra ``retrykit[grpc]``. Best is a decorator around the whole of what
is done with a call, which sees a stream that breaks off::

    from retrykit import retry
    from retrykit.integrations import grpc as retries

    @retry(retries.policy(max_attempts=4))
    def fetch(stub, request):
        return list(stub.List(request, timeout=10))

Where that cannot be, interceptors make calls again, up to their response or to
the first message of a stream; `state_of` of an error has its history::

    channel = grpc.insecure_channel(target, [("grpc.enable_retries", 0)])
    channel = grpc.intercept_channel(channel, retries.RetryInterceptor())

The option keeps gRPC from retrying beneath, where a service config tells it to;
without it, gRPC does not tell servers, either, which attempt they see. Nothing
here can find out whether it is set. The other way is to let gRPC itself retry,
by a service config from `retrykit.config.grpc_service_config`: it makes no more
than five attempts, and `state_of` knows nothing of them.
"""

from retrykit.integrations.grpc.aio import async_interceptors
from retrykit.integrations.grpc.policy import policy, retry_after, transient
from retrykit.integrations.grpc.sync import RetryInterceptor

__all__ = ["RetryInterceptor", "async_interceptors", "policy", "retry_after"]
__all__ += ["transient"]
