"""All that a simulation depends on, and the decisions of its clients."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast, final

from retrykit.schedules._randomness import SharedDraws
from retrykit.simulate._calls import Call, Process, Rules, new_budget
from retrykit.simulate._clients import Clients
from retrykit.simulate._events import SECOND, nanoseconds
from retrykit.simulate._layered_fleet import LayeredClients
from retrykit.simulate._load import Arrivals
from retrykit.simulate._outage import Outage
from retrykit.simulate._server import Server

__all__ = ["Plan", "Scene"]


@final
@dataclass(frozen=True)
class Scene:
    """All that a simulation depends on.

    Attributes:
        populations: The clients, with the decisions of their policies; none if some of
            them have layers.
        layers: The same, with their layers; none if no clients have layers.
        made_by: The process of each call; None if each is drawn.
        load: When their calls begin.
        servers: The servers of a chain, the first of which gets their requests.
        between: Between each two of them, the clients with which the first calls the
            second.
        outage: The outage of the last server.
        seed: The seed of all draws.
        network: Time from a client to its server, in nanoseconds.
        late_answers: Whether the answer to an attempt that has timed out ends its call.
        seconds: How long the simulation lasts.
    """

    populations: Sequence[tuple[Clients, Rules]]
    layers: Sequence[LayeredClients]
    made_by: Sequence[int] | None
    load: Arrivals
    servers: Sequence[Server]
    between: Sequence[LayeredClients]
    outage: Outage | None
    seed: int
    network: int
    late_answers: bool
    seconds: int

    @property
    def server(self) -> Server:
        """The server that gets the requests of the clients."""
        return self.servers[0]


@final
class Plan:
    """The decisions of one population of clients."""

    __slots__ = (
        "budgets",
        "delays",
        "draws",
        "kinds",
        "limit",
        "most",
        "rules",
        "time_limit",
        "timeout",
    )

    def __init__(self, clients: Clients, rules: Rules) -> None:
        self.rules = rules
        self.kinds, self.most, self.limit, self.delays, self.time_limit = (
            rules.by_schedule()
        )
        self.timeout = nanoseconds(clients.timeout)
        seed = clients.policy.seed
        # Those of all calls, if they share one seed.
        self.draws = None if seed is None else SharedDraws(seed)
        given = clients.policy.budget
        # Of each process.
        self.budgets = [new_budget(given) for _ in range(clients.processes)]

    def delay_after(
        self, call: tuple[Any, ...], attempt: int, now: int, kind: int
    ) -> float | None:
        """Return the delay before the next attempt; None if none follows.

        Args:
            call: When it began, its draws and its number among those.
            attempt: The number of the attempt.
            now: When it failed.
            kind: The way in which it failed.
        """
        began, draws, place, *_ = call
        if self.kinds[kind]:
            if attempt >= self.most:
                return None
            delay, step = self.delays[attempt]
            if step:
                delay += step * draws[attempt][place]
            if (now - began) / SECOND + delay < self.limit:
                return delay
        # No decision reads the process.
        asked = Call(cast("Process", None), began, (draws, place), None)
        asked.attempt = attempt
        return self.rules.delay_after(asked, now, kind)
