"""Clients whose attempts have layers: limits, hedges, an SDK's retries, connections."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, final

from retrykit.simulate._admission import check_limits
from retrykit.simulate._calls import Process, Rules, check_policy
from retrykit.simulate._clients import Clients, Told
from retrykit.simulate._deal import deal
from retrykit.simulate._events import Events, nanoseconds
from retrykit.simulate._failures import OWN_TIMEOUT
from retrykit.simulate._hedges import Hedges
from retrykit.simulate._load import Arrivals, ClosedLoad
from retrykit.simulate._recorder import Recorder
from retrykit.simulate._requests import (
    NEVER,
    Connections,
    Layer,
    Line,
    Request,
    Whole,
)
from retrykit.simulate._retries import Draws, Retries

__all__ = ["LayeredClients", "LayeredFleet", "check_layers", "has_layers"]


class LayeredClients(NamedTuple):
    """Clients, with the decisions of their policy and of their SDK's.

    Attributes:
        clients: The clients.
        rules: The decisions of their policy.
        sdk: The SDK below them, as clients, and its decisions; None without an SDK.
    """

    clients: Clients
    rules: Rules
    sdk: tuple[Clients, Rules] | None


def has_layers(clients: Clients) -> bool:
    """Return whether clients have limits, a hedge, an SDK or limited connections."""
    policy = clients.policy
    parts = policy.admission, policy.hedge, clients.sdk, clients.connections
    return any(parts)


def check_layers(
    clients: Clients, errors: Sequence[Exception], needed: int | None
) -> LayeredClients:
    """Return clients with the decisions of their policies, if they can be simulated.

    Args:
        clients: The clients.
        errors: The error of each way to fail, with those of layers.
        needed: The way to fail that they must retry; None if they need not retry any.

    Raises:
        ConfigError: They cannot.
    """
    check_limits(clients.policy)
    rules = check_policy(clients.policy, errors, needed, OWN_TIMEOUT)
    if clients.sdk is None:
        return LayeredClients(clients, rules, None)
    below = Clients(clients.sdk, processes=clients.processes, timeout=clients.timeout)
    of_sdk = check_policy(clients.sdk, errors, needed, OWN_TIMEOUT)
    return LayeredClients(clients, rules, (below, of_sdk))


@final
class LayeredFleet:
    """All clients, while the simulation runs, like `Fleet`.

    Args:
        populations: The clients, with the decisions of their policies.
        events: The events of the simulation.
        recorder: Counts what happens.
        load: When calls begin; None if a server makes them.
        seed: The seed of the simulation.
        late_answers: Whether the answer to an attempt that has timed out ends its call.
        made_by: The process of each call; by default, each is drawn.
        told: Called with each attempt that has ended.
    """

    def __init__(  # noqa: PLR0913  as `Fleet`
        self,
        populations: Sequence[LayeredClients],
        events: Events,
        recorder: Recorder,
        load: Arrivals | None,
        *,
        seed: int,
        late_answers: bool,
        made_by: Sequence[int] | None = None,
        told: Told | None = None,
    ) -> None:
        self._events, self._recorder, self._load = events, recorder, load
        self._line = Line(events, recorder, late_answers=late_answers)
        self._told = told
        self._seed = seed
        self._draws = Draws(seed, "delays")
        self._draws_of_sdk = Draws(seed, "delays of the SDK")
        processes = [
            [self._process(each) for _ in range(each.clients.processes)]
            for each in populations
        ]
        shares = [each.clients.share for each in populations]
        self._next_process = deal(processes, shares, seed, made_by)

    def _process(self, layers: LayeredClients) -> Retries:
        """Return the retries of a new process, above its other layers."""
        clients, line = layers.clients, self._line
        timeout = nanoseconds(clients.timeout)
        below: Layer = Connections(line, timeout, clients.connections)
        if layers.sdk is not None:
            sdk = Process(*layers.sdk)
            below = Retries(sdk, line, self._draws_of_sdk, below)
        process = Process(clients, layers.rules)
        if clients.policy.hedge is not None:
            below = Hedges(process, line, below)
        return Retries(process, line, self._draws, below, self._told)

    def start(self, send: Callable[[Any], None]) -> None:
        """Begin calls, whose attempts are sent to the server."""
        self._line.send = send
        if self._load is not None:
            self._load.start(self._events, self._seed, self._begin)

    def _begin(self, user: int | None) -> None:
        """Begin a call by one of the processes."""
        load = self._load

        def end(_: object) -> None:
            if isinstance(load, ClosedLoad):
                load.end(user)

        self.begin(user, end)

    def begin(self, user: int | None, end: Callable[[int | None], None]) -> None:
        """Begin a call by one of the processes.

        Args:
            user: The number of the user who makes it; None if no user does.
            end: Called with how it failed; None means success.
        """
        recorder, whole = self._recorder, Whole(user)
        began = self._events.now

        def done(failure: int | None) -> None:
            whole.active = False
            if failure is None:
                recorder.succeed(began, self._events.now)
            else:
                recorder.give_up(self._events.now)
            end(failure)

        call = self._next_process().prepare(whole, NEVER, done)
        whole.call, whole.succeed = call.call, call.succeed
        recorder.begin(began)
        call.begin()

    def awaits(self, request: Request) -> bool:
        """Return whether a client still waits for the answer to a request."""
        late = self._line.late_answers and request.whole.active
        return request.open or late

    def answer(self, request: Request, failure: int | None) -> None:
        """Handle the server's answer; *failure* is None for a success."""
        if request.open:
            request.connections.end(request, succeeded=failure is None)
            request.done(failure)
        elif failure is None and self.awaits(request):
            request.whole.succeed()
