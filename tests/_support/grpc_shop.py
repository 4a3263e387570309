"""A server of gRPC that answers by a script, with bytes in and bytes out."""

import contextlib
import threading
from concurrent import futures
from typing import NamedTuple

import grpc

from retrykit.integrations.grpc import RetryInterceptor

OPTIONS = [("grpc.enable_retries", 0)]


class Fails(NamedTuple):
    """How an answer of the script ends."""

    code: str = "UNAVAILABLE"
    pushback: str | None = None


DOWN = Fails()


class Seen(NamedTuple):
    """What the server has seen of an attempt."""

    method: str
    requests: list[bytes]
    metadata: dict[str, str]
    left: float | None

    @property
    def before(self):
        return self.metadata.get("grpc-previous-rpc-attempts")


class Shop:
    """Each attempt has the next answer: its messages, and how they end."""

    def __init__(self, answers):
        self.answers = iter(answers)
        self.seen = []
        self.begun = threading.Event()
        self.done = threading.Event()

    def attempts(self):
        return len(self.seen)

    def answer(self, requests, context, method):
        left = context.time_remaining()
        left = None if left is None or left > 1e9 else left
        metadata = dict(context.invocation_metadata())
        self.seen.append(Seen(method, requests, metadata, left))
        self.begun.set()
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
    """Yield a shop that is open: each answer is of messages, and how they end."""
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
    """Return what makes the calls of a method of the shop."""
    kind = {"Get": "unary_unary", "Add": "stream_unary", "List": "unary_stream"}
    return getattr(channel, kind.get(method, "stream_stream"))(f"/shop.Cart/{method}")


@contextlib.contextmanager
def opened(cart, *others, **settings):
    """Yield a channel to a shop, or an address, whose calls are made again."""
    address = cart if isinstance(cart, str) else cart.address
    again = RetryInterceptor(**settings)
    with grpc.insecure_channel(address, OPTIONS) as channel:
        yield grpc.intercept_channel(channel, again, *others)
