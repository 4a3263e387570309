"""gRPC server with the interface of `benchmarks.faulty`.

A failed call is UNAVAILABLE; every second one has a pushback of 0 ms. Connections are
not counted. ``python -m benchmarks.faulty_grpc N``
"""

import asyncio
import sys
from typing import Any

import grpc
from grpc import aio

from benchmarks.faulty import Counts, serve_counts

__all__: list[str] = []


async def _serve(every: int) -> None:
    loop, ended, counts = asyncio.get_running_loop(), asyncio.Event(), Counts()

    async def answer(_request: bytes, context: aio.ServicerContext[Any, Any]) -> bytes:
        nonlocal counts
        number = counts.requests + 1
        fails = bool(every) and number % every == 0
        counts = counts._replace(requests=number, faults=counts.faults + fails)
        if fails:
            pushback = [("grpc-retry-pushback-ms", "0")] * (counts.faults % 2)
            await context.abort(grpc.StatusCode.UNAVAILABLE, "busy", tuple(pushback))
        return b"ok"

    async def stream(request: bytes, context: aio.ServicerContext[Any, Any]) -> Any:
        yield await answer(request, context)

    methods: dict[str, Any] = {
        "One": grpc.unary_unary_rpc_method_handler(answer),
        "Many": grpc.unary_stream_rpc_method_handler(stream),
    }
    server = aio.server()
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("shop.Cart", methods),)
    )
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    serve_counts(lambda: counts, lambda: loop.call_soon_threadsafe(ended.set))
    await ended.wait()
    await server.stop(None)


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
