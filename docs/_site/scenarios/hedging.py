"""One answer takes long; a second send of the same request is quicker."""

import asyncio

from docs._site.sequences import Sequence
from retrykit import Hedge, aretry

PARTIES = "client", "retrykit", "server 1", "server 2"


def main(sequence: Sequence) -> None:
    """Read from two servers, the first of which pauses."""
    latencies = {"server 1": 0.9, "server 2": 0.02}
    idle = [*latencies]

    async def answer(server: str) -> str:
        await asyncio.sleep(latencies[server])
        return "value"

    @aretry(hedge=Hedge("50ms", idempotent=True), attempt_timeout="2s")
    async def read(key: str) -> str:
        server = idle.pop(0)  # as a load balancer would choose
        send = sequence.between("retrykit", server, answer, f"read {key}")
        return await send(server)

    ask = sequence.between("client", "retrykit", read, "read({0})")
    with asyncio.Runner(loop_factory=sequence.clock.new_event_loop) as runner:
        runner.run(ask("a"))
