"""The basin of no return: states from which the load does not recover by itself."""

import csv
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, final

from retrykit._core.policy import Policy
from retrykit._internal.durations import Duration
from retrykit._internal.frozen import Frozen, fields_of
from retrykit._internal.validation import (
    check_instance,
    check_integer,
    invalid_setting,
    user_facing,
)
from retrykit.simulate._clients import Clients
from retrykit.simulate._layered_fleet import has_layers
from retrykit.simulate._load import Load
from retrykit.simulate._outage import Outage
from retrykit.simulate._progress import Progress, Watcher, check_progress
from retrykit.simulate._server import Server
from retrykit.simulate._simulate import check_clients, run

__all__ = ["Basin", "basin", "find_basin"]

_HORIZON: Final = 60.0
_STEPS: Final = 10
_MOST_STEPS: Final = 100
_MOST: Final = 1_000_000
# Nothing fails in it, but a recovery is looked for after it.
_NO_TIME: Final = Outage(1e-9, begin=0)
# Both axes end at this much work, in timeouts.
_TIMEOUTS: Final = 3


@final
class Basin(Frozen):
    """States of a server and its clients, and whether the load recovers from each.

    Attributes:
        queue: Numbers of requests in the queue, in ascending order.
        pending: Numbers of calls that wait to retry, in ascending order.
        returns: For each number of pending calls, whether the load recovers from each
            length of the queue.
        settings: All settings, as they are written.
    """

    __slots__ = ("pending", "queue", "returns", "settings")
    queue: tuple[int, ...]
    pending: tuple[int, ...]
    returns: tuple[tuple[bool, ...], ...]
    settings: dict[str, Any]

    def __str__(self) -> str:
        lost = sum(row.count(False) for row in self.returns)
        states = len(self.queue) * len(self.pending)
        return f"the load does not come back from {lost} of {states} states"

    def to_dict(self) -> dict[str, Any]:
        """Return the basin as plain data, for JSON."""
        return fields_of(self) | {
            "queue": [*self.queue],
            "pending": [*self.pending],
            "returns": [[*row] for row in self.returns],
        }

    def to_json(self) -> str:
        """Return the basin as JSON."""
        return json.dumps(self.to_dict())

    def to_csv(self) -> str:
        """Return the basin as CSV, with a row for each state."""
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(["queue", "pending", "returns"])
        for pending, row in zip(self.pending, self.returns, strict=True):
            for queue, returned in zip(self.queue, row, strict=True):
                rows.writerow([queue, pending, int(returned)])
        return text.getvalue()


@user_facing
def basin(  # noqa: PLR0913  as `simulate`
    policy: Policy | Clients | Sequence[Clients],
    *,
    load: Load = "70%",
    server: Server | None = None,
    network: Duration = 0.001,
    late_answers: bool = False,
    horizon: Duration = _HORIZON,
    errors: Mapping[str, Exception] | None = None,
    seed: int = 1,
    queue: int | None = None,
    pending: int | None = None,
    steps: int = _STEPS,
    progress: Progress | None = None,
) -> Basin:
    """Find by simulation the states from which the load does not recover by itself.

    There is no outage, but the simulation begins with requests in the queue for which
    no client waits any more, and with calls whose first attempt has timed out, and
    which retry it within the delay of the policy. Where the load does not recover, the
    end of an outage does not help: the load must be taken away, or the queue.

    >>> from retrykit import Policy
    >>> three_retries = Policy(schedule=[0, 0, 0])
    >>> found = basin(three_retries, load="60%", queue=200, pending=200, steps=2)
    >>> found.queue, found.returns
    ((0, 100, 200), ((True, True, False), (True, False, False), (False, False, False)))

    Args:
        policy: As in `simulate`.
        load: As in `simulate`.
        server: As in `simulate`, but not a chain.
        network: As in `simulate`.
        late_answers: As in `simulate`.
        horizon: How long to watch the load: the server must recover within three
            quarters of this time, and must not fail again when calls with long delays
            return. A duration, >= 10 s; 1 min by default.
        errors: As in `simulate`.
        seed: As in `simulate`.
        queue: The longest queue at the beginning. Count, 1 to 1,000,000; by default
            what the server serves in three timeouts, or less if its queue holds less.
        pending: The largest number of waiting calls. Count, 1 to 1,000,000; by default
            what the server serves in three timeouts.
        steps: Number of steps of each axis, from 0 to its largest number. Count,
            1 to 100; 10 by default, which makes up to 121 simulations.
        progress: Called after each simulation with the number of simulations so far,
            and the number of all simulations.

    Raises:
        ConfigError: As in `simulate`, or the clients have limits, a hedge, an SDK or
            a number of connections.

    Source:
        The phases of a queue and its retries, arXiv 2510.03551, 2025.
    """
    return find_basin(
        policy,
        load=load,
        server=server,
        network=network,
        late_answers=late_answers,
        horizon=horizon,
        errors=errors,
        seed=seed,
        queue=queue,
        pending=pending,
        steps=steps,
        progress=progress,
    )


def find_basin(  # noqa: PLR0913  as `basin`
    policy: object,
    *,
    server: object,
    queue: object = None,
    pending: object = None,
    steps: object = _STEPS,
    progress: object = None,
    horizon: object = _HORIZON,
    watcher: Callable[..., Watcher] = Watcher,
    **settings: Any,
) -> Basin:
    """Find the states from which the load does not recover, as `basin` does.

    Args:
        policy: As in `basin`.
        server: As in `basin`.
        queue: As in `basin`.
        pending: As in `basin`.
        steps: As in `basin`.
        progress: As in `basin`.
        horizon: As in `basin`.
        watcher: Makes the watcher that warns if the simulations take a long time.
        settings: All others, as in `simulate`.
    """
    clients = check_clients(policy)
    for each in clients:
        if has_layers(each):
            rule = "clients whose attempts are one request each"
            suggestion = "leave out the limits, the hedge, the SDK and connections"
            raise invalid_setting("policy", rule, each, suggestion, code="not-here")
    place = check_instance("server", Server() if server is None else server, Server)
    parts = check_integer("steps", steps, at_least=1, at_most=_MOST_STEPS)
    told = check_progress(progress)
    usual = max(math.ceil(_TIMEOUTS * clients[0].timeout * place.capacity), 1)
    bound = place.most_waiting
    longest = usual if bound is None else min(usual, bound)
    queues = _axis("queue", longest if queue is None else queue, parts)
    calls = _axis("pending", usual if pending is None else pending, parts)
    used: dict[str, Any] = {}
    returns: list[tuple[bool, ...]] = []
    states = len(queues) * len(calls)
    warned = watcher(runs=states, name="this basin")
    for waiting in calls:
        row = []
        for length in queues:
            found = run(
                clients,
                outage=_NO_TIME,
                server=place,
                watcher=warned,
                state=(length, waiting),
                until_rest=True,
                horizon=horizon,
                **settings,
            )
            used = found.settings | {"outage": None}
            row.append(found.outcome == "recovers")
            if told is not None:
                told(len(returns) * len(queues) + len(row), states)
        returns.append(tuple(row))
    return Basin(queue=queues, pending=calls, returns=tuple(returns), settings=used)


def _axis(name: str, most: object, steps: int) -> tuple[int, ...]:
    """Return evenly spaced integers from 0 to *most*, without repetitions.

    Args:
        name: The name of the setting.
        most: The largest integer, given by the user.
        steps: Number of steps from 0 to it.
    """
    end = check_integer(name, most, at_least=1, at_most=_MOST)
    return tuple(dict.fromkeys(round(step * end / steps) for step in range(steps + 1)))
