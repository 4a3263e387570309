"""The smallest change after which a server recovers, found by simulations."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, final

from retrykit._core.limits import most_attempts
from retrykit._core.policy import Policy
from retrykit._core.timeouts import AsArgument
from retrykit._internal.binary_search import first_where
from retrykit._internal.durations import Duration, format_duration
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import (
    LARGEST,
    check_instance,
    check_integer,
    invalid_setting,
    user_facing,
)
from retrykit.budgets._base import Budget
from retrykit.budgets._fleet import FleetBudget
from retrykit.budgets._ratio import RatioBudget
from retrykit.budgets._throttle import Throttle
from retrykit.budgets._token_bucket import TokenBucket
from retrykit.schedules._basic import constant
from retrykit.simulate._clients import Clients
from retrykit.simulate._load import Load
from retrykit.simulate._outage import Outage
from retrykit.simulate._progress import Watcher
from retrykit.simulate._results import Simulation
from retrykit.simulate._server import Server
from retrykit.simulate._simulate import check_clients, check_outage, run

__all__ = ["RUNS", "Change", "find_change", "smallest_change"]

RUNS: Final = 5
"""Number of simulations without a recovery that take as long as most searches."""

_SEEDS: Final = 3
_DELAYS: Final = (1, 2, 5, 10, 20, 30, 60)
_BUDGETS: Final[tuple[Callable[[], Budget], ...]] = (
    FleetBudget,
    lambda: RatioBudget(reserve=0),
    Throttle,
    TokenBucket,
)
# In parts of the timeout.
_PARTS: Final = 20
_LONGEST_TIMEOUT: Final = 1.5
_MOST_TIMEOUTS: Final = 100
_UNLIMITED: Final = 10


@final
class Change(Frozen):
    """A change after which a server recovers.

    Attributes:
        words: The change in words, such as ``max_attempts=3``, or ``no change``.
        clients: The clients after the change.
        server: The server after the change.
        simulation: What happens then.
    """

    __slots__ = ("clients", "server", "simulation", "words")
    words: str
    clients: tuple[Clients, ...]
    server: Server
    simulation: Simulation

    def __str__(self) -> str:
        return f"{self.words}: {self.simulation}"

    @property
    def policy(self) -> Policy:
        """The policy after the change, of the first clients if there are several."""
        return self.clients[0].policy


@user_facing
def smallest_change(  # noqa: PLR0913  as `simulate`
    policy: Policy | Clients | Sequence[Clients],
    *,
    load: Load = "70%",
    outage: Outage | Duration = "10s",
    server: Server | None = None,
    network: Duration = 0.001,
    late_answers: bool = False,
    horizon: Duration = 300.0,
    errors: Mapping[str, Exception] | None = None,
    seed: int = 1,
    progress: Callable[[str], object] | None = None,
) -> Change | None:
    """Search for the smallest change after which the server recovers.

    Changes of the policy come first, since they are the client's own, then changes of
    the server. The first of these that lets the server recover is returned:

    1. fewer attempts, but not fewer than two: as many as possible;
    2. a budget: `FleetBudget`, `RatioBudget` without a reserve, `Throttle`, or
       `TokenBucket`;
    3. a delay before each retry, ``constant(d).equal_jitter()``: as short as possible;
    4. a longer timeout of an attempt: as short as possible, up to about 1.5 times the
       outage, and at most 100 times as long as before;
    5. a bound of the server's queue: as high as possible, from the timeout down to
       half of it;
    6. the newest request first.

    Numbers are found by bisection, which assumes that all smaller changes fail and all
    greater ones succeed. A change succeeds if the server recovers with each of three
    seeds. A search rarely takes more than 25 simulations. With an SDK's retries, each
    simulation takes seconds; if the whole search may take more than a minute, a warning
    is logged before it begins. If the server does not recover without any retries
    either, 1 to 3 are left out.

    >>> from retrykit.simulate import smallest_change
    >>> print(smallest_change(Policy(), load="25%"))
    max_attempts=3: recovers 23.5 s after the outage

    Args:
        policy: As in `simulate`. All clients are changed.
        load: As in `simulate`.
        outage: As in `simulate`; not None.
        server: As in `simulate`, but not a chain.
        network: As in `simulate`.
        late_answers: As in `simulate`.
        horizon: As in `simulate`.
        errors: As in `simulate`.
        seed: The first of the three seeds. Integer, 0 to 2**53 - 3.
        progress: Called with each change, in words, before it is simulated.

    Returns:
        The change; None if no change is found. If the server recovers as it is, a
        change without any effect, ``"no change"``.

    Raises:
        ConfigError: An argument is invalid, or the policy cannot be simulated, as in
            `simulate`.
    """
    return find_change(
        policy,
        load=load,
        outage=outage,
        server=server,
        network=network,
        late_answers=late_answers,
        horizon=horizon,
        errors=errors,
        seed=seed,
        progress=progress,
        watcher=Watcher(runs=RUNS, name="this search"),
    )


def find_change(  # noqa: PLR0913  as `smallest_change`
    policy: object,
    *,
    outage: object,
    server: object,
    seed: object,
    progress: Callable[[str], object] | None,
    watcher: Watcher,
    **settings: Any,
) -> Change | None:
    """Search for a change, as `smallest_change` does.

    Args:
        policy: As in `smallest_change`.
        outage: As in `smallest_change`.
        server: As in `smallest_change`.
        seed: As in `smallest_change`.
        progress: As in `smallest_change`.
        watcher: Warns if the search takes a long time.
        settings: All others, as in `simulate`.
    """
    clients = tuple(check_clients(policy))
    failing = check_outage(outage)
    if failing is None:
        raise invalid_setting("outage", "an outage, to recover from", outage)
    place = check_instance("server", Server() if server is None else server, Server)
    first = check_integer("seed", seed, at_least=0, at_most=LARGEST - _SEEDS + 1)
    if progress is not None and not callable(progress):
        rule = "a function of a text, or None"
        raise invalid_setting("progress", rule, progress)
    search = _Search(settings | {"outage": failing}, first, progress, watcher)
    setup = _Setup(clients, place)
    if search.recovers("no change", setup):
        return search.change("no change", setup)
    without = _with_policies(setup, lambda each: each.replace(max_attempts=1))
    dials = _server_dials(setup)
    if search.recovers("no retries", without, seeds=1):
        dials = [*_retry_dials(setup), *_timeout_dials(setup, failing), *dials]
    else:
        dials = [*_timeout_dials(setup, failing), *dials]
    for dial in dials:
        found = search.turn(dial)
        if found is not None:
            return found
    return None


class _Setup(NamedTuple):
    """Clients and their server."""

    clients: tuple[Clients, ...]
    server: Server


class _Dial(NamedTuple):
    """A setting that can be changed by 1 to *steps* steps; 1 is the least change.

    Attributes:
        steps: Maximum number of steps; below 1 if the setting cannot be changed.
        turned: Returns the clients and their server after a number of steps.
        words: Returns the change by a number of steps, in words.
    """

    steps: int
    turned: Callable[[int], _Setup]
    words: Callable[[int], str]


@final
class _Search:
    """Simulates changes."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        seed: int,
        progress: Callable[[str], object] | None,
        watcher: Watcher,
    ) -> None:
        self._settings, self._seed, self._progress = settings, seed, progress
        self._watcher = watcher

    def recovers(
        self,
        words: str,
        setup: _Setup,
        seeds: int = _SEEDS,
    ) -> bool:
        """Return whether a server recovers with each of the first *seeds* seeds."""
        if self._progress is not None:
            self._progress(words)
        return all(
            self._simulate(setup, seed).outcome == "recovers"
            for seed in range(self._seed, self._seed + seeds)
        )

    def _simulate(self, setup: _Setup, seed: int) -> Simulation:
        return run(
            setup.clients,
            server=setup.server,
            seed=seed,
            watcher=self._watcher,
            **self._settings,
        )

    def turn(self, dial: _Dial) -> Change | None:
        """Return the least change of a setting that lets the server recover.

        None if the greatest change does not, or if the setting cannot be changed.
        """

        def recovers(step: int) -> bool:
            return self.recovers(dial.words(step), dial.turned(step))

        if dial.steps < 1 or not recovers(dial.steps):
            return None
        step = first_where(recovers, 1, dial.steps)
        return self.change(dial.words(step), dial.turned(step))

    def change(self, words: str, setup: _Setup) -> Change:
        """Return a change, with its simulation with the first seed."""
        result = self._simulate(setup, self._seed)
        return Change(
            words=words, clients=setup.clients, server=setup.server, simulation=result
        )


def _with_policies(setup: _Setup, change: Callable[[Policy], Policy]) -> _Setup:
    changed = (each.replace(policy=change(each.policy)) for each in setup.clients)
    return setup._replace(clients=tuple(changed))


def _retry_dials(setup: _Setup) -> Iterator[_Dial]:
    policies = [each.policy for each in setup.clients]
    most = max(most_attempts(policy) or _UNLIMITED for policy in policies)

    def with_attempts(step: int) -> _Setup:
        left = most - step
        return _with_policies(
            setup,
            lambda each: each.replace(
                max_attempts=min(most_attempts(each) or left, left)
            ),
        )

    if most == 1:
        return
    # At least one retry is left.
    yield _Dial(most - 2, with_attempts, lambda step: f"max_attempts={most - step}")
    for budget in _BUDGETS:
        yield _budget_dial(setup, budget())
    longest = max(_first_delay(policy) for policy in policies)
    delays = [each for each in _DELAYS if each > longest]

    def with_delay(step: int) -> _Setup:
        schedule = constant(delays[step - 1]).equal_jitter()
        return _with_policies(
            setup,
            lambda each: each.replace(
                schedule=schedule,
                max_attempts=each.max_attempts or most_attempts(each),
            ),
        )

    yield _Dial(
        len(delays),
        with_delay,
        lambda step: f"schedule=constant('{delays[step - 1]}s').equal_jitter()",
    )


def _first_delay(policy: Policy) -> float:
    bounds = policy.schedule.bounds(1)
    return 0.0 if bounds is None else bounds[1]


def _budget_dial(setup: _Setup, budget: Budget) -> _Dial:
    def with_budget(_: int) -> _Setup:
        return _with_policies(setup, lambda each: each.replace(budget=budget))

    return _Dial(1, with_budget, lambda _: f"budget={budget!r}")


def _timeout_dials(setup: _Setup, outage: Outage) -> Iterator[_Dial]:
    shortest = min(each.timeout for each in setup.clients)
    # In whole timeouts: one more is the least change.
    steps = min(
        _MOST_TIMEOUTS, math.ceil(_LONGEST_TIMEOUT * outage.duration / shortest)
    )

    def with_timeout(step: int) -> _Setup:
        timeout = (step + 1) * shortest
        changed = (_longer(each, max(timeout, each.timeout)) for each in setup.clients)
        return setup._replace(clients=tuple(changed))

    name = "timeout"
    if any(each.policy.attempt_timeout is not None for each in setup.clients):
        name = "attempt_timeout"
    yield _Dial(
        steps - 1,
        with_timeout,
        lambda step: f"{name}='{format_duration((step + 1) * shortest)}'",
    )


def _longer(clients: Clients, timeout: float) -> Clients:
    policy = clients.policy
    own = policy.attempt_timeout
    if isinstance(own, AsArgument):
        policy = policy.replace(attempt_timeout=own.replace(seconds=timeout))
    elif own is not None:
        policy = policy.replace(attempt_timeout=timeout)
    changed: Clients = clients.replace(policy=policy, timeout=timeout)
    return changed


def _server_dials(setup: _Setup) -> list[_Dial]:
    server = setup.server
    unit = min(each.timeout for each in setup.clients) / _PARTS
    own = math.inf if server.queue_bound is None else server.queue_bound
    bounds = [
        part * unit
        # A lower one rejects too much in normal times.
        for part in range(_PARTS, _PARTS // 2 - 1, -1)
        if part * unit < own and part * unit * server.capacity >= 1
    ]

    def with_bound(step: int) -> _Setup:
        return setup._replace(server=server.replace(queue_bound=bounds[step - 1]))

    bounding = _Dial(
        len(bounds),
        with_bound,
        lambda step: f"server: queue_bound='{format_duration(bounds[step - 1])}'",
    )
    newest = setup._replace(server=server.replace(order="newest_first"))
    turning = _Dial(1, lambda _: newest, lambda _: "server: order='newest_first'")
    return [bounding, *([turning] if server.order == "oldest_first" else [])]
