"""What a recording and its simulation have in common, and where they differ."""

from itertools import groupby
from typing import Any, NamedTuple

from retrykit.errors import ConfigError
from retrykit.simulate import Clients, Simulation
from retrykit.simulate._events import SECOND
from retrykit.simulate._recorder import Recorder
from retrykit.simulate._results import summarize
from retrykit.simulate._simulate import run
from tests.reality.cell import NETWORK, Cell
from tests.reality.policies import build_policy
from tests.reality.rig import Recording

__all__ = ["MOST_LAG", "Comparison", "compare", "differences", "measured"]
__all__ += ["not_simulated", "replayed"]

MOST_LAG = 0.05
"""Where timers are later, in seconds, the processes say little: they do not count."""

NEAR, SHARE, LOOSE = 1.0, 0.05, 0.25
ATTEMPTS, PEAK = 0.03, 0.1


class Comparison(NamedTuple):
    """The results of the processes and of the simulation, and how they differ."""

    real: Simulation
    simulated: Simulation
    differences: list[str]


def compare(cell: Cell, recording: Recording) -> Comparison:
    """Simulate the recorded calls of a cell."""
    real, simulated = measured(cell, recording), replayed(cell, recording)
    return Comparison(real, simulated, differences(cell, real, simulated))


def differences(cell: Cell, real: Simulation, simulated: Simulation) -> list[str]:
    """Return in what a simulation differs by more than it may."""
    found = []
    if real.outcome != simulated.outcome:
        found.append(f"outcome: {real.outcome}, not {simulated.outcome}")
    elif real.recovery is not None and simulated.recovery is not None:
        allowed = max(NEAR, (LOOSE if cell.loose else SHARE) * real.recovery)
        if abs(simulated.recovery - real.recovery) > allowed:
            found.append(f"recovery: {real.recovery:g} s, not {simulated.recovery:g} s")
    begin, end = int(cell.outage.begin), int(cell.outage.begin + cell.outage.duration)
    pairs = {
        "attempts per call": (real.amplification, simulated.amplification, ATTEMPTS),
        "attempts in the outage": (
            sum(real.load[begin:end]),
            sum(simulated.load[begin:end]),
            ATTEMPTS,
        ),
        "peak": (real.peak, simulated.peak, PEAK),
    }
    for name, (one, other, allowed) in pairs.items():
        if abs(other - one) > allowed * one:
            found.append(f"{name}: {one:.4g}, not {other:.4g}")
    return found


def measured(cell: Cell, recording: Recording) -> Simulation:
    """Return the result of the processes, which is counted as a simulated one is."""
    counted = Recorder(round(cell.end))
    for begun, _, succeeded, given_up in recording.calls:
        counted.begin(begun)
        if succeeded is not None:
            counted.succeed(begun, succeeded)
        if given_up is not None:
            counted.give_up(given_up)
    for sent, first, succeeded in recording.attempts:
        counted.send(sent, first=first)
        counted.finish_request(sent, succeeded=succeeded)
    for moment in recording.refused:
        counted.refuse(moment)
    return summarize(
        counted,
        rate=0.0,
        outage=cell.outage,
        horizon=cell.horizon,
        settings={},
        seconds=len(counted.sent),
    )


def replayed(cell: Cell, recording: Recording) -> Simulation:
    """Return the result of a simulation of the recorded calls, by their clients."""
    times = [begun / SECOND for begun, *_ in recording.calls]
    made_by = [client for _, client, *_ in recording.calls]
    return run(clients_of(cell), load=times, made_by=made_by, **settings_of(cell))


def clients_of(cell: Cell) -> list[Clients]:
    sdk = build_policy(cell.sdk) if cell.sdk else None
    return [
        Clients(
            build_policy(name),
            processes=len([*equal]),
            timeout=cell.timeout,
            sdk=sdk,
            connections=cell.connections or None,
        )
        for name, equal in groupby(cell.fleet)
    ]


def settings_of(cell: Cell) -> dict[str, Any]:
    return {
        "outage": cell.outage,
        "server": cell.server,
        "network": NETWORK,
        "horizon": cell.horizon,
        "seed": cell.seed,
    }


def not_simulated(cell: Cell) -> str:
    """Return why a cell cannot be simulated; nothing if it can be."""
    try:
        run(clients_of(cell), load=[0.0], **settings_of(cell))
    except (ConfigError, TypeError) as error:
        return str(error)
    return ""
