"""Retries for gRPC.

Needs the extra ``retrykit[grpc]``. Prefer a decorator around everything that is done
with a call, since it also sees a stream that breaks off::

    from retrykit import retry
    from retrykit.integrations import grpc as retries

    @retry(retries.policy(max_attempts=4))
    def fetch(stub, request):
        return list(stub.List(request, timeout=10))

Where that is not possible, use interceptors that retry calls until their response or
the first message of a stream. `state_of` an error returns its history::

    channel = grpc.insecure_channel(target, [("grpc.enable_retries", 0)])
    channel = grpc.intercept_channel(channel, retries.RetryInterceptor())

The option disables the retries of gRPC itself, which a service config may configure;
they also hide the number of the attempt from servers. retrykit cannot check whether it
is set. Alternatively, let gRPC retry, by a service config from
`retrykit.config.grpc_service_config`: it makes at most five attempts, which `state_of`
does not see.
"""

from retrykit.integrations.grpc.aio import async_interceptors
from retrykit.integrations.grpc.policy import policy, retry_after, transient
from retrykit.integrations.grpc.sync import RetryInterceptor

__all__ = ["RetryInterceptor", "async_interceptors", "policy", "retry_after"]
__all__ += ["transient"]
