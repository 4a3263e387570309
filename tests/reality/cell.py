"""One run of real processes: who calls which server, and how it fails."""

import random
from dataclasses import dataclass, field

from retrykit.simulate import Outage, Server

__all__ = ["NETWORK", "Cell"]

NETWORK = 0.0015
"""How long a simulated request is on its way, in seconds: about as on loopback."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A run of real processes, and of the simulation that is held against it.

    Attributes:
        name: Its name in the table.
        fleet: The policy of each client by its name, equal ones in a row.
        load: Calls per second of all, as a share of the capacity.
        outage: How the server fails.
        server: The server.
        hosts: Number of real processes, which share the clients. By default each
            client is a process.
        sdk: The policy of an SDK beneath that of the client, by its name.
        connections: Number of connections of each client; 0 is unlimited.
        timeout: How long an attempt may take, in seconds.
        horizon: How long the time after the outage is, in seconds.
        loose: Whether the order of events that happen nearly together decides:
            the times to recovery may then differ by 25 %.
        cause: Why the two differ, if they do.
        seed: Of the arrivals, and of what the server draws.
    """

    name: str
    fleet: tuple[str, ...]
    load: float
    outage: Outage
    server: Server = field(default_factory=Server)
    hosts: int = 0
    sdk: str = ""
    connections: int = 0
    timeout: float = 1.0
    horizon: float = 25.0
    loose: bool = False
    cause: str = ""
    seed: int = 1

    @property
    def end(self) -> float:
        """The end of what is counted, in seconds since the beginning."""
        return self.outage.begin + self.outage.duration + self.horizon

    @property
    def processes(self) -> int:
        """Number of real processes of clients."""
        return self.hosts or len(self.fleet)

    def arrivals(self) -> list[tuple[float, int]]:
        """Return when calls are due, in seconds, each with the number of its client.

        They go on until the last attempt that counts has ended.
        """
        draws, due, found = random.Random(self.seed), 0.0, []
        while due < self.end + self.timeout:
            due += draws.expovariate(self.load * self.server.capacity)
            found.append((due, draws.randrange(len(self.fleet))))
        return found
