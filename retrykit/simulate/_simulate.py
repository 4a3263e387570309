"""Simulation of a fleet of clients and their server."""

import math
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Final, cast

from retrykit._core.policy import Policy
from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.validation import check_integer, invalid_setting, user_facing
from retrykit.simulate._calls import check_policy
from retrykit.simulate._chain import check_chain, check_slots, check_timeouts
from retrykit.simulate._clients import Clients, Told
from retrykit.simulate._engines import Engine, Run
from retrykit.simulate._estimate import estimate
from retrykit.simulate._events import nanoseconds
from retrykit.simulate._failures import (
    FAILED,
    REFUSED,
    TIMED_OUT,
    errors_of,
    errors_of_layers,
)
from retrykit.simulate._layered_fleet import check_layers, has_layers
from retrykit.simulate._load import Load, parse_load
from retrykit.simulate._outage import LONGEST, Outage
from retrykit.simulate._progress import (
    Progress,
    Watcher,
    attach_simulation,
    check_progress,
)
from retrykit.simulate._results import Simulation, summarize
from retrykit.simulate._scene import Scene
from retrykit.simulate._server import Server

__all__ = ["check_clients", "check_outage", "run", "simulate"]

_NEEDED: Final = {"hang": TIMED_OUT, "refuse": REFUSED, "error": FAILED}
_SHORTEST: Final = 10.0
_NEAR: Final = 1e-6


@user_facing
def simulate(  # noqa: PLR0913  all but the first have defaults
    policy: Policy | Clients | Sequence[Clients],
    *,
    load: Load = "70%",
    outage: Outage | Duration | None = "10s",
    server: Server | Sequence[Server | Clients] | None = None,
    network: Duration = 0.001,
    late_answers: bool = False,
    horizon: Duration = 300.0,
    errors: Mapping[str, Exception] | None = None,
    seed: int = 1,
    progress: Progress | None = None,
) -> Simulation:
    """Simulate what the clients of a server do to it after an outage.

    Every decision is the policy's own, and every process of the fleet has its own
    budget. The same arguments give the same result on any machine.

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
        outage: The `Outage`, or the duration of one in which the server hangs, from 10
            s on; None means no outage.
        server: The server; by default ``Server()``, of 100 requests per second. Or a
            chain of them: ``[Server(300, slots=50), Clients(policy), Server()]``, where
            each request to the first server, once it is served there, is a call of the
            `Clients` to the second. The request holds its slot until that call ends; if
            the call fails, the answer is a 503. The last server has the outage, and the
            load is a share of the lowest capacity.
        network: Time from a client to the server. A duration, 1 us to 1,000,000 s; 1 ms
            by default.
        late_answers: Whether the answer to an attempt that has timed out still ends its
            call, as if requests with ids shared a connection. False by default, as if
            each attempt had its own connection.
        horizon: How long to watch the time after the outage. A duration, 10 s to
            1,000,000 s; 5 min by default.
        errors: The errors that the client raises, for the conditions and hints of the
            policy, keyed by ``"timeout"``, ``"refused"``, ``"unavailable"``, and, where
            a server has failed to call the next one, ``"failed_call"``. By default a
            `TimeoutError`, a `ConnectionRefusedError`, and errors whose ``response``
            has status 503. A policy that ends attempts itself always raises an
            `AttemptTimeout`.
        seed: Seed of all draws. Integer, 0 to 2**53 - 1.
        progress: Called after each simulated second with the number of seconds so far,
            and the number of all seconds.

    A simulation that may take more than a minute logs a warning before it begins. A
    `KeyboardInterrupt` carries the seconds simulated so far: see `simulation_of`.

    Raises:
        ConfigError: An argument is invalid, the load is not below the capacity, or the
            policy cannot be simulated: it does not retry the error of the outage (a
            timeout without an outage), has code that fails on a simulated error, or has
            settings that are not simulated; or a server has too few slots for the load
            while it waits for the next one, or takes so long that no attempt can
            succeed before its timeout.
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
        watcher=Watcher(check_progress(progress)),
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
    watcher: Watcher | None = None,
    told: Told | None = None,
    made_by: Sequence[int] | None = None,
    state: tuple[int, int] | None = None,
    until_rest: bool = False,
    engine: Engine | None = None,
    hopeless: bool = False,
) -> Simulation:
    """Simulate, as `simulate` does.

    Args:
        policy: As in `simulate`.
        load: As in `simulate`.
        outage: As in `simulate`.
        server: As in `simulate`.
        network: As in `simulate`.
        late_answers: As in `simulate`.
        horizon: As in `simulate`.
        errors: As in `simulate`.
        seed: As in `simulate`.
        watcher: Is told how the simulation proceeds.
        told: Called with each attempt that has ended.
        made_by: The process of each recorded call: an index into the processes of all
            clients, one after another.
        state: The number of abandoned requests in the queue, and of calls that wait
            for their first retry, at the beginning; None if there are none.
        until_rest: Whether to stop as soon as the server has recovered, its queue is
            empty, and no call waits to retry.
        engine: The fastest engine that may be used; one that does not apply gives way
            to a slower one. By default the fastest one that pays off.
        hopeless: Whether to accept that no attempt can succeed, where only failures
            matter.
    """
    if not isinstance(late_answers, bool):
        raise invalid_setting("late_answers", "True or False", late_answers)
    whole = check_clients(policy)
    chain, failing = check_chain(server), check_outage(outage)
    begin = check_integer("seed", seed, at_least=0)
    rule = "a duration from 10 s to 1,000,000 s"
    after = _parse_bounded("horizon", horizon, _SHORTEST, rule)
    rule = "a duration from 1 us to 1,000,000 s, as an attempt takes some time"
    delay = _parse_bounded("network", network, _NEAR, rule)
    arrivals = parse_load(load, min(chain.servers, key=attrgetter("capacity")))
    check_slots(chain, arrivals.rate, delay)
    if not late_answers and not hopeless:
        check_timeouts(chain, whole, delay)
    raised = errors_of(failing, errors)
    needed: int | None = TIMED_OUT if failing is None else _NEEDED[failing.kind]
    of_layers = errors_of_layers(raised, errors)
    between = [check_layers(each, of_layers, needed) for each in chain.between]
    if between:
        # The clients get the answers of a server that works.
        raised, needed = of_layers, None
    populations, layers = [], []
    if any(map(has_layers, whole)):
        layers = [check_layers(each, of_layers, needed) for each in whole]
    else:
        populations = [
            (each, check_policy(each.policy, raised, needed)) for each in whole
        ]
    ended = 0.0 if failing is None else failing.begin + failing.duration
    scene = Scene(
        populations=populations,
        layers=layers,
        made_by=made_by,
        load=arrivals,
        servers=chain.servers,
        between=between,
        outage=failing,
        seed=begin,
        network=nanoseconds(delay),
        late_answers=late_answers,
        seconds=math.ceil(ended + after),
    )
    settings = {
        "clients": [repr(each) for each in whole],
        "load": arrivals.text,
        "outage": None if failing is None else repr(failing),
        "server": repr(chain.servers[0] if len(chain.servers) == 1 else server),
        "network": delay,
        "late_answers": late_answers,
        "horizon": after,
        "errors": [repr(each) for each in raised],
        "seed": begin,
    }
    watcher = watcher or Watcher()
    running = Run(scene, watcher, told)
    since = nanoseconds(ended) if until_rest else None
    chosen = running.choose(engine, state, since)
    watcher.expect(lambda: estimate(scene, chosen, state))

    def result(seconds: int) -> Simulation:
        return summarize(
            running.recorder,
            rate=arrivals.normal,
            usual=arrivals.rate,
            outage=failing,
            horizon=after,
            settings=settings,
            seconds=seconds,
            behind=running.behind,
        )

    try:
        running.run(engine, state, since)
    except KeyboardInterrupt as error:
        over = running.recorder.over
        if over:
            for each in (running.recorder, *running.behind):
                each.cut(over)
            attach_simulation(error, result(scene.seconds))
        raise
    return result(len(running.recorder.sent))


def _parse_bounded(name: str, value: object, least: float, rule: str) -> float:
    seconds = parse_duration(name, value)
    if not least <= seconds <= LONGEST:
        raise invalid_setting(name, rule, value)
    return seconds


def check_clients(policy: object) -> list[Clients]:
    """Return the clients that the argument *policy* of `simulate` describes."""
    if isinstance(policy, Policy):
        return [Clients(policy)]
    if isinstance(policy, Clients):
        return [policy]
    given = [*policy] if isinstance(policy, Sequence) else []
    if not given or not all(isinstance(each, Clients) for each in given):
        raise invalid_setting(
            "policy", "a Policy, Clients, or a list of Clients", policy
        )
    return given


def check_outage(outage: object) -> Outage | None:
    """Return the outage that the argument *outage* of `simulate` describes."""
    if outage is None or isinstance(outage, Outage):
        return outage
    return Outage(cast("Duration", outage))
