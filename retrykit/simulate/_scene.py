"""All that a simulation depends on, and the decisions of its clients."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast, final

from retrykit._core.decision import EPSILON, find_hint
from retrykit._core.policy import Policy
from retrykit.errors import Signal
from retrykit.schedules._base import is_memoryless
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
        populations: The clients, with the decisions of their policies; empty if some
            of them have layers.
        layers: The clients with their layers; empty if no clients have layers.
        made_by: The process of each call; None if each is drawn.
        load: When the calls of the clients begin.
        servers: The servers of a chain, the first of which gets the clients' requests.
        between: For each two servers in a row, the clients with which one calls the
            next.
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
    """The decisions of one population of clients.

    Attributes:
        rules: All decisions of the clients' policy.
        kinds: Whether the schedule alone decides, for each way to fail.
        most: Maximum number of attempts, or infinity.
        limit: A retry before this time, in seconds since the call began, is made.
        over: A retry after this time, in seconds since the call began, is not made.
        delays: The lowest delay before a retry, and its step for each unit of the draw;
            the step is None if the delay depends on more than that.
        time_limit: When the attempts of a call are ended, in nanoseconds since it
            began; None if no such limit applies.
        timeout: When an attempt is ended, in nanoseconds since it was sent.
        draws: The draws of all calls, if the policy has a seed; None otherwise.
        remembers: Whether decisions depend on earlier failures of a call.
        budgets: The budget of each process; each is None if the policy has no budget.
    """

    __slots__ = (
        "budgets",
        "delays",
        "draws",
        "kinds",
        "limit",
        "most",
        "over",
        "remembers",
        "rules",
        "time_limit",
        "timeout",
    )

    def __init__(self, clients: Clients, rules: Rules) -> None:
        self.rules, policy = rules, clients.policy
        kinds, self.most, self.limit, self.delays, self.time_limit = rules.by_schedule()
        allowed, self.over = policy.max_elapsed, math.inf
        if allowed is not None and policy.deadline == "stop" and policy.limits == "any":
            self.over = allowed + EPSILON
        self.remembers = False
        if not rules.forgetful:
            alone = not policy.rules and policy.limits == "any"
            self.remembers = not alone or not is_memoryless(policy.schedule)
            kinds = [
                not self.remembers and _has_no_hint(policy, rules, kind)
                for kind in range(len(kinds))
            ]
        self.kinds = kinds
        self.timeout = nanoseconds(clients.timeout)
        seed = policy.seed
        self.draws = None if seed is None else SharedDraws(seed)
        self.budgets = [new_budget(policy.budget) for _ in range(clients.processes)]

    def delay_after(
        self, call: tuple[Any, ...], attempt: int, now: int, kind: int
    ) -> float | None:
        """Return the delay before the next attempt, in seconds; None if none follows.

        Args:
            call: When the call began, its draws, and its number among the calls that
                share them; last, if `remembers`, a list that this method fills.
            attempt: The number of the attempt, from 1.
            now: When the attempt failed, in nanoseconds.
            kind: The way in which the attempt failed.
        """
        began, draws, place, *_ = call
        if self.kinds[kind]:
            if attempt >= self.most:
                return None
            delay, step = self.delays[attempt]
            if step:
                delay += step * draws[attempt][place]
            elif step is None:
                delay = self.delays.draw(attempt, None, draws.seed + place)
            at = (now - began) / SECOND + delay
            if at < self.limit:
                return delay
            if at > self.over:
                return None
        known: list[Call] = call[-1] if self.remembers else []
        if not known:
            # No decision reads the process.
            known.append(Call(cast("Process", None), began, (draws, place), None))
        (asked,) = known
        asked.attempt = attempt
        return self.rules.delay_after(asked, now, kind)


def _has_no_hint(policy: Policy, rules: Rules, kind: int) -> bool:
    """Return whether a way to fail is retried, and asks for no delay of its own."""
    error = rules.error(kind)
    return (
        rules.retries(kind)
        and not isinstance(error, Signal)
        and find_hint(policy, error, None, rules.match(kind)) is None
    )
