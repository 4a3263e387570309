"""A server hangs; each attempt is cut off, and the call ends at its deadline."""

import asyncio
from contextlib import suppress

from docs._site.sequences import Sequence
from retrykit import aretry

PARTIES = "client", "retrykit", "server"


def main(sequence: Sequence) -> None:
    """Call a server that never answers."""

    async def hang() -> None:
        await asyncio.sleep(3600)

    send = sequence.between("retrykit", "server", hang, "GET")
    limited = aretry(attempt_timeout="2s", max_elapsed="5s", schedule=["500ms"] * 9)(
        send
    )
    ask = sequence.between("client", "retrykit", limited, "orders()")
    loop = sequence.clock.new_event_loop
    with asyncio.Runner(loop_factory=loop) as runner, suppress(TimeoutError):
        runner.run(ask())
