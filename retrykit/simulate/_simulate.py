"""Simulation of a fleet of clients and their server."""

import math
from collections.abc import Mapping, Sequence
from typing import Final, cast

from retrykit._core.policy import Policy
from retrykit._internal.clocks import sync_clock
from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.validation import (
    check_instance,
    check_integer,
    invalid_setting,
    user_facing,
)
from retrykit.simulate._calls import check_policy
from retrykit.simulate._clients import Clients, Fleet, Told
from retrykit.simulate._events import SECOND, Events, nanoseconds
from retrykit.simulate._failures import FAILED, REFUSED, TIMED_OUT, errors_of
from retrykit.simulate._load import Load, parse_load
from retrykit.simulate._outage import LONGEST, Outage
from retrykit.simulate._recorder import Recorder
from retrykit.simulate._results import Simulation, summarize
from retrykit.simulate._server import Server, SimulatedServer

__all__ = ["run", "simulate"]

_NEEDED: Final = {"hang": TIMED_OUT, "refuse": REFUSED, "error": FAILED}
_SHORTEST: Final = 10.0
_NEAR: Final = 1e-6


class VirtualClock:
    """The clock that budgets read."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def now(self) -> float:
        """Return the virtual time, in seconds."""
        return self._events.now / SECOND

    def sleep(self, delay: float, /) -> None:
        """Do nothing: no code that sleeps is simulated."""


@user_facing
def simulate(  # noqa: PLR0913  all but the first have defaults
    policy: Policy | Clients | Sequence[Clients],
    *,
    load: Load = "70%",
    outage: Outage | Duration | None = "10s",
    server: Server | None = None,
    network: Duration = 0.001,
    late_answers: bool = False,
    horizon: Duration = 300.0,
    errors: Mapping[str, Exception] | None = None,
    seed: int = 1,
) -> Simulation:
    """Simulate what the clients of a server do to it after an outage.

    Every decision is that of the policy, and every process of the fleet has a budget of
    its own. The same arguments give the same result on any machine.

    >>> from retrykit import Policy
    >>> from retrykit.budgets import Throttle
    >>> three_retries = Policy(schedule=[0, 0, 0])
    >>> print(simulate(three_retries, load="60%", horizon="60s"))
    does not recover within 1 min: 4.0 times its load
    >>> print(simulate(three_retries.replace(budget=Throttle()), load="60%"))
    recovers 22.5 s after the outage

    Args:
        policy: The policy of all calls, in 100 processes; or `Clients`, or a list of
            them, to choose the number of processes and more.
        load: Share of the server's capacity that calls take without an outage, such as
            ``"70%"`` or 0.7: calls begin independently of each other. Or `Users`, who
            wait for the end of a call before they make the next one. Or the times of
            recorded calls in seconds, in ascending order.
        outage: The `Outage`, or the duration of one in which the server hangs, from
            10 s on; None is none.
        server: The server; by default ``Server()``, of 100 requests per second.
        network: Time from a client to the server. A duration, >= 1 us; 1 ms by
            default.
        late_answers: Whether the answer to an attempt that has timed out still ends its
            call, as where requests have ids on one connection. False by default, as for
            a connection for each attempt.
        horizon: How long to watch the time after the outage. A duration, 10 s to
            1,000,000 s; 5 min by default.
        errors: What the client raises, for the conditions and hints of the policy, by
            ``"timeout"``, ``"refused"`` and ``"unavailable"``. By default a
            `TimeoutError` (an `AttemptTimeout` if the policy has one), a
            `ConnectionRefusedError`, and an error whose ``response`` has status 503.
        seed: Seed of all draws. Integer, >= 0.

    Raises:
        ConfigError: An argument is invalid, the load is not below the capacity, or the
            policy cannot be simulated: it does not retry the error of the outage, has
            code that fails on that error, or has settings that are not simulated.
    """
    return run(
        policy,
        load=load,
        outage=outage,
        server=server,
        network=network,
        late_answers=late_answers,
        horizon=horizon,
        errors=errors,
        seed=seed,
    )


def run(  # noqa: PLR0913  as `simulate`
    policy: object,
    *,
    load: object,
    outage: object = None,
    server: object = None,
    network: object = 0.001,
    late_answers: object = False,
    horizon: object = 300.0,
    errors: object = None,
    seed: object = 1,
    told: Told | None = None,
) -> Simulation:
    """Simulate, as `simulate` does, and tell of each attempt."""
    if not isinstance(late_answers, bool):
        raise invalid_setting("late_answers", "True or False", late_answers)
    whole = _check_clients(policy)
    place = check_instance("server", Server() if server is None else server, Server)
    failing = _check_outage(outage)
    begin = check_integer("seed", seed, at_least=0)
    seconds = parse_duration("horizon", horizon)
    if not _SHORTEST <= seconds <= LONGEST:
        raise invalid_setting("horizon", "a duration from 10 s to 1,000,000 s", horizon)
    delay = parse_duration("network", network)
    if not _NEAR <= delay <= LONGEST:
        rule = "a duration from 1 us on, as an attempt takes some time"
        raise invalid_setting("network", rule, network)
    arrivals = parse_load(load, place)
    raised = errors_of(failing, errors)
    needed = TIMED_OUT if failing is None else _NEEDED[failing.kind]
    populations = [(each, check_policy(each.policy, raised, needed)) for each in whole]
    settings = {
        "clients": [repr(each) for each in whole],
        "load": arrivals.text,
        "outage": None if failing is None else repr(failing),
        "server": repr(place),
        "network": delay,
        "late_answers": late_answers,
        "horizon": seconds,
        "errors": [repr(each) for each in raised],
        "seed": begin,
    }
    ended = 0.0 if failing is None else failing.begin + failing.duration
    recorder = Recorder(math.ceil(ended + seconds))
    events = Events()
    fleet = Fleet(
        populations,
        events,
        recorder,
        arrivals,
        seed=begin,
        network=nanoseconds(delay),
        late_answers=late_answers,
        told=told,
    )
    serving = SimulatedServer(place, failing, events, begin, fleet)
    fleet.start(serving.receive)
    with sync_clock.use(VirtualClock(events), "a simulation"):
        events.run(recorder.end)
        # Attempts that count may end later.
        while recorder.pending:
            events.run(events.now + SECOND)
    return summarize(recorder, arrivals.normal, failing, seconds, settings)


def _check_clients(policy: object) -> list[Clients]:
    if isinstance(policy, Policy):
        return [Clients(policy)]
    if isinstance(policy, Clients):
        return [policy]
    given = [*policy] if isinstance(policy, Sequence) else []
    if not given or not all(isinstance(each, Clients) for each in given):
        raise invalid_setting("policy", "a Policy, Clients, or a list of these", policy)
    return given


def _check_outage(outage: object) -> Outage | None:
    if outage is None or isinstance(outage, Outage):
        return outage
    return Outage(cast("Duration", outage))
