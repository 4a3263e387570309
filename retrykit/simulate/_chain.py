"""Chains of servers, in which each server calls the next one as clients do."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from retrykit._core.timeouts import timeout_seconds
from retrykit._internal.validation import invalid_setting
from retrykit.simulate._clients import Clients, Fleet
from retrykit.simulate._events import SECOND, Events, nanoseconds
from retrykit.simulate._layered_fleet import LayeredClients, LayeredFleet
from retrykit.simulate._outage import Outage
from retrykit.simulate._recorder import Recorder
from retrykit.simulate._server import Begin, Server, SimulatedServer

__all__ = ["Chain", "check_chain", "check_slots", "check_timeouts", "start_chain"]

_RULE: Final = "a Server, or a list of servers and, between each two, Clients"
# Far from each other, so that the servers have draws of their own.
_SEEDS: Final = 1 << 64


class Chain(NamedTuple):
    """Servers, the first of which gets the requests of the clients.

    Attributes:
        servers: The servers, one or more.
        between: For each two in a row, the clients with which one calls the next.
    """

    servers: tuple[Server, ...]
    between: tuple[Clients, ...]


def check_chain(value: object) -> Chain:
    """Return *value* as a chain of servers; None means a single default server.

    Raises:
        ConfigError: It is not a chain.
    """
    if value is None or isinstance(value, Server):
        return Chain((value or Server(),), ())
    given = [*value] if isinstance(value, Sequence) else []
    servers, between = given[::2], given[1::2]
    right = all(isinstance(each, Server) for each in servers)
    right = right and all(isinstance(each, Clients) for each in between)
    if not right or len(servers) != len(between) + 1:
        suggestion = "write server=[Server(...), Clients(policy), Server(...)]"
        raise invalid_setting("server", _RULE, value, suggestion)
    return Chain(tuple(servers), tuple(between))


def check_slots(chain: Chain, rate: float, network: float) -> None:
    """Raise an error unless each server has enough slots for the load.

    A request also holds its slot while the server waits for the next server.

    Args:
        chain: The servers.
        rate: Calls per second, each of which is a request to every server.
        network: Time from a client to its server, in seconds.

    Raises:
        ConfigError: A server cannot serve the load.
    """
    time = 0.0
    for server in reversed(chain.servers):
        time += server.slots / server.capacity
        if rate * time >= server.slots:
            rule = (
                f"above {rate * time:.3g}, as each request holds one for {time:.3g} s"
            )
            suggestion = "while the server waits for the next one"
            raise invalid_setting(
                "slots", rule, server.slots, suggestion, code="contradiction"
            )
        time += network


def check_timeouts(chain: Chain, clients: Sequence[Clients], network: float) -> None:
    """Raise an error if no attempt of some client can succeed before its timeout.

    Args:
        chain: The servers. A server with random service times may be quick.
        clients: The clients of the first one.
        network: Time from a client to its server, in seconds.

    Raises:
        ConfigError: Every attempt of some client would time out.
    """
    least = 0
    callers = [clients, *([each] for each in chain.between)]
    for server, calling in zip(reversed(chain.servers), reversed(callers), strict=True):
        if server.service == "constant":
            least += nanoseconds(server.slots / server.capacity)
        least += nanoseconds(network)
        for each in calling:
            for name, timeout in _timeouts(each):
                if nanoseconds(timeout) <= least:
                    rule = f"above {least / SECOND:g} s, the least time of a request"
                    suggestion = "no attempt could succeed; wait longer, or give the "
                    suggestion += "server more capacity or less slots"
                    raise invalid_setting(
                        name, rule, timeout, suggestion, code="contradiction"
                    )


def _timeouts(clients: Clients) -> Iterator[tuple[str, float]]:
    """Yield the timeouts within which a request of clients must succeed."""
    own = timeout_seconds(clients.policy.attempt_timeout)
    if own != clients.timeout:
        yield "timeout", clients.timeout
    if own is not None:
        yield "attempt_timeout", own


def start_chain(  # noqa: PLR0913
    servers: Sequence[Server],
    layers: Sequence[LayeredClients],
    outage: Outage | None,
    events: Events,
    *,
    clients: Fleet | LayeredFleet,
    seconds: int,
    seed: int,
    network: int,
    late_answers: bool,
) -> tuple[SimulatedServer, list[Recorder]]:
    """Make the servers of a chain, and begin the calls of the clients.

    Args:
        servers: The servers.
        layers: The clients between each two, with the decisions of their policies.
        outage: The outage of the last one.
        events: The events of the simulation.
        clients: The clients of the first one.
        seconds: How long the simulation lasts.
        seed: The seed of the simulation.
        network: Time from a client to its server, in nanoseconds.
        late_answers: Whether the answer to an attempt that has timed out ends its call.

    Returns:
        The first server, and the counts of the requests to each server behind it.
    """
    recorders: list[Recorder] = []
    begin: Begin | None = None
    for index in reversed(range(1, len(servers))):
        recorder, own_seed = Recorder(seconds), seed + index * _SEEDS
        fleet = LayeredFleet(
            [layers[index - 1]],
            events,
            recorder,
            None,
            seed=own_seed,
            late_answers=late_answers,
        )
        server = servers[index]
        serving = SimulatedServer(
            server, outage, events, own_seed, network, fleet, begin
        )
        fleet.start(serving.send)
        recorders.insert(0, recorder)
        begin, outage = fleet.begin, None
    serving = SimulatedServer(servers[0], outage, events, seed, network, clients, begin)
    clients.start(serving.send)
    return serving, recorders
