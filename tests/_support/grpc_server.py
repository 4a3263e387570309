"""A gRPC server that answers by a script; its messages are bytes."""

import contextlib
import threading
from concurrent import futures
from typing import NamedTuple

import grpc

from retrykit.integrations.grpc import RetryInterceptor

OPTIONS = [("grpc.enable_retries", 0)]


class Fails(NamedTuple):
    """The error that ends an answer of the script."""

    code: str = "UNAVAILABLE"
    pushback: str | None = None


DOWN = Fails()


class Seen(NamedTuple):
    """An attempt as the server has seen it."""

    method: str
    requests: list[bytes]
    metadata: dict[str, str]
    time_remaining: float | None

    @property
    def previous_attempts(self):
        return self.metadata.get("grpc-previous-rpc-attempts")


class Shop:
    """The service: each attempt gets the next answer, of messages and an error."""

    def __init__(self, answers):
        self.answers = iter(answers)
        self.seen = []
        self.begun = threading.Event()
        self.done = threading.Event()
        self.ended = threading.Event()

    def attempts(self):
        return len(self.seen)

    def answer(self, requests, context, method):
        remaining = context.time_remaining()
        remaining = None if remaining is None or remaining > 1e9 else remaining
        metadata = dict(context.invocation_metadata())
        self.seen.append(Seen(method, requests, metadata, remaining))
        self.begun.set()
        context.add_callback(self.ended.set)
        for each in next(self.answers):
            if isinstance(each, float):
                self.done.wait(each)
            elif isinstance(each, bytes):
                yield each
            else:
                if each.pushback is not None:
                    metadata = (("grpc-retry-pushback-ms", each.pushback),)
                    context.set_trailing_metadata(metadata)
                context.abort(grpc.StatusCode[each.code], "by the script")

    def handlers(self):
        def get(request, context):
            return next(self.answer([request], context, "Get"))

        def add(requests, context):
            return next(self.answer([*requests], context, "Add"))

        def all_(request, context):
            yield from self.answer([request], context, "List")

        def chat(requests, context):
            yield from self.answer([*requests], context, "Chat")

        return {
            "Get": grpc.unary_unary_rpc_method_handler(get),
            "Add": grpc.stream_unary_rpc_method_handler(add),
            "List": grpc.unary_stream_rpc_method_handler(all_),
            "Chat": grpc.stream_stream_rpc_method_handler(chat),
        }


@contextlib.contextmanager
def shop(*answers):
    """Serve answers: each is a list of messages, pauses and errors."""
    cart = Shop(answers)
    with futures.ThreadPoolExecutor(4) as threads:
        server = grpc.server(threads)
        handler = grpc.method_handlers_generic_handler("shop.Cart", cart.handlers())
        server.add_generic_rpc_handlers((handler,))
        cart.server = server
        cart.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        try:
            yield cart
        finally:
            server.stop(None).wait()


def stub(channel, method="Get"):
    """Return the callable of a method of the shop."""
    kind = {"Get": "unary_unary", "Add": "stream_unary", "List": "unary_stream"}
    return getattr(channel, kind.get(method, "stream_stream"))(f"/shop.Cart/{method}")


@contextlib.contextmanager
def retrying_channel(cart, *others, **settings):
    """Yield a channel with retries to a shop or an address."""
    address = cart if isinstance(cart, str) else cart.address
    interceptor = RetryInterceptor(**settings)
    with grpc.insecure_channel(address, OPTIONS) as channel:
        yield grpc.intercept_channel(channel, interceptor, *others)
